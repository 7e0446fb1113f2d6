"""A text with one piece changed: the byte positions of its tree's nodes, and a change as a diff.

Pure. The columns of a tree count bytes, so the text is held as bytes.
"""

import ast
import re
from dataclasses import dataclass
from typing import Final

from ..tree import FunctionNode, first_line

_WORD: Final = re.compile(rb"\w")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed text; `line` counts from the function's first, `notices` is the kind of example that would notice.

    `old` is the piece that was replaced, as it is written.
    """

    operator: str
    text: str
    line: int
    before: str
    after: str
    notices: str
    old: str

    @property
    def diff(self) -> str:
        """The change as the lines of a diff."""
        removed = [f"-{line}" for line in self.before.split("\n")] if self.before else []
        return "\n".join([*removed, *(f"+{line}" for line in self.after.split("\n"))])


@dataclass(frozen=True, slots=True)
class TextChange:
    """A piece of a text, as bytes from `start` to `end`, and its replacement."""

    start: int
    end: int
    new: str
    notices: str


class SplicedText:
    """A text in which the positions of its tree's nodes can be found and changed."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode()
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", self._bytes))]

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Return where a node begins, decorators included."""
        line = first_line(node) if isinstance(node, ast.stmt) else node.lineno
        return self._starts[line - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Return where a node ends."""
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def piece(self, start: int, end: int) -> str:
        """Return the text between two positions."""
        return self._bytes[start:end].decode()

    def of(self, node: ast.expr | ast.stmt) -> str:
        """Return a node as it is written, in one line."""
        shown = " ".join(self.piece(self.start(node), self.end(node)).split())
        return shown if len(shown) <= 60 else f"{shown[:59]}…"

    def line_start(self, place: int) -> int:
        """Return where the line of a position begins."""
        return self._bytes.rfind(b"\n", 0, place) + 1

    def line_end(self, place: int) -> int:
        """Return where the line of a position ends, before the line break."""
        position = self._bytes.find(b"\n", place)
        return len(self._bytes) if position < 0 else position

    def mutant(self, operator: str, change: TextChange, node: FunctionNode) -> Mutant:
        """Return the text with a change."""
        ahead, behind = self._bytes[: change.start], self._bytes[change.end :]
        glue = b" " if _WORD.match(ahead[-1:]) and _WORD.match(change.new.encode()) else b""  # `return[1]`, `if(a)`
        new = ahead + glue + change.new.encode() + behind
        first, last = self.line_start(change.start), self.line_end(change.end)
        before = self.piece(first, last)
        after = new[first : last + len(new) - len(self._bytes)].decode()
        if after.startswith(f"{before}\n"):  # a line was added
            before, after = "", after[len(before) + 1 :]
        elif after.endswith(f"\n{before}"):
            before, after = "", after[: -len(before) - 1]
        line = self._bytes.count(b"\n", 0, change.start) + 1 - node.lineno
        old = self.piece(change.start, change.end)
        return Mutant(operator, new.decode(), line, before, after, change.notices, old)
