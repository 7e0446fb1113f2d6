"""Files saved, broken or removed while no program ran are reported at the next start, once."""

from pathlib import Path

from agent_core import Workspace
from agent_core.base.events import FunctionsChanged
from agent_core.views.call_log import changed_lines
from tests.functions.support import named
from tests.kit.desk import VOWELS


async def opened(folder: Path) -> FunctionsChanged | None:
    """Return what a start finds changed since the previous program."""
    async with Workspace.open(folder) as workspace:
        return workspace.functions.changed_since()


def letters(folder: Path) -> Path:
    return folder / "functions" / "letters.py"


async def begun(folder: Path) -> None:
    """Create a workspace that knows two functions."""
    letters(folder).parent.mkdir()
    letters(folder).write_text(VOWELS)
    (folder / "functions" / "more.py").write_text(named("count_more"))
    assert await opened(folder) is None, "the first time, all is new and nothing has changed"


async def test_a_save_with_its_standing_a_removal_and_a_new_function_are_told_once(
    tmp_path: Path,
) -> None:
    await begun(tmp_path)
    letters(tmp_path).write_text(VOWELS.replace("aeiou", "aeio") + "\n\n" + named("count_again"))
    (tmp_path / "functions" / "more.py").unlink()
    change = await opened(tmp_path)
    assert change is not None
    assert (change.loaded, change.changed, change.removed) == (
        ("count_again",),
        ("count_vowels",),
        ("count_more",),
    )
    assert change.standings == {"count_again": "trial: its examples agree"}
    shown = [
        "".join(text for _, text in line)
        for line in changed_lines(change, "outside, since the last time")
    ]
    assert (
        shown[0]
        == "⟳ count_vowels was changed; count_again was added; count_more was removed outside, since the last time"
    )
    assert any(text.startswith("  ~ count_vowels is a draft now: ") for text in shown)
    assert await opened(tmp_path) is None


async def test_a_file_that_was_broken_is_told_with_its_line_until_it_is_good_again(
    tmp_path: Path,
) -> None:
    await begun(tmp_path)
    letters(tmp_path).write_text("def (:\n")
    for _ in range(2):
        change = await opened(tmp_path)
        assert change is not None
        assert (change.changed, list(change.lines.values())) == ((), ["def (:"])
    letters(tmp_path).write_text(VOWELS)
    assert await opened(tmp_path) is None
