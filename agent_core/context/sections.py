"""The system message: ordered parts, the most stable first, for servers cache the longest unchanged prefix.

Rendered when a turn begins and after a compaction; in between it stands as it is, whatever is edited.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ..clock import shown_time
from ..memory.sections import POSITIONS
from ..messages import System
from ..storage import Counts, SectionRow
from ..untrusted import shorten

_GROWN, _MORE = 1.5, 10  # the number of messages is told anew when it has grown by so much, or another part changed
_MOST: Final = 0.5  # of the window
_LEAST_CHARS: Final = 200


class Remembered(Protocol):
    """What memory gives to the system message."""

    def render_blocks(self) -> str:
        """The blocks as the model reads them."""

    async def counts(self) -> Counts:
        """How much there is beside them."""

    async def custom_sections(self) -> Sequence[SectionRow]:
        """The sections that somebody added."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the system message; one that `leads` is the program's instructions: first, and never shortened."""

    name: str
    position: int
    text: str
    leads: bool = False


class SystemMessage:
    """The system message of one agent, as it was last rendered."""

    def __init__(self, remembered: Remembered | None = None) -> None:
        self.sections: tuple[Section, ...] = ()
        self.text = ""
        self._remembered = remembered
        self._counted: Counts | None = None
        self._statistics = ""

    @property
    def messages(self) -> tuple[System, ...]:
        """What it is for a model: up to the instructions the same in all conversations, and what this one adds."""
        first = [section for section in self.sections if section.leads]
        halves = (first, [section for section in self.sections if not section.leads])
        return tuple(System("\n\n".join(section.text for section in half)) for half in halves if half)

    async def render(self, instructions: str, notes: str, window_chars: int) -> None:
        """Make it anew; `notes` is about functions. Parts that leave the conversation no room are shortened."""
        parts = [Section("instructions", POSITIONS["instructions"], instructions, leads=True)]
        parts.append(Section("functions", POSITIONS["functions"], notes))
        if self._remembered is not None:
            parts.append(Section("memory", POSITIONS["memory"], self._remembered.render_blocks()))
            parts += [Section(row.name, row.position, row.text) for row in await self._remembered.custom_sections()]
            counts = await self._remembered.counts()
            others = _ordered(parts)
            if self._is_news(counts, others, window_chars):
                self._counted, self._statistics = counts, statistics(counts)
            parts.append(Section("statistics", POSITIONS["statistics"], self._statistics))
        self.sections = fitting(_ordered(parts), int(window_chars * _MOST))
        self.text = "\n\n".join(section.text for section in self.sections)

    def _is_news(self, counts: Counts, others: tuple[Section, ...], window_chars: int) -> bool:
        """Whether the statistics are told anew: if only a few messages came, the whole prefix stays as it was."""
        before = self._counted
        if before is None or (before.passages, before.edited) != (counts.passages, counts.edited):
            return True
        if counts.messages < before.messages or counts.messages > before.messages * _GROWN + _MORE:
            return True
        told = tuple(section for section in self.sections if section.name != "statistics")
        return told != fitting(others, int(window_chars * _MOST))


def statistics(counts: Counts) -> str:
    """How much there is out of sight, and how to find it."""
    edited = shown_time(counts.edited) if counts.edited else "never"
    return (
        f"Memory: {counts.messages:,} messages in recall (conversation_search), {counts.passages:,} passages in"
        f" archival memory (archival_memory_search); blocks last edited: {edited}."
    )


def _ordered(parts: Iterable[Section]) -> tuple[Section, ...]:
    return tuple(
        sorted(
            (part for part in parts if part.text.strip()), key=lambda part: (not part.leads, part.position, part.name)
        )
    )


def fitting(sections: tuple[Section, ...], most: int) -> tuple[Section, ...]:
    """The sections, those beside the instructions shortened alike where together they have more bytes than that."""
    sizes = [len(section.text.encode("utf-8", "replace")) for section in sections]
    extra = sum(sizes) - most
    movable = sum(size for section, size in zip(sections, sizes, strict=True) if not section.leads)
    if extra <= 0 or not movable:
        return sections
    share = max(1 - extra / movable, 0)
    return tuple(section if section.leads else _cut(section, share) for section in sections)


def _cut(section: Section, share: float) -> Section:
    room = max(int(len(section.text) * share), _LEAST_CHARS)
    return Section(section.name, section.position, shorten(section.text, room))
