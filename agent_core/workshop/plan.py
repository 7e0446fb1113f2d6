"""A change to the functions, planned but not yet made.

Planning may take long and may be interrupted; carrying a plan out is short, is not interrupted, and
leaves either all of the change or nothing of it.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..grants import Giving, Grants
from ..registry.function import Reading
from ..registry.source import Source
from ..storage import DropReading, SaveReading, SaveVersion, SetManifest, Write
from .unread import Unread

Deed = Literal["created", "changed", "deleted"]
_NO_STAMP = (0, 0, 0)


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
    anew, on what the file has become meanwhile. `giving` is what a human lets a function have from now on, `lent` what
    its next call may have; `revoked` is a function that loses all. `done` is called once it is on disk.
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
    giving: Giving | None = None
    lent: Giving | None = None
    revoked: str = ""
    done: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change, for the history: a human, or an agent in a turn with a model, and what that has not seen."""

    by: Literal["human", "agent"] = "human"
    agent: str = ""
    turn: str = ""
    model: str = ""
    unread: Unread = field(default_factory=Unread, compare=False)


@dataclass(frozen=True, slots=True)
class Work:
    """What a change is: created, changed or deleted, of which function, by whom and why; `done` says it in words.

    `given` is what a human has granted for it already.
    """

    what: Deed
    name: str
    author: Author
    reason: str = ""
    done: str = ""
    given: Grants | None = None

    @property
    def said(self) -> str:
        """What an answer says was done."""
        return self.done or {"created": "joined", "changed": "was changed", "deleted": "was deleted"}[self.what]


def planned(text: str, detail: dict[str, Any], source: Source, reading: Reading | None, work: Work) -> Plan:
    """The file's change from `source` (an empty version: no file yet) to `reading` (None: no file any more)."""
    expected = source.version or None
    version = reading.source.version if reading else None
    author, why = work.author, work.reason or f"{work.what} {work.name}"
    entered: tuple[Write, ...] = (SetManifest(source.module, expected, version, author.by, author.turn, why),)
    if reading is None:
        entered = (*entered, DropReading(source.path))
    else:
        now = reading.source
        saved = SaveVersion(source.module, now.version, now.text, author.by, author.turn, why, author.model)
        entered = (saved, *entered, SaveReading(source.path, _NO_STAMP, now.version, json.dumps(reading.to_json())))
    change = FileChange(
        source.path, source.module, expected, reading.source.text if reading else None, version, reading
    )
    return Plan(text, "returned", detail, change, entered, (work.what, work.name))
