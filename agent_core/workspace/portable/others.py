"""Agents in files of other programs: extensions read them, each program's by its own hook."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from agent_core.base.extensions import AGENT_FILES, offers
from agent_core.base.records import dataclass
from agent_core.storage import WholeAgent

from .document import Json, Words
from .report import AgentReport

MISSING: Final = (
    "Whether this call took effect is unknown: its answer is not in the file that this comes from."
)


Agents: TypeAlias = Iterator[tuple[WholeAgent, AgentReport]]
ReadAgents: TypeAlias = "Callable[[ForeignFile], Agents | None]"
"""Reads the agents of a program's file; None if it is not one of that program. An `AgentFileError` names the place."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file that is not one of this program: its document, its name and size, and the time now.

    `ids` is the prefix of the ids of its parts, `words` returns the index text of a passage.
    """

    raw: Json
    name: str
    size: int
    ids: str
    now: float
    words: Words


def agents_of_others(file: ForeignFile) -> Agents | None:
    """Return the agents of another program's file; None if no extension knows it.

    Raises:
        AgentFileError: the file is invalid; also later, while they are read.
    """
    readers: Mapping[str, ReadAgents] = offers(AGENT_FILES)
    found = (read(file) for read in readers.values())
    return next((agents for agents in found if agents is not None), None)


def known_programs() -> list[str]:
    """Return the names of the programs whose files can be read."""
    return [*offers(AGENT_FILES)]


def answer_of(call_id: str, name: str, text: str, outcome: str) -> dict[str, Any]:  # Any: JSON
    """Return the payload of a call's answer."""
    said = {"call_id": call_id, "name": name, "text": text}
    return {**said, "outcome": outcome, "seconds": 0.0, "detail": {}}
