"""The live area above the prompt while a turn runs: the unfinished end of the reply, and the running calls."""

import re
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.formatted_text import StyleAndTextTuples

from agent_core.base.late import LateModule
from agent_core.base.records import InitVar, dataclass, field
from agent_core.base.untrusted import one_line, visible
from agent_core.views.styled_lines import cut, duration, folded, line, meter

if TYPE_CHECKING:
    from agent_core.views import verdicts
else:
    verdicts = LateModule("agent_core.views.verdicts")

# A Markdown stream split at the ends of blocks, so that finished parts can be drawn permanently. Code is drawn line by
# line as it is written, because it never reflows; blocks longer than a screen are drawn in parts.

_FENCE = re.compile(r"( *)(`{3,}|~{3,}) *([^\s`]*)")
_RULE = frozenset(" :|-")
_PROSE_LINES = 40
MOST_CHARS, MOST_SPANS = 6_000, 480
"""Limits for rendering Markdown at once, in characters and spans; the worst case takes 50 ms."""
_PROSE_CHARS, _TABLE_CHARS = 2_000, 4_000
_MARKS = "*_`[<~&\\"


@dataclass(frozen=True, slots=True)
class DrawnBlock:
    """Text that can be drawn permanently: Markdown prose, or lines of code. If it `ends`, the block is complete.

    Each line of code ends in a newline, so that parts can be joined.
    """

    text: str
    code: str | None = None
    """The language of the code, possibly ""; None if the text is not code."""
    ends: bool = True


class BlockSplitter:
    """A splitter that takes pieces of text and returns each block once."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest: list[str] = []
        self._fence = self._language = ""
        self._indent = self._chars = self._spans = 0

    def feed(self, piece: str) -> list[DrawnBlock]:
        """Add a piece and return the blocks that it finished."""
        first, *others = piece.split("\n")
        self._rest.append(first)
        finished: list[DrawnBlock] = []
        for start in others:
            finished += self._take("".join(self._rest))
            self._rest = [start]
        if self._fence and self._lines:
            finished.append(self._code(ends=False))
        return _merge_code(finished)

    def end(self) -> list[DrawnBlock]:
        """Return the remaining blocks at the end of the text."""
        last, self._rest = "".join(self._rest), []
        blocks = self._take(last) if last else []
        blocks += [self._code(ends=True)] if self._fence else self._flush()
        self._fence = ""
        return _merge_code(blocks)

    def pending(self, lines: int, limit_chars: int) -> str:
        """Return the last lines of the unfinished part."""
        self._rest = ["".join(self._rest)]
        return "\n".join(text[-limit_chars:] for text in [*self._lines[-lines:], *self._rest])

    def _take(self, line: str) -> list[DrawnBlock]:
        if self._fence:
            marks = line.strip()
            if marks.startswith(self._fence) and not marks.strip(self._fence[0]):
                done = self._code(ends=True)
                self._fence = ""
                return [done]
            own = len(line) - len(line.lstrip(" "))
            self._lines.append(line[min(own, self._indent) :])
            return []
        if not line or line.isspace():
            return self._flush() if self._lines else []
        opened = _FENCE.match(line)
        if opened and "`" not in line[opened.end() :]:
            before = self._flush()
            self._indent, self._fence, self._language = len(opened[1]), opened[2], opened[3]
            return before
        self._lines.append(line)
        # The beginning of a block that has become long is drawn; the rest of a table gets the same heading.
        self._chars += len(self._lines[-1]) + 1
        self._spans += spans(self._lines[-1])
        is_table = (
            len(self._lines) > 2 and "-" in self._lines[1] and _RULE.issuperset(self._lines[1])
        )
        head = self._lines[:2] if is_table else []
        is_short = (
            self._chars < _TABLE_CHARS
            if head
            else self._chars < _PROSE_CHARS and len(self._lines) < _PROSE_LINES
        )
        if is_short and self._spans <= MOST_SPANS // 2:
            return []
        part = self._flush(ends=False)
        if sum(map(len, head)) < _PROSE_CHARS // 2:
            self._lines = head
        return part

    def _code(self, *, ends: bool) -> DrawnBlock:
        text, self._lines = "".join(f"{line}\n" for line in self._lines), []
        return DrawnBlock(text, self._language, ends)

    def _flush(self, *, ends: bool = True) -> list[DrawnBlock]:
        text, self._lines = "\n".join(self._lines), []
        self._chars = self._spans = 0
        return [DrawnBlock(text, None, ends)] if text.strip() else []


def spans(line: str) -> int:
    """Return the number of parts of a line that may need layout: table cells and marks."""
    return max(line.count("|") - 1, 0) + sum(map(line.count, _MARKS))


def _merge_code(blocks: list[DrawnBlock]) -> list[DrawnBlock]:
    """Merge neighboring lines of the same code block."""
    joined: list[DrawnBlock] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if last is not None and last.code is not None and block.code is not None and not last.ends:
            joined[-1] = DrawnBlock(last.text + block.text, block.code, block.ends)
        else:
            joined.append(block)
    return joined


_LONGEST_LINE = 8_000  # characters kept of an unfinished line; its end is shown
TAIL_LINES = 8
_CELLS = 20
_THOUGHT_CHARS = 4_000
_PRINTED_CHARS = 1_000
_WRITTEN_CHARS = 16_000
_WRITTEN_LINES = 9  # lines of source below the name of the call
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[^u])")
_ESCAPED = {"n": "\n", "t": "\t", "r": "", "b": "", "f": ""}


@dataclass(slots=True)
class RunningCall:
    """A call that is not answered yet."""

    name: str
    arguments: InitVar[str]
    began: float
    done: float = 0
    total: float | None = None
    note: str = ""
    printed: str = ""
    call: str = field(init=False)
    """The call on one line, computed once because it is drawn at each key."""

    def __post_init__(self, arguments: str) -> None:
        self.call = one_line(verdicts.compact_call(self.name, arguments), 120)

    def hear(self, text: str) -> None:
        """Add a piece of its output, and keep the last nonempty line."""
        *before, last = (self.printed + text).replace("\r", "\n").split("\n")
        previous_line = next((line for line in reversed(before) if line.strip()), "")
        self.printed = (
            last[-_PRINTED_CHARS:] if last.strip() else f"{previous_line[:_PRINTED_CHARS]}\n"
        )

    @property
    def last_line(self) -> str:
        """The last line that it printed, as far as known."""
        return self.printed.strip()


@dataclass(slots=True)
class WrittenCall:
    """A call that the model is still writing: its name, and the end of its arguments, which are JSON text."""

    name: str
    end: str = ""

    def hear(self, arguments: str) -> None:
        """Add the next piece of the arguments."""
        self.end = (self.end + arguments)[-_WRITTEN_CHARS:]

    def draw(self, columns: int) -> list[tuple[str, str]]:
        """Return the name, the number of lines so far, and the last lines."""
        text = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1][-1]), self.end)
        *before, last = visible(text).expandtabs(4).split("\n")
        count = f" · {len(before) + 1} lines" if before and len(self.end) < _WRITTEN_CHARS else ""
        head = ("class:live.call", cut(f"✎ {one_line(self.name, 80)}{count}", columns))
        shown = [*before, last][-_WRITTEN_LINES:] if before else []
        return [head, *(("class:live.printed", cut(f"  {text}", columns)) for text in shown)]


class Live:
    """The state of the live area, which is redrawn at each frame and empty between turns."""

    def __init__(self) -> None:
        self.blocks = BlockSplitter()
        self.thought = ""
        self.calls: dict[str, RunningCall] = {}
        self.written: dict[int, WrittenCall] = {}
        self.waiting = ""
        self.began = 0.0
        self.status = ""
        self.status_began = 0.0
        self.stands_since = 0.0
        self.call_ended: Callable[[], None] = lambda: None

    def stand(self, *, is_so: bool) -> None:
        """Pause or resume the clock of the only running call, or of a typed one, while the debugger has stopped it."""
        now = time.monotonic()
        if not is_so and self.stands_since:
            self.status_began += now - max(self.stands_since, self.status_began)
            for call in self.calls.values() if len(self.calls) == 1 else ():
                call.began += now - max(self.stands_since, call.began)
        self.stands_since = now if is_so else 0.0

    def wait(self, what: str) -> None:
        """Show what the turn is waiting for, and the time from now on."""
        self.thought, self.waiting, self.began = "", what, time.monotonic()

    def tell(self, status: str) -> None:
        """Show the status of a command, and the time since its first status."""
        if not self.status:
            self.status_began = time.monotonic()
        self.status = status

    def think(self, text: str) -> None:
        """Add a piece of the model's visible reasoning; its end is shown."""
        self.thought = (self.thought + text)[-_THOUGHT_CHARS:]

    def answered(self, call_id: str) -> None:
        """Remove a call that was answered."""
        self.calls.pop(call_id, None)
        self.call_ended()

    def clear(self) -> None:
        """Clear the live area."""
        self.blocks = BlockSplitter()
        self.thought = self.waiting = self.status = ""
        self.calls.clear()
        self.written.clear()

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Draw the current lines, each cut to the screen, without a newline at the end."""
        tail = self.blocks.pending(TAIL_LINES, TAIL_LINES * columns)
        lines: list[tuple[str, str]] = [("class:live", text) for text in _tail_lines(tail, columns)]
        if not lines and self.thought:
            lines += [
                ("class:live.thought", text)
                for text in _tail_lines(self.thought[-4 * columns :], columns)[-2:]
            ]
        lines += [row for written in [*self.written.values()][-1:] for row in written.draw(columns)]
        stands = bool(self.stands_since) and len(self.calls) == 1
        for call in self.calls.values():
            lines.append(("class:live.call", cut(_progress(call, stands=stands), columns)))
            if call.last_line:
                lines.append(("class:live.printed", cut(f"  {one_line(call.last_line)}", columns)))
        if self.status and self.status_began > self.stands_since:  # no clock for a stopped call
            lines.append(
                (
                    "class:live.call",
                    cut(f"  {one_line(self.status)}{_time_since(self.status_began)}", columns),
                )
            )
        if not lines and self.waiting:
            lines.append(
                ("class:live.thought", cut(f"{self.waiting}{_time_since(self.began)}", columns))
            )
        return ended_rows(lines)[:-1]


def ended_rows(rows: Iterable[tuple[str, str]]) -> StyleAndTextTuples:
    """Return rows of one style each, with a newline after each."""
    return [part for row in rows for part in (row, ("", "\n"))]


def _time_since(began: float) -> str:
    """Return the time since then as text, or "" if it is too short to show."""
    spent = time.monotonic() - began
    return f" {duration(spent)}" if spent >= 1 else ""


def _progress(call: RunningCall, *, stands: bool) -> str:
    spent = "paused" if stands else duration(time.monotonic() - call.began)
    text = f"▸ {call.call}"
    if call.total:
        how_far = meter(call.done, call.total, _CELLS)
        return f"{text} {how_far} {call.done:g}/{call.total:g} {one_line(call.note, 60)}"
    counted = f" {call.done:g}" if call.done else ""
    return f"{text}{counted} {one_line(call.note, 60)} … {spent}"


def _tail_lines(text: str, columns: int) -> list[str]:
    tail = visible(text).expandtabs(4).split("\n")[-TAIL_LINES:]
    rows = folded((line(row[-_LONGEST_LINE:]) for row in tail), columns, 0)
    lines = ["".join(part for _, part in row) for row in rows]
    while lines and not lines[0]:
        lines.pop(0)
    return lines[-TAIL_LINES:] if any(lines) else []
