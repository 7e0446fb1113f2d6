"""The limits of an agent's file, and of the text that it may produce by repeated references."""

from dataclasses import dataclass
from typing import Final

from .report import AgentFileError

MOST_AGENTS: Final = 100
MOST_BLOCKS: Final = 2_000
MOST_CHANGES: Final = 100_000  # in all blocks together
MOST_SECTIONS: Final = 1_000
MOST_TURNS: Final = 100_000
MOST_EVENTS: Final = 100_000  # in all turns together
MOST_ENTRIES: Final = 400_000  # in all turns together
MOST_WAITING: Final = 10_000
MOST_PASSAGES: Final = 400_000
MOST_DOCUMENTS: Final = 10_000
MOST_TEXTS: Final = 100_000
MOST_PINS: Final = 1_000
MOST_LINES: Final = 2_000  # in a block with a list as its value
MOST_TAGS: Final = 100  # of one passage
MOST_LINKS: Final = 10_000  # from an agent to shared blocks or files
LONGEST_PASSAGE: Final = 1_000_000  # characters; the text index reads one in a single step
LONGEST_SETTINGS: Final = 16_000  # characters of JSON

_TIMES: Final = 4
_SPARE: Final = 64 << 20


@dataclass(slots=True)
class Room:
    """The remaining number of characters that parts with several references may produce."""

    left: int

    @classmethod
    def of(cls, size: int) -> "Room":
        """Return the room for a file of `size` characters: a multiple of it, plus a fixed amount."""
        return cls(_TIMES * size + _SPARE)

    def take(self, where: str, chars: int) -> None:
        """Use up this number of characters.

        Raises:
            AgentFileError: there are not enough left.
        """
        self.left -= chars
        if self.left < 0:
            raise AgentFileError(where, "expected a file that repeats its parts less often: it produces too much text")


def at_most(where: str, most: int, count: int) -> None:
    """Raise `AgentFileError` if a count exceeds the limit."""
    if count > most:
        raise AgentFileError(where, f"expected at most {most} items, got {count}")
