"""The output of readers: parts of a text that belong together, and chunks with their position; or why there is none."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from agent_core.base.errors import KnapperError


class Unreadable(KnapperError):
    """Error raised when a source is missing, is not text, is too large, or cannot be read as what it claims to be."""

    code = "unreadable-source"


Unit: TypeAlias = Literal["", "line", "page", "row", "record"]

LONGEST: Final = 1_200
"""Characters of a chunk at most."""
GOAL: Final = 1_000
"""Characters that a chunk has where the text leaves a choice."""
SMALL: Final = 240
"""A part below this is joined to the next one."""


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A piece of a text that belongs together: a section, a function, a page, a row.

    `title` is where it stands, such as the path of its headings. `number` counts in `unit`s: its first line, or the
    page, row or record that it is. `lead` begins each chunk that it is cut into, where the text does not itself.
    """

    text: str
    title: str = ""
    unit: Unit = ""
    number: int = 0
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The raw form of a passage: a text, and its position in the source as an answer cites it."""

    text: str
    place: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A source as chunks: the kind it was read as, and notes about it."""

    kind: str
    chunks: tuple[Chunk, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceParts:
    """A source as parts; those below `fill` characters are joined to the next one."""

    parts: tuple[SourcePart, ...]
    fill: int = SMALL
    notes: tuple[str, ...] = ()
