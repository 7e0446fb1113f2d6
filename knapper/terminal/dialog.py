"""Questions to the user. A `Dialog` says in one sentence what it takes: keys at the prompt (`repl/terminal.py`), a line
on every other terminal, shown on standard error.

Input typed before a question appears is set aside and does not answer it; more may follow, so the yes to that line is
the whole word. So is a yes to an action that cannot be undone. The end of input is a no.
"""

import asyncio
import getpass
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol

from agent_core.base import machine
from agent_core.base.errors import KnapperError
from agent_core.base.untrusted import one_line, visible
from agent_core.views.dialog import NO, REASON, YES, Dialog, DialogReply
from agent_core.views.styled_lines import (
    Line,
    folded,
    line,
    painted,
    screen_columns,
    screen_rows,
    write,
)

from .control_sequences import ControlReader, typed_text

_QUIET_S, _MOST_PIECES = 0.15, 100
_MOST_TRIES: Final = 3  # to type a value
UNSEEN: Final = "That cannot be an answer yet: not all of it has been shown."
_PAGED: Final = "This is not all of it. Enter shows more; n: no; then Enter:"


class Answers(Protocol):
    """The lines that a user types while the program continues."""

    def set_aside(self) -> bool:
        """Exclude what was typed so far from the next answer. Return whether there was anything."""

    async def answer(self, mark: str) -> str | None:
        """Return the next line after showing the mark, or None at the end of input."""


def say(lines: Iterable[Line]) -> None:
    """Show lines, wrapped to the screen."""
    write(lines, sys.stderr)


def show_mark(mark: str) -> None:
    """Show what a typed line follows."""
    rows = folded([line(mark)], screen_columns()) if sys.stderr.isatty() else [line(visible(mark))]
    sys.stderr.write(painted(rows, sys.stderr).rstrip() + " ")
    sys.stderr.flush()


def forget_typed() -> None:
    """Discard unread terminal input, even half a line. Input from a pipe is kept."""
    if sys.stdin.isatty():
        machine.forget_typed(sys.stdin.fileno())


_reader: Final = ControlReader(is_of_lines=True)


def _as_typed(received: str) -> str:
    """Return what a person typed of what this terminal sent: it also sends reports, and may cut them anywhere."""
    return typed_text(_reader.feed(received))


class TerminalAnswers:
    """The lines that a user types at a terminal with no other reader."""

    def set_aside(self) -> bool:
        """Discard what was typed so far, list it as not sent, and return whether there was any.

        No other thread may read from the terminal meanwhile: it would see the end of input.
        """
        if not sys.stdin.isatty():
            return False
        pieces = [machine.read_typed(sys.stdin.fileno())]
        while pieces[-1] and len(pieces) < _MOST_PIECES:  # more of a paste may follow
            time.sleep(_QUIET_S)
            pieces.append(machine.read_typed(sys.stdin.fileno()))
        typed = _as_typed(b"".join(pieces).decode(errors="replace").replace("\r", "\n"))
        lines = typed.split("\n")
        begun = (
            [line()] if lines[-1] else []
        )  # the terminal already shows half a line at the cursor
        say(
            [
                *begun,
                *(
                    line(("dim", f"  not sent: {one_line(text, 80)}"))
                    for text in lines
                    if text.strip()
                ),
            ]
        )
        return bool(typed)

    async def answer(self, mark: str) -> str | None:
        """Return the next line after showing the mark, or None at the end of input."""
        show_mark(mark)
        await machine.wait_for_input(sys.stdin.fileno())
        if typed := sys.stdin.readline():
            return _as_typed(typed)
        say([line()])  # the terminal shows nothing for Ctrl-D
        return None


def ask_hidden(question: str) -> str | None:
    """Ask without echo, for input that may be a key. Return None at the end of input."""
    if sys.platform == "win32":
        try:
            return getpass.getpass(visible(question) + " ", stream=sys.stderr).strip()
        except EOFError:
            return None
    with machine.without_echo(sys.stdin.fileno()):
        show_mark(question)
        typed = sys.stdin.readline()
    say([line()])
    return _as_typed(typed).strip() if typed else None


async def hidden_answer(question: str, answers: Answers) -> str | None:
    """Return what is typed from now on without being shown, or None at the end of input."""
    if sys.platform == "win32":
        return await asyncio.to_thread(ask_hidden, question)
    with machine.without_echo(sys.stdin.fileno()):
        typed = await answers.answer(question)
    say([line()])
    return None if typed is None else typed.strip()


class SecretStore(Protocol):
    """The file of the user's secrets."""

    def put(self, name: str, value: str) -> None:
        """Store a secret."""


async def set_secrets(
    names: Iterable[str],
    secret_store: SecretStore,
    ask: Callable[[str], Awaitable[str | None]],
    show: Callable[[Iterable[Line]], None],
) -> None:
    """Ask for the values of secrets that a function may use now, and store them. Nothing else sees what is typed."""
    for name in names:
        for _ in range(_MOST_TRIES):
            typed = await ask(
                f"The value of {name} (not shown as you type; Enter alone leaves it unset):"
            )
            if not typed:
                show([line(("warn", f"{name} is not set. Later: knapper secrets set {name}"))])
                break
            try:
                secret_store.put(name, typed)
            except KnapperError as error:
                show([line(("warn", f"{error.message} {error.fix}".strip()))])
            else:
                show([line(("ok", "✓ "), ("name", name), " is set.")])
                break


async def ask_in_lines(
    dialog: Dialog, show: Callable[[Iterable[Line]], None], answers: Answers
) -> DialogReply:
    """Show a question in pages and return the answer, a line. A no is accepted below each page."""
    is_ahead = answers.set_aside()  # listed above the question; and again below it, in case of more
    columns = screen_columns()
    below = max(
        len([*folded([line(text)], columns)])
        for text in (_PAGED, dialog.instructions(is_ahead=True))
    )
    for page, is_last in dialog.pages(columns, max(screen_rows() - below - 1, 1)):
        show(page)
        while True:
            is_ahead |= answers.set_aside()
            typed = await answers.answer(
                dialog.instructions(is_ahead=is_ahead) if is_last else _PAGED
            )
            if typed is None:
                return DialogReply()
            if not is_last and not typed.strip():
                break
            reply = dialog.reply(typed, is_ahead=is_ahead)
            if reply is not None and (is_last or reply.letter in (NO.letter, REASON.letter)):
                return reply
            show([line(("warn", "That is not an answer." if is_last else UNSEEN))])
            is_ahead = False
    return DialogReply()


async def agrees(question: str, *, is_final: bool = False) -> bool:
    """Ask a yes-or-no question at this terminal and return the answer."""
    return (
        await ask_in_lines(Dialog(question, is_final=is_final), say, TerminalAnswers())
    ).letter == YES.letter


async def typed_line(question: str) -> str | None:
    """Ask at this terminal and return what is typed from now on, stripped, or None at the end of input."""
    answers = TerminalAnswers()
    answers.set_aside()
    typed = await answers.answer(question)
    return None if typed is None else typed.strip()


def agreed(question: str) -> bool:
    """Ask a yes-or-no question where no event loop runs."""
    return asyncio.run(agrees(question))


def ask(question: str) -> str | None:
    """Ask for a line where no event loop runs."""
    return asyncio.run(typed_line(question))
