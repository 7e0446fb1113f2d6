"""A list to look through: one line per entry, and the details behind it."""

from collections.abc import Callable
from dataclasses import dataclass

from .spans import Line, Span


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry: its line in the list, the text that is searched, and its details."""

    name: str
    line: Line
    text: str
    lines: Callable[[], list[Line]]
    source: Callable[[], tuple[str, int]] | None = None
    """Python source and the number of its first line, shown under the lines."""


@dataclass(frozen=True, slots=True)
class Table:
    """Choices under a head, with further lines. With `keeps_order`, better matches do not move to the top."""

    title: str
    head: Line
    choices: tuple[Choice, ...]
    keeps_order: bool = False
    below: tuple[Line, ...] = ()

    def lines(self) -> list[Line]:
        """Return the whole table as lines, for printing."""
        heads = [tuple[Span, ...](("dim", text) for _, text in self.head)] if self.choices else []
        return [*heads, *(choice.line for choice in self.choices), *self.below]
