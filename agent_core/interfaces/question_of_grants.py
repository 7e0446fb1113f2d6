"""The question about grants in a command at a terminal: a line each, on standard error."""

import sys

from agent_core.grants import Decision, Question

from .asked import EXPLAINED, TYPED, answer_line, question_lines, typed_decision
from .question import say, typed_line
from .spans import line
from .wrap import screen_columns


def is_attended() -> bool:
    """Whether a human can be asked: both ways lead to a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def decide(question: Question) -> Decision:
    """What the human answers; Ctrl-C ends the command, and the end of input is a no."""
    say(question_lines(question, screen_columns()))
    while (typed := await typed_line(TYPED, is_fresh=True)) is not None:
        decision = typed_decision(typed)
        if decision is not None:
            say([answer_line(decision)])
            return decision
        say([line(("warn", EXPLAINED))])
    return Decision("no")
