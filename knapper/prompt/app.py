"""The program around the prompt: shows it first, loads everything else in the background, and runs both.

Lines typed before everything is ready wait in a queue. This module binds the keys and imports nothing slow.
"""

import asyncio
import gc
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit.filters import Condition, emacs_mode, has_completions, has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from agent_core.base import machine
from agent_core.base.errors import KnapperError
from agent_core.operations.attachments import pasted
from agent_core.views.styled_lines import line, painted

from .completion import PromptCompleter, shortened
from .prompt import (
    ANSWERABLE,
    MARK,
    DebugLine,
    OpenQuestion,
    OpenTable,
    Prompt,
    read_early_settings,
)
from .run_options import RunOptions

if TYPE_CHECKING:  # imported after the prompt is shown
    from .terminal import LoadedSession

_ECHOED = 20


class Repl:
    """A conversation at a terminal."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._session: LoadedSession | None = None
        self._group = asyncio.TaskGroup()
        self._failure: KnapperError | None = None
        self._ended_by = 0
        self._faults: set[str] = set()
        self._taken = ""  # the line that is processed

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt, created on first use because it changes the terminal."""
        history = Path(self._options.root) / ".knapper" / "history"
        words = PromptCompleter(self._names, self._completions)
        debug = DebugLine(history.with_name("debug_history"), words, self._names)
        return Prompt(history, words, lambda prompt: bindings(prompt, self), debug)

    @property
    def busy(self) -> bool:
        """True if something that Ctrl-C ends is running or waiting."""
        return not self._lines.empty() or (self._session is not None and self._session.stoppable)

    async def run(self) -> int:
        """Run until the user leaves, a signal ends it, or the conversation cannot be opened. Return the exit code."""
        if read_early_settings(
            Path(self._options.root), os.environ
        ).plain:  # for users of screen readers
            gc.enable()
            plain = await asyncio.to_thread(import_module, "..plain", __package__)
            return 0 if await plain.each_line(self._options) else 1
        async with self._group:
            conversation = self._group.create_task(self._converse())
            for ending in (signal.SIGTERM, machine.HANGS_UP):
                if signal.getsignal(ending) is not signal.SIG_IGN:  # as `nohup` sets it
                    machine.on_signal(ending, partial(self._end_by, ending))
            asyncio.get_running_loop().set_exception_handler(self._tell_fault)
            with suppress(EOFError):
                await self.prompt.app.run_async(
                    pre_run=lambda: self.leave() if self._ended_by else None,
                    handle_sigint=False,
                    set_exception_handler=False,
                )
            if self._session is not None:
                await self._session.leave()
            if self._session is None or not self._session.stoppable:
                conversation.cancel()
            else:
                self._lines.put_nowait(None)  # the ending turn may not have begun with a line
        if self._failure is not None:
            self._take_back(self._taken)
            self._take_back(*self.prompt.unsent())
            raise self._failure
        number = self._ended_by or (machine.HANGS_UP if self.prompt.output.gone else 0)
        return 128 + number if number else 0

    def send(self, text: str) -> None:
        """Process a typed line: a message for the running turn, or the next message or command."""
        first, *others = text.split("\n")
        shown = others if len(others) <= _ECHOED else others[: _ECHOED // 2]
        lines = [
            line(("name", MARK), ("strong", shortened(first))),
            *(line("  ", ("strong", shortened(other_line))) for other_line in shown),
        ]
        if more := len(others) - len(shown):
            lines.append(line(("dim", f"  … {more} more lines")))
        self.prompt.print_above(painted(lines, sys.stdout))
        if self._session is not None and self._session.is_for_now(text):
            self._group.create_task(self._session.during(text))
        else:
            # A command that ends a question does not wait for long.
            if self._session is not None and self._session.stoppable and self.prompt.asking is None:
                self._say("waits for the end of what is running; Ctrl-C ends that")
            self._lines.put_nowait(text)

    def next_mode(self) -> None:
        """Choose the next mode for what is sent from now on; the status bar shows it."""
        if self._session is not None:
            self._session.next_mode()

    @property
    def has_waiting(self) -> bool:
        """True if a line that was sent waits, as far as is known."""
        return not self._lines.empty() or (self._session is not None and self._session.has_waiting)

    def take_back(self) -> None:
        """Take the last line that waits back into the input line, to edit it."""
        waiting = [self._lines.get_nowait() for _ in range(self._lines.qsize())]
        last = waiting.pop() if waiting else None
        for text in waiting:
            self._lines.put_nowait(text)
        if last:
            self.prompt.bring_back(last)
        elif self._session is not None:
            self._group.create_task(self._take_back_sent(self._session))

    async def _take_back_sent(self, session: "LoadedSession") -> None:
        if text := await session.take_back():
            self.prompt.bring_back(text)

    def interrupt(self) -> None:
        """Discard the waiting lines and end the running turn."""
        self._take_back()
        if self._session is not None:
            self._group.create_task(self._session.interrupt())

    def _take_back(self, *more: str) -> None:
        """Discard the waiting lines, and report the lines in `more` and these as not sent."""
        waiting = [self._lines.get_nowait() for _ in range(self._lines.qsize())]
        for text in filter(None, (*more, *waiting)):
            first = text.partition("\n")[0]
            self._say(f"not sent: {shortened(first)}")

    def leave(self) -> None:
        """End the conversation."""
        self.prompt.leave()

    def _tell_fault(
        self, _: object, context: Mapping[str, Any]
    ) -> None:  # Any: as passed by asyncio
        from agent_core.views.faults import crash_line  # noqa: PLC0415  (the prompt must not wait for it)

        error = context.get("exception") or RuntimeError(context.get("message"))
        place = [
            (frame.filename, frame.lineno)
            for frame in traceback.extract_tb(error.__traceback__)[-1:]
        ]
        if (kind := f"{type(error)} {place}") in self._faults:
            return  # report an error that recurs at each redraw only once
        self._faults.add(kind)
        self.prompt.print_above(painted([crash_line(error, self._options.root)], sys.stdout))

    def _end_by(self, number: signal.Signals) -> None:
        # A second signal ends the process in the default way.
        machine.forget_signal(number)
        self._ended_by = number
        self.leave()

    async def _converse(self) -> None:
        try:
            loader = await asyncio.to_thread(import_module, f"{__package__}.terminal")
            gc.freeze()  # loaded modules stay in memory: scanning them again and again would delay keys
            gc.enable()
            async with loader.session(self._options, self.prompt) as self._session:
                gc.freeze()
                if opening := await self._session.conversation.opening(self._options):
                    self.send(opening)
                while (
                    not self._session.conversation.left
                    and (text := await self._lines.get()) is not None
                ):
                    self._taken = text
                    await self._session.take(text)
                    self._taken = ""
        except KnapperError as error:
            self._failure = error
        except (
            ExceptionGroup
        ) as errors:  # of a task beside the session, such as the one that greets
            from agent_core.views.faults import innermost  # noqa: PLC0415  (the prompt must not wait for it)

            cause = innermost(errors)
            if not isinstance(cause, KnapperError):
                raise
            self._failure = cause
        finally:
            self.leave()

    def _say(self, text: str) -> None:
        self.prompt.print_above(painted([line(("dim", f"  {text}"))], sys.stdout))

    def _names(self) -> list[str]:
        return self._session.conversation.names() if self._session is not None else []

    async def _completions(self, kind: str, first: str) -> list[tuple[str, str]]:
        return await self._session.offered(kind, first) if self._session is not None else []


_TOO_LATE = (
    "The call has ended, so this was not a debugger command. Enter again sends it to the assistant."
)
_LEAVING = "Nothing is running. Ctrl-C again, Ctrl-D or /exit leaves."


def bindings(prompt: Prompt, repl: Repl) -> KeyBindings:
    """Return the key bindings of a prompt."""
    keys = KeyBindings()
    typing = has_focus(prompt.buffer)
    empty = Condition(lambda: not prompt.buffer.text)
    keys.add("enter", filter=typing)(lambda event: _enter(prompt, repl))
    keys.add("escape", "enter", filter=typing)(lambda event: prompt.buffer.insert_text("\n"))
    # Terminals send Esc followed by a slash the same as Alt with slash. Treat it as a command; Tab lists completions.
    keys.add("escape", "/", filter=typing & emacs_mode)(
        lambda event: prompt.buffer.insert_text("/")
    )
    keys.add(Keys.BackTab, filter=typing & ~has_completions)(lambda event: repl.next_mode())
    has_waiting = Condition(lambda: repl.has_waiting)
    keys.add("up", filter=typing & empty & has_waiting)(lambda event: repl.take_back())
    keys.add("c-g", filter=typing & empty)(lambda event: repl.send("/go"))
    keys.add("c-c", filter=typing)(lambda event: _stop(prompt, repl))
    keys.add("c-d", filter=typing & empty)(lambda event: repl.leave())
    can_be_resumed = machine.can_be_resumed()
    keys.add("c-z", eager=True)(
        lambda event: event.app.suspend_to_background() if can_be_resumed else None
    )
    debugging = has_focus(prompt.debug.buffer)
    keys.add(Keys.BracketedPaste, filter=typing | debugging)(_paste)
    no_command = Condition(lambda: not prompt.debug.buffer.text)
    keys.add("enter", filter=debugging)(lambda event: prompt.debug.enter())
    keys.add("c-c", filter=debugging)(
        lambda event: repl.interrupt() if prompt.debug.stops_turn() else None
    )
    keys.add("c-d", filter=debugging & no_command)(lambda event: prompt.debug.end())
    is_asking = Condition(lambda: prompt.asking is not None)
    counts = Condition(lambda: prompt.asking is not None and prompt.asking.state in ANSWERABLE)
    word = Condition(lambda: prompt.asking is not None and prompt.asking.state == "word")
    keys.add("enter", filter=is_asking, eager=True)(
        lambda event: _enter(prompt, repl) if _open(prompt).enter() else None
    )
    keys.add("c-c", filter=is_asking, eager=True)(lambda event: _open(prompt).refuse())
    keys.add("escape", filter=counts | word, eager=True)(lambda event: _open(prompt).refuse())
    keys.add("c-d", filter=is_asking, eager=True)(lambda event: repl.leave())
    keys.add(Keys.Any, filter=counts, eager=True)(lambda event: _open(prompt).press(_text(event)))
    looks = Condition(lambda: prompt.browser is not None and prompt.asking is None)
    moves = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -2, "pagedown": 2}
    for key, by in moves.items():
        keys.add(key, filter=looks, eager=True)(lambda event, by=by: _table(prompt).move(by))
    keys.add("enter", filter=looks, eager=True)(lambda event: _table(prompt).enter())
    keys.add("escape", filter=looks, eager=True)(lambda event: _table(prompt).escape())
    keys.add("c-c", filter=looks, eager=True)(lambda event: _table(prompt).escape())
    keys.add("c-d", filter=looks, eager=True)(lambda event: _table(prompt).escape())
    keys.add("backspace", filter=looks, eager=True)(lambda event: _table(prompt).back())
    keys.add(Keys.Any, filter=looks, eager=True)(lambda event: _table(prompt).press(_text(event)))
    return keys


def _table(prompt: Prompt) -> OpenTable:
    assert prompt.browser is not None
    return prompt.browser


def _open(prompt: Prompt) -> OpenQuestion:
    assert prompt.asking is not None
    return prompt.asking


def _text(event: KeyPressEvent) -> str:
    return event.data if event.key_sequence[0].key == event.data else ""


def _paste(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text(pasted(event.data.replace("\r\n", "\n").replace("\r", "\n")))


def _enter(prompt: Prompt, repl: Repl) -> None:
    menu = prompt.buffer.complete_state
    if menu and menu.current_completion:
        prompt.buffer.apply_completion(menu.current_completion)
        return
    text = prompt.buffer.text
    if prompt.debug.was_meant(text):
        prompt.bar.hint = _TOO_LATE
    elif text.strip():
        prompt.buffer.reset(append_to_history=True)
        prompt.line_sent()
        repl.send(text)


def _stop(prompt: Prompt, repl: Repl) -> None:
    if repl.busy:
        repl.interrupt()
    elif prompt.buffer.text:
        prompt.buffer.reset()
    elif prompt.bar.hint == _LEAVING:
        repl.leave()
    else:
        prompt.bar.hint = _LEAVING
