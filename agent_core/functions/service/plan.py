"""A change to the functions, planned but not yet made.

Planning may take long and may be interrupted; carrying a plan out is short, is not interrupted, and
leaves either all of the change or nothing of it.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_core.access.grants import Approvals, Giving, Grants
from agent_core.registry.function import ModuleReading
from agent_core.registry.source import ModuleSource
from agent_core.storage import DropReading, SaveReading, SaveVersion, SetManifest, Write
from ..debug import DebuggerSeat
from .unread import StaleView

Deed = Literal["created", "changed", "deleted"]
_NO_STAMP = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of a file to `text` (None: deletion) if it still has the version `expected` (None: absent)."""

    path: str
    module: str
    expected: str | None
    text: str | None
    version: str | None
    reading: ModuleReading | None


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The result of a verb: the answer, the change of a file if any, and the writes that go with it.

    `text` is for a model, `detail` is JSON of a published shape. `refused` names a candidate that now
    is rejected; `excluded` names functions that the next step should not offer. `replan` plans the same
    anew, on what the file has become meanwhile. `giving` is what a human lets a function have from now on, `lent` what
    its next call may have; `revoked` is a function that loses all. `done` is called once it is on disk.
    """

    text: str
    outcome: Literal["returned", "refused"] = "returned"
    detail: dict[str, Any] = field(default_factory=dict)  # Any: JSON
    change: FileChange | None = None
    writes: tuple[Write, ...] = ()
    completed_change: tuple[Deed, str] | None = None
    refused: str | None = None
    excluded: frozenset[str] = frozenset()
    replan: "Callable[[], Awaitable[PlannedChange]] | None" = None
    giving: Giving | None = None
    lent: Giving | None = None
    revoked: str = ""
    done: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a change, for the history: the user, or an agent in a turn with a model, and its unseen changes.

    `approvals` and `seat` are those of the turn: who is asked about grants, and who sits at the debugger.
    """

    by: Literal["human", "agent"] = "human"
    agent: str = ""
    turn: str = ""
    model: str = ""
    unread: StaleView = field(default_factory=StaleView, compare=False)
    approvals: Approvals | None = field(default=None, compare=False)
    seat: DebuggerSeat | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ChangeSummary:
    """A change in words and values: created, changed or deleted, which function, by whom and why. `done` describes it.

    `preset_grants` is what the user has granted for it already.
    """

    deed: Deed
    name: str
    author: Author
    reason: str = ""
    done: str = ""
    preset_grants: Grants | None = None

    @property
    def said(self) -> str:
        """The words in which an answer describes the change."""
        return self.done or {"created": "joined", "changed": "was changed", "deleted": "was deleted"}[self.deed]


def planned(
    text: str, detail: dict[str, Any], source: ModuleSource, reading: ModuleReading | None, work: ChangeSummary
) -> PlannedChange:
    """Return the file's change from `source` (empty version: no file yet) to `reading` (None: file deleted)."""
    expected = source.version or None
    version = reading.source.version if reading else None
    author, why = work.author, work.reason or f"{work.deed} {work.name}"
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
    return PlannedChange(text, "returned", detail, change, entered, (work.deed, work.name))
