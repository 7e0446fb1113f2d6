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


@pytest.mark.parametrize(
    ("there", "added"),
    [
        pytest.param("Name: Chad", "name:  chad.", id="case-and-punctuation"),
        pytest.param("- Lives in Rome", "Lives in Rome", id="list-mark"),
        pytest.param("Lives in Rome", "Lives in Ro\u200bme", id="a-character-that-is-not-seen"),
        pytest.param("喜欢咖啡", "喜欢咖啡。", id="a-stop-of-another-script"),
        pytest.param("Likes caf\u00e9s", "Likes cafe\u0301s", id="another-way-to-write-the-same-letter"),
    ],
)
def test_a_fact_that_is_there_is_not_added_twice(there: str, added: str) -> None:
    edited = append(["Born in May", there], added)
    assert edited.lines == ["Born in May", there]
    assert edited.edit_summary.startswith("Already there, line 2")


@pytest.mark.parametrize(
    ("there", "added"),
    [
        pytest.param("Best friend: Mitya", "Best friend: Mitua", id="names-one-letter-apart"),
        pytest.param("Owns 12 bees", "Owns 13 bees", id="numbers"),
        pytest.param("Ann is taller than Bob", "Bob is taller than Ann", id="order"),
        pytest.param("Lives in Rome", "Lived in Rome", id="tense"),
        pytest.param("I like pie", "User likes pie", id="who"),
        pytest.param("Is an employer of note", "Is an employee of note", id="words-that-look-alike"),
        pytest.param("Owes 5 euros", "Owes -5 euros", id="a-sign"),
        pytest.param("Writes C", "Writes C++", id="signs-of-a-name"),
        pytest.param("Trusted by banks", "Untrusted by banks", id="prefix"),
    ],
)
def test_a_fact_that_only_looks_like_another_is_added(there: str, added: str) -> None:
    assert append([there], added).lines == [there, added]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        pytest.param("Name: Chad", "Name: Bob", "Name: Bob", id="whole-line"),
        pytest.param("Chad", "Bob", "Name: Bob", id="word"),
        pytest.param("name: chad", "Name: Bob", "Name: Bob", id="another-case"),
        pytest.param("line 1", "Name: Bob", "Name: Bob", id="number"),
        pytest.param("bakery in Lyon", "mill in Nice", "Works at a mill in Nice", id="part-of-a-line"),
    ],
)
def test_a_replacement_finds_the_place_that_is_meant(old: str, new: str, line: str) -> None:
    edited = replace(LINES, old, new)
    assert line in edited.lines
    assert len(edited.lines) == len(LINES)


@pytest.mark.parametrize(
    ("old", "says"),
    [
        pytest.param(
            "Best friend: Ivan",
            ["line 3: ", "does not stand there", 'and new_content "x"'],
            id="absent-with-the-nearest",
        ),
        pytest.param("cherry", ["2 times", "line 2: ", "line 3: "], id="several"),
        pytest.param("quantum chromodynamics", ["line 1: ", "core_memory_append"], id="nothing-like-it"),
        pytest.param("  ", ["core_memory_append"], id="empty"),
    ],
)
def test_a_replacement_that_cannot_be_made_lists_the_lines(old: str, says: list[str]) -> None:
    with pytest.raises(EditRefused) as error:
        replace(LINES, old, "x")
    assert all(part in str(error.value) for part in says)


def test_a_replacement_made_already_is_answered_and_not_refused() -> None:
    edited = replace(["Name: Bob"], "Name: Chad", "Name: Bob")
    assert edited.lines == ["Name: Bob"]
    assert "Already there, line 1" in edited.edit_summary


def test_a_replacement_by_what_another_line_says_leaves_it_once() -> None:
    assert replace(["Likes pie", "Likes tea"], "Likes tea", "likes pie.").lines == ["Likes pie"]


@pytest.mark.parametrize(
    ("line", "gone", "left"),
    [
        pytest.param("Friends: Ann, Bob, Cid", "Bob", ["Friends: Ann, Cid"], id="in-the-middle"),
        pytest.param("Friends: Ann, Bob", "Ann", ["Friends: Bob"], id="at-the-beginning"),
        pytest.param("Best friend: Ann", "Ann", [], id="nothing-is-left"),
        pytest.param("Name: Chad", "Name: Chad", [], id="the-whole-line"),
    ],
)
def test_what_is_removed_leaves_a_line_that_reads_well(line: str, gone: str, left: list[str]) -> None:
    assert remove(["Born in May", line], gone).lines == ["Born in May", *left]


def test_a_word_is_not_sought_within_other_words() -> None:
    assert replace(["Fond of categories", "Has a cat"], "cat", "dog").lines == ["Fond of categories", "Has a dog"]


@given(
    st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1).map(str.strip))
)
def test_what_is_appended_is_in_the_block_and_a_second_time_changes_nothing(lines: list[str]) -> None:
    lines = [line for line in lines if line]
    once: list[str] = []
    for line in lines:
        once = append(once, line).lines
    assert len({*once}) == len(once)
    for line in once:
        assert append(once, line).lines == once


@given(st.lists(st.sampled_from(LINES), unique=True), st.data())
def test_a_whole_line_can_always_be_replaced_and_put_back(lines: list[str], data: st.DataObject) -> None:
    if lines:
        line = data.draw(st.sampled_from(lines))
        changed = replace(lines, line, "Something else entirely")
        assert replace(changed.lines, "Something else entirely", line).lines == lines


def test_the_history_tells_a_change_by_its_lines() -> None:
    assert difference(["a", "b"], ["a", "c"]) == '"b" became "c"'


def test_a_part_that_is_replaced_by_more_of_itself_is_replaced_once() -> None:
    once = replace(["Ann is a cook"], "Ann is", "Ann is not").lines
    assert replace(once, "Ann is", "Ann is not").lines == once == ["Ann is not a cook"]
