"""A grant as a value and in `functions/grants.toml`: what covers what, what is an item, and what a file cannot do."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.access.grants import NOTHING, Grants
from agent_core.access.grants.book import GrantEntry, GrantsFile, checked, text_of
from agent_core.access.grants.value import KINDS, written
from agent_core.base.errors import WorkspaceError

ITEMS = {
    "network": ["api.example.org", "*.example.org", "localhost:8000", "?", "[::1]:80"],
    "read": ["data/", "data/in/", "data/x.csv", "/srv/x/", "?"],
    "write": ["out/", "data/", "out/a.txt"],
    "secrets": ["KEY", "OTHER"],
    "packages": ["requests", "requests>=2.31"],
    "memory": ["human"],
    "functions": ["weather"],
}
grants = st.builds(
    Grants,
    **{
        kind: st.lists(st.sampled_from(items), max_size=3).map(tuple)
        for kind, items in ITEMS.items()
    },
    seconds=st.none() | st.floats(0.5, 100),
    memory_mib=st.none() | st.integers(64, 4096),
)


@given(grants, grants)
def test_what_is_missing_and_what_is_there_make_the_whole(one: Grants, other: Grants) -> None:
    missing = one.without(other)
    assert (other | missing).covers(one)
    assert one.covers(missing)


@given(grants, grants)
def test_what_both_give_is_given_by_each_of_them(one: Grants, other: Grants) -> None:
    both = one & other
    assert one.covers(both)
    assert other.covers(both)


@given(grants, grants)
def test_as_much_as_needs_have_a_use_for_is_never_more(one: Grants, needs: Grants) -> None:
    assert one.covers(one.serving(needs))


@given(grants)
def test_a_value_that_went_through_json_is_the_same(one: Grants) -> None:
    assert Grants.from_json(one.to_json()) == one
    assert (not one) == (one == NOTHING)


def test_one_item_covers_another_only_where_it_gives_it() -> None:
    for kind, granted, wanted, covers in (
        ("network", "*.example.org", "api.example.org", True),
        ("network", "*.example.org", "example.org", False),
        ("network", "*.example.org", "notexample.org", False),
        ("network", "localhost", "localhost:8000", False),
        ("read", "data/", "data/x.csv", True),
        ("read", "data", "data/", True),
        ("read", "data/", "database.csv", False),
        ("read", "data/in/", "data/", False),
        ("packages", "requests>=2.31", "requests", True),
        ("packages", "requests>=2.31", "requests<2", False),
        ("secrets", "KEY", "KEY2", False),
    ):
        found = Grants.from_json({kind: [granted]}).covers(Grants.from_json({kind: [wanted]}))
        assert found is covers, (kind, granted, wanted)
    assert Grants(write=("data/",)).covers(Grants(read=("data/x",)))
    assert not Grants(read=("data/",)).covers(Grants(write=("data/x",)))


NO_ITEMS = {
    "network": [
        *(
            "2130706433",
            "0x7f.1",
            "127.1",
            "0177.0.0.1",
            "user@example.org",
            "example.org/path",
            "*.org",
            "*",
        ),
        *(
            "a.*.example.org",
            "exаmple.org",
            "example.org\nevil.org",
            "example.org:99999",
        ),  # a cyrillic a in the second
    ],
    "read": ["../x", "data/../../x", "~/x", "data\\x", "", "a\u202eb", "a\x00b", "cafe\u0301"],
    "secrets": ["A B"],
    "packages": [
        "x @ https://evil.example/x.whl",
        "--index-url=https://evil.example",
        "./local",
        "x; import os",
    ],
}


def test_what_hides_or_climbs_is_no_item() -> None:
    assert {
        kind: [one for one in NO_ITEMS[kind] if written(kind, one) is not None] for kind in NO_ITEMS
    } == {kind: [] for kind in NO_ITEMS}


@given(st.sampled_from(sorted(KINDS)), st.text(max_size=40))
def test_an_item_as_it_is_kept_is_kept_as_it_is(kind: str, text: str) -> None:
    kept = written(kind, text)
    assert kept is None or written(kind, kept) == kept


ODD = (
    "\u200d\u200c\ufe0f\ufe00\u00a0\u3000\u2003\u2028\u202e\u2066\xad\ufeff"
    "\u115f\u3164\u180e\u0085\x0c\t\n\ue000\U000e0041\U000e0100"
)


def test_what_hides_something_is_no_item_and_is_told_with_its_place() -> None:
    items = {
        **{
            "read": ("da{}ta/", "data/{}"),
            "write": ("{}data/",),
            "network": ("api{}.example.org",),
        },
        **{
            "secrets": ("KE{}Y",),
            "packages": ("requ{}ests",),
            "memory": ("hu{}man",),
            "functions": ("wea{}ther",),
        },
    }
    for char in ODD:
        held = [
            (kind, one)
            for kind in items
            for one in items[kind]
            if written(kind, one.format(char)) is not None
        ]
        assert held == [], ascii(char)
        with pytest.raises(WorkspaceError) as caught:
            checked({"read": ["in/", f"da{char}ta/"]})
        assert f"U+{ord(char):04X}" in caught.value.message
        assert "at column 3" in caught.value.message
        assert char not in caught.value.message.replace(" ", "")
        assert caught.value.fix


def test_a_host_beyond_ascii_is_written_in_punycode_or_rejected() -> None:
    for text in ("api.ex\u0430mple.org", "\u212aey.example.org", "a.org:8\u0661", "ä.example.org"):
        assert written("network", text) is None, ascii(text)
        with pytest.raises(WorkspaceError, match="punycode"):
            checked({"network": [text]})


def test_what_is_not_ascii_is_spelled_next_to_it() -> None:
    for item, sentence in {
        "d\u0430ta/": "read 'd\u0430ta/' (spelled 'd\\u0430ta/')",
        "out\u2044functions/": "read 'out\u2044functions/' (spelled 'out\\u2044functions/')",
        "größe/": "read 'größe/' (spelled 'gr\\xf6\\xdfe/')",
        "a  b/": "read 'a  b/'",
        "data/": "read data/",
    }.items():
        assert Grants(read=(item,)).sentences() == [sentence]


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
    held = file(
        tmp_path,
        b'# ours\n\n# asked by Ada,\n# see ticket 7\n[weather]\nnetwork = ["a.example.org"]\n',
    )
    held.write({**held.read().entries, "zoo": ENTRY}, held.read())
    held.write({**held.read().entries, "ape": ENTRY}, held.read())
    text = (tmp_path / "grants.toml").read_text()
    assert "# asked by Ada,\n# see ticket 7\n[weather]" in text
    assert text.count("# ours") == text.count("# What the functions") == 1


NOT_UNDERSTOOD = [
    *(
        b"[weather",
        b"\xff\xfe",
        b"[a]\n[a]\n",
        b"a = " + b"[" * 5_000,
        b"#" * 300_000,
        b"weather = 1\n",
    ),
    *(b'["we ather"]\n', b'["\\u001b[2J"]\n', b'[weather]\nread = ["data/\\u202e"]\n'),
    *(
        b'[weather]\nnetwork = ["*"]\n',
        b'[weather]\nnetwork = "a.example.org"\n',
        b'[weather]\nread = ["../.."]\n',
    ),
    *(b"[weather]\nseconds = inf\n", b"[weather]\nseconds = true\n", b"[weather]\nsudo = true\n"),
    *(b"[weather]\nseconds = -1\n", b"[weather]\nseconds = 0\n"),
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
    for kind in ("link", "pipe"):
        if kind == "link":
            path.symlink_to(other)
        else:
            os.mkfifo(path)
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
    assert read == {
        "ape": {"network": ["api.example.org"], "seconds": 30, "by": "ada", "at": ENTRY.at}
    }
