"""The prompt names what it waits for and what the user did, in the user's own terms and numbers."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.interfaces.support import flags, leave, prompt
from tests.kit import Repeat, Say, scripted
from tests.kit.program import knapper
from tests.kit.terminal import Terminal, terminal

WORDS = "Clouds came and went, and the wind was fresh. " * 60
SLOWLY = Say("People and facts: the weather. " + "The wind was fresh, and clouds came. " * 6, pause_s=0.1)
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
def test_while_old_messages_are_summarized_the_screen_says_so_and_then_all_messages_count(tmp_path: Path) -> None:
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
        screen.wait_for(f"the conversation continues: you wrote {number} messages, the last: the weather of day")


def test_what_was_typed_is_listed_on_one_line_without_what_goes_along(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\n```\nmilk\n```\n")
    (tmp_path / "long.md").write_text("A line.\n" * 3_000)
    replies = [Say("One."), Say("Two."), Say("Three."), Say("Four.")]
    with prompt(replies, tmp_path, columns=110) as (screen, model):
        for command in ("printf 'out\\n\\nput\\n'; exit 3", "true"):
            screen.do(f"!{command}", "it goes along with your next message")
        for message in ("ok", "read @notes.md", "and @long.md", "\x1b[200~two\nlines\x1b[201~"):
            screen.do(message, "∙ 1 step")
        assert all(text in model.requests[0].text for text in ("exit code 3", "put", "It printed nothing."))
        screen.line("/cost")
        screen.wait_for("Since ever")
        rows = [line.split() for line in screen.scrolled().split("\n") if line.startswith("main ")][:4]
        listed = [" ".join(row[1 : row.index("1")]) for row in rows]
        assert listed == ["ok", "read @notes.md", "and @long.md", "two lines"]
        screen.line("/undo")
        screen.wait_for("remove the message “two lines”")
        screen.do("n", "→ no")
        screen.line("/pop")
        screen.wait_for("removed from the context: two lines")
    with prompt([], tmp_path, columns=110) as (screen, _):
        screen.wait_for("you wrote 3 messages, the last: and @long.md")
        screen.do("/agents", "3 turns, 1 no longer in the context")
        screen.wait(lambda: not any("\\n" in line for line in screen.screen()), "no literal line break")
    (row,) = json.loads(knapper("agents", "list", "--json", cwd=tmp_path).stdout)["agents"]
    assert (row["turns"], row["hidden_turns"]) == (4, 1)
