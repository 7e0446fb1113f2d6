"""A Markdown stream cut at the ends of blocks, so that finished parts can be drawn for good.

Code comes line by line as it is written, for it never reflows; so does what grows beyond a screen, in parts.
"""

import re
from dataclasses import dataclass

_FENCE = re.compile(r"( *)(`{3,}|~{3,}) *([^\s`]*)")
_RULE = frozenset(" :|-")
_PROSE_LINES = 40
MOST_CHARS, MOST_SPANS = 6_000, 480
"""What is drawn as Markdown at once, in characters and in what has to be laid out: the worst takes 50 ms."""
_PROSE_CHARS, _TABLE_CHARS = 2_000, 4_000
_MARKS = "*_`[<~&\\"


@dataclass(frozen=True, slots=True)
class DrawnBlock:
    """Text that can be drawn for good: Markdown prose, or the next lines of code; with `ends`, the block is complete.

    Each line of code ends in a newline, so that its parts can be put together.
    """

    text: str
    code: str | None = None
    """The language of code, perhaps none; None where it is no code."""
    ends: bool = True


class BlockSplitter:
    """A splitter that takes pieces of text and returns each block once."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest: list[str] = []
        self._fence = self._language = ""
        self._indent = self._chars = self._spans = 0

    def feed(self, piece: str) -> list[DrawnBlock]:
        """Return the blocks that this piece finished."""
        first, *others = piece.split("\n")
        self._rest.append(first)
        finished: list[DrawnBlock] = []
        for start in others:
            finished += self._take("".join(self._rest))
            self._rest = [start]
        if self._fence and self._lines:
            finished.append(self._code(ends=False))
        return _joined(finished)

    def end(self) -> list[DrawnBlock]:
        """Return what is left at the end of the text."""
        last, self._rest = "".join(self._rest), []
        blocks = self._take(last) if last else []
        blocks += [self._code(ends=True)] if self._fence else self._flush()
        self._fence = ""
        return _joined(blocks)

    def pending(self, lines: int, limit_chars: int) -> str:
        """Return the last lines of the unfinished part."""
        self._rest = ["".join(self._rest)]
        return "\n".join(text[-limit_chars:] for text in [*self._lines[-lines:], *self._rest])

    def _take(self, line: str) -> list[DrawnBlock]:
        if self._fence:
            return self._inside(line)
        if not line or line.isspace():
            return self._flush() if self._lines else []
        opened = _FENCE.match(line)
        if opened and "`" not in line[opened.end() :]:
            before = self._flush()
            self._indent, self._fence, self._language = len(opened[1]), opened[2], opened[3]
            return before
        self._lines.append(line)
        return self._part()

    def _inside(self, line: str) -> list[DrawnBlock]:
        marks = line.strip()
        if marks.startswith(self._fence) and not marks.strip(self._fence[0]):
            done = self._code(ends=True)
            self._fence = ""
            return [done]
        own = len(line) - len(line.lstrip(" "))
        self._lines.append(line[min(own, self._indent) :])
        return []

    def _code(self, *, ends: bool) -> DrawnBlock:
        text, self._lines = "".join(f"{line}\n" for line in self._lines), []
        return DrawnBlock(text, self._language, ends)

    def _part(self) -> list[DrawnBlock]:
        """Return the beginning of a block that has become long. A table continues under the same head."""
        self._chars += len(self._lines[-1]) + 1
        self._spans += spans(self._lines[-1])
        head = self._lines[:2] if len(self._lines) > 2 and _is_rule(self._lines[1]) else []
        is_short = (
            self._chars < _TABLE_CHARS if head else self._chars < _PROSE_CHARS and len(self._lines) < _PROSE_LINES
        )
        if is_short and self._spans <= MOST_SPANS // 2:
            return []
        part = self._flush(ends=False)
        if sum(map(len, head)) < _PROSE_CHARS // 2:
            self._lines = head
        return part

    def _flush(self, *, ends: bool = True) -> list[DrawnBlock]:
        text, self._lines = "\n".join(self._lines), []
        self._chars = self._spans = 0
        return [DrawnBlock(text, None, ends)] if text.strip() else []


def spans(line: str) -> int:
    """Return how many parts of a line may need their own layout: table cells and marks."""
    return max(line.count("|") - 1, 0) + sum(map(line.count, _MARKS))


def _is_rule(line: str) -> bool:
    return "-" in line and _RULE.issuperset(line)


def _joined(blocks: list[DrawnBlock]) -> list[DrawnBlock]:
    """Merge neighboring lines of the same code block."""
    joined: list[DrawnBlock] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if last is not None and last.code is not None and block.code is not None and not last.ends:
            joined[-1] = DrawnBlock(last.text + block.text, block.code, block.ends)
        else:
            joined.append(block)
    return joined
