"""Output above the prompt: produced in slices and shown in frames, so that a key never waits for a flood of text.

A slice is the longest that the loop is held for; a frame goes out in one write with the prompt below it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

FRAME_S = 0.03
SLICE_S = 0.002

Made = str | Iterator[str]
"""A text, or what makes it in parts, none of which takes long."""


class Above:
    """A queue of text, or of producers of text, in order. `show` prints what has gathered, `moved` redraws the prompt.

    While it `gives_way` nothing is made: a key has been pressed, and is to be seen first.
    """

    def __init__(
        self, show: Callable[[str], None], moved: Callable[[], None], gives_way: Callable[[], bool] = lambda: False
    ) -> None:
        self._show, self._moved, self._gives_way = show, moved, gives_way
        self._waiting: deque[Made] = deque()
        self._made: list[str] = []
        self._handle: asyncio.Handle | None = None
        self._shown_at = 0.0
        self._is_held = False

    @property
    def waits(self) -> bool:
        """True if something is not shown yet."""
        return bool(self._waiting or self._made)

    def add(self, made: Made) -> None:
        """Print this after everything queued before it."""
        self._waiting.append(made)
        self.wake()

    def wake(self) -> None:
        """Schedule a frame, because something has changed."""
        if self._handle is None and not self._is_held:
            loop = asyncio.get_running_loop()
            delay = self._shown_at + FRAME_S - perf_counter()
            self._handle = loop.call_later(delay, self._slice) if delay > 0 else loop.call_soon(self._slice)

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
        self._rest()
        self._shown_at = perf_counter()
        text, self._made = "".join(self._made), []
        if text:
            self._show(text)
        else:
            self._moved()

    def _rest(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
