"""Paged tables at the prompt, and what one looks up there."""

from pathlib import Path

from tests.interfaces.support import prompt
from tests.kit import Repeat, Say
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, DOWN, ENTER, ESCAPE, Terminal

CTRL_R, BACKSPACE = "\x12", "\x7f"
MANY = '''def echo_{n}(text: str) -> str:
    """Echo number {n}.

    Args:
        text: What.
    """
    return text + "{n}"


'''
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


def test_functions_are_filtered_as_one_types_printed_by_enter_and_left_without_a_trace(grown: Path) -> None:
    (grown / "functions" / "many.py").write_text("".join(MANY.format(n=n) for n in range(60)))
    with prompt([], grown) as (screen, _):
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")
        screen.type("vowels")
        screen.wait_for("functions 1 of 61: vowels")
        screen.wait_for("Count the vowels in a text.")
        screen.wait_for('>>> count_vowels("xyz")')
        screen.type(BACKSPACE * 6 + "echo_59")
        screen.wait_for('return text + "59"')
        assert all(len(row) <= 80 for row in screen.screen())
        screen.type(ESCAPE)
        screen.wait_gone("functions 1 of 61")
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")
        screen.type("q")  # before any filter, it leaves
        screen.wait_gone("of 61:")
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")  # and the q did not end up in the input line
        screen.type(" vowelsq")
        screen.wait_for("No match")
        screen.type(BACKSPACE)
        screen.wait_for("functions 1 of 61:  vowels")
        screen.type(CTRL_C)
        screen.wait_gone("of 61:")
        assert "echo_59" not in screen.scrolled()
        screen.resize(200, 24)
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")
        screen.type("echo_1" + DOWN)
        screen.wait_for('return text + "10"')
        screen.type(ENTER)
        screen.wait_gone("of 61: echo_1")
        screen.wait_for('return text + "10"')
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")
        screen.resize(80, 24)
        screen.type("zzzz")
        screen.wait_for("No match")
        screen.type(CTRL_C)
        screen.wait_gone("No match")
        screen.resize(80, 10)
        screen.line("/functions")  # a low screen gets the whole list printed
        screen.wait(lambda: "echo_59" in screen.scrolled(), "all of the list")
        screen.line("/exit")
        assert screen.exit_code() == 0


def test_a_search_of_the_history_shows_what_it_found_and_cost_counts_where_a_price_is_known(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text("[models]\nscripted = { input = 1000, output = 2000 }\n")
    with prompt([Repeat(Say("Hi.", usage=(1000, 500)))], tmp_path, columns=110) as (screen, _):
        screen.do("/cost", "Nothing was asked in this session yet.")
        screen.do("about tea", "∙ 1 step")
        screen.do("about rain", "∙ 1 step")
        ever = "Since ever, main: 2 turns, 2 steps, 2,000 tokens in (0 cached), 1,000 out, $4.00."
        screen.do("/cost", "2 turns", ever)
        screen.wait_for("3.0k tokens $4.00")  # at the bottom
        screen.type(CTRL_R + "tea")
        screen.wait(lambda: "› about tea\nI-search backward: tea" in shown(screen), "what was found")
        screen.type(CTRL_C)


def test_lines_that_no_example_reaches_are_marked_in_the_source(folder: Path) -> None:
    (folder / "functions" / "words.py").write_text(GRADING)
    with prompt([], folder, columns=110) as (screen, _):
        screen.line("/introspect grade")
        screen.wait_for("~ its examples reach 4 of 5 lines; none reaches 18 (marked below)")
        screen.wait_for('❱ 18         return "none"')
    source = knapper("functions", "show", "grade", cwd=folder).stdout
    assert ("❱   18         return" in source, source.count("❱")) == (True, 1)


def shown(screen: Terminal) -> str:
    """Return the rows of the screen."""
    return "\n".join(row.rstrip() for row in screen.screen())
