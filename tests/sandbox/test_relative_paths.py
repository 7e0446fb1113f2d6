"""A worker with a workspace grant runs in the workspace folder, so relative paths resolve there."""

import os
from pathlib import Path

import pytest

from sandbox import Access, FunctionCall, Job, Returned, Sandbox
from sandbox.processes.startup import LEVELS, Level
from tests.kit.drawing import sampled
from tests.sandbox import reaching
from tests.sandbox.support import modules

FILES = modules(
    files="""
    import os
    import tempfile
    from pathlib import Path

    def read() -> str:
        return open("data/a.csv").read()

    def tables() -> list[str]:
        return sorted(str(one) for one in Path("data").glob("*.csv"))

    def replace(self) -> str:
        with tempfile.NamedTemporaryFile("w", dir="data", delete=False) as file:
            file.write("new")
        os.replace(file.name, "data/a.csv")
        return open("data/a.csv").read()

    def around() -> list[str]:
        return os.listdir()

    def stands() -> bool:
        return os.path.samefile(os.getcwd(), os.environ["TMPDIR"])
    """
)


def world(root: Path) -> str:
    for folder in ("data", "secret"):
        root.joinpath(folder).mkdir()
        root.joinpath(folder, "a.csv").write_text("1")
    return str(root / "data")


@pytest.mark.sampled
@pytest.mark.parametrize("level", sampled(LEVELS, 2))
async def test_what_was_granted_is_found_by_its_relative_path(tmp_path: Path, level: Level) -> None:
    data = world(tmp_path)
    reading = Access(readable=(data,), home=str(tmp_path))
    writing = Access(writable=(data,), home=str(tmp_path))
    async with reaching.sandbox_at(level) as sandbox:
        if isinstance(sandbox, str):
            pytest.skip(f"no level {level} here: {sandbox}")
        calls = [
            ("read", "1", reading),
            ("tables", ["data/a.csv"], reading),
            ("replace", "new", writing),
        ]
        if level == "full":  # a listing of the workspace shows only what was granted
            calls.append(("around", ["data"], reading))
        for name, value, access in calls:
            outcome = await sandbox.run(Job(FILES, "files", FunctionCall(name, {}), access=access))
            assert isinstance(outcome, Returned), (name, outcome)
            assert outcome.value == value
    assert sorted(os.listdir(data)) == ["a.csv"]  # noqa: PTH208


async def test_without_a_home_a_worker_stands_in_its_scratch_folder(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    outcome = await sandbox.run(
        Job(FILES, "files", FunctionCall("stands", {}), access=Access(readable=(world(tmp_path),)))
    )
    assert isinstance(outcome, Returned), outcome
    assert outcome.value is True
