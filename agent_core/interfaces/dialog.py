"""Questions to the user. A `Dialog` says in one sentence what it takes: keys at the prompt (`repl/terminal.py`), a line
on every other terminal, shown on standard error.

Input typed before a question appears is set aside and does not answer it; more may follow, so the yes to that line is
the whole word. So is a yes to an action that cannot be undone. The end of input is a no.
"""

import asyncio
import getpass
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice
from typing import Final, Protocol

from agent_core.base import machine
from agent_core.base.errors import KnapperError
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line, visible

from .control_sequences import ControlReader, typed_text
from .styled_lines import Line, folded, line, painted, screen_columns, screen_rows, write

_QUIET_S, _MOST_PIECES = 0.15, 100
_MOST_TRIES: Final = 3  # to type a value
UNSEEN: Final = "That cannot be an answer yet: not all of it has been shown."
_PAGED: Final = "This is not all of it. Enter shows more; n: no; then Enter:"
_FINAL, _AHEAD = "This cannot be undone: type", "Something was typed before it: type"
MOST_COUNTED: Final = (
    200  # rows beyond the screen; counting all of them would take as long as showing them
)


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """A key that answers, its meaning, and the word that answers the same. A yes needs Enter, too."""

    letter: str
    says: str
    word: str = ""
    is_yes: bool = False


YES, NO = AnswerKey("y", "yes", "yes", is_yes=True), AnswerKey("n", "no", "no")
REASON = AnswerKey("w", "no, with a reason")


@dataclass(frozen=True, slots=True)
class DialogReply:
    """The letter of the key that answered, and the reason if one was typed."""

    letter: str = NO.letter
    reason: str = ""


class Dialog:
    """A question: its text, the keys that answer, whether Enter alone is a no, whether a yes is the whole word.

    This one takes yes or no; subclasses have other keys, and more to show.
    """

    keys: tuple[AnswerKey, ...] = (YES, NO)
    takes_enter = True

    def __init__(self, text: str = "", *, is_final: bool = False) -> None:
        self._text = text
        self._is_final = is_final

    def instructions(self, *, is_ahead: bool = False, by_keys: bool = False) -> str:
        """Return the sentence about what answers. If input preceded the question, only the whole word is a yes."""
        why = _FINAL if self._is_final else _AHEAD if is_ahead else ""
        yes = [
            _meaning(key.word if why else key.letter, key.says) for key in self.keys if key.is_yes
        ]
        no = [_meaning(key.letter, key.says) for key in self.keys if not key.is_yes]
        if by_keys and not why:
            how = f"Press {_listed(yes)}, then Enter, or {self.refusals()}."
        else:
            no[1:] = [f"{REASON.letter} and a reason"] * (REASON in self.keys)
            how = f"{why or 'Type'} {_listed([*yes, *no])}, then Enter."
        return f"{how} Enter alone: no." if self.takes_enter else how

    def refusals(self) -> str:
        """Return the keys that answer no, which count before all is shown."""
        return " or ".join(_meaning(key.letter, key.says) for key in self.keys if not key.is_yes)

    def reply(self, typed: str, *, is_ahead: bool = False) -> DialogReply | None:
        """Return the answer in a typed line or key, if it is one."""
        letter, _, reason = typed.strip().partition(" ")
        if letter.lower() == REASON.letter and reason.strip() and REASON in self.keys:
            return DialogReply(REASON.letter, reason.strip())
        in_full = is_ahead or self._is_final
        # The end of a pasted line may be this word after leading blanks.
        text = (typed.rstrip() if in_full else typed.strip()).lower()
        for key in self.keys:
            is_word = text in (key.word, key.says.lower())  # as it stands in the row of keys
            if (
                text
                and (is_word or (text == key.letter and not (key.is_yes and in_full)))
                and key != REASON
            ):
                return DialogReply(key.letter)
        return DialogReply() if self.takes_enter and not text else None

    def reply_to_key(self, key: str) -> DialogReply | None:
        """Return the answer of a single key, if it is one; for a no with a reason, the reason follows."""
        is_reason = key == REASON.letter and REASON in self.keys
        return DialogReply(key) if is_reason else self.reply(key) if key.strip() else None

    def rows(self, columns: int) -> Iterator[Line]:
        """Yield everything to show, wrapped."""
        return folded([line(("warn", "? "), ("strong", one_line(self._text)))], columns)

    def fitting_rows(self, columns: int, rows: int) -> tuple[list[Line], int, bool]:
        """Return as much as there is room for, the number of rows left out, up to 200, and whether a yes needs them."""
        return cut_to([*islice(self.rows(columns), rows + MOST_COUNTED)], rows)

    def pages(self, columns: int, rows: int) -> Iterator[tuple[list[Line], bool]]:
        """Yield the pages, each with whether it is the last. A yes is accepted only below the last page."""
        remaining = self.rows(columns)
        page = list(islice(remaining, rows))
        while page:
            following = list(islice(remaining, rows))
            yield page, not following
            page = following

    def for_transcript(self) -> "Dialog":
        """Return the form that stays on the screen after the answer."""
        return self

    def ending(self, reply: DialogReply) -> Line:
        """Return the answer as a line below the question."""
        return line(
            "  ", ("dim", "→ "), ("ok", "yes") if reply.letter == YES.letter else ("warn", "no")
        )


def _meaning(form: str, says: str) -> str:
    return form if form == says else f"{form} ({says})"


def _listed(texts: list[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} or {last}" if first else last


def cut_to(lines: list[Line], rows: int) -> tuple[list[Line], int, bool]:
    """Return the rows that fit, the number of the others, up to 200, and whether there are any."""
    if len(lines) <= rows:
        return lines, 0, False
    shown = max(rows - 1, 1)
    return lines[:shown], min(len(lines) - shown, MOST_COUNTED), True


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
