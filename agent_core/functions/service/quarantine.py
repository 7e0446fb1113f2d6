"""Evidence of use against functions: those in quarantine, hidden because they kept failing, and users' ratings.

The quarantine has names, reasons, and the way out. It also knows functions that a human called bad, a note that the
model reads with them, and functions that tending archived: these are no longer shown, but can be found and called.
A rating is stored with the gate's verdict on the version, so another version starts without one.

Entries are (function, version), so that another version is free at once. What another process records takes effect at
the next turn.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_core.base.errors import UsageError
from agent_core.base.events import FunctionsChanged, Quarantined
from agent_core.base.settings import StandingSettings
from agent_core.base.untrusted import fence, one_line
from agent_core.registry.function import Function
from agent_core.registry.registry import Snapshot
from agent_core.storage import FAILURES, CallOwners, RateTurn, ReleaseFunction, SaveVerdict, Store

from ..answers import DISPROVEN, UNPROVEN
from .function_facts import Standing, is_quarantined, standing_now
from .history import SHORT
from .judgment import Judgment, judgment_on

if TYPE_CHECKING:
    from agent_core.registry.registry import Registry


_REASONS = 3


@dataclass(frozen=True, slots=True)
class Released:
    """A released function, with its module and version."""

    released: str
    module: str
    version: str


class Quarantine:
    """The quarantine, with an in-memory index that saves a query per call."""

    def __init__(self, store: Store, registry: "Registry", standing: "StandingSettings") -> None:
        self.held: frozenset[tuple[str, str]] = frozenset()
        self.archived: frozenset[tuple[str, str]] = frozenset()
        self.complaints: Mapping[tuple[str, str], str] = {}
        self._store = store
        self._registry = registry
        self._standing = standing

    def holds(self, function: "Function") -> bool:
        """Return whether this version of the function is in quarantine."""
        return (function.name, function.body_hash) in self.held

    def hides(self, function: "Function") -> bool:
        """Return whether this version of the function is not shown: it is in quarantine, or archived."""
        return (function.name, function.body_hash) in self.held | self.archived

    async def refresh(self) -> None:
        """Reload the quarantine, at the start and before each turn."""
        self.held = await self._failing()
        rows = await self._store.tended()
        self.archived = frozenset(
            (row.function, row.after) for row in rows if row.kind == "archived" and not row.undone
        )
        self.complaints = {pair: complaint(note) for pair, note in (await self._store.complaints()).items()}

    async def entered(self, names: set[str], owners: CallOwners = None) -> list[Quarantined]:
        """Return the functions that entered quarantine with their last failed calls, described as in `case`."""
        fresh = {pair for pair in await self._failing() - self.held if pair[0] in names}
        if not fresh:
            return []
        self.held |= fresh
        functions = self._registry.snapshot().functions.values()
        return [
            await self.case(function, owners) for function in functions if (function.name, function.body_hash) in fresh
        ]

    async def case(self, function: "Function", owners: CallOwners = None) -> Quarantined:
        """Return why a function is in quarantine, the last version that worked, and the user's options.

        For failures in calls that are not of `owners`, only the kind is disclosed, because messages may contain
        arguments.
        """
        name, version = function.name, function.body_hash
        calls = await self._store.recent_calls(name)
        failures = [call for call in calls if call.version == version and call.outcome in FAILURES]
        if owners is not None:
            theirs = {*await self._store.recent_calls(name, owners)}
            failures = [call if call in theirs else replace(call, message="") for call in failures]
        # The version that returned most recently; versions that are not in quarantine come first.
        worked = max(
            (row for row in await self._store.call_stats(name) if row.worked is not None),
            key=lambda row: (not is_quarantined(row, self._standing), row.worked or 0.0),
            default=None,
        )
        others = {judged_version for of, judged_version in await self._store.judged_at() if of == name} - {version}
        to = f" {worked.version[:SHORT]}" if worked and worked.version in others else ""
        back = (f"rollback {name}{to}",) if others else ()
        kinds = Counter[str]()
        for call in failures[: max(self._standing.quarantine_failures, 1)]:
            parts = filter(None, (call.error or call.outcome.replace("_", " "), call.message))
            kinds[one_line(": ".join(parts), 120)] += 1
        return Quarantined(
            turn="",
            name=name,
            version=version,
            failures=tuple(f"{text} ({times} ×)" if times > 1 else text for text, times in kinds.most_common(_REASONS)),
            worked_version=worked.version if worked else "",
            worked_at=worked.worked if worked else None,
            ways=(*back, f"release {name}"),
        )

    async def refusal(self, function: "Function", owners: CallOwners = None) -> str:
        """Return the answer to a model that calls a function in quarantine, with the facts of `case`."""
        case = await self.case(function, owners)
        return f"`{case.name}` was not called: it is quarantined, because it kept failing: {_advice(case)}"

    async def release(self, function: "Function") -> Released:
        """Release a function from quarantine by the user's decision. Its failures are counted from zero again.

        Raises:
            UsageError: it is not in quarantine.
        """
        pair = (function.name, function.body_hash)
        if pair not in await self._failing():
            raise UsageError(f"`{function.name}` is not quarantined.", fix="See the list.")
        await self._store.apply([ReleaseFunction(*pair)])
        self.held -= {pair}
        return Released(function.name, function.module, function.body_hash)

    async def _failing(self) -> frozenset[tuple[str, str]]:
        failures = self._standing.quarantine_failures
        return await self._store.failing(failures) if failures else frozenset()


def complaint(note: str) -> str:
    """Return the sentence for the model about a function that a human called bad."""
    why = f": {one_line(note, 400)}" if note else ""
    return f"the user found a result of it wrong{why}"


def told(quarantined: Quarantined) -> str:
    """Return the notice to the model that a function is hidden from it."""
    told = f"`{quarantined.name}` kept failing and is quarantined: you are not shown it any more."
    return f"{told} Last: {_advice(quarantined)}"


def _advice(quarantined: Quarantined) -> str:
    lately = "; ".join(fence(failure, 160) for failure in quarantined.failures)
    back = "go back with rollback_function, " if len(quarantined.ways) > 1 else ""
    fix = f"Look at it with introspect_function, fix it with edit_function, {back}or do without it"
    return f"{lately}. {fix} and tell the user."


_LONGEST = 400
_DISAGREE = frozenset({"example-disagrees", "example-raises"})
PRAISE = "the user found its results wrong before, and takes that back: they are right"
"""The sentence for the model about a function that a human first called bad and then good."""


@dataclass(frozen=True, slots=True)
class Rated:
    """A function that a human rated, its new standing, and what is still unproven."""

    name: str
    thumb: str
    standing: Standing
    doubts: tuple[str, ...]


class Ratings:
    """The ratings by humans, and an index of proven functions that saves a query per call."""

    def __init__(
        self,
        store: Store,
        standing: StandingSettings,
        quarantine: Quarantine,
        tell: Callable[[FunctionsChanged], None],
    ) -> None:
        self._store = store
        self._standing = standing
        self._quarantine = quarantine
        self._tell = tell
        self._snapshot: Snapshot | None = None
        self._proven: set[str] = set()

    async def rate(self, function: Function, snapshot: Snapshot, *, is_good: bool, note: str = "") -> Rated:
        """Store a human's rating of a function's results; the agent is notified of a bad one and of its withdrawal."""
        verdict = await judgment_on(self._store, function.body_hash, function.name)
        names = {"name": function.name, "module": function.module, "admitted": True, "by": "human"}
        was_bad = verdict is not None and verdict.thumb == "bad"
        verdict = replace(verdict or Judgment.from_json(names), thumb="good" if is_good else "bad", note=note)
        about_turn = RateTurn(function.name, function.body_hash, is_good)
        await self._store.apply([SaveVerdict(function.body_hash, function.name, verdict.to_json()), about_turn])
        self._snapshot = None
        await self._quarantine.refresh()
        if not is_good or was_bad:
            noted = PRAISE if is_good else complaint(note)
            self._tell(FunctionsChanged(turn="", by="user", noted={function.name: noted}))
        rows = await self._store.call_stats(function.name)
        now = standing_now(snapshot, function, verdict, rows, self._standing)
        return Rated(function.name, verdict.thumb, now, verdict.doubts)

    async def unproven(self, function: Function, snapshot: Snapshot) -> str:
        """Return the note to show with a result of this function; empty if the function is proven."""
        if self._snapshot is not snapshot:
            self._snapshot, self._proven = snapshot, set()
        if bad := self._quarantine.complaints.get((function.name, function.body_hash)):
            return f"[unproven: {bad}]"
        if function.name in self._proven:
            return ""
        verdict = await judgment_on(self._store, function.body_hash, function.name)
        if verdict and verdict.doubts:
            return f"[unproven: {one_line('; '.join(verdict.doubts), _LONGEST)}]"
        is_proven = verdict is not None and verdict.standing == "trial"
        rows = [] if is_proven else await self._store.call_stats(function.name)
        is_draft = standing_now(snapshot, function, verdict, rows, self._standing) == "draft"
        if not is_draft and self._snapshot is snapshot:
            self._proven.add(function.name)
        if not is_draft:
            return ""
        disagrees = verdict is not None and any(problem.code in _DISAGREE for problem in verdict.problems)
        return DISPROVEN if disagrees else UNPROVEN
