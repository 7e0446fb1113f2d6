"""`functions/grants.toml`: reviewable, written atomically, and harmless whatever its content."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.access.grants import Grants
from agent_core.access.grants.file import GrantEntry, GrantsFile, text_of
from agent_core.base.errors import WorkspaceError

ENTRY = GrantEntry(Grants(network=("api.example.org",), seconds=30), "ada", "2026-01-01T00:00:00Z")


def file(folder: Path, text: str | bytes) -> GrantsFile:
    (folder / "grants.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return GrantsFile(folder)


def test_entries_are_sorted_and_say_who_and_when(tmp_path: Path) -> None:
    held = GrantsFile(tmp_path)
    held.write({"zebra": ENTRY, "ape": ENTRY}, held.read())
    text = (tmp_path / "grants.toml").read_text()
    assert text.index("[ape]") < text.index("[zebra]")
    assert 'by = "ada"\nat = "2026-01-01T00:00:00Z"' in text
    assert held.read().entries == {"ape": ENTRY, "zebra": ENTRY}


def test_comments_above_an_entry_outlive_every_writing(tmp_path: Path) -> None:
    held = file(tmp_path, '# ours\n\n# asked by Ada,\n# see ticket 7\n[weather]\nnetwork = ["a.example.org"]\n')
    held.write({**held.read().entries, "zoo": ENTRY}, held.read())
    held.write({**held.read().entries, "ape": ENTRY}, held.read())
    text = (tmp_path / "grants.toml").read_text()
    assert "# asked by Ada,\n# see ticket 7\n[weather]" in text
    assert text.count("# ours") == text.count("# What the functions") == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[weather", id="cut-off"),
        pytest.param(b"\xff\xfe", id="not-text"),
        pytest.param("[a]\n[a]\n", id="twice"),
        pytest.param("a = " + "[" * 5_000, id="nested-without-end"),
        pytest.param("#" * 300_000, id="far-too-long"),
        pytest.param('[weather]\nnetwork = ["*"]\n', id="every-host"),
        pytest.param('[weather]\nnetwork = "a.example.org"\n', id="no-list"),
        pytest.param('[weather]\nread = ["../.."]\n', id="climbs"),
        pytest.param("[weather]\nseconds = inf\n", id="for-ever"),
        pytest.param("[weather]\nseconds = true\n", id="a-truth-for-a-number"),
        pytest.param('[weather]\nstateful = "yes"\n', id="a-text-for-a-truth"),
        pytest.param("[weather]\nsudo = true\n", id="unknown"),
        pytest.param('["we ather"]\n', id="no-function"),
        pytest.param('["\\u001b[2J"]\n', id="escape-for-a-name"),
        pytest.param("weather = 1\n", id="no-table"),
        pytest.param('[weather]\nread = ["data/\\u202e"]\n', id="turned-text"),
    ],
)
def test_what_is_not_understood_grants_nothing_and_is_not_written_over(tmp_path: Path, text: str | bytes) -> None:
    held = file(tmp_path, text)
    found = held.read()
    assert found.entries == {}
    assert len(found.problems) == 1
    assert str(found.problems[0]).isprintable()
    with pytest.raises(WorkspaceError):
        held.write({"ape": ENTRY}, found)
    assert (tmp_path / "grants.toml").read_bytes() == (text.encode() if isinstance(text, str) else text)


def test_one_bad_entry_takes_no_good_one_along(tmp_path: Path) -> None:
    found = file(tmp_path, '[ape]\nnetwork = ["a.example.org"]\n[zoo]\nnetwork = ["*"]\n').read()
    assert set(found.entries) == {"ape"}
    assert found.problems[0].where.line == 3


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "grants.toml"
    (tmp_path / "other").write_text('[ape]\nnetwork = ["a.example.org"]\n')
    match kind:
        case "link":
            path.symlink_to(tmp_path / "other")
        case "pipe":
            os.mkfifo(path)
        case _:
            path.mkdir()
    found = GrantsFile(tmp_path).read()
    assert (found.entries, len(found.problems)) == ({}, 1)


def test_a_file_that_changed_since_it_was_read_is_not_written(tmp_path: Path) -> None:
    held = GrantsFile(tmp_path)
    before = held.read()
    (tmp_path / "grants.toml").write_text("# somebody else\n")
    with pytest.raises(WorkspaceError, match="changed meanwhile"):
        held.write({"ape": ENTRY}, before)


@given(st.text(max_size=300))
def test_no_text_before_makes_the_new_one_say_something_else(before: str) -> None:
    import tomllib

    read = tomllib.loads(text_of({"ape": ENTRY}, before))
    assert read == {"ape": {"network": ["api.example.org"], "seconds": 30, "by": "ada", "at": ENTRY.at}}
