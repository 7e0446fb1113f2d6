"""Settings, grants, commands and flags of an earlier version: each is told once, has no effect, and stops nothing."""

from pathlib import Path

import pytest

from agent_core.base.gone import GONE
from agent_core.base.settings import FILE_NAME, PREFIX, Settings, load

SETTINGS = sorted(name for name in GONE if "." in name)


@pytest.mark.parametrize("key", SETTINGS)
def test_a_setting_that_went_is_told_once_wherever_it_stands(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    section, name = key.split(".")
    (tmp_path / FILE_NAME).write_text(f"agent = 'ada'\n[{section}]\n{name} = 1\n")
    for _ in range(2):
        assert load(tmp_path) == Settings(agent="ada")
    assert capsys.readouterr().err.count(f"`{key}`") == 1
    (tmp_path / FILE_NAME).unlink()
    for given in ("variable", "flag"):
        with monkeypatch.context() as patch:
            if given == "variable":
                patch.setenv(PREFIX + key.replace(".", "_").upper(), "1")
            assert load(tmp_path, {key: 1} if given == "flag" else None) == Settings()
    assert capsys.readouterr().err.count(f"`{key}`") <= 1
