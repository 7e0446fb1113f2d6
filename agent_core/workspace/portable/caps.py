"""The limits of an agent's file, and of what may come of one that names the same part many times."""

from dataclasses import dataclass
from typing import Final

from .report import AgentFileError

MOST_AGENTS: Final = 100
MOST_BLOCKS: Final = 2_000
MOST_CHANGES: Final = 100_000  # of all blocks
MOST_SECTIONS: Final = 1_000
MOST_TURNS: Final = 100_000
MOST_EVENTS: Final = 100_000  # of all turns
MOST_ENTRIES: Final = 400_000  # of all turns
MOST_WAITING: Final = 10_000
MOST_PASSAGES: Final = 400_000
MOST_DOCUMENTS: Final = 10_000
MOST_TEXTS: Final = 100_000
MOST_PINS: Final = 1_000
MOST_LINES: Final = 2_000  # of a block's value that is a list
MOST_TAGS: Final = 100  # of a passage
MOST_LINKS: Final = 10_000  # of an agent to blocks or files next to it
LONGEST_PASSAGE: Final = 1_000_000  # characters; the text index reads one in a single step
LONGEST_SETTINGS: Final = 16_000  # characters of JSON

_TIMES: Final = 4
_SPARE: Final = 64 << 20


@dataclass(slots=True)
class Room:
    """The number of characters that may still come of parts that are named from several places."""

    left: int

    @classmethod
    def of(cls, size: int) -> "Room":
        """Return the room that a file of so many characters has: some times its own size."""
        return cls(_TIMES * size + _SPARE)

    def take(self, where: str, chars: int) -> None:
        """Take so many characters.

        Raises:
            AgentFileError: they are too many.
        """
        self.left -= chars
        if self.left < 0:
            raise AgentFileError(where, "expected a file that repeats its parts less often: it produces too much text")


def at_most(where: str, most: int, count: int) -> None:
    """Raise `AgentFileError` if there is more than the most."""
    if count > most:
        raise AgentFileError(where, f"expected at most {most} items, got {count}")
