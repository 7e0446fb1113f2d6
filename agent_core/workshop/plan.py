"""A change to the functions, planned but not yet made.

Planning may take long and may be interrupted; carrying a plan out is short, is not interrupted, and
leaves either all of the change or nothing of it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..registry.function import Reading
from ..storage import Write

Deed = Literal["created", "changed", "deleted"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file is to become `text` (None: to go away) if it still has the version `expected` (None: absent)."""

    path: str
    module: str
    expected: str | None
    text: str | None
    version: str | None
    reading: Reading | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a verb came to: the answer, the change of a file if any, and what is written down with it.

    `text` is for a model, `detail` is JSON of a published shape. `refused` names a candidate that now
    stands refused; `excluded` names functions that the next step should not offer. `again` plans the same
    anew, on what the file has become meanwhile.
    """

    text: str
    outcome: Literal["returned", "refused"] = "returned"
    detail: dict[str, Any] = field(default_factory=dict)  # Any: JSON
    change: FileChange | None = None
    writes: tuple[Write, ...] = ()
    made: tuple[Deed, str] | None = None
    refused: str | None = None
    excluded: frozenset[str] = frozenset()
    again: "Callable[[], Awaitable[Plan]] | None" = None


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change, for the history: a human, or an agent in a turn with a model."""

    by: Literal["human", "agent"] = "human"
    agent: str = ""
    turn: str = ""
    model: str = ""
