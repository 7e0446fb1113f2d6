"""Questions to the user at a terminal, one line each, on standard error; they work on every terminal.

Input typed before a question appears is set aside and does not answer it. A yes is normally one letter. If input was
set aside, more may follow, so this one yes needs the whole word; so does a yes to an action that cannot be undone.
"""

import getpass
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from agent_core.base import machine
from agent_core.base.untrusted import one_line, visible

from .spans import Line, folded, line, painted, screen_columns, write

_QUIET_S, _MOST_PIECES = 0.15, 100
_YES, _NO = ("y", "yes"), ("", "n", "no")


@dataclass(frozen=True, slots=True)
class Agreement:
    """The form of a yes to one question: a letter, or the whole word with the reason in `why`."""

    why: str = ""

    @classmethod
    def to(cls, *, is_final: bool = False, is_ahead: bool = False) -> "Agreement":
        """Create one that needs the whole word if the action cannot be undone or input preceded the question."""
        return cls("this cannot be undone" if is_final else "something was typed before it" if is_ahead else "")

    @property
    def asks(self) -> str:
        """The text that tells the user what to type."""
        yes = f"Type yes and Enter for yes: {self.why}." if self.why else "Type y and Enter for yes."
        return f"{yes} Enter alone: no."

    def is_given(self, typed: str | None) -> bool:
        """Return whether a line is a yes to this question."""
        if typed is None:
            return False
        # The end of a pasted line may be this word after leading blanks.
        return typed.rstrip().lower() in _YES[1:] if self.why else typed.strip().lower() in _YES

    def note(self, typed: str | None) -> list[Line]:
        """Return a note on a line that counts as a no but may not be meant as one; nothing for a plain no."""
        if typed is None or self.is_given(typed) or typed.strip().lower() in _NO:
            return []
        yes = "yes" if self.why else "y"
        return [line(("warn", f"“{one_line(typed.strip(), 40)}” is not “{yes}”, so it counts as a no."))]


class Answers(Protocol):
    """The lines that a user types while the program continues."""

    def set_aside(self) -> bool:
        """Exclude what was typed so far from the next answer. Return whether there was anything."""

    async def answer(self, mark: str) -> str | None:
        """Return the next line after showing the mark, or None at the end of input."""


def say(lines: Iterable[Line]) -> None:
    """Show lines, wrapped to the screen."""
    write(lines, sys.stderr)


def ask(question: str) -> str | None:
    """Ask a question and return what is typed from now on, stripped, or None at the end of input."""
    _tell_typed()
    return _read_answer(question)


def _read_answer(question: str) -> str | None:
    rows = folded([line(question)], screen_columns()) if sys.stderr.isatty() else [line(visible(question))]
    sys.stderr.write(painted(rows, sys.stderr).rstrip("\n") + " ")
    sys.stderr.flush()
    typed = sys.stdin.readline()
    if not typed:
        say([line()])
        return None
    return typed.strip()


def forget_typed() -> None:
    """Discard unread terminal input, even half a line. Input from a pipe is kept."""
    if sys.stdin.isatty():
        machine.forget_typed(sys.stdin.fileno())


def _tell_typed() -> bool:
    """Discard unread terminal input, list it as not sent, and return whether there was any.

    No other thread may read from the terminal meanwhile: it would see the end of input.
    """
    if not sys.stdin.isatty():
        return False
    pieces = [machine.read_typed(sys.stdin.fileno())]
    while pieces[-1] and len(pieces) < _MOST_PIECES:  # more of a paste may follow
        time.sleep(_QUIET_S)
        pieces.append(machine.read_typed(sys.stdin.fileno()))
    typed = b"".join(pieces).decode(errors="replace").replace("\r", "\n")
    lines = typed.split("\n")
    begun = [line()] if lines[-1] else []  # the terminal already shows half a line at the cursor
    say([*begun, *(line(("dim", f"  not sent: {one_line(text, 80)}")) for text in lines if text.strip())])
    return bool(typed)


class TerminalAnswers:
    """The lines that a user types at a terminal with no other reader."""

    def set_aside(self) -> bool:
        """Discard what was typed so far, list it as not sent, and return whether there was any."""
        return _tell_typed()

    async def answer(self, mark: str) -> str | None:
        """Return the next line after showing the mark, or None at the end of input."""
        sys.stderr.write(visible(mark))
        sys.stderr.flush()
        await machine.wait_for_input(sys.stdin.fileno())
        return sys.stdin.readline() or None


def ask_hidden(question: str) -> str | None:
    """Ask without echo, for input that may be a key."""
    try:
        return getpass.getpass(visible(question) + " ", stream=sys.stderr).strip()
    except EOFError:
        return None


def agreed(question: str, *, is_final: bool = False) -> bool:
    """Ask a yes-or-no question and return the answer; anything but a yes is a no."""
    agreement = Agreement.to(is_final=is_final, is_ahead=_tell_typed())
    typed = _read_answer(f"{question} {agreement.asks}")
    say(agreement.note(typed))
    return agreement.is_given(typed)
