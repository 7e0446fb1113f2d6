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


def file(folder: Path, text: bytes) -> GrantsFile:
    (folder / "grants.toml").write_bytes(text)
    return GrantsFile(folder)


def test_entries_are_sorted_and_say_who_and_when(tmp_path: Path) -> None:
    held = GrantsFile(tmp_path)
    held.write({"zebra": ENTRY, "ape": ENTRY}, held.read())
    text = (tmp_path / "grants.toml").read_text()
    assert text.index("[ape]") < text.index("[zebra]")
    assert 'by = "ada"\nat = "2026-01-01T00:00:00Z"' in text
    assert held.read().entries == {"ape": ENTRY, "zebra": ENTRY}


def test_comments_above_an_entry_outlive_every_writing(tmp_path: Path) -> None:
    held = file(tmp_path, b'# ours\n\n# asked by Ada,\n# see ticket 7\n[weather]\nnetwork = ["a.example.org"]\n')
    held.write({**held.read().entries, "zoo": ENTRY}, held.read())
    held.write({**held.read().entries, "ape": ENTRY}, held.read())
    text = (tmp_path / "grants.toml").read_text()
    assert "# asked by Ada,\n# see ticket 7\n[weather]" in text
    assert text.count("# ours") == text.count("# What the functions") == 1


NOT_UNDERSTOOD = [
    *(b"[weather", b"\xff\xfe", b"[a]\n[a]\n", b"a = " + b"[" * 5_000, b"#" * 300_000, b"weather = 1\n"),
    *(b'["we ather"]\n', b'["\\u001b[2J"]\n', b'[weather]\nread = ["data/\\u202e"]\n'),
    *(b'[weather]\nnetwork = ["*"]\n', b'[weather]\nnetwork = "a.example.org"\n', b'[weather]\nread = ["../.."]\n'),
    *(b"[weather]\nseconds = inf\n", b"[weather]\nseconds = true\n", b"[weather]\nsudo = true\n"),
    b'[weather]\nstateful = "yes"\n',
]


def test_what_is_not_understood_grants_nothing_and_is_not_written_over(tmp_path: Path) -> None:
    for text in NOT_UNDERSTOOD:
        held = file(tmp_path, text)
        found = held.read()
        assert (found.entries, len(found.problems)) == ({}, 1), text[:40]
        assert str(found.problems[0]).isprintable(), text[:40]
        with pytest.raises(WorkspaceError):
            held.write({"ape": ENTRY}, found)
        assert (tmp_path / "grants.toml").read_bytes() == text, text[:40]
    found = file(tmp_path, b'[ape]\nnetwork = ["a.example.org"]\n[zoo]\nnetwork = ["*"]\n').read()
    assert (set(found.entries), found.problems[0].where.line) == ({"ape"}, 3)


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    path, other = tmp_path / "grants.toml", tmp_path / "other"
    other.write_text('[ape]\nnetwork = ["a.example.org"]\n')
    for make in (lambda: path.symlink_to(other), lambda: os.mkfifo(path)):
        make()
        found = GrantsFile(tmp_path).read()
        assert (found.entries, len(found.problems)) == ({}, 1)
        path.unlink()
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
