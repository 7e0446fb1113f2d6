import re
from pathlib import Path

import pytest

from agent_core.base.errors import UsageError
from agent_core.operations.manual_edits import editor_command, open_editor


def test_each_editor_is_told_the_line_in_its_own_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EDITOR", "vim")
    for editor, command in {
        "nvim": ["nvim", "+7", "f.py"],
        "emacs -nw": ["emacs", "-nw", "+7", "f.py"],
        "code": ["code", "--wait", "--goto", "f.py:7"],
        "/usr/bin/subl --wait": ["/usr/bin/subl", "--wait", "f.py:7"],
        " ": ["vim", "+7", "f.py"],  # an empty choice is none
    }.items():
        monkeypatch.setenv("VISUAL", editor)
        assert editor_command(Path("f.py"), 7) == command
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="export EDITOR"):
        editor_command(Path("f.py"), 1)


async def test_an_editor_that_cannot_be_started_is_an_error_that_says_how_to_fix_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # an inaccessible folder would be another error
    for editor, says in (
        ("no-such-editor -w", "The editor `no-such-editor` cannot be started: No such file"),
        ("vim 'x", "EDITOR is not a command line: No closing quotation"),
    ):
        monkeypatch.setenv("EDITOR", editor)
        with pytest.raises(UsageError, match=f"^{re.escape(says)}") as caught:
            await open_editor(Path("f.py"), 1)
        assert "export EDITOR" in str(caught.value.fix)
    monkeypatch.setenv("VISUAL", "nano")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "vi").touch(0o755)
    with pytest.raises(UsageError, match="`nano` cannot be started") as caught:
        await open_editor(Path("f.py"), 1)
    assert str(caught.value.fix).endswith("export EDITOR=vi")  # one that is installed
