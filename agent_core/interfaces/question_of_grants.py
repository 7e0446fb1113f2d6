"""The grant question in a command at a terminal: one line each, on standard error."""

import sys

from agent_core.access.grants import Decision, Question

from .asked import answer_line, answered
from .question import say, typed_line


def is_attended() -> bool:
    """Check whether a user can be asked: input and output must both be a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def decide(question: Question) -> Decision:
    """Ask the user. Ctrl-C ends the command, and the end of input is a no."""
    decision = await answered(question, say, lambda mark: typed_line(mark, is_fresh=True))
    say([answer_line(decision)])
    return decision
