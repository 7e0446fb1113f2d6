"""An unreadable folder deletes nothing: its functions stay, and the reason is reported."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.base.events import FunctionsChanged
from agent_core.views.call_log import changed_lines
from tests.agents.helper_files import FINDER, write
from tests.functions.support import named
from tests.kit.desk import VOWELS
from tests.kit.drawing import sampled
from tests.kit.program import knapper
from tests.kit.waiting import until

# Drop the privileges of root that an ordinary user does not have.
ORDINARY = """
import ctypes
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
libc = ctypes.CDLL(None)
assert libc.capget(header, data) == 0
data[0] &= ~6
data[1] &= ~6
assert libc.capset(header, data) == 0
"""


def run(root: Path, *words: str) -> tuple[int, str]:
    done = knapper(*words, cwd=root, first=ORDINARY)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    """A workspace that knows a function in the folder and one in a subfolder."""
    web = tmp_path / "functions" / "web"
    web.mkdir(parents=True)
    (tmp_path / "knapper.toml").touch()
    (web.parent / "letters.py").write_text(VOWELS)
    (web / "more.py").write_text(named("count_more"))
    async with Workspace.open(tmp_path) as workspace:
        assert set(workspace.functions.names()) == {"count_vowels", "count_more"}
    return tmp_path


def closed(mode: int, place: str = "functions") -> Callable[[Path], Callable[[], object]]:
    def close(root: Path) -> Callable[[], object]:
        (root / place).chmod(mode)
        return lambda: (root / place).chmod(0o700)

    return close


def moved(root: Path) -> Callable[[], object]:
    away = (root / "functions").rename(root / "elsewhere")
    return lambda: away.rename(root / "functions")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("close", "place", "why"),
    sampled(
        [
            pytest.param(closed(0o600), "functions/", "Permission denied", id="names-only"),
            pytest.param(closed(0), "functions/", "Permission denied", id="locked"),
            pytest.param(
                closed(0, "functions/web"),
                "functions/web/",
                "Permission denied",
                id="a-folder-below",
            ),
            pytest.param(moved, "functions/", "there is no such folder", id="moved-away"),
        ],
        4,
    ),
)
def test_a_list_names_the_folder_and_fails_and_nothing_is_deleted(
    root: Path, close: Callable[[Path], Callable[[], object]], place: str, why: str
) -> None:
    undo = close(root)
    try:
        code, text = run(root, "functions", "list")
        _, told = run(root, "run", "--model", "tour", "--once", "--message", "start")
    finally:
        undo()
    assert (code, "count_vowels" in text, "count_more" in text) == (1, True, True)
    assert (
        f"the folder `{place}` cannot be read: {why}; its functions stay what they were — make it readable"
        in text
    )
    assert f"the folder `{place}` cannot be read" in told
    assert "removed" not in told
    code, text = run(root, "functions", "list")
    assert (code, "cannot be read" in text) == (0, False)
    code, text = run(root, "functions", "history", "count_more")
    assert (code, len(text.splitlines()), "deleted" in text) == (0, 1, False), text


async def test_an_empty_folder_is_one_whose_functions_were_deleted(root: Path) -> None:
    moved(root)
    (root / "functions").mkdir()
    async with Workspace.open(root) as workspace:
        assert workspace.functions.names() == []
        found = await workspace.functions.history.of("count_vowels")
        assert (found.deleted, found.versions[-1].version.row.reason) == (
            True,
            "the file was removed",
        )


async def test_a_program_says_once_that_the_folder_is_gone_keeps_what_it_has_and_makes_no_other(
    root: Path,
) -> None:
    heard: list[FunctionsChanged] = []
    async with Workspace.open(root) as workspace:
        workspace.functions.on_change(heard.append)
        undo = moved(root)

        async def news() -> int:
            return len(heard)

        await until(news, lambda count: count == 1)
        await workspace.functions.reload()
        assert (await workspace.functions.call("count_vowels", {"text": "queueing"})).value == 5
        refused = await workspace.functions.create("count_again", named("count_again"))
        assert (refused.admitted, "there is no such folder" in str(refused.error)) == (False, True)
        assert not (root / "functions").exists()
        assert len(heard) == 1
        assert heard[0].removed == ()
        undo()
        await until(news, lambda count: count == 2)
        shown = ["".join(text for _, text in line) for line in changed_lines(heard[1])]
        assert shown == ["✓ functions/ loads again"]
        assert sorted(workspace.functions.names()) == ["count_more", "count_vowels"]


@pytest.mark.slow
def test_helpers_in_a_folder_that_cannot_be_read_stay_in_force_and_such_an_agent_is_not_opened(
    root: Path,
) -> None:
    write(root, "speaker", FINDER)
    assert "speaker" in run(root, "helpers", "list")[1]
    (root / "agents").mkdir()
    (root / "agents" / "second.toml").write_text('functions = ["count_more"]\n')
    for name in ("helpers", "agents"):
        (root / name).chmod(0)
    try:
        text = run(root, "helpers", "list")[1]
        code, said = run(root, "run", "--model", "tour", "--agent", "second", "--message", "start")
    finally:
        for name in ("helpers", "agents"):
            (root / name).chmod(0o700)
    assert ("speaker" in text, "The folder helpers/ cannot be read: Permission denied" in text) == (
        True,
        True,
    ), text
    assert (code, "The folder agents/ cannot be read: Permission denied" in said) == (2, True), said
    assert "removed" not in run(root, "helpers", "history", "speaker")[1]
