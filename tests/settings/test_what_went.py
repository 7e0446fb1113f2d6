"""Settings, grants, commands and flags of an earlier version: each is told once, has no effect, and stops nothing."""

from pathlib import Path

import pytest

from agent_core.access.grants import Grants
from agent_core.access.grants.book import GrantEntry, GrantsFile
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


def test_a_key_of_a_grant_that_went_is_told_once_and_the_others_are_granted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "grants.toml").write_text('[weather]\nnetwork = ["a.example.org"]\nstateful = true\nby = "Ada"\n')
    file = GrantsFile(tmp_path)
    for _ in range(2):
        listing = file.read()
        assert listing.problems == ()
        assert listing.entries["weather"].grants == Grants(network=("a.example.org",))
    assert capsys.readouterr().err.count("`stateful`") == 1
    file.write({**listing.entries, "other": GrantEntry(Grants(read=("data/",)))}, listing)
    assert "stateful" not in (tmp_path / "grants.toml").read_text()
