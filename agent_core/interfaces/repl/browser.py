"""A table above the input line to look through: letters filter, arrows move, details of the row are below it.

Enter prints that above the prompt, Esc leaves. Heavy: loaded behind the prompt.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import islice

from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text

from ..choices import Choice, Table
from ..columns import cut, width
from ..fuzzy import fitting
from ..spans import coloured, plain
from ..wrap import folded
from . import render
from .prompt import Prompt

_AROUND = 5  # rows: the title, the head, the rule, the input line, the bar
LEAST_ROWS = 12
_MOST_BELOW = 3
_KEYS = "type to filter · ↑↓ · Enter prints it · Esc leaves"


class Browser:
    """The open table; `chosen` is set once the user has left it."""

    def __init__(self, table: Table, prompt: Prompt, theme: str) -> None:
        self.chosen: asyncio.Future[Choice | None] = asyncio.get_running_loop().create_future()
        self._table, self._prompt, self._theme = table, prompt, theme
        self._below = table.below[:_MOST_BELOW]
        self._typed = ""
        self._at = 0
        self._found = list(table.choices)
        self._shown: dict[tuple[str, int, int], list[str]] = {}

    def press(self, text: str) -> None:
        """Add a letter to the filter. A slash begins the next command, and closes the table."""
        if text == "/":
            self._leave(None)
            self._prompt.buffer.insert_text(text)
        else:
            self._filter(self._typed + text)

    def back(self) -> None:
        """Remove the last letter."""
        self._filter(self._typed[:-1])

    def move(self, by: int) -> None:
        """Move to another row; if `by` is more than one, by a page."""
        rows = by if abs(by) == 1 else by // abs(by) * self._room()[0]
        self._at = min(max(self._at + rows, 0), max(len(self._found) - 1, 0))

    def enter(self) -> None:
        """Choose the row."""
        self._leave(self._found[self._at] if self._found else None)

    def escape(self) -> None:
        """Close the table without a row."""
        self._leave(None)

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Draw the table in its current state, as high as the screen allows."""
        rows, below = self._room()
        first = min(max(self._at - rows // 2, 0), max(len(self._found) - rows, 0))
        shown = self._found[first : first + rows]
        drawn = [self._title(columns), ("bold ansibrightblack", cut(plain([self._table.head])[:-1], columns))]
        for at, choice in enumerate(shown, first):
            text = cut(plain([choice.line])[:-1], columns)
            drawn.append(("reverse", text + " " * (columns - width(text))) if at == self._at else ("", text))
        drawn += [("ansibrightblack", cut(plain([row])[:-1], columns)) for row in self._below]
        drawn.append(("ansibrightblack", "─" * columns))
        parts: StyleAndTextTuples = []
        for style, text in drawn:
            parts += [(style, text), ("", "\n")]
        return [*parts, *to_formatted_text(ANSI("".join(self._preview(columns, below)).removesuffix("\n")))]

    def _title(self, columns: int) -> tuple[str, str]:
        many = f"{len(self._found)} of {len(self._table.choices)}"
        return "bold ansicyan", cut(f"{self._table.title} {many}: {self._typed}▏ {_KEYS}", columns)

    def _preview(self, columns: int, rows: int) -> list[str]:
        if not self._found:
            return ["Nothing fits; Backspace takes letters back."]
        choice = self._found[self._at]
        key = (choice.name, columns, rows)
        if key not in self._shown:
            self._shown[key] = list(islice(preview(choice, columns, self._theme), rows))
        return self._shown[key]

    def _room(self) -> tuple[int, int]:
        """Return the number of table rows, and of rows for the details."""
        free_rows = max(self._prompt.output.get_size().rows - _AROUND - len(self._below), 2)
        rows = max(min(len(self._table.choices), free_rows * 2 // 5), 1)
        return rows, free_rows - rows

    def _filter(self, typed: str) -> None:
        self._typed, self._at = typed, 0
        self._found = fitting(typed, self._table.choices, lambda choice: choice.text)
        if self._table.keeps_order:
            self._found = [choice for choice in self._table.choices if choice in self._found]

    def _leave(self, choice: Choice | None) -> None:
        self._prompt.browser = None  # the next key is for the input line
        if not self.chosen.done():
            self.chosen.set_result(choice)


def preview(choice: Choice, columns: int, theme: str) -> Iterator[str]:
    """Draw the details of a table row, row by row."""
    form = coloured if render.takes_colour() else plain
    yield from (form([row]) for row in folded(choice.lines(), columns))
    if choice.source:
        yield from render.source(*choice.source(), columns, theme)


@asynccontextmanager
async def open_browser(table: Table, prompt: Prompt, theme: str) -> AsyncIterator[Browser]:
    """Show a table on the screen while the block runs."""
    browser = prompt.browser = Browser(table, prompt, theme)
    prompt.buffer.cancel_completion()
    prompt.app.invalidate()
    try:
        yield browser
    finally:
        prompt.browser = None
        prompt.app.invalidate()


def fits(prompt: Prompt) -> bool:
    """Check whether the screen is high enough for a table."""
    return prompt.output.get_size().rows >= LEAST_ROWS
