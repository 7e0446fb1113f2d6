"""Requirements are resolved, shown, installed once, found again, and removed when nobody wants them."""

import asyncio
import os
from pathlib import Path

import pytest

from agent_core.packages import Environment, PackagesError
from agent_core.packages.pip import Pip
from agent_core.packages.pip import environment as scrubbed
from tests.packages.support import opened, put, wheel


async def test_a_human_sees_names_versions_sizes_and_what_else_comes(environment: Environment) -> None:
    resolution = await environment.resolve(["abacus"])
    assert resolution.sentences() == (
        "would be installed: abacus 1.0 (1 kB)",
        "with 1 that it needs: beads 2.0 (1 kB)",
    )
    assert environment.find(("abacus",)) is None


async def test_what_is_agreed_to_is_installed_and_found_by_its_import_names(environment: Environment) -> None:
    folder = await put(environment, "abacus")
    assert environment.folders(("abacus",)) == ((("abacus", str(folder)), ("beads", str(folder))), ("abacus",))
    assert (folder / "abacus/__init__.py").exists()
    assert environment.folders(("abacus", "beads")) == ((), ())


async def test_a_second_process_finds_it_without_asking_pip(environment: Environment, root: Path, index: Path) -> None:
    folder = await put(environment, "abacus")
    for path in index.iterdir():
        path.unlink()
    other = opened(root)
    assert (await other.resolve(["abacus"])).is_installed
    found = other.find(("abacus",))
    assert found is not None
    assert found.folder == folder


async def test_import_names_are_known_to_belong_to_their_project(environment: Environment, index: Path) -> None:
    wheel(index, "Py-Counting", "1.0", {"counting/__init__.py": "", "_counting.py": ""})
    await put(environment, "Py-Counting")
    assert dict(environment.projects(("Py-Counting",))) == {"counting": "py-counting", "_counting": "py-counting"}


async def test_versions_in_a_requirement_are_kept_to(environment: Environment, index: Path) -> None:
    wheel(index, "beads", "3.0", {"beads.py": ""})
    old, new = await environment.resolve(["beads<3"]), await environment.resolve(["beads"])
    assert [pin.version for pin in (*old.pins, *new.pins)] == ["2.0", "3.0"]


async def test_the_lock_holds_every_file_by_its_hash(environment: Environment, root: Path) -> None:
    await put(environment, "abacus")
    lines = (root / "functions/requirements.lock").read_text().splitlines()
    assert lines[3] == "# for: abacus"
    assert [line.partition(" --hash=sha256:")[0] for line in lines[4:]] == ["abacus==1.0", "beads==2.0"]


async def test_what_the_lock_pins_is_not_resolved_to_something_newer(
    environment: Environment, index: Path, root: Path, tmp_path: Path
) -> None:
    await put(environment, "abacus")
    wheel(index, "beads", "9.0", {"beads.py": ""})
    colleague = tmp_path / "colleague"
    (colleague / "functions").mkdir(parents=True)
    (colleague / "functions/requirements.lock").write_text((root / "functions/requirements.lock").read_text())
    resolution = await opened(colleague).resolve(["abacus"])
    assert [str(pin).partition(" ")[0] for pin in resolution.pins] == ["abacus==1.0", "beads==2.0"]
    assert not resolution.is_installed


async def test_what_no_function_is_granted_is_removed_and_the_rest_stays(environment: Environment, root: Path) -> None:
    kept, gone = await put(environment, "beads"), await put(environment, "abacus")
    environment.close()
    assert await environment.clean([("beads",)]) == [gone.name]
    assert kept.is_dir()
    assert not gone.exists()
    assert list(environment.sections()) == [("beads",)]


async def test_what_another_process_uses_is_not_removed(environment: Environment, root: Path) -> None:
    folder = await put(environment, "abacus")
    assert await opened(root).clean([]) == []
    assert folder.is_dir()


async def test_two_at_once_put_one_folder_in_place(environment: Environment) -> None:
    resolution = await environment.resolve(["abacus"])
    await asyncio.gather(environment.install(resolution), environment.install(resolution))
    folder = environment.folders(("abacus",))[0][0][1]
    assert sorted(path.name for path in Path(folder).parent.iterdir()) == [
        f"{resolution.digest}",
        f"{resolution.digest}.json",
    ]


async def test_an_interruption_leaves_neither_a_process_nor_a_folder(environment: Environment, root: Path) -> None:
    task = asyncio.ensure_future(environment.resolve(["abacus"]))
    while not (root / ".toolwright/env").exists() or not list((root / ".toolwright/env").rglob("tmp")):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list((root / ".toolwright/env").iterdir()) == []
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [one for one in children if b"pip" in Path(f"/proc/{one}/cmdline").read_bytes()]


async def test_pip_that_takes_too_long_is_ended(index: Path, tmp_path: Path) -> None:
    with pytest.raises(PackagesError, match="did not finish within"):
        await Pip(tmp_path, lambda said: None, 1 << 20).run("--version", within_s=0.001)


async def test_progress_is_told_while_it_goes_on(environment: Environment) -> None:
    told: list[str] = []
    environment.tell = told.append
    await put(environment, "abacus")
    assert any(line.startswith("Installing") for line in told)


def test_pip_is_given_no_key_and_no_other_place_to_install_in(tmp_path: Path) -> None:
    around = {"OPENAI_API_KEY": "k", "TOOLWRIGHT_SECRET_X": "s", "PIP_TARGET": "/", "PIP_INDEX_URL": "u", "HOME": "/h"}
    given = scrubbed(around, tmp_path)
    assert given.keys() & around.keys() == {"PIP_INDEX_URL", "HOME"}
