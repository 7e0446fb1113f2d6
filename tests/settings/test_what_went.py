"""Settings, grants, commands and flags of an earlier version: each is told once, has no effect, and stops nothing."""

from pathlib import Path

import pytest

from agent_core.access.grants import Grants
from agent_core.access.grants.book import GrantEntry, GrantsFile
from agent_core.base.gone import GONE
from agent_core.base.settings import FILE_NAME, PREFIX, Settings, load
from tests.interfaces.support import leave, prompt
from tests.kit import Say
from tests.kit.program import knapper

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
    (tmp_path / "grants.toml").write_text(
        '[weather]\nnetwork = ["a.example.org"]\nstateful = true\nby = "Ada"\n'
    )
    file = GrantsFile(tmp_path)
    for _ in range(2):
        listing = file.read()
        assert listing.problems == ()
        assert listing.entries["weather"].grants == Grants(network=("a.example.org",))
    assert capsys.readouterr().err.count("`stateful`") == 1
    file.write({**listing.entries, "other": GrantEntry(Grants(read=("data/",)))}, listing)
    assert "stateful" not in (tmp_path / "grants.toml").read_text()


OLD_GRANTS = """\
[counted]
stateful = true
by = "Ada"
at = "2026-11-20T10:00:00Z"

[note_of]
read = ["notes/"]
stateful = true
by = "Ada"
at = "2026-11-20T10:00:00Z"
"""
OLD_FUNCTIONS = '''\
"""Functions of an earlier version."""


def doubled(number: int) -> int:
    """Double a number.

    Args:
        number: The number.

    Examples:
        >>> doubled(2)
        4
    """
    return 2 * number


def counted(self) -> int:
    """Count the calls so far."""
    self.state["calls"] = self.state.get("calls", 0) + 1
    return self.state["calls"]


def note_of(name: str) -> str:
    """Read a note.

    Args:
        name: The name of its file.
    """
    with open(f"notes/{name}") as file:
        return file.read()
'''


@pytest.mark.parametrize(
    ("words", "name"),
    [
        pytest.param(
            ("functions", "blame", "doubled", "2", "--json"), "functions blame", id="command"
        ),
        pytest.param(("memory", "tidy", "human"), "memory tidy", id="command-of-memory"),
        pytest.param(
            ("functions", "revoke", "doubled", "--read", "notes/", "--stateful"),
            "--stateful",
            id="flag",
        ),
    ],
)
def test_a_command_or_a_flag_that_went_is_told_and_stops_nothing(
    tmp_path: Path, words: tuple[str, ...], name: str
) -> None:
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "old.py").write_text(OLD_FUNCTIONS)
    (tmp_path / "functions" / "grants.toml").write_text(OLD_GRANTS.replace("note_of", "doubled"))
    done = knapper(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr.count(f"`{name}`")) == (0, 1), done.stderr
    assert GONE[name] in done.stderr


def test_a_slash_command_that_went_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).touch()
    with prompt([Say("Yes.")], tmp_path) as (screen, _):
        screen.do("/blame slug", "`/blame` is gone")
        screen.do("/memory tidy human", "`/memory tidy` is gone")
        screen.do("/undo 12", "`/undo N` is gone", "`/changes NAME` takes back any other change")
        screen.do("/undo all", "`/undo all` is gone")
        screen.do("Go.", "∙ 1 step")
        assert leave(screen) == 0
