"""Paged tables at the prompt, what one looks up there, what it waits for and what the user did."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.interfaces.support import flags, leave, prompt
from tests.kit import Repeat, Say, scripted
from tests.kit.program import knapper
from tests.kit.sources import function_text
from tests.kit.terminal import CTRL_C, DOWN, ENTER, ESCAPE, Terminal, terminal

CTRL_R, BACKSPACE = "\x12", "\x7f"
GRADING = function_text(
    "grade(points: int) -> str",
    "Say in a word how good some points are.",
    'if points > 5:\n    return "good"\nif points < 0:\n    return "none"\nreturn "poor"',
    "grade(9) → 'good'",
    "grade(3) → 'poor'",
)


def test_functions_are_filtered_as_one_types_printed_by_enter_and_left_without_a_trace(
    grown: Path,
) -> None:
    texts = (
        function_text(f"echo_{n}(text: str) -> str", f"Echo {n}.", f'return text + "{n}"')
        for n in range(60)
    )
    (grown / "functions" / "many.py").write_text("".join(texts))
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
        assert "echo_59" not in screen.scrolled()
        screen.resize(200, 24)
        screen.line("/functions")
        screen.wait_for("functions 61 of 61:")
        screen.type("echo_1" + DOWN)
        screen.wait_for('return text + "10"')
        screen.type(ENTER)
        screen.wait_gone("of 61: echo_1")
        screen.wait_for('return text + "10"')
        screen.resize(80, 10)
        screen.line("/functions")  # a low screen gets the whole list printed
        screen.wait(lambda: "echo_59" in screen.scrolled(), "all of the list")
        screen.line("/exit")
        assert screen.exit_code() == 0


def test_a_search_of_the_history_shows_what_it_found_and_cost_counts_where_a_price_is_known(
    tmp_path: Path,
) -> None:
    (tmp_path / "prices.toml").write_text("[models]\nscripted = { input = 1000, output = 2000 }\n")
    with prompt([Repeat(Say("Hi.", usage=(1000, 500)))], tmp_path, columns=110) as (screen, _):
        screen.do("/cost", "Nothing was asked in this session yet.")
        screen.do("about tea", "∙ 1 step")
        screen.do("about rain", "∙ 1 step")
        ever = "Since ever, main: 2 turns, 2 steps, 2,000 tokens in (0 cached), 1,000 out, $4.00."
        screen.do("/cost", "2 turns", ever)
        screen.wait_for("3.0k tokens $4.00")  # at the bottom
        screen.type(CTRL_R + "tea")
        screen.wait(
            lambda: "› about tea\nI-search backward: tea" in shown(screen), "what was found"
        )
        screen.type(CTRL_C)


def test_lines_that_no_example_reaches_are_marked_in_the_source(folder: Path) -> None:
    (folder / "functions" / "words.py").write_text(GRADING)
    with prompt([], folder, columns=110) as (screen, _):
        screen.line("/introspect grade")
        screen.wait_for("~ its examples reach 4 of 5 lines; none reaches 12 (marked below)")
        screen.type(" ")
        screen.wait_for('❱ 12         return "none"')
    source = knapper("functions", "show", "grade", cwd=folder).stdout
    assert ("❱   12         return" in source, source.count("❱")) == (True, 1)


def shown(screen: Terminal) -> str:
    """Return the rows of the screen."""
    return "\n".join(row.rstrip() for row in screen.screen())


WORDS = "Clouds came and went, and the wind was fresh. " * 60
SLOWLY = Say(
    "People and facts: the weather. " + "The wind was fresh, and clouds came. " * 6, pause_s=0.1
)
SMALL = {"KNAPPER_MODEL_MODE": "native", "KNAPPER_MODEL_CONTEXT_TOKENS": "9000"}
WAIT = "summarizing the oldest messages… 1"


def talked_until_summarized(screen: Terminal) -> tuple[int, bool]:
    """Return how many messages it took until the oldest were summarized, and whether the wait was shown."""
    is_told = False

    def is_over(number: int) -> bool:
        nonlocal is_told
        is_told |= any(WAIT in line for line in screen.screen())
        return screen.scrolled().count("∙ 1 step") >= number

    for number in range(1, 30):
        screen.line(f"the weather of day {number}?")
        screen.wait(partial(is_over, number), "the reply")
        if "are a summary now" in screen.scrolled():
            return number, is_told
    raise AssertionError("nothing was summarized")


@pytest.mark.slow
def test_while_old_messages_are_summarized_the_screen_says_so_and_then_all_messages_count(
    tmp_path: Path,
) -> None:
    with (
        scripted([Repeat(Say(WORDS))], summary=SLOWLY) as model,
        terminal("run", *flags(model), cwd=tmp_path, environment=SMALL) as screen,
    ):
        screen.wait_for("/help lists")
        number, is_told = talked_until_summarized(screen)
        assert is_told
        assert leave(screen) == 0
    (row,) = json.loads(knapper("agents", "list", "--json", cwd=tmp_path).stdout)["agents"]
    assert row["turns"] == number
    with prompt([], tmp_path) as (screen, _):
        screen.wait_for(
            f"the conversation continues: you wrote {number} messages, the last: the weather of day"
        )


def test_what_was_typed_is_listed_on_one_line_without_what_goes_along(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\n```\nmilk\n```\n")
    (tmp_path / "long.md").write_text("A line.\n" * 3_000)
    replies = [Say("One."), Say("Two."), Say("Three."), Say("Four.")]
    with prompt(replies, tmp_path, columns=110) as (screen, model):
        for command in ("printf 'out\\n\\nput\\n'; exit 3", "true"):
            screen.do(f"!{command}", "it goes along with your next message")
        for message in ("ok", "read @notes.md", "and @long.md", "\x1b[200~two\nlines\x1b[201~"):
            screen.do(message, "∙ 1 step")
        assert all(
            text in model.requests[0].text for text in ("exit code 3", "put", "It printed nothing.")
        )
        screen.line("/cost")
        screen.wait_for("Since ever")
        rows = [line.split() for line in screen.scrolled().split("\n") if line.startswith("main ")][
            :4
        ]
        listed = [" ".join(row[1 : row.index("1")]) for row in rows]
        assert listed == ["ok", "read @notes.md", "and @long.md", "two lines"]
        screen.line("/pop")
        screen.wait_for("removed from the context: two lines")
    with prompt([], tmp_path, columns=110) as (screen, _):
        screen.wait_for("you wrote 3 messages, the last: and @long.md")
        screen.do("/agents", "3 turns, 1 no longer in the context")
        screen.wait(
            lambda: not any("\\n" in line for line in screen.screen()), "no literal line break"
        )
    (row,) = json.loads(knapper("agents", "list", "--json", cwd=tmp_path).stdout)["agents"]
    assert (row["turns"], row["hidden_turns"]) == (4, 1)
