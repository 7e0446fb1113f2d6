"""Questions to the user at a terminal, one line each, on standard error: these work on every terminal.

A typed yes is a word that the question shows and that is drawn anew for each question. Nothing that was typed before
holds that word: not a line that waits, not half a line that Enter completes, not what is on its way while the program
is busy. No flush of the terminal has to win a race for that.
"""

import asyncio
import getpass
import os
import secrets
import sys
import termios
from collections.abc import Iterable
from dataclasses import dataclass, field

from agent_core.base.untrusted import one_line, visible

from .spans import Line, line, painted
from .wrap import folded, screen_columns, write

_LETTERS, _DIGITS = "abcdefghkmnpqrstuvwxyz", "23456789"  # none looks like another
_YES, _NO = ("y", "yes"), ("", "n", "no")


def _drawn() -> str:
    return secrets.choice(_DIGITS) + secrets.choice(_LETTERS)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The confirmation word of one question."""

    word: str = field(default_factory=_drawn)

    @property
    def asks(self) -> str:
        """The text that asks the user to type the word."""
        return f'Type "y {self.word}" and Enter for yes.'

    def key(self, typed: str) -> str:
        """Return the text before the word, in lower case, or "" if the word is missing."""
        key, _, word = typed.strip().lower().partition(" ")
        return key if word.strip() == self.word else ""

    def is_given(self, typed: str | None) -> bool:
        """Return whether a line is a yes to this question."""
        return typed is not None and self.key(typed) in _YES

    def note(self, typed: str | None) -> list[Line]:
        """Return what to say of a line that counts as a no and may have been meant otherwise; nothing of a plain no."""
        if typed is None or self.is_given(typed) or typed.strip().lower() in _NO:
            return []
        return [line(("warn", f"“{one_line(typed.strip(), 40)}” is not “y {self.word}”, so it counts as a no."))]


def say(lines: Iterable[Line]) -> None:
    """Show lines, folded to the screen."""
    write(lines, sys.stderr)


def ask(question: str) -> str | None:
    """Return what is typed from now on, stripped, or None at the end of input."""
    _tell_typed()
    rows = folded([line(question)], screen_columns()) if sys.stderr.isatty() else [line(visible(question))]
    sys.stderr.write(painted(rows, sys.stderr).rstrip("\n") + " ")
    sys.stderr.flush()
    typed = sys.stdin.readline()
    if not typed:
        say([line()])
        return None
    return typed.strip()


def forget_typed() -> None:
    """Discard what was typed at the terminal and not read yet, even half a line. Input from a pipe is kept."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _tell_typed() -> None:
    """Discard what was typed at the terminal, and list it as not sent.

    No other thread may be reading from the terminal: it would see the end of input.
    """
    if not sys.stdin.isatty():
        return
    typed = _waiting(sys.stdin.fileno()).decode(errors="replace").replace("\r", "\n")
    lines = typed.split("\n")
    begun = [line()] if lines[-1] else []  # the terminal shows half a line where the cursor is
    say([*begun, *(line(("dim", f"  not sent: {one_line(text, 80)}")) for text in lines if text.strip())])


def _waiting(terminal: int) -> bytes:
    """Read all that waits at a terminal, even half a line, which it keeps back otherwise."""
    before = termios.tcgetattr(terminal)
    at_once = [*before[:6], [*before[6]]]
    at_once[3] &= ~termios.ICANON
    at_once[6][termios.VMIN] = at_once[6][termios.VTIME] = 0
    termios.tcsetattr(terminal, termios.TCSANOW, at_once)
    try:
        return b"".join(iter(lambda: os.read(terminal, 4096), b""))
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


async def typed_line(mark: str, *, is_fresh: bool = False) -> str | None:
    """Return a line typed at a terminal while the program continues, or None at the end of input.

    A fresh one is typed from now on.
    """
    if is_fresh:
        forget_typed()
    sys.stderr.write(visible(mark))
    sys.stderr.flush()
    loop, is_there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline() or None


def ask_hidden(question: str) -> str | None:
    """Do the same without echo, for what may be a key."""
    try:
        return getpass.getpass(visible(question) + " ", stream=sys.stderr).strip()
    except EOFError:
        return None


def said_yes(question: str) -> bool:
    """Ask about what puts nothing at risk: a plain yes is enough, and any other answer is a no."""
    return (ask(f"{question} Type y and Enter for yes.") or "").lower() in _YES


def agreed(question: str) -> bool:
    """Ask the user and return whether they say yes; any other answer is a no."""
    agreement = Agreement()
    typed = ask(f"{question} {agreement.asks}")
    say(agreement.note(typed))
    return agreement.is_given(typed)
