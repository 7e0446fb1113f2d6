"""The things that can be open above the input line and take its keys: a question, or a table."""

from typing import Protocol

from prompt_toolkit.formatted_text import StyleAndTextTuples


class OpenQuestion(Protocol):
    """A question that is answered with keys."""

    @property
    def state(self) -> str:
        """The current state: quiet, armed, pressed, chosen or word."""

    def press(self, key: str) -> None:
        """Handle a key that may be an answer."""

    def enter(self) -> None:
        """Handle Enter."""

    def refuse(self) -> None:
        """Answer with a no."""

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Draw what is above the input line."""


class OpenTable(Protocol):
    """A table to look through."""

    def press(self, text: str) -> None:
        """Add a letter."""

    def back(self) -> None:
        """Remove the last letter."""

    def move(self, by: int) -> None:
        """Move to another row, or by a page."""

    def enter(self) -> None:
        """Choose the row."""

    def escape(self) -> None:
        """Close the table."""

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Draw what is above the input line."""
