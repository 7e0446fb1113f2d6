"""The host's checks of a worker's claims, against the caps and the texts that the worker received."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from ..errors import ProtocolError
from .caps import ITEM, MOST_CLAIM, MOST_NAME
from .lines import bare_lines
from .protocol import Frame
from .statements import Places, line_in_code, line_in_text

_SMALL: Final = 8  # size that an item other than text counts as
_NAMED: Final = re.compile(r"\b(?:def|class)\s+(\w+)")


def within(label: str, size: int, most: int) -> None:
    """Raise ProtocolError if a claim exceeds its cap."""
    if not 0 <= size <= most:
        raise ProtocolError(f"it claims {size:,} {label}, and the most is {most:,}")


@dataclass(frozen=True, slots=True)
class SentText:
    """The text of a module that a call received, split into lines once; `places` if its code has other lines."""

    lines: list[str]
    names: frozenset[str]  # of its functions and classes
    places: Places = field(default_factory=list)

    @classmethod
    def of(cls, text: str, places: Places | None = None) -> "SentText":
        """Split a text into lines, and collect its names."""
        return cls(
            bare_lines(text),
            frozenset(_NAMED.findall(unicodedata.normalize("NFKC", text))),
            places or [],
        )

    def line(self, number: int) -> str:
        """Return a line without surrounding whitespace, or "" if there is none."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def holds(self, line: object, function: str) -> bool:
        """Return whether this line and this function, by its qualified name, exist."""
        parts = [part for part in function.split(".") if not part.startswith("<")]
        if len(function) >= MOST_NAME:  # the worker has cut it
            parts = parts[:-1]
        last = len(self.places) - 1 if self.places else len(self.lines)
        return isinstance(line, int) and 0 <= line <= last and self.names.issuperset(parts)

    def told(self, line: int, column: int = 0) -> int:
        """Return the line of the text for a place in its code."""
        return line_in_text(self.places, line, column) if self.places else line

    def wanted(self, line: int) -> int:
        """Return the line of the code for a line of the text."""
        return line_in_code(self.places, line) if self.places else line


@dataclass(frozen=True, slots=True)
class Claimed:
    """A validator of a worker's debugger messages, used before their content is masked, shown or stored."""

    text: Callable[[str], SentText | None]  # path → the text that was sent to the call
    _known: set[tuple[object, ...]] = field(default_factory=set)

    def check(self, frame: Frame) -> None:
        """Raise ProtocolError if a message is too large, or refers to a place that the call's code does not have."""
        budget = MOST_CLAIM  # checked before anything of it is used
        values: list[Any] = [frame]  # Any: JSON
        while values:
            value = values.pop()
            budget -= ITEM + len(value) if isinstance(value, str) else _SMALL
            if budget < 0:
                raise ProtocolError(
                    f"its debugger says more than {MOST_CLAIM:,} characters at once"
                )
            values += value if isinstance(value, list) else ()
            values += [*value, *value.values()] if isinstance(value, dict) else ()
        if frame.get("event") == "record":
            self._place(frame.get("path"), frame.get("line"), frame.get("function"))
        for name in ("frames", "rows"):
            rows = [] if frame.get(name) is None else frame[name]
            if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
                raise ProtocolError("it claims places at its debugger that have no known shape")
            for row in rows:
                self._place(*row[:3])

    def _place(self, path: object = None, line: object = None, function: object = None) -> None:
        if (path, line, function) in self._known:
            return
        if not isinstance(path, str) or not isinstance(line, int) or not isinstance(function, str):
            raise ProtocolError("it claims a place at its debugger that has no known shape")
        text = self.text(path)
        if text is None or not text.holds(line, function):
            raise ProtocolError(
                f"it claims a place at its debugger that its code has not: {path[:200]!a}, line {line}"
            )
        self._known.add((path, line, function))
