"""A change to the functions, planned but not yet made.

Planning may take long and may be interrupted. Carrying out a plan is short and not interrupted, and makes either all of
the change or none of it.
"""

import json
import re
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from agent_core.base.receipt import Receipt
from agent_core.base.records import IF_SET, dataclass, field, replace
from agent_core.registry.depends import callees
from agent_core.storage import DropReading, Plan, SaveReading, SaveVersion, SetManifest, Write

from ..gate.draft import ALONE, ReplyChanges
from .judgment import Judgment

if TYPE_CHECKING:
    from agent_core.access.grants import Approvals, Grants, NewGrant
    from agent_core.base.events import FunctionsChanged
    from agent_core.base.problem import Problem
    from agent_core.registry.function import ModuleReading
    from agent_core.registry.registry import Snapshot
    from agent_core.registry.source import ModuleSource

    from ..debug import DebuggerSlot
    from ..gate import Breakage

Deed = Literal["created", "changed", "deleted"]
_NO_STAMP = (0, 0, 0)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of a file to `text` (None: deletion) if it still has the version `expected` (None: absent)."""

    path: str
    module: str
    expected: str | None
    text: str | None
    version: str | None
    reading: "ModuleReading | None"


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deleted function with its module and version; or its callers, which prevented the deletion.

    If the files in `needed_by` need its text, the text stays and is no longer offered as a function.
    """

    deleted: str | None
    name: str
    module: str = field(default="", metadata=IF_SET)
    version: str = field(default="", metadata=IF_SET)
    callers: tuple[str, ...] = field(default=(), metadata=IF_SET)
    needed_by: tuple[str, ...] = field(default=(), metadata=IF_SET)


@dataclass(frozen=True, slots=True)
class Given:
    """The grants that a function was given, and all that it now has."""

    name: str
    given: "Grants"
    grants: "Grants"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A candidate that was discarded, with its verdict."""

    name: str
    dropped: Judgment


@dataclass(frozen=True, slots=True)
class Joined:
    """The verdicts on the drafts that a person joined."""

    joined: tuple[Judgment, ...]


@dataclass(frozen=True, slots=True)
class Relocated:
    """A function with another name or in another module, and what changed with it.

    `changed` are the other functions whose text follows. The functions in `asks_again` lost what a person allowed them.
    `unread` are the places that may mean the function and were left, and what stays under the old name.
    """

    name: str
    was: str
    module: str
    was_in: str
    files: tuple[str, ...]
    changed: tuple[str, ...]
    asks_again: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


Detail: TypeAlias = Judgment | Deletion | Given | Dropped | Relocated


@dataclass(frozen=True, slots=True)
class OnceMore:
    """How a refused change is judged once more, after other changes of the same reply: those of what it `uses`."""

    uses: frozenset[str]
    judge: Callable[[ReplyChanges], Awaitable["PlannedChange"]]


@dataclass(frozen=True, slots=True)
class PlannedChange(Plan):
    """A plan for the functions: it may change a file or grants, too, and is carried out by the service.

    `also` are further files that change in the same step: all of them do, or none.
    `refused` names a candidate that is now rejected; it `is_waiting` if it calls another that was. `new_grant` is what
    a human lets a function have from now on, `one_call_grant` what its next call may have; `revoked` names a function
    that loses all grants. `breakages` are functions that it breaks until the same reply changes them. `once_more` is
    there if what comes after it in the reply may be what it lacks. `was_asked`: a person was asked about it, and
    `was_agreed`: they said yes to the change itself.
    """

    outcome: Literal["returned", "refused"] = "returned"
    detail: Detail | None = None
    change: FileChange | None = None
    also: tuple[FileChange, ...] = ()
    refused: str | None = None
    is_waiting: bool = False
    new_grant: "NewGrant | None" = None
    one_call_grant: "NewGrant | None" = None
    revoked: str = ""
    breakages: tuple["Breakage", ...] = ()
    once_more: OnceMore | None = None
    was_asked: bool = False
    was_agreed: bool = False

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """All files that it changes; a module that gives a name up comes before the one that takes it."""
        return (self.change, *self.also) if self.change else ()


def refusal(name: str, text: str, problem: "Problem | None" = None) -> PlannedChange:
    """Return the answer that nothing was changed or judged, and why."""
    problems = {"problems": [problem.to_json()]} if problem else {}
    return PlannedChange(
        text,
        "refused",
        Judgment.from_json({"name": name, "admitted": False, **problems, "error": text}),
    )


class StaleView:
    """The functions that someone else changed since an agent read them. The agent does not overwrite these."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def heard(self, changed: "FunctionsChanged") -> None:
        """Record a change by someone else."""
        self._names |= {*changed.changed}
        self._names -= {*changed.removed}

    def read(self, name: str) -> None:
        """Record that the function's text was shown."""
        self._names.discard(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a change, for the history: the user, or an agent with its turn and model; and its unseen changes.

    `approvals` and `slot` are those of the turn: who is asked about grants, and who debugs. `spend` adds the prompt and
    completion tokens of another model, by name, to the turn. `request` returns what the user asked for, for a model
    that writes functions; without it, the author's source is used. `together` are the other changes of its reply.
    """

    by: Literal["human", "agent"] = "human"
    agent: str = ""
    turn: str = ""
    model: str = ""
    unread: StaleView = field(default_factory=StaleView, compare=False)
    approvals: "Approvals | None" = field(default=None, compare=False)
    slot: "DebuggerSlot | None" = field(default=None, compare=False)
    spend: Callable[[int, int, str], None] | None = field(default=None, compare=False)
    request: Callable[[], str] | None = field(default=None, compare=False)
    together: ReplyChanges = field(default=ALONE, compare=False)


USER: Final = Author()
"""The user, outside of any turn."""


class FunctionWriter(Protocol):
    """Who writes the functions that agents ask for, in place of their own model."""

    async def write(
        self,
        name: str,
        author: Author,
        own: tuple[str, str],
        judge: Callable[[str, Author], Awaitable[PlannedChange]],
    ) -> PlannedChange:
        """Return the plan for a source that it wrote; `own` are the source and the reason that the author gave.

        `judge` returns the plan for a source of this function, as the gate sees it.
        """


@dataclass(frozen=True, slots=True)
class ChangeSummary:
    """A summary of a change: created, changed or deleted, which function, by whom and why. `done` describes it.

    `preset_grants` are grants that the user has already given. A rollback `goes_back`, even to before later examples;
    `wrote` is who wrote the restored text.
    """

    deed: Deed
    name: str
    author: Author
    reason: str = ""
    done: str = ""
    preset_grants: "Grants | None" = None
    goes_back: bool = False
    wrote: str = ""

    @property
    def writer(self) -> str:
        """Who wrote the text: the author, or for a rollback the original writer."""
        return self.wrote or self.author.by

    @property
    def said(self) -> str:
        """The phrase that describes the change in an answer."""
        return (
            self.done
            or {"created": "joined", "changed": "was changed", "deleted": "was deleted"}[self.deed]
        )


def with_once_more(
    plan: PlannedChange,
    code: str,
    author: Author,
    snapshot: "Snapshot",
    judge: Callable[[Author], Awaitable[PlannedChange]],
    uses: Collection[str] = (),
) -> PlannedChange:
    """Return a refused plan with how it is judged once more, if its author changes next what the code `uses` or names.

    What a person was asked about is judged once, so that nobody is asked again.
    """
    together = author.together
    if plan.outcome != "refused" or plan.was_asked or together.is_once_more or not together.coming:
        return plan
    reached = {*_WORD.findall(code)}
    waiting = [*reached & snapshot.functions.keys()]
    while waiting:
        near = [callee for callee in callees(waiting.pop(), snapshot) if callee not in reached]
        reached.update(near)
        waiting += near
    reached = (reached | {*uses}) & together.coming - {plan.refused}
    again = lambda now: judge(replace(author, together=now, request=None))  # noqa: E731 - it is given once
    return replace(plan, once_more=OnceMore(frozenset(reached), again)) if reached else plan


def planned(
    text: str,
    detail: Detail,
    source: "ModuleSource",
    reading: "ModuleReading | None",
    summary: ChangeSummary,
) -> PlannedChange:
    """Return the plan that changes a file from `source` (empty version: new file) to `reading` (None: deletion)."""
    expected, author = source.version or None, summary.author
    why = summary.reason or f"{summary.deed} {summary.name}"
    if reading is not None:
        new = reading.source
        change = FileChange(source.path, source.module, expected, new.text, new.version, reading)
        writes = entered(reading, expected, author, why)
    else:
        change = FileChange(source.path, source.module, expected, None, None, None)
        removed = SetManifest(source.module, expected, None, author.by, author.turn, why)
        writes = (removed, DropReading(source.path))
    did = Receipt()
    did.note(summary.deed, summary.name)
    return PlannedChange(text, "returned", detail, writes, did=did, change=change)


def entered(
    reading: "ModuleReading", expected: str | None, author: Author, why: str
) -> tuple[Write, ...]:
    """Return the writes for the new text of a module, which replaces the version `expected`."""
    now = reading.source
    saved = SaveVersion(
        now.module, now.version, now.text, author.by, author.turn, why, author.model
    )
    row = SetManifest(now.module, expected, now.version, author.by, author.turn, why)
    return saved, row, saved_reading(reading)


def saved_reading(reading: "ModuleReading") -> SaveReading:
    """Return the write that stores a reading for the next start."""
    return SaveReading(
        reading.source.path, _NO_STAMP, reading.source.version, json.dumps(reading.to_json())
    )
