"""What becomes of a block's lines: nothing twice, nothing lost, and a mistake is answered with the lines there are."""

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
        pytest.param("Name: Chad", "The user's name is Chad", id="another-form"),
        pytest.param("Likes cherry pies", "User also likes cherry pie", id="also-and-plural"),
        pytest.param("Favourite food: pie", "Favorite food: pie", id="another-spelling"),
        pytest.param("- Lives in Rome", "Lives in Rome", id="list-mark"),
        pytest.param("Lives in Rome", "Lives in Ro\u200bme", id="a-character-that-is-not-seen"),
        pytest.param("Likes caf\u00e9s", "Likes cafe\u0301s", id="another-way-to-write-the-same-letter"),
        pytest.param("User doesn't eat meat", "User does not eat meat", id="short-form"),
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
        pytest.param("Trusted by banks", "Untrusted by banks", id="prefix"),
    ],
)
def test_a_fact_that_only_looks_like_another_is_added(there: str, added: str) -> None:
    assert append([there], added).lines == [there, added]


@pytest.mark.parametrize(
    ("there", "added"),
    [
        pytest.param("Mitya is the user's best friend", "Mitya is not my best friend", id="not"),
        pytest.param("User is married", "The user isn't married any more", id="short-form"),
        pytest.param("User does not like tea", "User likes tea now", id="affirmed-after-all"),
        pytest.param("Mitua is a best friend", "Mitua and Mitya for sure are not best friends", id="two-at-once"),
    ],
)
def test_a_line_that_denies_another_takes_its_place(there: str, added: str) -> None:
    edited = append(["Name: Chad", there, "Owns a boat"], added)
    assert edited.lines == ["Name: Chad", added, "Owns a boat"]
    assert there in edited.edit_summary


@pytest.mark.parametrize(
    ("lines", "added"),
    [
        pytest.param(["Ann is a friend", "Bob is a friend"], "Ann and Bob are friends", id="of-each-other"),
        pytest.param(["Ann is married"], "Ann and Bob are married", id="to-each-other"),
        pytest.param(["Ann is a friend of the user"], "Ann and Bob are not friends", id="no-friends-of-each-other"),
    ],
)
def test_what_two_are_together_is_more_than_what_each_is(lines: list[str], added: str) -> None:
    assert append(lines, added).lines == [*lines, added]


def test_a_new_line_near_an_old_one_names_the_call_that_takes_the_old_one_out() -> None:
    edited = append(LINES, "Favourite food: sushi")
    assert edited.lines == [*LINES, "Favourite food: sushi"]
    assert 'old_content "Favourite food: cherry pie"' in edited.edit_summary


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        pytest.param("Name: Chad", "Name: Bob", "Name: Bob", id="whole-line"),
        pytest.param("Chad", "Bob", "Name: Bob", id="word"),
        pytest.param("name: chad", "Name: Bob", "Name: Bob", id="another-case"),
        pytest.param("The user's name is Chad", "Name: Bob", "Name: Bob", id="the-same-fact"),
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
    assert replace(["Likes pie", "Likes tea"], "Likes tea", "User likes pie").lines == ["Likes pie"]


def test_a_replacement_says_which_line_it_contradicts() -> None:
    assert (
        'line 1: "Mitya is a best friend"'
        in replace(
            ["Mitya is a best friend", "Lives in Rome"], "Lives in Rome", "Mitya is not a best friend"
        ).edit_summary
    )


@pytest.mark.parametrize(
    ("line", "gone", "left"),
    [
        pytest.param("Friends: Ann, Bob, Cid", "Bob", ["Friends: Ann, Cid"], id="in-the-middle"),
        pytest.param("Friends: Ann, Bob", "Ann", ["Friends: Bob"], id="at-the-beginning"),
        pytest.param("Friends: Ann and Bob", "Bob", ["Friends: Ann"], id="at-the-end"),
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


def test_a_first_clause_that_is_denied_keeps_what_follows_it() -> None:
    assert (
        append(LINES, "Mitya is not my best friend").lines[2]
        == "Mitya is not my best friend, who also loves cherry pies"
    )


def test_of_two_said_at_once_only_the_one_that_is_new_is_added() -> None:
    assert append(["Ann is no doctor"], "Ann and Bob are no doctors").lines == [
        "Ann is no doctor",
        "Bob is no doctors",
    ]


def test_a_replacement_of_the_new_line_by_itself_names_the_older_one_that_was_meant() -> None:
    lines = [*LINES, "Favourite food: sushi"]
    edited = replace(lines, "Favourite food: sushi", "Favourite food: sushi")
    assert edited.lines == lines
    assert 'reads so already: "Favourite food: sushi". Line' in edited.edit_summary
    assert 'old_content "Favourite food: cherry pie" and new_content "Favourite food: sushi"' in edited.edit_summary
