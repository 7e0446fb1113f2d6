"""What readers give, and what comes of it: parts of a text that belong together, and chunks with their place."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Unit: TypeAlias = Literal["", "line", "page", "row", "record"]

LONGEST: Final = 1_200
"""Characters of a chunk at most."""
GOAL: Final = 1_000
"""Characters that a chunk has where the text leaves a choice."""
SMALL: Final = 240
"""A part below this is joined to the next one."""


@dataclass(frozen=True, slots=True)
class Part:
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
    """What becomes a passage: a text, and its place in the source as an answer cites it."""

    text: str
    place: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A source as chunks: what it was read as, and what there is to say of it."""

    kind: str
    chunks: tuple[Chunk, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parts:
    """A source as parts; those below `fill` characters are joined to the next one."""

    parts: tuple[Part, ...]
    fill: int = SMALL
    notes: tuple[str, ...] = ()
