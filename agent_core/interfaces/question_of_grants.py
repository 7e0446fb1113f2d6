"""The question about grants in a command at a terminal: a line each, on standard error."""

import asyncio
import shutil
import sys
import termios

from agent_core.grants import Decision, Question

from .asked import EXPLAINED, TYPED, answer_line, question_lines, typed_decision
from .question import say
from .spans import line


def is_attended() -> bool:
    """Whether a human can be asked: both ways lead to a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def decide(question: Question) -> Decision:
    """What the human answers; Ctrl-C ends the command, and the end of input is a no."""
    say(question_lines(question, shutil.get_terminal_size().columns))
    while (typed := await _typed()) is not None:
        decision = typed_decision(typed)
        if decision is not None:
            say([answer_line(decision)])
            return decision
        say([line(("warn", EXPLAINED))])
    return Decision("no")


async def _typed() -> str | None:
    """A line that is typed from now on, while the program goes on; None at the end of input."""
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    sys.stderr.write(TYPED)
    sys.stderr.flush()
    loop, is_there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline() or None
