"""The prompt itself: the input line, the live area above it and the status bar below, as one small application.

It never waits for the terminal's responses. Output above it is written in one frame with the redrawn prompt, so that
nothing flickers, and is discarded after the terminal disconnects. It uses the terminal's sixteen colors, with variants
for dark and light screens.

The line of `(debug)` replaces the usual one while a function is stopped. It has a separate history and completer, and
text being typed in the usual line stays there. After a command, it stays open for a moment for the next stop, so that
commands typed ahead reach the debugger and not the model.
"""

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.clipboard import InMemoryClipboard
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_focus, vi_navigation_mode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.key_binding import KeyBindingsBase, merge_key_bindings
from prompt_toolkit.key_binding.bindings.auto_suggest import load_auto_suggest_bindings
from prompt_toolkit.layout import (
    ConditionalContainer,
    Float,
    FloatContainer,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AppendAutoSuggestion
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets.toolbars import SearchToolbar

from agent_core.base import machine
from agent_core.base.plain_files import read_plain
from agent_core.base.policy import DEFAULT
from agent_core.base.records import dataclass, fields
from agent_core.base.untrusted import one_line
from agent_core.base.workspace_folder import SETTINGS
from agent_core.operations.attachments import as_sent
from agent_core.views.styled_lines import cut, cut_middle, width
from sandbox.wire.strict_json import OF_A_FILE, Malformed, read_toml

from .completion import Escaped, KeptHistory, PromptCompleter, completes_while_typing, completion
from .keys import terminal_input
from .live import Live

if TYPE_CHECKING:
    from agent_core.base.policy import Policy
    from agent_core.runtime.agent import AgentStatus


DEBUG_MARK: Final = "(debug) "
QUIET_S: Final = 0.6  # without a key, after which the user is not typing
_STAYS_S, _ANSWERS_S = 0.6, 30.0  # wait for the next stop; wait for the worker's answer
_LATE_S: Final = 10.0  # for this long after a stop, its commands in the usual line count as late
_MOST_SHOWN: Final = 200
_QUIT: Final = "quit"
_COMPUTES: Final = "computing … Ctrl-C stops it."
_STOPS: Final = "It was asked to stop. Ctrl-C again ends the turn."
_COMPUTES_S: Final = 0.5  # delay before the message
_CTRL_C: Final = "Ctrl-C again ends the turn. c: run on. q or Ctrl-D: end this call."
_PLACES: Final = ("b", "break", "tb", "tbreak")


class DebugLine:
    """The input line of the debugger."""

    def __init__(
        self, history: Path, completer: PromptCompleter, functions: Callable[[], Sequence[str]]
    ) -> None:
        self.commands: Mapping[str, str] = {}
        self.names: Sequence[str] = ()
        self.is_open = False
        self.hint: Callable[[str], None] = lambda text: None
        self.changed: Callable[[bool], None] = lambda is_open: None
        self.stops_evaluation: Callable[[], bool] = lambda: False
        self.left_over: Callable[[str], None] = lambda text: None
        self._history = KeptHistory(history)
        self.buffer = Buffer(
            completer=_DebugWords(self, completer, functions),
            auto_suggest=AutoSuggestFromHistory(),
            history=self._history,
            complete_while_typing=Condition(lambda: self.buffer.text.startswith("/")),
            multiline=False,
        )
        self.buffer.on_text_changed += lambda _: self._clear_hint()
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._last = ""
        self._pressed = self._closed = 0.0
        self._is_warned = self._is_asked = False
        self._closing: asyncio.TimerHandle | None = None
        self._computing: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Replace the usual line when the user pauses typing, until `ask` has returned a command."""
        self._stay()
        self._computes(is_so=False)
        while not self.is_open and (delay := self._pressed + QUIET_S - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(delay)
        if not self.is_open:
            self.is_open, self._is_warned = True, False
            self.changed(True)
        self._is_asked = True

    async def ask(self) -> str:
        """Return the next line typed here. An empty line repeats the last one, unless that was a command with `/`."""
        try:
            await self.open()
            while not (text := (await self._typed.get()).strip() or self._last):
                pass
        except asyncio.CancelledError:
            self._is_asked = False
            self.close()
            raise
        text = as_sent(text)
        self._last, self._is_asked = (
            "" if text.startswith("/") else text,
            False,
        )  # Enter must not repeat /undo
        self._stay(_ANSWERS_S)
        self._computes(is_so=True)
        return text

    def was_meant(self, text: str) -> bool:
        """Check whether a line in the usual prompt is a debugger command that came too late. A repeat is not."""
        is_late = time.monotonic() - self._closed < _LATE_S and text.strip() in self.commands
        self._closed = 0.0 if is_late else self._closed
        return is_late

    def run_on(self) -> None:
        """Handle that the function has resumed: keep the line for a moment, in case it stops again."""
        self._stay(_STAYS_S)
        self._computes(is_so=False)

    def _computes(self, *, is_so: bool) -> None:
        """Show after a moment that the worker is computing, or remove that message."""
        if self._computing is not None:
            self._computing.cancel()
            self.hint("")
        loop = asyncio.get_running_loop()
        self._computing = loop.call_later(_COMPUTES_S, self.hint, _COMPUTES) if is_so else None
        self._is_warned = False

    def enter(self) -> None:
        """Accept the line or the chosen completion."""
        menu = self.buffer.complete_state
        if menu and menu.current_completion:
            self.buffer.apply_completion(menu.current_completion)
            return
        text = self.buffer.text
        self.buffer.reset(append_to_history=bool(text.strip()))
        self._typed.put_nowait(text)

    def drop_typed(self) -> None:
        """Drop the typed commands, except for those on disk."""
        self._last = ""
        self._history.drop(self.buffer)

    def end(self) -> None:
        """End the stopped call."""
        self._typed.put_nowait(_QUIT)

    def stops_turn(self) -> bool:
        """Handle Ctrl-C: clear the line and explain what a second one ends. Return whether this is the second."""
        if self._is_warned:
            return True
        self.buffer.reset()
        self._is_warned = True
        self.hint(_STOPS if not self._is_asked and self.stops_evaluation() else _CTRL_C)
        return False

    def pressed(self) -> None:
        """Record that a key was pressed in either line."""
        self._pressed = time.monotonic()

    def _clear_hint(self) -> None:
        if self.buffer.text:
            self._is_warned = False
            self.hint("")

    def _stay(self, seconds: float | None = None) -> None:
        """Keep the line open for this many seconds, or indefinitely."""
        if self._closing is not None:
            self._closing.cancel()
        self._closing = (
            asyncio.get_running_loop().call_later(seconds, self.close)
            if seconds is not None
            else None
        )

    def close(self) -> None:
        """Restore the usual line, unless a stop waits for a command here.

        Text typed for a stop that did not happen is moved there and not sent.
        """
        if self._is_asked:
            return
        self._stay()
        if not self.is_open:
            return
        self._computes(is_so=False)
        waiting = [self._typed.get_nowait() for _ in range(self._typed.qsize())]
        remainder = " ".join(text for text in [*waiting, self.buffer.text] if text.strip())
        self.buffer.reset()
        self.is_open, self._closed = False, time.monotonic()
        self.hint("")
        self.changed(False)
        if remainder:
            self.left_over(remainder)


class _DebugWords(Completer):
    """A completer for debugger commands, names in scope, breakpoint locations, and slash commands."""

    def __init__(
        self, line: DebugLine, completer: PromptCompleter, functions: Callable[[], Sequence[str]]
    ) -> None:
        self._line = line
        self._completer = completer
        self._functions = functions

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the completions at the cursor."""
        if document.text.startswith("/"):
            async for completion in self._completer.get_completions_async(document, complete_event):
                yield completion
            return
        for completion in self.get_completions(document, complete_event):
            yield completion

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Return the completions at the cursor, except slash commands."""
        text = document.text_before_cursor
        typed = document.get_word_before_cursor(WORD=False)
        typed = typed if typed.isidentifier() else ""
        if text.rstrip(" ") == typed:
            commands = self._line.commands.items()
            yield from (
                completion(name, typed, says) for name, says in commands if name.startswith(typed)
            )
        first = text.split(" ", 1)[0]
        names = self._functions() if first in _PLACES and " if " not in text else self._line.names
        if not text[: len(text) - len(typed)].endswith(
            "."
        ):  # only the worker knows a value's attributes
            yield from (
                completion(name, typed)
                for name in names[:_MOST_SHOWN]
                if typed and name.startswith(typed)
            )


# Output above the prompt: produced in slices and shown in frames, so that a key never waits for a flood of text. A
# slice is the longest time that the event loop is blocked; a frame is one write with the prompt below it.

FRAME_S = 0.03
SLICE_S = 0.002

Made = str | Iterator[str]
"""A text, or an iterator that produces it in parts, each quickly."""


class Above:
    """A queue of texts or text producers, in order. `show` prints the collected text; `moved` redraws the prompt.

    While it `gives_way`, nothing is produced, because a pressed key must be shown first.
    """

    def __init__(
        self,
        show: Callable[[str], None],
        moved: Callable[[], None],
        gives_way: Callable[[], bool] = lambda: False,
    ) -> None:
        self._show, self._moved, self._gives_way = show, moved, gives_way
        self._waiting: deque[Made] = deque()
        self._made: list[str] = []
        self._handle: asyncio.Handle | None = None
        self._shown_at = 0.0
        self._is_held = False

    @property
    def waits(self) -> bool:
        """True if some text is not shown yet."""
        return bool(self._waiting or self._made)

    def add(self, made: Made) -> None:
        """Queue text to print after everything queued before."""
        self._waiting.append(made)
        self.wake()

    def wake(self) -> None:
        """Schedule a frame after a change."""
        if self._handle is None and not self._is_held:
            loop = asyncio.get_running_loop()
            delay = self._shown_at + FRAME_S - perf_counter()
            self._handle = (
                loop.call_later(delay, self._slice) if delay > 0 else loop.call_soon(self._slice)
            )

    def flush(self) -> None:
        """Show everything now."""
        while self._waiting:
            self._make()
        self._frame()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Show everything queued, then hold further output while another program has the screen."""
        self.flush()
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.wake()

    def _slice(self) -> None:
        self._handle = None
        if self._gives_way():
            self._go_on()
            return
        until = perf_counter() + SLICE_S
        try:
            while self._waiting and perf_counter() < until:
                self._make()
        finally:
            if not self._waiting or perf_counter() - self._shown_at >= FRAME_S:
                self._frame()
            if self._waiting:
                self._go_on()

    def _go_on(self) -> None:
        self._handle = asyncio.get_running_loop().call_soon(self._slice)

    def _make(self) -> None:
        content = self._waiting[0]
        part = content if isinstance(content, str) else next(content, None)
        if part is not None:
            self._made.append(part)
        if part is None or part is content:
            self._waiting.popleft()

    def _frame(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._shown_at = perf_counter()
        text, self._made = "".join(self._made), []
        if text:
            self._show(text)
        else:
            self._moved()


# The settings that the prompt needs before it is shown, read without the slow imports of the full settings. Invalid
# values are ignored here; the full settings are checked in the background and report them.

_TABLE, _PREFIX = "repl", "KNAPPER_REPL_"
_MOST_BYTES = 256 << 10  # as the settings have it
_TRUE = ("1", "true", "yes", "on", "t", "y")


@dataclass(frozen=True, slots=True)
class EarlySettings:
    """The table `repl` of the settings."""

    keys: str = "emacs"
    title: bool = False
    plain: bool = False


def read_early_settings(root: Path, environment: Mapping[str, str]) -> EarlySettings:
    """Return the settings from the file or the environment."""
    values: dict[str, Any] = {}  # Any: values of TOML
    with suppress(OSError, UnicodeDecodeError, Malformed):
        text = read_plain(root / SETTINGS, _MOST_BYTES).decode("utf-8")
        table = read_toml(text, values=OF_A_FILE).get(_TABLE) if _TABLE in text else None
        values = dict(table) if isinstance(table, dict) else {}
    for field in fields(EarlySettings):
        value = environment.get(f"{_PREFIX}{field.name.upper()}")
        if value is not None:
            values[field.name] = value.lower() in _TRUE if field.type is bool else value
    fitting = {
        option.name: values[option.name]
        for option in fields(EarlySettings)
        if type(values.get(option.name)) is option.type
    }
    return EarlySettings(**fitting)


class OpenQuestion(Protocol):
    """A question that is answered with keys."""

    @property
    def state(self) -> str:
        """The current state: quiet, armed, pressed, chosen, entered or word."""

    def press(self, key: str) -> None:
        """Handle a key that may be an answer."""

    def enter(self) -> bool:
        """Handle Enter. Return whether the line still has to be sent."""

    def refuse(self) -> None:
        """Answer with a no."""

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Draw the question above the input line."""


class OpenTable(Protocol):
    """A table or pager to browse."""

    def press(self, text: str) -> None:
        """Add a letter."""

    def back(self) -> None:
        """Remove the last letter."""

    def move(self, by: int) -> None:
        """Move to another row, or by a page."""

    def enter(self) -> None:
        """Choose the row."""

    def escape(self) -> None:
        """Close the table."""

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Draw the table above the input line."""


STYLES: Final = {
    "mark": "bold ansicyan",
    "mark.debug": "bold ansiyellow",
    "bar": "ansibrightblack",
    "bar.name": "ansicyan",
    "bar.running": "ansicyan",
    "bar.mode": "bold ansimagenta",
    "bar.near": "ansiyellow",
    "bar.full": "bold ansired",
    "bar.alarm": "bold ansiwhite bg:ansired",
    "bar.hint": "ansiyellow",
    "live.thought": "ansibrightblack",
    "live.call": "ansicyan",
    "live.printed": "ansibrightblack",
    "auto-suggestion": "ansibrightblack",
}


class SteadyOutput(Vt100_Output):
    """A terminal with writes that can be held back until the next frame, and that may disconnect."""

    held = False
    gone = False

    def flush(self) -> None:
        """Write the buffered output, unless it is held back. Discard it if the terminal has disconnected."""
        if self.held:
            return
        try:
            super().flush()
        except OSError:
            self.gone = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


ANSWERABLE = ("armed", "pressed", "chosen", "entered")
"""The states of a question in which keys count."""
MARK = "› "
WORD_MARK = "reason › "
VI_MARK = "‹ "  # in vi's navigation mode
MENU_LINES = 8


class Prompt:
    """The prompt's part of the screen, between messages and below the output of a running turn."""

    def __init__(
        self,
        history: Path,
        completer: Completer,
        keys: Callable[["Prompt"], KeyBindingsBase],
        debug: DebugLine,
    ) -> None:
        self.early_settings: EarlySettings = read_early_settings(history.parent.parent, os.environ)
        self.live = Live()
        self.debug = debug
        self.bar = StatusBar()
        self.asking: OpenQuestion | None = None
        self.browser: OpenTable | None = None
        term, depth = os.environ.get("TERM"), ColorDepth.from_env()
        self.output = SteadyOutput(
            sys.stdout, _size, term=term, default_color_depth=depth, enable_cpr=False
        )
        self._history = KeptHistory(history)
        self.search = SearchToolbar()
        self.buffer = Buffer(
            completer=completer,
            complete_while_typing=Condition(
                lambda: completes_while_typing(self.buffer.document.text_before_cursor)
            ),
            auto_suggest=AutoSuggestFromHistory(),
            history=self._history,
            multiline=True,
        )
        self.buffer.on_text_changed += lambda buffer: self.bar.clear_hint()
        self.app: Application[None] = Application(
            layout=self._layout(),
            key_bindings=merge_key_bindings([load_auto_suggest_bindings(), keys(self)]),
            style=Style.from_dict(STYLES),
            editing_mode=EditingMode.VI if self.early_settings.keys == "vi" else EditingMode.EMACS,
            input=terminal_input(),
            output=self.output,
            after_render=lambda app: self.leave() if self.output.gone else None,
            erase_when_done=True,
            max_render_postpone_time=None,  # keys are shown at once; streamed output is shown in frames
            refresh_interval=0.5,
        )
        self.above = Above(self._show_above, self.app.invalidate, lambda: self.app.invalidated)
        self._drawn: StyleAndTextTuples = []
        self._drawn_for = (-1, 0)
        self._pressed_at = 0.0  # since the last line was sent
        self.app.key_processor.before_key_press += lambda _: self._note_key()
        debug.changed, debug.hint, debug.left_over = (
            self._turn_to_debug,
            self._hint,
            self.buffer.insert_text,
        )
        self.live.call_ended = debug.close

    @property
    def columns(self) -> int:
        """The number of cells a row may take. The last one stays free, since terminals disagree on text widths."""
        return max(self.output.get_size().columns - 1, 1)

    @property
    def is_typed_in(self) -> bool:
        """True while the user types: the line is not empty, a key was just pressed, or one waits to be read."""
        is_quiet = not self.buffer.text and time.monotonic() - self._pressed_at > QUIET_S
        return not is_quiet or machine.has_input(sys.stdin.fileno())

    def _note_key(self) -> None:
        self._pressed_at = time.monotonic()
        self.debug.pressed()

    def line_sent(self) -> None:
        """Record that a line is complete, so that its keys do not count as typing ahead."""
        self._pressed_at = 0.0

    def bring_back(self, draft: str) -> None:
        """Restore a line that was put aside, before text typed since."""
        if draft:
            text = "\n".join(filter(None, [draft, self.buffer.text]))
            self.buffer.set_document(Document(text), bypass_readonly=True)

    def print_above(self, made: Made) -> None:
        """Print finished text above the prompt, in order. Text being typed stays unchanged."""
        if self.app.is_running:
            self.above.add(made)
        else:
            self.output.write_raw("".join(made))
            self.output.flush()

    def moved(self) -> None:
        """Redraw the live area with the next frame."""
        if self.app.is_running:
            self.above.wake()

    def _show_above(self, text: str) -> None:
        self.output.held = True
        self.app.renderer.erase()
        self.output.write_raw(text)
        self.output.held = False
        self.app.invalidate()

    def clear(self) -> None:
        """Clear the screen and draw the prompt on its first line."""
        self.above.flush()
        self.app.renderer.clear()
        self.app.invalidate()

    def unsent(self) -> list[str]:
        """Take the lines typed but not sent when the prompt ended; prompt_toolkit keeps the last keys for the next
        prompt.
        """
        text = self.buffer.text + "".join(key.data for key in get_typeahead(self.app.input))
        self.buffer.reset()
        return [line for line in map(str.strip, text.replace("\r", "\n").split("\n")) if line]

    def drop_typed(self) -> None:
        """Drop the typed, searched and cut text, and reload the history from disk. Text being typed stays."""
        self._history.drop(self.buffer)
        self.debug.drop_typed()
        self.search.search_buffer.history = InMemoryHistory()
        self.search.search_buffer.reset()
        self.search.control.searcher_search_state.text = ""
        self.app.clipboard = InMemoryClipboard()
        self.app.vi_state.named_registers.clear()

    def _turn_to_debug(self, is_open: bool) -> None:  # noqa: FBT001  (a callback with one argument)
        self.buffer.cancel_completion()
        self.live.stand(is_so=is_open)
        self.app.layout.focus(self.debug.buffer if is_open else self.buffer)
        self.app.invalidate()

    def _hint(self, text: str) -> None:
        self.bar.hint = text
        self.app.invalidate()

    def entitle(self, title: str) -> None:
        """Set the window title, if that is enabled. It is never reset."""
        if self.early_settings.title:
            self.output.set_title(one_line(title, 60))
            self.output.flush()

    def leave(self) -> None:
        """End the prompt if it is still running."""
        future = self.app.future
        if self.app.is_running and future is not None and not future.done():
            self.above.flush()
            self.app.exit()

    def before_input(self) -> StyleAndTextTuples:
        """Return the live area or the open question."""
        now = (self.app.render_counter, self.columns)
        if self.asking is not None:
            self._drawn = self.asking.draw(self.columns)
        elif self.browser is not None:
            self._drawn = self.browser.draw(self.columns)
        elif now != self._drawn_for and not (self.above.waits and now[1] == self._drawn_for[1]):
            # Text taken from here to be printed stays visible until it is printed.
            self._drawn = [*self.live.draw(self.columns)]
            if (lines := self.buffer.document.line_count) > self.most_rows:
                note = f"  … {lines} lines; Enter sends them as one message"
                self._drawn += [("", "\n"), ("class:live.thought", note)]
        self._drawn_for = now
        return self._drawn

    @property
    def most_rows(self) -> int:
        """The maximum number of screen rows for the input line."""
        return max(self.output.get_size().rows // 3, 3)

    def mark(self) -> str:
        """Return the mark before the input line."""
        if self.early_settings.keys == "vi" and vi_navigation_mode():
            return VI_MARK
        return WORD_MARK if self.asking is not None and self.asking.state == "word" else MARK

    def _layout(self) -> Layout:
        search = self.search
        field, debug = _field(self.buffer, search), _field(self.debug.buffer, search)
        stands_still = Condition(lambda: self.debug.is_open)
        moving = ConditionalContainer(
            Window(
                FormattedTextControl(self.before_input),
                height=self._height_of_moving,
                dont_extend_height=True,
            ),
            Condition(lambda: bool(self.before_input())),
        )
        typed = ConditionalContainer(
            self._line(field, lambda: ("class:mark", self.mark())), ~stands_still
        )
        debug_line = ConditionalContainer(
            self._line(debug, lambda: ("class:mark.debug", DEBUG_MARK)), stands_still
        )
        bar = Window(
            FormattedTextControl(lambda: self.bar.draw(self.columns)),
            height=1,
            dont_extend_height=True,
        )
        menu = Float(
            CompletionsMenu(
                max_height=MENU_LINES, extra_filter=has_focus(self.buffer) | stands_still
            ),
            xcursor=True,
            ycursor=True,
        )
        body = FloatContainer(
            HSplit([moving, typed, debug_line, search, bar], align=VerticalAlign.TOP), [menu]
        )
        return Layout(body, focused_element=field)

    def _line(self, field: BufferControl, mark: Callable[[], tuple[str, str]]) -> Window:
        return Window(
            field,
            height=lambda: self._height_of_line(field.buffer),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=lambda number, wrapped: [
                mark() if number == wrapped == 0 else ("", "  ")
            ],
        )

    def _height_of_moving(self) -> Dimension:
        if self.asking is None and self.browser is None:
            return Dimension()
        # An open question gets the height that it needs; it has limited itself to the available room.
        return Dimension.exact(1 + sum(fragment[1].count("\n") for fragment in self.before_input()))

    def _height_of_line(self, buffer: Buffer) -> Dimension:
        # The menu is below the cursor: it gets room only while it is open, and on a low screen only the remaining rows.
        has_room = buffer.complete_state is not None and self.asking is None
        menu = min(MENU_LINES, self.output.get_size().rows - 3) if has_room else 0
        least = 1 + max(menu, 0)
        return Dimension(min=least, max=max(self.most_rows, least))


def _size() -> Size:
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except OSError:  # the terminal has disconnected
        return Size(rows=24, columns=80)
    return Size(rows=size.lines or 24, columns=size.columns or 80)


def _field(buffer: Buffer, search: SearchToolbar) -> BufferControl:
    processors = [AppendAutoSuggestion(), Escaped()]
    return BufferControl(
        buffer,
        input_processors=processors,
        search_buffer_control=search.control,
        preview_search=True,
    )


# The status bar below the prompt: agent, model, context usage, functions, and safety.
# On a screen too narrow for all of it, the bar uses a shorter form; the safety information is dropped last.

_CELLS = 8
_FULL, _NEAR = 0.9, 0.7
_MODEL_LEAST = 16
_BETWEEN = " · "
# The forms of the bar, longest first: the first one that leaves enough room for the model's name is used.
_FORMS = (
    (
        "mode",
        "agent",
        "model",
        "gauge",
        "spent",
        "functions",
        "rejected",
        "paused",
        "sandbox",
        "running",
    ),
    ("mode", "agent", "model", "gauge", "functions", "rejected", "paused", "sandbox", "running"),
    ("mode", "model", "gauge", "functions", "rejected", "paused", "sandbox", "running"),
    ("mode", "model", "gauge", "functions", "rejected", "paused", "sandbox"),
    ("mode", "model", "gauge", "rejected", "paused", "sandbox"),
    ("mode", "model", "share", "paused", "sandbox"),
    ("mode", "share", "paused", "sandbox"),
    ("mode", "paused", "sandbox"),
    ("mode", "sandbox"),
    ("mode",),
)
_ALARMS = (" SANDBOX OFF: functions run unprotected ", " SANDBOX OFF ")


class StatusBar:
    """The status bar, redrawn from the current status."""

    def __init__(self) -> None:
        self.status: Callable[[], AgentStatus] | None = None
        self.unsafe = False
        self.hint = ""
        self.sandbox = "…"
        self.spent: Callable[[], str] = str
        self.running: Callable[[], int] = int
        self.paused: Callable[[], bool] = bool
        self.rejected: Callable[[], int] = int

    def clear_hint(self) -> None:
        """Remove the hint and show the status again."""
        self.hint = ""

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Return the bar's text with its styles, no wider than the screen."""
        if self.hint:
            return [("class:bar.hint", cut(f" {one_line(self.hint)}", columns))]
        if self.status is None:
            return [("class:bar", cut(" getting ready… type ahead, Enter waits", columns))]
        if not self.unsafe:
            return self._facts(self.status(), columns)
        alarm = next((text for text in _ALARMS if width(text) <= columns // 2), _ALARMS[-1])
        facts = self._facts(self.status(), columns - width(alarm) - 1)
        return [("class:bar.alarm", cut(alarm, columns)), *([("", " "), *facts] if facts else [])]

    def _facts(self, status: "AgentStatus", columns: int) -> StyleAndTextTuples:
        sandbox = "" if self.unsafe else one_line(self.sandbox, 16)
        full = gauge(status.context_tokens, status.context_limit)
        style, share = full[-1][:2]
        parts: dict[str, StyleAndTextTuples] = {
            "agent": [("class:bar.name", one_line(status.agent, 24)), *_named(status.conversation)],
            "model": [("class:bar", "")],
            "gauge": full,
            "share": [(style, share.strip())],
            "functions": [("class:bar", f"functions {status.functions_known}")],
            "sandbox": [("class:bar", f"sandbox {sandbox}")] if sandbox else [],
        }
        if mode := mode_words(status.policy):
            parts["mode"] = [("class:bar.mode", mode)]
        if spent := self.spent():
            parts["spent"] = [("class:bar", one_line(spent, 40))]
        if rejected := self.rejected():
            parts["rejected"] = [
                ("class:bar.near", f"{rejected} file{'s' * (rejected > 1)} rejected")
            ]
        if running := self.running():
            parts["running"] = [("class:bar.running", f"{running} running")]
        if self.paused():
            parts["paused"] = [("class:bar.near", "paused")]
        model = one_line(status.model or "no model yet", 80)
        for form in _FORMS:
            shown = [parts[name] for name in form if parts.get(name)]
            texts = sum(width(fragment[1]) for part in shown for fragment in part)
            room = columns - 1 - texts - len(_BETWEEN) * max(len(shown) - 1, 0)
            if "model" not in form and room >= 0:
                return _join_parts(shown)
            if room >= min(width(model), _MODEL_LEAST):
                parts["model"][0] = ("class:bar", cut_middle(model, room))
                return _join_parts(shown)
        return []


def mode_words(policy: "Policy") -> str:
    """Return what differs in a policy from the usual one, in few words."""
    words: list[str] = [policy.mode] if policy.mode != DEFAULT.mode else []
    words += [f"growth {policy.growth}"] if policy.growth != DEFAULT.growth else []
    words += ["same reach"] if policy.same_reach else []
    return ", ".join(words)


def _named(conversation: str) -> StyleAndTextTuples:
    """Return the name of a conversation that is not the main one."""
    return [("class:bar", f" “{one_line(conversation, 24)}”")] if conversation else []


def gauge(used: int, limit: int) -> StyleAndTextTuples:
    """Draw the context usage: cells and a percentage, colored when it gets tight."""
    if limit <= 0:
        return [("class:bar", f"{used:,} tokens")]
    share = min(used / limit, 1.0)
    style = (
        "class:bar.full" if share >= _FULL else "class:bar.near" if share >= _NEAR else "class:bar"
    )
    filled = round(share * _CELLS)
    return [(style, "▰" * filled + "▱" * (_CELLS - filled)), (style, f" {share:.0%}")]


def _join_parts(parts: list[StyleAndTextTuples]) -> StyleAndTextTuples:
    joined: StyleAndTextTuples = []
    for number, part in enumerate(parts):
        joined += [("class:bar", _BETWEEN if number else " "), *part]
    return joined
