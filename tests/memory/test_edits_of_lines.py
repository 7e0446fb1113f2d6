"""Edits of a block's lines: nothing twice, nothing lost, and a mistake is answered with the existing lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.memory.edits import EditRefused, append, difference, remove, replace

LINES = [
    "Name: Chad",
    "Favourite food: cherry pie",
    "Best friend: Mitya, who also loves cherry pies",
    "Works at a bakery in Lyon",
]


def test_a_fact_that_is_there_is_not_added_twice() -> None:
    rows: list[tuple[str, str, str]] = [
        ("case-and-punctuation", "Name: Chad", "name:  chad."),
        ("list-mark", "- Lives in Rome", "Lives in Rome"),
        ("a-character-that-is-not-seen", "Lives in Rome", "Lives in Ro\u200bme"),
        ("another-way-to-write-the-same-letter", "Likes caf\u00e9s", "Likes cafe\u0301s"),
    ]
    for case, there, added in rows:
        edited = append(["Born in May", there], added)
        assert edited.lines == ["Born in May", there], case
        assert edited.edit_summary.startswith("Already there, line 2"), case


def test_a_fact_that_only_looks_like_another_is_added() -> None:
    rows: list[tuple[str, str, str]] = [
        ("names-one-letter-apart", "Best friend: Mitya", "Best friend: Mitua"),
        ("numbers", "Owns 12 bees", "Owns 13 bees"),
        ("tense", "Lives in Rome", "Lived in Rome"),
        ("a-sign", "Owes 5 euros", "Owes -5 euros"),
        ("signs-of-a-name", "Writes C", "Writes C++"),
        ("prefix", "Trusted by banks", "Untrusted by banks"),
    ]
    for case, there, added in rows:
        assert append([there], added).lines == [there, added], case


def test_a_replacement_finds_the_place_that_is_meant() -> None:
    rows: list[tuple[str, str, str, str]] = [
        ("whole-line", "Name: Chad", "Name: Bob", "Name: Bob"),
        ("word", "Chad", "Bob", "Name: Bob"),
        ("number", "line 1", "Name: Bob", "Name: Bob"),
        ("part-of-a-line", "bakery in Lyon", "mill in Nice", "Works at a mill in Nice"),
    ]
    for case, old, new, line in rows:
        edited = replace(LINES, old, new)
        assert line in edited.lines, case
        assert len(edited.lines) == len(LINES), case


def test_a_replacement_that_cannot_be_made_lists_the_lines() -> None:
    rows: list[tuple[str, str, list[str]]] = [
        (
            "absent-with-the-nearest",
            "Best friend: Ivan",
            ["line 3: ", "does not stand there", 'and new_content "x"'],
        ),
        ("several", "cherry", ["2 times", "line 2: ", "line 3: "]),
        ("nothing-like-it", "quantum chromodynamics", ["line 1: ", "core_memory_append"]),
        ("empty", "  ", ["core_memory_append"]),
    ]
    for case, old, says in rows:
        with pytest.raises(EditRefused) as error:
            replace(LINES, old, "x")
        assert all(part in str(error.value) for part in says), case


def test_a_replacement_made_already_is_answered_and_not_refused() -> None:
    edited = replace(["Name: Bob"], "Name: Chad", "Name: Bob")
    assert edited.lines == ["Name: Bob"]
    assert "Already there, line 1" in edited.edit_summary


def test_a_replacement_by_what_another_line_says_leaves_it_once() -> None:
    assert replace(["Likes pie", "Likes tea"], "Likes tea", "likes pie.").lines == ["Likes pie"]


def test_what_is_removed_leaves_a_line_that_reads_well() -> None:
    rows: list[tuple[str, str, str, list[str]]] = [
        ("in-the-middle", "Friends: Ann, Bob, Cid", "Bob", ["Friends: Ann, Cid"]),
        ("at-the-beginning", "Friends: Ann, Bob", "Ann", ["Friends: Bob"]),
        ("nothing-is-left", "Best friend: Ann", "Ann", []),
    ]
    for case, line, gone, left in rows:
        assert remove(["Born in May", line], gone).lines == ["Born in May", *left], case


def test_a_word_is_not_sought_within_other_words() -> None:
    assert replace(["Fond of categories", "Has a cat"], "cat", "dog").lines == [
        "Fond of categories",
        "Has a dog",
    ]


@given(
    st.lists(
        st.text(
            st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1
        ).map(str.strip)
    )
)
def test_what_is_appended_is_in_the_block_and_a_second_time_changes_nothing(
    lines: list[str],
) -> None:
    lines = [line for line in lines if line]
    once: list[str] = []
    for line in lines:
        once = append(once, line).lines
    assert len({*once}) == len(once)
    for line in once:
        assert append(once, line).lines == once


@given(st.lists(st.sampled_from(LINES), unique=True), st.data())
def test_a_whole_line_can_always_be_replaced_and_put_back(
    lines: list[str], data: st.DataObject
) -> None:
    if lines:
        line = data.draw(st.sampled_from(lines))
        changed = replace(lines, line, "Something else entirely")
        assert replace(changed.lines, "Something else entirely", line).lines == lines


def test_the_history_tells_a_change_by_its_lines() -> None:
    assert difference(["a", "b"], ["a", "c"]) == '"b" became "c"'


def test_a_part_that_is_replaced_by_more_of_itself_is_replaced_once() -> None:
    once = replace(["Ann is a cook"], "Ann is", "Ann is not").lines
    assert replace(once, "Ann is", "Ann is not").lines == once == ["Ann is not a cook"]


@pytest.mark.parametrize("place", [0, 150, 170, 400, 800])
def test_the_change_of_a_long_line_shows_what_changed(place: int) -> None:
    old = " ".join(f"rule{number}" for number in range(130))
    new = f"{old[:place]}CHANGED {old[place:]}"
    summary = replace([old], "line 1", new).edit_summary
    assert "CHANGED" in summary
    assert "CHANGED" in difference([old], [new])
    was, _, now = summary.removeprefix("Line 1 was ").partition(" and is ")
    assert was != now
    assert len(summary) < 400
