"""The debugger's front end at the `(debug)` prompt. Slow to import: loaded after the prompt is shown."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from agent_core.base.errors import UsageError
from agent_core.base.events import CallAnswered, Event
from agent_core.functions.debug import Command, DebugStop

from ..listeners import Listener
from ..spans import Line, line
from ..stopped import ENDING, command_words, explained, stop_parts, typed_command
from . import render
from .debug import MARK, DebugLine
from .prompt import Prompt

Show = Callable[[Iterable[Line]], None]


class Human:
    """A front end that shows each stop above the prompt and asks what to do; `slash` runs a command like the usual
    prompt.
    """

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
                theme = render.LIGHT if self._prompt.taste.is_light else render.DARK
                self._prompt.print_above(render.listing(stop.source, source, self._prompt.columns, theme))
            self._show(below)
            self._prompt.debug.names = stop.names
            return await self._command()

    async def _command(self) -> Command:
        while True:
            text = await self._prompt.debug.ask()
            self._show([line(("warn", MARK), ("strong", text))])
            try:
                if text.startswith("/") and self.slash is not None:
                    await self.slash(text)
                else:
                    self._last = typed_command(text)
                    if self._last.do in ENDING:
                        self._prompt.debug.run_on()
                    return self._last
            except UsageError as error:
                self._show(explained(error))


class DebuggerListener:
    """A listener that also restores the usual line as soon as a call has its answer."""

    def __init__(self, listener: Listener, debug: DebugLine) -> None:
        self._listener = listener
        self._debug = debug

    def hear(self, event: Event) -> None:
        """Show the event."""
        self._listener.hear(event)
        if isinstance(event, CallAnswered):
            self._debug.close()
