"""What can be open above the input line and takes its keys: a question, or a table that is looked through."""

from typing import Protocol

from prompt_toolkit.formatted_text import StyleAndTextTuples


class OpenQuestion(Protocol):
    """A question that keys answer."""

    @property
    def state(self) -> str:
        """How far it is: quiet, armed, pressed, chosen or word."""

    def press(self, key: str) -> None:
        """Take a key that may be an answer."""

    def enter(self) -> None:
        """Take Enter."""

    def refuse(self) -> None:
        """Answer with a no."""

    def draw(self, columns: int) -> StyleAndTextTuples:
        """What stands above the input line."""


class OpenTable(Protocol):
    """A table that is looked through."""

    def press(self, text: str) -> None:
        """Take a letter."""

    def back(self) -> None:
        """Take a letter back."""

    def move(self, by: int) -> None:
        """Go to another row, or by a page."""

    def enter(self) -> None:
        """Take the row."""

    def escape(self) -> None:
        """Leave."""

    def draw(self, columns: int) -> StyleAndTextTuples:
        """What stands above the input line."""
