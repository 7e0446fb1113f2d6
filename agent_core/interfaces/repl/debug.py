"""The line of the `(debug)` prompt, which replaces the usual one while a function is stopped.

It has a separate history and completer, and text being typed in the usual line stays there. After a command, it stays
open for a moment for the next stop, so that commands typed ahead reach the debugger and not the model.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition

from .completion import KeptHistory, PromptCompleter, completion

MARK: Final = "(debug) "
QUIET_S: Final = 0.6
STAYS_S, ANSWERS_S = 0.6, 30.0  # wait for the next stop; wait for the worker's answer
LATE_S: Final = 10.0  # for this long after a stop, its commands in the usual line count as late
MOST_SHOWN: Final = 200
QUIT: Final = "quit"
COMPUTES: Final = "computing … Ctrl-C stops it."
STOPS: Final = "It was asked to stop. Ctrl-C again ends the turn."
COMPUTES_S: Final = 0.5  # delay before the message
CTRL_C: Final = "Ctrl-C again ends the turn. c: run on. q or Ctrl-D: end this call."
_PLACES: Final = ("b", "break", "tb", "tbreak")


class DebugLine:
    """The input line of the debugger."""

    def __init__(self, history: Path, completer: PromptCompleter, functions: Callable[[], Sequence[str]]) -> None:
        self.commands: Mapping[str, str] = {}
        self.names: Sequence[str] = ()
        self.is_open = False
        self.hint: Callable[[str], None] = lambda text: None
        self.changed: Callable[[bool], None] = lambda is_open: None
        self.stops_evaluation: Callable[[], bool] = lambda: False
        self.left_over: Callable[[str], None] = lambda text: None
        self._history = KeptHistory(history)
        self.buffer = Buffer(
            completer=DebugWords(self, completer, functions),
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
        self._last, self._is_asked = "" if text.startswith("/") else text, False  # Enter must not repeat /undo
        self._stay(ANSWERS_S)
        self._computes(is_so=True)
        return text

    def was_meant(self, text: str) -> bool:
        """Check whether a line in the usual prompt is a debugger command that came too late. A repeat is not."""
        is_late = time.monotonic() - self._closed < LATE_S and text.strip() in self.commands
        self._closed = 0.0 if is_late else self._closed
        return is_late

    def run_on(self) -> None:
        """Handle that the function has resumed: keep the line for a moment, in case it stops again."""
        self._stay(STAYS_S)
        self._computes(is_so=False)

    def _computes(self, *, is_so: bool) -> None:
        """Show after a moment that the worker is computing, or remove that message."""
        if self._computing is not None:
            self._computing.cancel()
            self.hint("")
        loop = asyncio.get_running_loop()
        self._computing = loop.call_later(COMPUTES_S, self.hint, COMPUTES) if is_so else None
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
        self._typed.put_nowait(QUIT)

    def stops_turn(self) -> bool:
        """Handle Ctrl-C: clear the line and explain what a second one ends. Return whether this is the second."""
        if self._is_warned:
            return True
        self.buffer.reset()
        self._is_warned = True
        self.hint(STOPS if not self._is_asked and self.stops_evaluation() else CTRL_C)
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
        self._closing = asyncio.get_running_loop().call_later(seconds, self.close) if seconds is not None else None

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


class DebugWords(Completer):
    """A completer for debugger commands, names in scope, breakpoint locations, and slash commands."""

    def __init__(self, line: DebugLine, completer: PromptCompleter, functions: Callable[[], Sequence[str]]) -> None:
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

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return the completions at the cursor, except slash commands."""
        text = document.text_before_cursor
        typed = document.get_word_before_cursor(WORD=False)
        typed = typed if typed.isidentifier() else ""
        if text.rstrip(" ") == typed:
            commands = self._line.commands.items()
            yield from (completion(name, typed, says) for name, says in commands if name.startswith(typed))
        first = text.split(" ", 1)[0]
        names = self._functions() if first in _PLACES and " if " not in text else self._line.names
        if not text[: len(text) - len(typed)].endswith("."):  # only the worker knows a value's attributes
            yield from (completion(name, typed) for name in names[:MOST_SHOWN] if typed and name.startswith(typed))
