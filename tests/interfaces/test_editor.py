import re
from pathlib import Path

import pytest

from agent_core.base.errors import UsageError
from agent_core.interfaces.manual_edits import editor_command, open_editor


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        pytest.param("vim", ["vim", "+7", "f.py"], id="plus-line"),
        pytest.param("emacs -nw", ["emacs", "-nw", "+7", "f.py"], id="with-arguments"),
        pytest.param("code", ["code", "--wait", "--goto", "f.py:7"], id="goto-and-wait"),
        pytest.param("/usr/bin/subl --wait", ["/usr/bin/subl", "--wait", "f.py:7"], id="colon"),
    ],
)
def test_each_editor_is_told_the_line_in_its_own_way(
    monkeypatch: pytest.MonkeyPatch, editor: str, command: list[str]
) -> None:
    monkeypatch.setenv("EDITOR", "other")
    monkeypatch.setenv("VISUAL", editor)
    assert editor_command(Path("f.py"), 7) == command


@pytest.mark.parametrize(
    ("editor", "says"),
    [
        pytest.param("no-such-editor -w", "The editor `no-such-editor` cannot be started: No such file", id="missing"),
        pytest.param("vim 'x", "EDITOR is not a command line: No closing quotation", id="half-a-quotation"),
    ],
)
async def test_an_editor_that_cannot_be_started_is_an_error_that_says_how_to_fix_it(
    monkeypatch: pytest.MonkeyPatch, editor: str, says: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # an inaccessible folder would be another error
    with pytest.raises(UsageError, match=f"^{re.escape(says)}") as caught:
        await open_editor(Path("f.py"), 1)
    assert "export EDITOR" in str(caught.value.fix)


def test_an_empty_choice_of_an_editor_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", " ")
    monkeypatch.setenv("EDITOR", "vim")
    assert editor_command(Path("f.py"), 7) == ["vim", "+7", "f.py"]


async def test_a_missing_editor_is_answered_with_one_that_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VISUAL", "nano")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "vi").touch(0o755)
    with pytest.raises(UsageError, match="`nano` cannot be started") as caught:
        await open_editor(Path("f.py"), 1)
    assert str(caught.value.fix).endswith("export EDITOR=vi")


def test_without_any_editor_the_error_says_how_to_set_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="export EDITOR"):
        editor_command(Path("f.py"), 1)
