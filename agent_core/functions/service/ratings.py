"""Users' ratings of a function's results, and what is unproven about it: evidence in addition to examples and calls.

A rating is stored with the gate's verdict on the version, so another version starts without one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from agent_core.base.events import FunctionsChanged
from agent_core.base.settings import StandingSettings
from agent_core.base.untrusted import one_line
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.standing import Standing
from agent_core.storage import RateTurn, SaveVerdict, Store

from ..answers import DISPROVEN, UNPROVEN
from .function_facts import standing_now
from .judgment import Judgment, judgment_on
from .quarantine import Quarantine, complaint

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
