"""A typed yes: the user types a word that the question shows and that is drawn anew for each question.

Nothing that was typed before the question holds that word: not a line that waits, not half a line that Enter completes,
not what is on its way while the program is busy. No flush of the terminal has to win a race for that.
"""

import secrets
from dataclasses import dataclass, field

_LETTERS, _DIGITS = "abcdefghkmnpqrstuvwxyz", "23456789"  # none looks like another


def _drawn() -> str:
    return secrets.choice(_DIGITS) + secrets.choice(_LETTERS)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The confirmation word of one question."""

    word: str = field(default_factory=_drawn)

    @property
    def asks(self) -> str:
        """The text that asks the user to type the word."""
        return f"Type y {self.word} and Enter for yes."

    def key(self, typed: str) -> str:
        """Return the text before the word, in lower case, or "" if the word is missing."""
        key, _, word = typed.strip().lower().partition(" ")
        return key if word.strip() == self.word else ""

    def is_given(self, typed: str | None) -> bool:
        """Return whether a line is a yes to this question."""
        return typed is not None and self.key(typed) in ("y", "yes")
