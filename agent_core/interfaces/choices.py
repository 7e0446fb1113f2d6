"""What can be looked through: a line each, and what lies behind it."""

from collections.abc import Callable
from dataclasses import dataclass

from .spans import Line, Span


@dataclass(frozen=True, slots=True)
class Choice:
    """One of many: its line in the list, the text that letters are looked for in, and what is shown of it."""

    name: str
    line: Line
    text: str
    lines: Callable[[], list[Line]]
    source: Callable[[], tuple[str, int]] | None = None
    """Python source and the number of its first line, shown under the lines."""


@dataclass(frozen=True, slots=True)
class Table:
    """Choices under a head, and what else is to be said; `keeps_order`: what fits better does not come first."""

    title: str
    head: Line
    choices: tuple[Choice, ...]
    keeps_order: bool = False
    below: tuple[Line, ...] = ()

    def lines(self) -> list[Line]:
        """The whole of it, where it is only printed."""
        heads = [tuple[Span, ...](("dim", text) for _, text in self.head)] if self.choices else []
        return [*heads, *(choice.line for choice in self.choices), *self.below]
