"""Conversion of a file's sections to ones that fit a system message here: next to the program's own, and of its
size.
"""

from collections.abc import Sequence
from dataclasses import replace

from agent_core.base.untrusted import shorten
from agent_core.memory.sections import POSITIONS
from agent_core.storage import SectionRow

from .report import AgentReport

MOST = 16_000  # characters: MemGPT's own instructions are longer than a section that is written here
_TOLD = 60  # characters of the line that says how much is left out


def fitted(sections: Sequence[SectionRow], report: AgentReport) -> tuple[SectionRow, ...]:
    """Return the sections in order; one with a name of the program's is renamed, and a long one is shortened."""
    names = {section.name for section in sections}
    return tuple(_short(_renamed(section, names, report), report) for section in sections)


def _renamed(section: SectionRow, names: set[str], report: AgentReport) -> SectionRow:
    if section.name not in POSITIONS:
        return section
    name = f"own_{section.name}"
    while name in names:
        name = f"{name}_"
    names.add(name)
    report.took(f"section `{section.name}`", f"section `{name}`, for the program has one of that name")
    return replace(section, name=name)


def _short(section: SectionRow, report: AgentReport) -> SectionRow:
    if len(section.text) <= MOST:
        return section
    report.leaves(f"the middle of section `{section.name}`", f"a section of a file has at most {MOST:,} characters")
    return replace(section, text=shorten(section.text, MOST - _TOLD), limit=MOST)
