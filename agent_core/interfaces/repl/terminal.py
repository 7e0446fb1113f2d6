"""The voice of a conversation at the prompt, printing everything above it. Slow to import, like `render`."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

from prompt_toolkit.application import in_terminal

from agent_core.access.grants import Approver, Decision, Question

from ..agreement import Agreement
from ..choices import Table
from ..listeners import Listener
from ..spans import Line, painted
from ..told import CallLog
from ..wrap import folded
from . import render
from .asking import open_question
from .browser import fits, open_browser, preview
from .debugger import DebuggerListener, Human
from .prompt import Prompt
from .teller import Screen, Teller

RINGS_AFTER_S = 10.0


class TerminalVoice:
    """A voice that prints above a prompt, and asks through it."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._asked: tuple[Agreement, asyncio.Future[bool]] | None = None
        self._one_at_a_time = asyncio.Lock()  # a question, or a stop of the debugger
        self.debugger = Human(prompt, self.lines, self._one_at_a_time)
        self._theme = render.LIGHT if prompt.taste.is_light else render.DARK

    def lines(self, lines: Iterable[Line]) -> None:
        """Show lines."""
        self._prompt.print_above(self._painted(lines))

    def aloud(self, lines: Iterable[Line]) -> None:
        """Show something that nobody asked for."""
        self.lines(lines)

    def clear(self) -> None:
        """Clear the screen. What has scrolled away stays above it."""
        self._prompt.clear()

    def rest(self) -> None:
        """Clear everything that moves, however the turn ended."""
        self._prompt.live.clear()
        self._prompt.debug.close()

    def source(self, code: str, first: int, marked: Collection[int] = ()) -> None:
        """Show Python source with colors, and with some of its lines marked."""
        self._prompt.print_above(render.source(code, first, self._prompt.columns, self._theme, marked))

    def listener(self, log: CallLog) -> Listener:
        """Return a listener that shows a turn's events here."""
        prompt = self._prompt
        screen = Screen(prompt.print_above, self._painted, prompt.moved, self._theme)
        return DebuggerListener(Teller(log, prompt.live, lambda: prompt.columns, screen), prompt.debug)

    def _painted(self, lines: Iterable[Line]) -> Iterator[str]:
        return (painted([row], sys.stdout) for row in folded([*lines], self._prompt.columns))

    async def browse(self, table: Table) -> None:
        """Show a table to look through, and print the user's choice; on a low screen, print the whole table."""
        if not table.choices or not fits(self._prompt):
            self.lines(table.lines())
            return
        async with open_browser(table, self._prompt, self._theme) as browser:
            choice = await browser.chosen
        if choice is not None:
            self._prompt.print_above(preview(choice, self._prompt.columns, self._theme))

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Give the terminal to another program; the prompt comes back after it."""
        with self._prompt.above.held():
            async with in_terminal():
                yield

    @contextmanager
    def at_work(self, agent: str) -> Iterator[None]:
        """Show in the window title that work is under way, and ring afterwards if it took long."""
        began = time.monotonic()
        self._prompt.entitle(f"… {agent}")
        try:
            yield
        finally:
            self._prompt.entitle(agent)
            if time.monotonic() - began > RINGS_AFTER_S:
                self._prompt.ring()

    def status(self, text: str) -> None:
        """Show the current activity above the input line."""
        self._prompt.live.status = text
        self._prompt.app.invalidate()

    async def confirm(self, question: str) -> bool:
        """Ask above the input line; the next line typed is the answer."""
        agreement = Agreement()
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asked = agreement, answer
        self._prompt.live.question = f"{question} {agreement.asks}"
        self._prompt.app.invalidate()
        try:
            return await answer
        finally:
            self._asked = None
            self._prompt.live.question = ""

    @property
    def approver(self) -> Approver:
        """The approver of grants: the user at the prompt."""
        return self._decide

    async def _decide(self, question: Question) -> Decision:
        self._prompt.ring()
        async with self._one_at_a_time, open_question(question, self._prompt) as asking:
            return await asking.answer

    @property
    def asking(self) -> bool:
        """True if a question is open."""
        return self._asked is not None or self._prompt.asking is not None

    def refuse(self) -> bool:
        """Answer an open question with no; return whether there was one."""
        if self._prompt.asking is not None:
            self._prompt.asking.refuse()
            return True
        return self.answers("no")

    def answers(self, text: str) -> bool:
        """Take a typed line as the answer, if a question is open."""
        if self._asked is None or self._asked[1].done():
            return False
        agreement, answer = self._asked
        answer.set_result(agreement.is_given(text))
        return True
