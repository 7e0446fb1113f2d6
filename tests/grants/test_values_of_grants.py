"""A grant as a value: what covers what, what counts as an item, and that nothing is lost in conversion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.access.grants import NOTHING, Grants
from agent_core.access.grants.file import checked
from agent_core.access.grants.items import KINDS, written
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
    **{kind: st.lists(st.sampled_from(items), max_size=3).map(tuple) for kind, items in ITEMS.items()},
    seconds=st.none() | st.floats(0.5, 100),
    memory_mib=st.none() | st.integers(64, 4096),
    stateful=st.booleans(),
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


@pytest.mark.parametrize(
    ("kind", "granted", "wanted", "covers"),
    [
        pytest.param("network", "*.example.org", "api.example.org", True, id="below-a-domain"),
        pytest.param("network", "*.example.org", "example.org", False, id="the-domain-itself"),
        pytest.param("network", "*.example.org", "notexample.org", False, id="another-domain-that-ends-so"),
        pytest.param("network", "localhost", "localhost:8000", False, id="another-port"),
        pytest.param("read", "data/", "data/x.csv", True, id="in-a-folder"),
        pytest.param("read", "data", "data/", True, id="slash-or-not"),
        pytest.param("read", "data/", "database.csv", False, id="another-name-that-begins-so"),
        pytest.param("read", "data/in/", "data/", False, id="the-parent"),
        pytest.param("packages", "requests>=2.31", "requests", True, id="any-version-will-do"),
        pytest.param("packages", "requests>=2.31", "requests<2", False, id="another-version"),
        pytest.param("secrets", "KEY", "KEY2", False, id="another-secret"),
    ],
)
def test_one_item_covers_another_only_where_it_gives_it(kind: str, granted: str, wanted: str, covers: bool) -> None:
    assert Grants.from_json({kind: [granted]}).covers(Grants.from_json({kind: [wanted]})) is covers


def test_to_write_includes_to_read_and_not_the_other_way() -> None:
    assert Grants(write=("data/",)).covers(Grants(read=("data/x",)))
    assert not Grants(read=("data/",)).covers(Grants(write=("data/x",)))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param("network", "2130706433", id="decimal-address"),
        pytest.param("network", "0x7f.1", id="hexadecimal-address"),
        pytest.param("network", "127.1", id="short-address"),
        pytest.param("network", "0177.0.0.1", id="octal-address"),
        pytest.param("network", "user@example.org", id="user-in-front"),
        pytest.param("network", "example.org/path", id="path-behind"),
        pytest.param("network", "*.org", id="all-of-a-top-level"),
        pytest.param("network", "*", id="everything"),
        pytest.param("network", "a.*.example.org", id="star-in-the-middle"),
        pytest.param("network", "exаmple.org", id="cyrillic-a"),
        pytest.param("network", "example.org\nevil.org", id="two-lines"),
        pytest.param("network", "example.org:99999", id="no-port"),
        pytest.param("read", "../x", id="climbs"),
        pytest.param("read", "data/../../x", id="climbs-later"),
        pytest.param("read", "~/x", id="home"),
        pytest.param("read", "data\\x", id="backslash"),
        pytest.param("read", "", id="empty"),
        pytest.param("read", "a\u202eb", id="right-to-left"),
        pytest.param("read", "a\x00b", id="nul"),
        pytest.param("read", "cafe\u0301", id="decomposed"),
        pytest.param("secrets", "A B", id="two-words"),
        pytest.param("packages", "x @ https://evil.example/x.whl", id="address-of-a-wheel"),
        pytest.param("packages", "--index-url=https://evil.example", id="option"),
        pytest.param("packages", "./local", id="local-folder"),
        pytest.param("packages", "x; import os", id="marker"),
    ],
)
def test_what_hides_or_climbs_is_no_item(kind: str, text: str) -> None:
    assert written(kind, text) is None


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
        **{"read": ("da{}ta/", "data/{}"), "write": ("{}data/",), "network": ("api{}.example.org",)},
        **{"secrets": ("KE{}Y",), "packages": ("requ{}ests",), "memory": ("hu{}man",), "functions": ("wea{}ther",)},
    }
    for char in ODD:
        held = [(kind, one) for kind in items for one in items[kind] if written(kind, one.format(char)) is not None]
        assert held == [], ascii(char)
        with pytest.raises(WorkspaceError) as caught:
            checked({"read": ["in/", f"da{char}ta/"]})
        assert f"U+{ord(char):04X}" in caught.value.message
        assert "at column 3" in caught.value.message
        assert char not in caught.value.message.replace(" ", "")
        assert caught.value.fix


@pytest.mark.parametrize("text", ["api.ex\u0430mple.org", "\u212aey.example.org", "a.org:8\u0661", "ä.example.org"])
def test_a_host_beyond_ascii_is_written_in_punycode_or_rejected(text: str) -> None:
    assert written("network", text) is None
    with pytest.raises(WorkspaceError, match="punycode"):
        checked({"network": [text]})


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ("d\u0430ta/", "read 'd\u0430ta/' (spelled 'd\\u0430ta/')"),
        ("out\u2044functions/", "read 'out\u2044functions/' (spelled 'out\\u2044functions/')"),
        ("größe/", "read 'größe/' (spelled 'gr\\xf6\\xdfe/')"),
        ("a  b/", "read 'a  b/'"),
        ("data/", "read data/"),
    ],
)
def test_what_is_not_ascii_is_spelled_next_to_it(item: str, sentence: str) -> None:
    assert Grants(read=(item,)).sentences() == [sentence]
