from pathlib import Path

import pytest

from agent_core.errors import UsageError
from agent_core.interfaces.editor import editor_command


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


def test_without_any_editor_the_error_says_how_to_set_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="export EDITOR"):
        editor_command(Path("f.py"), 1)
