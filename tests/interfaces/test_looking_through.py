"""Paged tables at the prompt, and undoing the last action."""

import re
from pathlib import Path

import pytest

from tests.interfaces.asking import agree
from tests.interfaces.support import COUNT_VOWELS, create, leave, prompt
from tests.kit import Ask, Repeat, Say, Script, Wanted
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, ENTER, ESCAPE, Terminal

CTRL_R, DOWN, BACKSPACE = "\x12", "\x1b[B", "\x7f"
MANY = '''def echo_{n}(text: str) -> str:
    """Echo number {n}.

    Args:
        text: What.
    """
    return text + "{n}"


'''
EDIT = Wanted("edit_function", {"function_name": "count_vowels", "old_text": '"aeiou"', "new_text": '"aeioué"'})
EXAMPLE = '>>> count_vowels("xyz")'


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(COUNT_VOWELS)
    (tmp_path / "functions" / "many.py").write_text("".join(MANY.format(n=n) for n in range(60)))
    return tmp_path


def marked(screen: Terminal, text: str) -> bool:
    return any(text in row for row in screen.screen())


def test_functions_are_filtered_as_one_types_and_escape_leaves_no_trace(grown: Path) -> None:
    with prompt([], grown) as (screen, _):
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")
        screen.type("vowels")
        screen.wait_for("functions 1 of 61: vowels")
        screen.wait_for("Count the vowels in a text.")
        screen.wait_for(EXAMPLE)
        screen.type(BACKSPACE * 6 + "echo_59")
        screen.wait_for('return text + "59"')
        assert all(len(row) <= 80 for row in screen.screen())
        screen.type(ESCAPE)
        screen.wait_gone("functions 1 of 61")
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")
        screen.line("/exit")
        assert screen.exit_code() == 0
        assert "echo_59" not in screen.scrolled()


def test_a_q_before_any_filter_leaves_and_one_behind_a_space_filters(grown: Path) -> None:
    with prompt([], grown) as (screen, _):
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")
        screen.type("q")
        screen.wait_gone("of 61:")
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")  # and the q did not end up in the input line
        screen.type(" vowelsq")
        screen.wait_for("No match")
        screen.type(BACKSPACE)
        screen.wait_for("functions 1 of 61:  vowels")
        screen.type(ESCAPE)
        screen.wait_gone("of 61:")


def test_arrows_move_and_enter_prints_the_row_above_the_prompt(grown: Path) -> None:
    with prompt([], grown, columns=200) as (screen, _):
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")
        screen.type("echo_1" + DOWN)
        screen.wait_for('return text + "10"')
        screen.type(ENTER)
        screen.wait_gone("of 61: echo_1")
        assert 'return text + "10"' in screen.scrolled()
        screen.line("/functions")
        screen.wait_for("of 61:")
        screen.resize(80, 24)
        screen.type("zzzz")
        screen.wait_for("No match")
        screen.type(CTRL_C)
        screen.wait_gone("No match")
        assert leave(screen) == 0


def test_a_low_screen_gets_the_whole_list_printed(grown: Path) -> None:
    with prompt([], grown) as (screen, _):
        screen.resize(80, 10)
        screen.line("/functions")
        screen.wait(lambda: "echo_59" in screen.scrolled(), "all of the list")


GRADING = '''\
def grade(points: int) -> str:
    """Say in a word how good some points are.

    Args:
        points: From 0 to 10.

    Returns:
        The word.

    >>> grade(9)
    'good'
    >>> grade(3)
    'poor'
    """
    if points > 5:
        return "good"
    if points < 0:
        return "none"
    return "poor"
'''


def test_the_last_change_of_a_function_is_taken_back_then_its_making_then_the_message(tmp_path: Path) -> None:
    script: Script = [Ask(create(COUNT_VOWELS)), Ask(EDIT), Say("Done.")]
    with prompt(script, tmp_path) as (screen, _):
        screen.line("make it")
        screen.wait_for("3 steps")
        for says, then in (
            ("change count_vowels back to version 1", "✓ count_vowels"),
            ("delete count_vowels, made by", "deleted count_vowels"),
            ("remove the message “make it”", "removed from the context: make it"),
        ):
            screen.line("/undo")
            screen.wait_for(f"Undo: {says}")
            agree(screen)
            screen.wait_gone("Undo: ")
            screen.wait_for(then)
        screen.line("/undo")
        screen.wait_for("Nothing was changed or said in this session.")
        assert "count_vowels" not in "".join(file.read_text() for file in (tmp_path / "functions").glob("*.py"))


def test_a_rollback_of_ones_own_is_a_change_that_undo_takes_back(tmp_path: Path) -> None:
    with prompt([Ask(create(COUNT_VOWELS)), Ask(EDIT), Say("Done.")], tmp_path, columns=120) as (screen, _):
        screen.line("make it")
        screen.wait_for("3 steps")
        screen.line("/rollback count_vowels 1")
        screen.wait_for("✓ count_vowels: version 1 of")
        screen.line("/undo")
        screen.wait_for("Undo: change count_vowels back to version 2 (by the agent main")
        agree(screen)
        screen.wait_gone("Undo: ")
        file = tmp_path / "functions" / "words.py"
        screen.wait(lambda: "aeioué" in file.read_text(), "the second version in the file")
        screen.line("/undo")
        screen.wait_for("Undo: change count_vowels back to version 1")
        screen.line("n")
        screen.wait_for("Nothing was changed.")


def test_an_edit_of_ones_own_is_no_creation_and_goes_back_to_what_the_agent_made(tmp_path: Path) -> None:
    with prompt([Ask(create(COUNT_VOWELS)), Say("Done.")], tmp_path, columns=140) as (screen, _):
        screen.line("make it")
        screen.wait_for("2 steps")
        file = tmp_path / "functions" / "words.py"
        made = file.read_text()
        for number, letters in enumerate(("aeioué", "aeiouéü"), 1):
            file.write_text(made.replace("aeiou", letters))
            screen.wait_count("count_vowels was changed outside", number)
        screen.line("/changes")
        screen.wait_for("you changed count_vowels")
        screen.line("/undo 1")
        screen.wait_for("Undo: change count_vowels back to version 1 (by the agent main (scripted)")
        agree(screen)
        screen.wait(lambda: '"aeiou"' in file.read_text(), "the agent's version in the file")
        screen.line("/changes")
        screen.wait_for("the agent main (scripted) made count_vowels")


def test_undoing_all_of_an_edited_creation_says_who_made_it(tmp_path: Path) -> None:
    with prompt([Ask(create(COUNT_VOWELS)), Say("Done.")], tmp_path, columns=140) as (screen, _):
        screen.line("make it")
        screen.wait_for("2 steps")
        file = tmp_path / "functions" / "words.py"
        file.write_text(file.read_text().replace("aeiou", "aeioué"))
        screen.wait_for("count_vowels was changed outside")
        screen.line("/undo all")
        screen.wait_for("Undo: delete count_vowels, made by the agent main (scripted) and changed by you?")
        agree(screen)
        screen.wait_for("deleted count_vowels")


def test_undoing_a_deletion_says_who_deleted_it(tmp_path: Path) -> None:
    with prompt([Ask(create(COUNT_VOWELS)), Say("Done.")], tmp_path, columns=120) as (screen, _):
        screen.line("make it")
        screen.wait_for("2 steps")
        screen.line("/delete count_vowels")
        agree(screen)
        screen.wait_for("deleted count_vowels")
        screen.line("/undo")
        screen.wait_for("Undo: bring count_vowels back, which you deleted (")
        screen.line("n")
        screen.wait_for("Nothing was changed.")


def test_a_search_of_the_history_shows_what_it_found_while_one_types(tmp_path: Path) -> None:
    with prompt([Repeat(Say("Hi."))], tmp_path) as (screen, _):
        for number, text in enumerate(("about tea", "about rain"), 1):
            screen.line(text)
            screen.wait_count("∙ 1 step", number)
        screen.type(CTRL_R + "tea")
        screen.wait_for("I-search backward: tea")
        screen.wait(lambda: "› about tea\nI-search backward: tea" in shown(screen), "what was found")
        screen.type(CTRL_C)


def test_lines_that_no_example_reaches_are_marked_in_the_source(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(GRADING)
    with prompt([], tmp_path, columns=110) as (screen, _):
        screen.line("/introspect grade")
        screen.wait_for("~ its examples reach 4 of 5 lines; none reaches 18 (marked below)")
        screen.wait_for('❱ 18         return "none"')
    shown = knapper("functions", "show", "grade", cwd=tmp_path).stdout
    assert "❱   18         return" in shown
    assert shown.count("❱") == 1


def test_the_gauge_shows_how_full_a_conversation_is_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text("[model]\ncontext_tokens = 32000\n")
    for times in (0, 1):
        with prompt([Say("Hi. " * 2_400)] if not times else [], tmp_path, columns=110) as (screen, _):
            if not times:
                screen.wait_for(" 0%")
                screen.line("hello")
                screen.wait_for("∙ 1 step")
            screen.wait(lambda: bool(re.search(r"▰ *▱* 1\d%", shown(screen))), "how full the window is")
            assert leave(screen) == 0


def shown(screen: Terminal) -> str:
    """Return the rows of the screen."""
    return "\n".join(row.rstrip() for row in screen.screen())


def test_versions_are_looked_through_with_what_each_changed(tmp_path: Path) -> None:
    with prompt([Ask(create(COUNT_VOWELS)), Ask(EDIT), Say("Done.")], tmp_path) as (screen, _):
        screen.line("make it")
        screen.wait_for("3 steps")
        screen.line("/history count_vowels")
        screen.wait_for("versions of count_vowels 2 of 2:")
        screen.wait_for('+    return sum(letter in "aeioué"')
        screen.type(DOWN)
        screen.wait_for("+def count_vowels(text")
        screen.type(ESCAPE)
        screen.wait_gone("versions of count_vowels")


def test_cost_counts_tokens_and_money_where_a_price_is_known(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text("[models]\nscripted = { input = 1000, output = 2000 }\n")
    with prompt([Repeat(Say("Hi.", usage=(1000, 500)))], tmp_path, columns=110) as (screen, _):
        screen.line("/cost")
        screen.wait_for("Nothing was asked in this session yet.")
        for turn in (1, 2):
            screen.line("hello")
            screen.wait_count("∙ 1 step", turn)
        screen.line("/cost")
        screen.wait_for("2 turns")
        screen.wait_for("$4.00")
        screen.wait_for("3.0k tokens $4.00")
        screen.wait_for("Since ever, main: 2 turns, 2 steps, 2,000 tokens in (0 cached), 1,000 out, $4.00.")


def test_undo_says_that_a_section_made_last_is_not_undone_by_it(tmp_path: Path) -> None:
    with prompt([], tmp_path, columns=120) as (screen, _):
        screen.line("/memory section")
        screen.wait_for("No section yet. /memory section NAME POSITION TEXT makes one.")
        screen.line("/memory section manner 10 Be brief.")
        screen.wait_for("is kept")
        screen.line("/undo")
        screen.wait_for("The section manner is newer and cannot be undone here: /memory section manner drop")
        screen.wait_for("Nothing was changed")
