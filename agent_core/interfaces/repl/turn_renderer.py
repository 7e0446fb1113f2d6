"""The display of a turn: finished blocks above the prompt, the rest in the live part. Slow to import, like `render`."""

import time
from collections.abc import Callable, Iterator

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.base.untrusted import one_line
from sandbox.wire.lines import bare_lines

from ..faults import with_options
from ..progress import WAITING, reading_text, waiting_text
from ..render.call_log import CallLog, call_line, call_lines, ended_lines, verdict_part, was_told
from ..render.function_view import quarantine_lines
from ..render.grant_question import denied_lines
from ..render.verdicts import SLASH, coloured, hints, printed_lines
from ..spans import Line, indented, line
from . import render
from .blocks import DrawnBlock
from .code import CodeStream
from .live import Live, RunningCall, WrittenCall
from .output_pump import Made


class Teller:
    """A listener that keeps the screen and the live part in step with a turn's events."""

    def __init__(self, log: CallLog, live: Live, columns: Callable[[], int], screen: "Screen") -> None:
        self._log = log
        self._live = live
        self._columns = columns
        self._screen = screen
        self._began = time.monotonic()
        self._said: list[str] = []
        self._code: CodeStream | None = None
        self._step = 0
        self._is_apart = True

    def hear(self, event: Event) -> None:
        """Show what happened."""
        if not isinstance(event, events.Writing):
            self._live.written.clear()
        if event.step != self._step:
            self._finish_text()
            self._step = event.step
            self._live.waiting = WAITING if self._live.waiting else ""
        match event:
            case events.TurnStarted():
                self._begin()
            case events.Text():
                self._text(event.text)
            case events.Thought():
                self._live.waiting = WAITING
                self._live.think(event.text)
            case events.Writing():
                self._live.written.setdefault(event.place, WrittenCall(event.name)).hear(event.arguments)
            case events.CallStarted() | events.Progress() | events.Printed() | events.CallAnswered():
                self._call(event)
            case _:
                self._aside(event)
        self._screen.moved()

    def _call(self, event: events.CallStarted | events.Progress | events.Printed | events.CallAnswered) -> None:
        match event:
            case events.CallStarted():
                self._started(event)
            case events.Progress():
                self._progress(event)
            case events.Printed() if event.call_id in self._live.calls:
                self._live.calls[event.call_id].hear(event.text)
            case events.CallAnswered():
                self._answered(event)

    def _aside(self, event: Event) -> None:
        match event:
            case events.Warned():
                self._lines([line(("warn", f"! {with_options(event.text)}"))])
            case events.SpeakerChosen():
                self._finish_text()
                self._lines([line(("name", event.agent), ("dim", f" · {one_line(event.reason)}"))])
            case events.Reading():
                self._live.thought, self._live.waiting = "", reading_text(event)
            case events.Waiting():
                self._live.wait(waiting_text(event) or WAITING)
            case events.Quarantined():
                self._lines(quarantine_lines(event, SLASH))
            case events.GrantAnswered():
                self._lines(denied_lines([event]))
            case events.TurnEnded():
                self._ended(event)
            case _:
                pass

    def _begin(self) -> None:
        self._live.wait(WAITING)
        self._said = []

    def _text(self, text: str) -> None:
        self._said.append(text)
        self._live.thought = ""
        for block in self._live.blocks.feed(text):
            self._block(block)

    def _finish_text(self) -> None:
        for block in self._live.blocks.end():
            self._block(block)

    def _block(self, block: DrawnBlock) -> None:
        if not self._is_apart:  # the answer stands out from the calls above it
            self._is_apart = True
            self._screen.print("\n")
        code = None
        if block.code is not None:
            code = self._code = self._code or render.code(block.code, self._screen.theme)
        self._screen.print(self._drawn(block, code))
        if block.ends:
            self._code = None

    def _drawn(self, block: DrawnBlock, code: CodeStream | None) -> Iterator[str]:
        if code is None:
            yield from render.markdown(block.text, self._columns(), self._screen.theme)
        else:
            yield from code.draw(block.text, self._columns())
        if block.ends:
            yield "\n"

    def _started(self, event: events.CallStarted) -> None:
        self._finish_text()
        self._live.thought = ""
        self._log.started(event)
        self._live.calls[event.call_id] = RunningCall(event.name, event.arguments, time.monotonic())

    def _progress(self, event: events.Progress) -> None:
        running = self._live.calls.get(event.call_id)
        if running:
            total = event.total
            running.done, running.note = event.done, event.note
            running.total = total if isinstance(total, int | float) and total > 0 else None

    def _answered(self, event: events.CallAnswered) -> None:
        self._live.calls.pop(event.call_id, None)
        call = self._log.answered(event)
        self._is_apart = False
        if not self._log.is_full:
            self._lines(call_lines(call, self._columns()))
            return
        self._lines([call_line(call, self._columns())])
        if call.diff and len(call.diff) < len(bare_lines(call.source)):
            self._lines(indented(coloured(call.diff)))
        elif call.source and not (call.earlier and call.earlier.source == call.source):
            self._screen.print(render.source(call.source, 1, self._columns(), self._screen.theme))
        told = [hint for hint in hints(call.verdict) if hint not in call.hints] if call.verdict else []
        self._lines([*verdict_part(call, told), *printed_lines(call.detail.get("output") or "")])

    def _ended(self, event: events.TurnEnded) -> None:
        self._finish_text()
        self._live.clear()
        if not was_told(event.reply, "".join(self._said)):
            self._said = []
            self._text(event.reply)
            self._finish_text()
        self._lines([*ended_lines(event, time.monotonic() - self._began, self._columns()), line("")])

    def _lines(self, lines: list[Line]) -> None:
        self._screen.lines(lines)


class Screen:
    """The terminal operations that the teller may use."""

    def __init__(
        self, write: Callable[[Made], None], paint: Callable[[list[Line]], Made], moved: Callable[[], None], theme: str
    ) -> None:
        self.theme = theme
        self.print = write
        self.moved = moved
        self._paint = paint

    def lines(self, lines: list[Line]) -> None:
        """Print lines above the prompt."""
        if lines:
            self.print(self._paint(lines))
