"""From a candidate to a plan: the gate's verdict, the ratchet of examples, and what is kept of both.

An admitted candidate is a plan with the new text of its file and its rows; a refused one is kept as pending.
"""

from dataclasses import replace

from ..gate import Candidate, Gate, Policy, Verdict
from ..gate.confirm import with_returned_values
from ..gate.examples.example_text import with_example
from ..gate.trial import Granted
from ..problem import Place, Problem
from ..registry.function import Function, Reading
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source, path_of
from ..storage import DropPending, SavePending, SaveVerdict, Store
from . import ratchet, telling
from .granting import Allowance, Granting, ungranted
from .plan import Plan, Work, planned

_ENOUGH = 2  # examples in a docstring, from which on it needs none of those that were given beside it
_MOST_GIVEN = 8
_UNPROVEN = frozenset({"example-disagrees", "example-raises", "example-hangs", "example-stopped"})


class Judging:
    """Has candidates judged, and plans what follows from it."""

    def __init__(self, store: Store, gate: Gate, granting: Granting) -> None:
        self.gate = gate
        self._granting = granting
        self._store = store

    async def judged(
        self, candidate: Candidate, snapshot: Snapshot, work: Work, policy: Policy = "agent", around: str | None = None
    ) -> Plan:
        """The plan for a candidate; `around` is the module's text that it goes into, if not what is there now."""
        ground = _with_text(snapshot, candidate.module, around)
        granted = await self._granting.ungranted(ground)
        verdict = await self.gate.judge(candidate, ground, policy, granted=granted)
        allowance = Allowance()
        if self._granting.asks(verdict, work):
            allowance = await self._granting.for_candidate(verdict, ground, work)
            if allowance.grants:
                owner = f"{candidate.module}.{candidate.name}"
                granted = await self._granting.granted(allowance.grants, ground, owner)
                verdict = await self.gate.judge(candidate, ground, policy, granted=granted)
        if candidate.examples and verdict.admitted:
            candidate, verdict = await self._with_given(candidate, verdict, ground, policy, granted)
        return await self.plan(candidate, verdict, snapshot, work, allowance)

    async def plan(
        self, candidate: Candidate, verdict: Verdict, snapshot: Snapshot, work: Work, allowance: Allowance | None = None
    ) -> Plan:
        """The plan for a candidate that has been judged, with what a human let it have."""
        allowance = allowance or Allowance()
        before = snapshot.functions.get(verdict.name)
        if verdict.admitted and any(problem.code in _UNPROVEN for problem in verdict.problems):
            verdict = replace(verdict, standing="draft")  # a human may keep it, but nothing has proven it
        verdict = held_to_examples(candidate, verdict, before, work)
        if allowance.denied:
            verdict = ungranted(verdict, allowance.denied, candidate.path)
        if not verdict.admitted or verdict.module_text is None:
            return await self._refused(candidate, verdict, before, allowance)
        held = snapshot.modules.get(verdict.module)
        path = held.path if held else path_of(verdict.module)
        reading = verdict.reading or read_module(Source.of(verdict.module, verdict.module_text, path))
        function = _named(reading, verdict.name)
        assert function is not None
        verdict = replace(verdict, confirmed=await confirmed(self._store, verdict.confirmed, before, function))
        said = {**verdict.to_json(), "by": work.author.by}
        writes = (SaveVerdict(function.body_hash, verdict.name, said), DropPending(verdict.name))
        source = held or Source(verdict.module, path, "", "")
        plan = planned(telling.admitted(verdict, function, work.said), verdict.to_json(), source, reading, work)
        plan = replace(plan, writes=(*plan.writes, *writes), lent=allowance.lent)
        return replace(plan, giving=allowance.giving, text="\n".join([plan.text, *telling.granted(allowance.grants)]))

    async def _with_given(
        self, candidate: Candidate, verdict: Verdict, snapshot: Snapshot, policy: Policy, granted: Granted
    ) -> tuple[Candidate, Verdict]:
        """Both with the given examples, which agreed, in the docstring where it has too few: they are kept there."""
        function = _named(verdict.reading, verdict.name)
        text = verdict.source
        if function is None or len({example.call for example in function.examples}) >= _ENOUGH:
            return candidate, verdict
        for given in candidate.examples[:_MOST_GIVEN]:
            if ratchet.holds(function, given.call) is None:
                more = with_example(text, candidate.name, given.call, given.expected)
                text = text if isinstance(more, Problem) else more
        kept = replace(candidate, code=text, examples=(), exact=True)
        after = await self.gate.judge(kept, snapshot, policy, granted=granted)
        if after.can_be_confirmed:  # results that agree within a tolerance are written as they came back
            kept = replace(kept, code=with_returned_values(kept, after).code)
            after = await self.gate.judge(kept, snapshot, policy, granted=granted)
        return (kept, replace(after, mends=verdict.mends)) if after.admitted else (candidate, verdict)

    async def _refused(
        self, candidate: Candidate, verdict: Verdict, before: Function | None, allowance: Allowance
    ) -> Plan:
        kept = await self._store.pending(candidate.name)
        sent = {"code": candidate.code, "module": candidate.module, "reason": candidate.reason}
        again = kept is not None and {key: kept[key] for key in sent} == sent
        pending = {
            **sent,
            "over": before.body_hash if before else "",
            "examples": [[each.call, each.expected, each.approx] for each in candidate.examples],
            "verdict": verdict.to_json(),
        }
        said, denied = telling.refused(verdict, again=again, replaces=candidate.replaces), allowance.denied
        if allowance.is_human:  # what they said is all that matters now
            said = telling.not_done(verdict, replaces=candidate.replaces)
        changed = [one for one in verdict.disagreements if ratchet.holds(before, one.call)]
        promised = telling.promised(changed) if verdict.can_be_confirmed and not candidate.reason else ""
        return Plan(
            "\n".join(filter(None, [said, promised, denied, telling.source_of_pending(verdict)])),
            "refused",
            {**verdict.to_json(), **({"denied": denied} if denied else {})},
            writes=(SavePending(candidate.name, pending),),
            refused=candidate.name,
            excluded=telling.excluded(verdict, again=again),
        )


async def confirmed(store: Store, anew: tuple[str, ...], before: Function | None, after: Function) -> tuple[str, ...]:
    """The calls of a version whose results were taken as they came back: now, or earlier and kept since."""
    calls = [*anew]
    for earlier in filter(None, (before, after)):
        verdict = await store.verdict(earlier.body_hash, earlier.name) or {}
        calls += ratchet.still_there(verdict.get("confirmed") or (), earlier, after)
    return tuple(dict.fromkeys(calls))


def held_to_examples(candidate: Candidate, verdict: Verdict, before: Function | None, work: Work) -> Verdict:
    """The verdict with what is to be said of examples that the version before had."""
    after = _named(verdict.reading, verdict.name)
    is_reasoned = bool(candidate.reason) or work.author.by == "human"
    found = ratchet.problem(before, after, "warns" if is_reasoned else "refuses", Place(candidate.path))
    if found is None:
        return verdict
    problems = (*verdict.problems, found)
    if found.severity == "warns":
        return replace(verdict, problems=problems)
    stages = tuple(replace(one, passed=False) if one.stage == "examples" else one for one in verdict.stages)
    return replace(verdict, admitted=False, standing="", problems=problems, stages=stages)


def _named(reading: Reading | None, name: str) -> Function | None:
    return next((each for each in reading.functions if each.name == name), None) if reading else None


def _with_text(snapshot: Snapshot, module: str, text: str | None) -> Snapshot:
    held = snapshot.modules.get(module)
    if held is None or text is None or text == held.text:
        return snapshot
    return snapshot.with_module(read_module(Source.of(module, text, held.path)))
