"""The terminal interface of a conversation at the prompt: output, questions, tables, a pager, the debugger front end.

Everything is printed above the prompt. In a table, letters filter, arrows move, Enter prints the row, and Esc or an
initial q leaves; to filter by q, type a space first.
Slow to import: loaded after the prompt is shown.
"""

import asyncio
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Literal

from prompt_toolkit.application import in_terminal
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text

from agent_core.base import machine
from agent_core.base.errors import UsageError
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.functions.debug import Command, DebugStop, stopping_lines
from agent_core.model.beside import names_here
from agent_core.operations.attachments import as_sent
from agent_core.operations.spending import describe_price, short
from agent_core.operations.waiting_messages import WaitingMessages, in_short, short_id
from agent_core.storage import line_named
from agent_core.views.call_log import ENDING, CallLog, command_words, stop_parts, typed_command
from agent_core.views.dialog import MOST_COUNTED, REASON, Dialog, DialogReply
from agent_core.views.faults import fault_lines
from agent_core.views.styled_lines import (
    Choice,
    Line,
    ShownSource,
    Table,
    coloured,
    counted,
    cut,
    fitting,
    folded,
    line,
    painted,
    plain,
    width,
)
from agent_core.workspace.agent_files import group_names
from agent_core.workspace.state_store import opened_state
from knapper.terminal.dialog import UNSEEN, TerminalAnswers, hidden_answer

from . import render
from .conversation import Conversation, opened
from .live import ended_rows
from .modes import next_mode
from .prompt import DEBUG_MARK, QUIET_S, Prompt
from .render import TurnRenderer
from .run_options import RunOptions
from .slash import command, during, take
from .ui import Listener, Voice

# A question at the prompt: one key answers no; a key and Enter answer yes. Text typed ahead answers nothing: keys count
# immediately if the user was not typing when the question appeared, otherwise when the input line is empty and no keys
# arrive. A line begun after that answers with a word, such as yes; any other line is not sent but is kept in the
# history. A line begun earlier is put aside by Enter and restored after the answer. An answer followed immediately by
# more text is a paste. What does not fit the window is shown page by page: a yes counts once the terminal has had it
# all, from the first row to the last.

ALONE_S = 0.25
CHOSEN_S = 0.05  # until the row shows what Enter answers
LAST_S = 0.05  # after an Enter that answers; a paste continues within this time
_BELOW = 2  # other rows: the input line, the bar
_LONGEST_WORD = 2_000
_ANSWERS = "answers with your line if it is an answer; it is not sent as a message."
_ASIDE = "puts your line aside until you have answered; then a key answers."
_TYPED = "That was typed text: it is in the line below."
_MORE_KEY = "d"
_ALL = "That is all of it."
State = Literal["quiet", "armed", "pressed", "chosen", "entered", "word"]


class QuestionPages:
    """The rows of a question, a page at a time, and how many of them the terminal has had, from the first one on."""

    def __init__(self, dialog: Dialog) -> None:
        self._dialog = dialog
        self._columns = 0
        self._rows: list[Line] = []  # those made so far, from `_others`
        self._others: Iterator[Line] = iter(())
        self._top = self._bottom = self._written = 0

    def page(self, columns: int, count: int) -> list[Line]:
        """Return the rows of the current page. In another width, the text begins again: its rows are others."""
        if columns != self._columns:
            self._columns, self._rows, self._others = columns, [], self._dialog.rows(columns)
            self._top = self._written = 0
        self._rows += islice(
            self._others, max(self._top + count + MOST_COUNTED - len(self._rows), 0)
        )
        self._bottom = min(self._top + count, len(self._rows))
        return self._rows[self._top : self._bottom]

    @property
    def rows_below(self) -> int:
        """The number of rows after the current page, up to 200."""
        return min(len(self._rows) - self._bottom, MOST_COUNTED)

    @property
    def is_written(self) -> bool:
        """True once each row has been on the screen."""
        return bool(self._rows) and self._written == len(self._rows)

    def note_written(self) -> None:
        """Record that the terminal has the current page."""
        if self._top <= self._written:
            self._written = max(self._written, self._bottom)

    def turn(self) -> None:
        """Go on to the next page, and from the last one to the first."""
        self._top = min(self._bottom, self._written) if self.rows_below else 0


class Asking:
    """An open question; `answer` is set when the user has answered."""

    def __init__(self, dialog: Dialog, prompt: Prompt) -> None:
        self.answer: asyncio.Future[DialogReply] = asyncio.get_running_loop().create_future()
        self.state: State = "quiet"
        self._dialog = dialog
        self._prompt = prompt
        self._note = ""
        self._pressed = ""
        self._reply = DialogReply()  # the answer, if no more text follows
        self._pages = QuestionPages(dialog)
        self._is_paged = (
            False  # whether the user turns the pages of a question that is shown in short
        )
        self._is_page = self._is_visible = (
            False  # whether a page was drawn last, and whether the window is high enough
        )
        self._is_shown = False  # whether the terminal has had all that a yes gives
        self._draft = ""
        self._is_answer = self._is_drawn = (
            False  # whether the line was begun after keys started to count
        )
        self._has_arrived = False  # whether the terminal has had any of it
        self._timer: asyncio.TimerHandle | None = None
        prompt.buffer.cancel_completion()
        prompt.app.key_processor.before_key_press += self._note_key
        prompt.app.after_render += self._note_written

    def press(self, key: str) -> None:
        """Handle a key that may be an answer."""
        if self.state == "entered":
            begun = "" if self._prompt.buffer.text else self._pressed
            self._typing(f"{begun}\n{key if key.isprintable() else ''}")
        elif not key or not key.isprintable():
            self.state = "armed"
            self._explain("That is not an answer.")
        elif self.state == "armed" and (
            reply := DialogReply(key) if key == _MORE_KEY else self._dialog.reply_to_key(key)
        ):
            self.state, self._pressed, self._reply = "pressed", key, reply
            self._wait(CHOSEN_S if self._is_yes else ALONE_S)
        elif self.state == "pressed" and key == self._pressed == _MORE_KEY:
            self._wait(ALONE_S)  # a repeated d prints only one page; no word begins with dd
        else:
            self._typing((self._pressed if self.state != "armed" else "") + key)

    def enter(self) -> bool:
        """Handle Enter: send the word, confirm a yes, take the typed line, or explain the keys. Return whether the line
        is a command, which counts as a no and has to run.
        """
        text = self._prompt.buffer.text
        if self.state == "word":
            self._close(DialogReply(REASON.letter, as_sent(text).strip()[:_LONGEST_WORD]))
        elif self.state in ("pressed", "chosen"):
            self._enter(self._reply)
        elif self.state == "entered":
            self._on_quiet()
        elif text.startswith("/") and self._is_answer and self._dialog.takes_enter:
            self.refuse()
            return True
        elif text:
            reply = self._dialog.reply(as_sent(text))
            if reply is not None and self._is_answer:
                self._enter(reply)
            else:
                self._put_aside(is_word=reply is not None)
        elif self.state == "armed" and self._dialog.takes_enter:
            self._pressed = ""
            self._enter(DialogReply())
        else:
            is_early = self._dialog.takes_enter
            self._explain(
                "You pressed Enter before you could answer."
                if is_early
                else "Enter is not an answer."
            )
        return False

    @property
    def _is_yes(self) -> bool:
        return any(key.is_yes for key in self._dialog.keys if key.letter == self._reply.letter)

    def _enter(self, reply: DialogReply) -> None:
        """Accept an answer unless more text follows immediately, as in a paste."""
        self.state, self._reply = "entered", reply
        self._wait(LAST_S)

    def _put_aside(self, *, is_word: bool) -> None:
        """Empty the input line, so that keys can count, and explain what happens to its text."""
        buffer = self._prompt.buffer
        typed = f"“{one_line(as_sent(buffer.text).strip(), 40)}”"
        if is_word:
            note = f"You began typing {typed} before you could answer, so it does not count."
        elif self._is_answer:
            note = f"{typed} is not an answer and was not sent (↑ recalls it)."
        else:
            note = f"You began typing {typed} before you could answer; it comes back afterward."
            self._draft = "\n".join(filter(None, [self._draft, buffer.text]))
        buffer.reset(append_to_history=self._is_answer and not is_word)
        self.state, self._is_answer = "quiet", False
        self._explain(note)
        self._wait(QUIET_S)

    def refuse(self) -> None:
        """Answer with a no."""
        self._close(DialogReply())

    def end(self, why: str = "") -> None:
        """Restore the input line, and print the question in short and the answer above it, or `why` there is none."""
        self._prompt.app.key_processor.before_key_press -= self._note_key
        self._prompt.app.after_render -= self._note_written
        if self._timer is not None:
            self._timer.cancel()
        if self.state == "word":
            self._prompt.buffer.reset()
        self._prompt.bring_back(self._draft)
        decided = self.answer.done() and not self.answer.cancelled()
        ending = (
            self._dialog.ending(self.answer.result())
            if decided
            else line("  ", ("dim", f"→ {why or 'not answered'}"))
        )
        columns = self._prompt.columns
        lines, hidden_rows, is_cut = self._dialog.for_transcript().fitting_rows(
            columns, self._room(1)
        )
        more = [line(("dim", f"  … {_counted(hidden_rows)}"))] if is_cut else []
        self._prompt.print_above(painted([*lines, *more, *folded([ending], columns)], sys.stdout))

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Draw the question, or a page of it, and the keys once they count."""
        self._is_drawn = True
        lines, hidden_rows, self._is_page = self._question_rows(columns)
        rows = [*lines, *self._below(columns, hidden_rows, is_page=self._is_page)]
        self._is_visible = len(rows) + _BELOW <= self._prompt.output.get_size().rows
        return to_formatted_text(ANSI(coloured(rows).removesuffix("\n")))

    def _note_written(self, _: object) -> None:
        """Record what the terminal has now, and let keys count; if some came while it was written, after a pause."""
        if not self._is_drawn:
            return
        if self._is_page and self._is_visible:
            self._pages.note_written()
        is_whole = self._is_visible and not self._is_page
        self._is_shown = self._is_shown or is_whole or self._pages.is_written
        if self._has_arrived:
            return
        self._has_arrived = True
        if self._timer is None and not self._prompt.is_typed_in:
            self.state = "armed"
            self._prompt.app.invalidate()
        else:
            self._wait(QUIET_S)

    def _below(self, columns: int, hidden_rows: int, *, is_page: bool) -> list[Line]:
        notes = [line(("warn", self._note))] if self._note else []
        return [*folded([self._keys(hidden_rows, is_page=is_page), *notes], columns)]

    def _keys(self, hidden_rows: int, *, is_page: bool) -> Line:
        if self.state == "word":
            return line(
                ("strong", "Type the reason for the model and press Enter."),
                ("dim", " Esc: no, without a reason"),
            )
        if self.state == "chosen":
            chosen = next(key.says for key in self._dialog.keys if key.letter == self._reply.letter)
            return line(("strong", "Enter"), f" answers {chosen} · ", ("strong", "Esc"), " no")
        if self.state in ("quiet", "entered") and self._prompt.buffer.text:
            return line(("strong", "Enter"), " " + (_ANSWERS if self._is_answer else _ASIDE))
        if self.state == "quiet":
            return line(("dim", "…"))
        more = _counted(hidden_rows)
        if is_page and hidden_rows and not self._is_shown:
            page = f"Press {_MORE_KEY} for the next page ({more}), or {self._dialog.refusals()}."
            return line(("strong", page), " Yes counts on the last one.")
        where = "the next page" if is_page else "all"
        return line(
            ("strong", self._dialog.instructions(by_keys=True)),
            f" {_MORE_KEY}: {where} ({more})." if hidden_rows else "",
        )

    def _question_rows(self, columns: int) -> tuple[list[Line], int, bool]:
        """Return the rows to show, the number of those left out, up to 200, and whether this is a page of all rows.

        Pages are for what does not fit, and for what the user wants to see whole.
        """
        lines, hidden_rows, is_cut = self._dialog.fitting_rows(
            columns, self._room(self._rows_below(columns))
        )
        if not (is_cut or self._is_paged):
            return lines, hidden_rows, False
        page = self._pages.page(columns, self._room(self._rows_below(columns, is_page=True)))
        return page, self._pages.rows_below, True

    def _rows_below(self, columns: int, *, is_page: bool = False) -> int:
        """Return the number of rows below the question, however many of its rows are left out."""
        return max(len(self._below(columns, count, is_page=is_page)) for count in (0, MOST_COUNTED))

    def _room(self, below: int) -> int:
        return max(self._prompt.output.get_size().rows - _BELOW - below, 1)

    def _note_key(self, _: object) -> None:
        """Restart the wait for a pause in typing, because a key was pressed."""
        if self.state == "quiet":
            self._wait(QUIET_S)

    def _wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._on_quiet)

    def _on_quiet(self) -> None:
        if self.state == "quiet" and not self._prompt.buffer.text:
            self.state, self._note = "armed", "" if self._note == _TYPED else self._note
        elif self.state == "pressed" and self._is_yes:
            self.state = "chosen"
        elif self.state == "pressed":
            self._take(self._reply)
        elif self.state == "entered":
            self._prompt.buffer.reset()
            self._take(self._reply)
        self._prompt.app.invalidate()

    def _take(self, reply: DialogReply) -> None:
        self.state = "armed"
        if reply.letter == _MORE_KEY:
            self._turn_page()
        elif reply == DialogReply(REASON.letter):
            self.state, self._note = "word", ""
            self._prompt.buffer.reset()
            self._prompt.app.layout.focus(self._prompt.buffer)
        elif self._is_yes and not self._is_shown:
            self._explain(f"{UNSEEN} Press {_MORE_KEY}.")
        else:
            self._close(reply)

    def _turn_page(self) -> None:
        """Show the next page; a question in short begins with its first one, and ends in short after its last one."""
        if self._is_page:
            self._is_paged = self._is_paged and bool(self._pages.rows_below)
            self._pages.turn()
        else:
            self._is_paged = bool(self._question_rows(self._prompt.columns)[1])
        self._explain("" if self._is_page or self._is_paged else _ALL)

    def _typing(self, text: str) -> None:
        self.state, self._is_answer = "quiet", True
        self._prompt.buffer.insert_text(text)
        self._explain(_TYPED)
        self._wait(QUIET_S)

    def _explain(self, note: str) -> None:
        self._note = one_line(note, 400)
        self._prompt.app.invalidate()

    def _close(self, reply: DialogReply) -> None:
        if not self.answer.done():
            self.answer.set_result(reply)


def _counted(hidden_rows: int) -> str:
    return f"+{counted(hidden_rows, 'row')}{' or more' if hidden_rows == MOST_COUNTED else ''}"


_ABOVE = 1  # row that stays as it is: terminals keep a screen that is cleared from its top in their scrollback
_AROUND = _ABOVE + 5  # rows: the title, the head, the rule, the input line, the bar
LEAST_ROWS = 12
_MOST_BELOW = 3
_AROUND_PAGE = _ABOVE + 4  # rows: the title, the rule, the input line, the bar
_PAGE_KEYS = "↑↓ PgUp PgDn · Enter prints it · Esc leaves"
_KEYS = "type to filter · ↑↓ · Enter prints it · Esc leaves"


class Overlay:
    """What has the screen until the user leaves it, with an entry to print if Enter chose one."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self.left: asyncio.Future[Choice | None] = asyncio.get_running_loop().create_future()

    def escape(self) -> None:
        """Leave without an entry."""
        self._leave(None)

    def _leave(self, choice: Choice | None, typed: str = "") -> None:
        self._prompt.browser = None  # the next key is for the input line
        if not self.left.done():
            self.left.set_result(choice)
        self._prompt.buffer.insert_text(typed)


class Browser(Overlay):
    """An open table."""

    def __init__(self, table: Table, prompt: Prompt) -> None:
        super().__init__(prompt)
        self._table = table
        self._below = table.below[:_MOST_BELOW]
        self._typed = ""
        self._at = 0
        self._found = list(table.choices)
        self._previews: dict[tuple[str, int, int], list[str]] = {}

    def press(self, text: str) -> None:
        """Add a letter to the filter. A slash closes the table and begins a command; an initial q closes it, too."""
        if text == "/" or (text == "q" and not self._typed):
            self._leave(None, text.strip("q"))
        else:
            self._filter(self._typed + text)

    def back(self) -> None:
        """Remove the last letter."""
        self._filter(self._typed[:-1])

    def move(self, by: int) -> None:
        """Move to another row; if `by` is more than one, by a page."""
        rows = by if abs(by) == 1 else by // abs(by) * self._room()[0]
        self._at = min(max(self._at + rows, 0), max(len(self._found) - 1, 0))

    def enter(self) -> None:
        """Choose the row."""
        self._leave(self._found[self._at] if self._found else None)

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Draw the table, as high as the screen allows."""
        rows, below = self._room()
        first = min(max(self._at - rows // 2, 0), max(len(self._found) - rows, 0))
        shown = self._found[first : first + rows]
        many = f"{len(self._found)} of {len(self._table.choices)}"
        drawn = [
            ("bold ansicyan", cut(f"{self._table.title} {many}: {self._typed}▏ {_KEYS}", columns)),
            ("bold ansibrightblack", cut(plain([self._table.head])[:-1], columns)),
        ]
        for at, choice in enumerate(shown, first):
            text = cut(plain([choice.line])[:-1], columns)
            drawn.append(
                ("reverse", text + " " * (columns - width(text))) if at == self._at else ("", text)
            )
        drawn += [("ansibrightblack", cut(plain([row])[:-1], columns)) for row in self._below]
        drawn.append(("ansibrightblack", "─" * columns))
        return [
            *ended_rows(drawn),
            *to_formatted_text(ANSI("".join(self._preview(columns, below)).removesuffix("\n"))),
        ]

    def _preview(self, columns: int, rows: int) -> list[str]:
        if not self._found:
            return ["No match; Backspace removes letters."]
        choice = self._found[self._at]
        key = (choice.name, columns, rows)
        if key not in self._previews:
            self._previews[key] = list(islice(preview(choice, columns), rows))
        return self._previews[key]

    def _room(self) -> tuple[int, int]:
        """Return the number of table rows, and of rows for the details."""
        free_rows = max(self._prompt.output.get_size().rows - _AROUND - len(self._below), 2)
        rows = max(min(len(self._table.choices), free_rows * 2 // 5), 1)
        return rows, free_rows - rows

    def _filter(self, typed: str) -> None:
        self._typed, self._at = typed, 0
        self._found = fitting(typed.lstrip(), self._table.choices, attrgetter("text"))
        if self._table.keeps_order:
            self._found = [choice for choice in self._table.choices if choice in self._found]


class Pager(Overlay):
    """A pager for the details of one entry, which Enter prints."""

    def __init__(self, choice: Choice, prompt: Prompt) -> None:
        super().__init__(prompt)
        self._choice = choice
        self._top = self._columns = 0
        self._rows: list[str] = []  # the rows drawn so far, from `_others`
        self._others: Iterator[str] = iter(())

    @property
    def room(self) -> int:
        """The number of rows shown at once."""
        return max(self._prompt.output.get_size().rows - _AROUND_PAGE, 1)

    def is_needed(self, columns: int) -> bool:
        """Check whether there are more rows than the screen can show."""
        return len(self._drawn_rows(columns, self.room + 1)) > self.room

    def press(self, text: str) -> None:
        """Page down on a space, leave on q; on a slash, leave and begin a command."""
        if text == " ":
            self.move(2)
        elif text in ("q", "/"):
            self._leave(None, text.strip("q"))

    def back(self) -> None:
        """Move up by a screen."""
        self.move(-2)

    def move(self, by: int) -> None:
        """Move by a row; if `by` is more than one, by a screen."""
        top = self._top + (by if abs(by) == 1 else by // abs(by) * self.room)
        rows = self._drawn_rows(self._columns, top + self.room)
        self._top = max(min(top, len(rows) - self.room), 0)

    def enter(self) -> None:
        """Print all rows above the prompt."""
        self._leave(self._choice)

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Draw the visible rows below a title."""
        rows = self._drawn_rows(columns, self._top + self.room + 1)
        self._top = max(min(self._top, len(rows) - self.room), 0)  # the window may have grown
        last = min(self._top + self.room, len(rows))
        title = (
            f"{self._choice.name} · rows "
            f"{self._top + 1}-{last}{'' if last < len(rows) else ', the end'} · {_PAGE_KEYS}"
        )
        shown = "".join(rows[self._top : last]).removesuffix("\n")
        ends: StyleAndTextTuples = [("", "\n"), ("ansibrightblack", "─" * columns)]
        return [
            ("bold ansicyan", cut(title, columns)),
            ("", "\n"),
            *to_formatted_text(ANSI(shown)),
            *ends,
        ]

    def _drawn_rows(self, columns: int, count: int) -> list[str]:
        """Return the rows drawn so far, drawing more to get at least `count` if there are that many."""
        if columns != self._columns:
            self._columns, self._rows = columns, []
            self._others = preview(self._choice, columns)
        self._rows += islice(self._others, max(count - len(self._rows), 0))
        return self._rows


async def show(look: Browser | Pager, prompt: Prompt) -> None:
    """Show a table or a pager on the screen until the user leaves it, then print the chosen entry, if any."""
    prompt.browser = look
    prompt.buffer.cancel_completion()
    prompt.app.invalidate()
    try:
        choice = await look.left
    finally:
        prompt.browser = None
        prompt.app.invalidate()
    if choice is not None:
        prompt.print_above(preview(choice, prompt.columns))


def preview(choice: Choice, columns: int) -> Iterator[str]:
    """Draw the details of a table row, row by row."""
    yield from render.drawn(choice.lines(), columns)
    if choice.source:
        code, first, marked = choice.source()
        yield from render.source(code, first, columns, marked)


def fits(prompt: Prompt) -> bool:
    """Check whether the screen is high enough for a table."""
    return prompt.output.get_size().rows >= LEAST_ROWS


Show = Callable[[Iterable[Line]], None]


class TerminalDebugger:
    """A debugger front end that shows stops above the prompt and asks for commands; `slash` runs slash commands."""

    def __init__(self, prompt: Prompt, show: Show, one_at_a_time: asyncio.Lock) -> None:
        self._prompt = prompt
        self._show = show
        self._one_at_a_time = one_at_a_time
        self._last = Command("")
        self.slash: Callable[[str], Awaitable[None]] | None = None
        prompt.debug.commands = command_words()

    async def stopped(self, stop: DebugStop) -> Command:
        """Return the user's command."""
        async with self._one_at_a_time:
            await self._prompt.debug.open()
            above, source, below = stop_parts(stop, self._last)
            self._show(above)
            if source:
                self._prompt.print_above(render.listing(stop.source, source, self._prompt.columns))
            self._show(below)
            self._prompt.debug.names = stop.names
            return await self._command()

    async def _command(self) -> Command:
        while True:
            text = await self._prompt.debug.ask()
            self._show([line(("warn", DEBUG_MARK), ("strong", text))])
            try:
                if text.startswith("/") and self.slash is not None:
                    await self.slash(text)
                else:
                    self._last = typed_command(text)
                    if self._last.do in ENDING:
                        self._prompt.debug.run_on()
                    return self._last
            except UsageError as error:
                self._show(fault_lines(error.message, error.fix))


class TerminalVoice(Voice):
    """A voice that prints above the prompt and asks questions through it."""

    def __init__(self, prompt: Prompt) -> None:
        super().__init__()
        self._prompt = prompt
        self._one_at_a_time = asyncio.Lock()  # a question, or a stop of the debugger
        self.debugger: TerminalDebugger = TerminalDebugger(prompt, self.lines, self._one_at_a_time)

    def lines(self, lines: Iterable[Line]) -> None:
        """Show lines."""
        self._prompt.print_above(render.drawn([*lines], self._prompt.columns))

    def aloud(self, lines: Iterable[Line]) -> None:
        """Show a message that is not a result."""
        self.lines(lines)

    def clear(self) -> None:
        """Clear the screen, but not the scrollback."""
        self._prompt.clear()

    def rest(self) -> None:
        """Clear the live area, however the turn ended."""
        self._prompt.live.clear()
        self._prompt.debug.close()

    def source(self, code: str, first: int, marked: Collection[int] = ()) -> None:
        """Show Python source in color, with some lines marked."""
        self._prompt.print_above(render.source(code, first, self._prompt.columns, marked))

    def listener(self, log: CallLog) -> Listener:
        """Return a listener that shows a turn's events here."""
        prompt = self._prompt
        return TurnRenderer(
            log, prompt.live, lambda: prompt.columns, prompt.print_above, prompt.moved
        )

    async def browse(self, table: Table) -> None:
        """Show a table to browse, and print the user's choice. On a low screen, print the whole table."""
        if not table.choices or not fits(self._prompt):
            self.lines(table.lines())
        else:
            await show(Browser(table, self._prompt), self._prompt)

    async def read(self, choice: Choice) -> None:
        """Show the details of an entry in a pager, which the same keys leave. On a low screen, print them."""
        if fits(self._prompt) and self._prompt.browser is None:
            await show(Pager(choice, self._prompt), self._prompt)
        else:
            self._prompt.print_above(preview(choice, self._prompt.columns))

    async def result(
        self, name: str, lines: Sequence[Line], source: ShownSource | None = None
    ) -> None:
        """Print a result that the screen can hold; show a longer one in a pager."""
        shown_source = source and (lambda: source)
        choice = Choice(name, line(name), name, partial(list, lines), shown_source)
        pager = Pager(choice, self._prompt)
        if pager.is_needed(self._prompt.columns):
            await self.read(choice)
        else:
            self._prompt.print_above(preview(choice, self._prompt.columns))

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Give the terminal to another program while the block runs, then restore the prompt."""
        with self._prompt.above.held():
            async with in_terminal():
                yield

    @contextmanager
    def at_work(self, agent: str) -> Iterator[None]:
        """Show activity in the window title."""
        self._prompt.entitle(f"… {agent}")
        try:
            yield
        finally:
            self._prompt.entitle(agent)

    def status(self, text: str) -> None:
        """Show the current activity above the input line."""
        self._prompt.live.tell(text)
        self._prompt.app.invalidate()

    def drop_typed(self) -> None:
        """Drop the typed lines, and reload those that are on disk."""
        self._prompt.drop_typed()

    is_attended = asks = True  # a user types, and sees the prompt

    async def _ask(self, dialog: Dialog) -> DialogReply:
        async with self._one_at_a_time:
            asking = self._prompt.asking = Asking(dialog, self._prompt)
            self._prompt.app.invalidate()
            why = ""
            try:
                return await asking.answer
            except asyncio.CancelledError as ended:
                why = "".join(map(str, ended.args))
                raise
            finally:
                self._prompt.asking = None
                asking.end(why)

    async def _ask_hidden(self, question: str) -> str | None:
        async with self._one_at_a_time, self.aside():
            with machine.without_interrupt():
                return await hidden_answer(question, TerminalAnswers())

    @property
    def is_asking(self) -> bool:
        """True if a question is open."""
        return self._prompt.asking is not None

    def refuse(self) -> bool:
        """Answer an open question with no. Return whether there was one."""
        if self._prompt.asking is not None:
            self._prompt.asking.refuse()
        return self.is_asking


# The conversation, connected to the prompt.


@dataclass(frozen=True, slots=True)
class LoadedSession:
    """A conversation as the prompt uses it. Between turns, `rests` is set."""

    conversation: Conversation
    voice: TerminalVoice
    rests: asyncio.Event

    @property
    def stoppable(self) -> bool:
        """True if there is something for Ctrl-C to end: a turn, a command, or an open question."""
        return self.conversation.stoppable or self.voice.is_asking

    async def offered(self, kind: str, first: str) -> list[tuple[str, str]]:
        """Return the completions of a kind after a word, each with its description."""
        with suppress(UsageError):  # the word before it does not name anything
            return await offered(self.conversation, kind, first)
        return []

    def next_mode(self) -> None:
        """Choose the next mode for what is sent from now on."""
        next_mode(self.conversation.agent)

    def is_for_now(self, text: str) -> bool:
        """Return whether the line is for the running turn, or can run during a command, like `/break` during a call."""
        return self.conversation.busy or (
            self.conversation.stoppable and text.split()[:1] == ["/break"]
        )

    async def take(self, text: str) -> None:
        """Process a typed line."""
        with self.voice.at_work(self.conversation.agent.name):
            await self.conversation.guarded(take(self.conversation, text))
        self.voice.rest()
        self.rests.set()

    async def during(self, text: str) -> None:
        """Process a line that was typed while a turn runs."""
        await self.conversation.guarded(during(self.conversation, text))

    async def interrupt(self) -> None:
        """Answer an open question with no, or end the running turn if there is no question."""
        if not self.voice.refuse():
            await self.conversation.interrupt()

    @property
    def has_waiting(self) -> bool:
        """True if a line from here waits for the turn, as far as is known."""
        return bool(self.conversation.later or self.conversation.waits)

    async def take_back(self) -> str:
        """Take the last line back that waits, and return it."""
        return await self.conversation.take_back()

    async def leave(self) -> None:
        """Accept no more input, and end what is running."""
        if not self.conversation.agent.is_following:  # else other windows ask the same
            self.voice.refuse()
        await self.conversation.leave()


@asynccontextmanager
async def session(options: RunOptions, prompt: Prompt) -> AsyncIterator[LoadedSession]:
    """Open a ready conversation: open the workspace, choose the model, and greet the user."""
    voice = TerminalVoice(prompt)
    async with opened(options, voice, command) as conversation, conversation.awake():
        voice.debugger.slash = lambda text: conversation.guarded(during(conversation, text))
        prompt.debug.stops_evaluation = conversation.workspace.debugging.stop_evaluation
        prompt.bar.unsafe = conversation.workspace.settings.sandbox.unsafe
        prompt.bar.status = lambda: conversation.agent.status()  # of the agent that is current then
        prompt.bar.spent = lambda: short(conversation.spending.total)
        prompt.bar.running = lambda: len(prompt.live.calls)
        prompt.bar.paused = lambda: conversation.is_paused
        conversation.on_pause = prompt.app.invalidate
        prompt.bar.rejected = lambda: len(
            {problem.where.path for problem in conversation.workspace.rejected()}
        )
        await conversation.greet()
        async with asyncio.TaskGroup() as group:
            # The sandbox tests itself while the user thinks, so that its level is known when it is first needed.
            group.create_task(conversation.guarded(_show_level(conversation, prompt)))
            # Let a slow model process the common beginning of all requests.
            agent = conversation.agent
            prepared = (
                _nothing() if agent.models.is_due else agent.model_session.prepare(agent.snapshot())
            )
            preparing = group.create_task(conversation.guarded(prepared))
            group.create_task(
                conversation.guarded(conversation.workspace.functions.finder.prepare())
            )
            if options.resume:
                group.create_task(conversation.guarded(conversation.resume()))
            group.create_task(conversation.guarded(conversation.begin(options)))
            rests = asyncio.Event()
            remembering = group.create_task(conversation.guarded(_remember(conversation, rests)))
            try:
                yield LoadedSession(conversation, voice, rests)
            finally:
                preparing.cancel()
                remembering.cancel()
                await conversation.guarded(conversation.keep_unsaved())


async def _nothing() -> None:
    """Prepare nothing: the model is not there yet."""


async def _remember(conversation: Conversation, rests: asyncio.Event) -> None:
    """Index new messages and attachments between turns, so that they can be searched."""
    while True:
        await rests.wait()
        rests.clear()
        if not conversation.busy:
            await conversation.agent.memory.remember()


async def _show_level(conversation: Conversation, prompt: Prompt) -> None:
    if question := await conversation.workspace.one_wall():
        conversation.voice.lines([line(("warn", "! "), question)])
        conversation.workspace.answer_one_wall(
            agrees=await conversation.voice.confirm("Run functions so on this machine?")
        )
    prompt.bar.sandbox = await conversation.workspace.sandbox_level()
    prompt.app.invalidate()


Offers = list[tuple[str, str]]


async def offered(conversation: Conversation, kind: str, first: str) -> Offers:
    """Return each name of a kind, such as `<version>`, with its description; `first` is the word before it.

    Raises:
        UsageError: the word before it does not name anything.
    """
    workspace, functions = conversation.workspace, conversation.workspace.functions
    snapshot = functions.registry.snapshot()
    match kind:
        case "<version>":
            versions = await functions.history.versions(first)
            offers = [
                (
                    str(version.number),
                    f"{version.short or version.change_kind} {version.who} {version.when}",
                )
                for version in reversed(versions)
            ]
        case "<line>":
            offers = [
                (str(number), text.strip()) for number, text in stopping_lines(first, snapshot)
            ]
        case "<breakpoint>":
            placed = workspace.debugging.breakpoints.placed(snapshot)
            offers = [(str(entry.breakpoint.id), entry.text) for entry in placed]
        case "<candidate>":
            offers = [(name, "") for name in sorted(await functions.all_pending())]
        case "<module>":
            offers = [(name, "") for name in sorted(snapshot.modules)]
        case "<label>":
            offers = [(row.label, row.description) for row in conversation.agent.memory.blocks.rows]
        case "<section>":
            offers = [
                (row.name, row.text) for row in await conversation.agent.memory.sections.list()
            ]
        case "<agent>":
            async with opened_state(workspace.root) as state:
                groups = group_names(workspace.root)
                agents = [name for name in await state.moves.names() if name not in groups]
                offers = [*((name, "") for name in agents), *((name, "group") for name in groups)]
        case "<conversation>":
            rows = await workspace.conversations(conversation.agent.name).list()
            offers = [(row.id, row.name) for row in rows if row.line != conversation.agent.line]
        case "<call>":
            offers = [(str(call.number), call.name) for call in reversed(conversation.log.calls)]
        case "<model>":
            named = {
                name: describe_price(model) for name, model in workspace.settings.models.items()
            }
            others = {
                name: ""
                for name in [conversation.agent.status().model, *names_here(), "tour"]
                if name
            }
            offers = [*(others | named).items()]
        case _:
            offers = await _messages(conversation) if kind == "<message>" else []
    return offers


async def _messages(conversation: Conversation) -> Offers:
    """Return the messages that wait."""
    waiting = WaitingMessages(conversation.workspace.store, line_named(conversation.agent.line))
    return [(short_id(row.id), in_short(row.text)) for row in await waiting.list()]
