"""Changes by agents that a person has to agree to: of what is pinned, and all of them where growth asks.

What does not join is kept as a draft with its verdict, and joins when the person says so.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_core.access.grants import Question
from agent_core.base.problem import Evidence, Place, Problem
from agent_core.base.records import replace
from agent_core.storage import SavePending, SetManifest

from ..gate import Candidate
from ..gate.draft import unified_diff
from .file_sync import own_text
from .judgment import Judgment, PendingCandidate, facts_of
from .pins import PinnedFunction, Pins
from .plan import Author, FileChange, PlannedChange, refusal

if TYPE_CHECKING:
    from agent_core.registry.registry import Snapshot

    from .grant_service import GrantService

GROWTH_IS_OFF = "Functions do not grow here (`growth.mode`), so nothing was changed."


class Proposals:
    """Decides which changes by agents are carried out, and keeps the others."""

    def __init__(
        self,
        pins: Pins,
        granting: "GrantService",
        snapshot: Callable[[], "Snapshot"],
    ) -> None:
        self._pins = pins
        self._granting = granting
        self._snapshot = snapshot

    async def decided(self, plan: PlannedChange, author: Author) -> PlannedChange:
        """Return the plan if it may be carried out, otherwise one that keeps it as a draft."""
        granting = self._granting.during(author.approvals)
        if author.by != "agent" or not plan.changes or plan.was_agreed:
            return plan
        snapshot = self._snapshot()
        try:
            await self._pins.require_free(plan.changes, snapshot)
        except PinnedFunction as error:
            return _kept(plan, error.code, str(error), snapshot, author)
        growth = granting.policy.growth
        if growth == "off":
            return refusal(_name_of(plan), GROWTH_IS_OFF)
        if growth == "on":
            return plan
        denied = await granting.agreed(_question(plan, snapshot))
        if not denied:
            return replace(plan, was_agreed=True)
        return _kept(plan, "needs-yes", denied, snapshot, author)


def _name_of(plan: PlannedChange) -> str:
    return plan.detail.name if plan.detail else plan.changes[0].module


def _question(plan: PlannedChange, snapshot: "Snapshot") -> Question:
    """Return the question about a change: with the source of a new function, or with what is different."""
    judgment = plan.detail if isinstance(plan.detail, Judgment) else None
    reasons = [write.reason for write in plan.writes if isinstance(write, SetManifest)]
    why = reasons[0] if reasons else ""
    diffs = "\n".join(_difference(change, snapshot) for change in plan.changes)
    if judgment is None:
        return replace(Question.of_text(_name_of(plan), diffs, "change"), why=why, diff=diffs)
    new = unified_diff("", judgment.source, plan.changes[0].path)
    diff = judgment.diff or (diffs if plan.also else new)
    question = Question.of_text(judgment.name, f"{judgment.source}\n{diff}", "join")
    return replace(question, why=why, diff=diff, facts=facts_of(judgment))


def _difference(change: FileChange, snapshot: "Snapshot") -> str:
    before = snapshot.modules.get(change.module)
    return unified_diff(before.text if before else "", change.text or "", change.path)


def _kept(
    plan: PlannedChange, code: str, why: str, snapshot: "Snapshot", author: Author
) -> PlannedChange:
    """Return the refusal of a change; a new text of one function is kept as a draft."""
    judgment = plan.detail
    name = _name_of(plan)
    if not isinstance(judgment, Judgment) or not judgment.source or plan.also:
        return replace(refusal(name, why), was_asked=True)
    change = plan.changes[0]
    fix = f"the user joins it: /join {name}"
    problem = Problem(code, why, Place(change.path), fix, evidence=(Evidence(why),))
    refused = replace(
        judgment,
        admitted=False,
        standing="",
        denied=why,
        problems=(*judgment.problems, problem),
    )
    before = own_text(name, snapshot)
    reasons = [write.reason for write in plan.writes if isinstance(write, SetManifest)]
    candidate = Candidate(name, judgment.source, change.module, reasons[0] if reasons else "")
    function = snapshot.functions.get(name)
    pending = PendingCandidate.of(candidate, function.body_hash if function else "", refused)
    kept = replace(pending, agent=author.agent or None, turn=author.turn or None)
    made = "the change" if before else "the function"
    text = f"{why}\n`{name}` passed the gate; {made} is kept as a draft, until the user joins it: /join {name}"
    return PlannedChange(
        text,
        "refused",
        refused,
        writes=(SavePending(name, kept.to_json()),),
        was_asked=True,
    )
