"""Tending: what the audit finds is done, as far as it is proven, and undone by one command.

Near-copies become one, what keeps failing is mended, what harms or was not called for long is archived. A person's
functions are left alone. Each change is proven by recorded calls that are made again, is one transaction with its line
in the record, and is told with its evidence.
"""

import ast
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from agent_core.base import syntax
from agent_core.base.clock import Clock
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.json_form import to_json
from agent_core.base.matching import diff_lines
from agent_core.registry.depends import callers, importers
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.storage import FAILURES, SaveTended, Store, TendedRow, UndoTended
from sandbox.wire.lines import bare_lines, lines_of

from .audit import Audit
from .call_records import is_documented
from .changes import ChangePlanner
from .file_sync import own_text
from .function_facts import measured, reach_of_function
from .maker import MOST_ATTEMPTS, FunctionMaker, RefusedAttempt, shown_refusal
from .plan import Author, PlannedChange
from .quarantine import Quarantine
from .replay import NOW, RecordedCall, Replays
from .version_history import VersionHistory

TendingKind: TypeAlias = Literal["merge", "mend", "archive"]

SAME_FAILURES: Final = 3
_MOST_REPLAYED: Final = 20
_ROUNDS: Final = 10  # of the audit, which compares some pairs each time
_SHOWN_CALLS: Final = 5  # that the maker is shown of each kind


@dataclass(frozen=True, slots=True)
class TendingStep:
    """One change: done, proposed (it is proven, and `--apply` does it), or left, with the reason in `why_not`."""

    kind: TendingKind
    function: str
    reason: str
    others: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    diff: str = ""
    done: bool = False
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class TendingReport:
    """A run of tending: its steps, what it took, and `stopped`: why it ended before all was looked at."""

    run: str
    steps: tuple[TendingStep, ...]
    tokens: int
    seconds: float
    stopped: str = ""

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the published shape."""
        spent = {"tokens": self.tokens, "seconds": round(self.seconds, 3), "stopped": self.stopped}
        return {"run": self.run, "steps": to_json(self.steps), **spent}


@dataclass(frozen=True, slots=True)
class UndoneStep:
    """A change that was taken back, or why it was not."""

    function: str
    kind: str
    undone: bool
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class TendingBudget:
    """How long tending goes on: until no more `tokens` are left, or the `minutes` are over."""

    tokens: int = 100_000
    minutes: float = 10.0


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of a file, planned when its turn comes: the ones before it have been made then."""

    function: str
    kind: Literal["changed", "deleted"]
    plan: Callable[[], Awaitable[PlannedChange]]


@dataclass(frozen=True, slots=True)
class _Proven:
    """A step that is proven, with its changes in order, or the reason why it is not."""

    step: TendingStep
    changes: tuple[_Change, ...] = ()


@dataclass(frozen=True, slots=True)
class _Job:
    """A function to be looked at, why, and the functions that it is about, too."""

    kind: TendingKind
    function: str
    reason: str
    others: tuple[str, ...] = ()


@dataclass(slots=True)
class Tending:
    """Tends the functions of a workspace. `finish` carries a plan out, and `snapshot` is the newest one."""

    store: Store
    audit: Audit
    quarantine: Quarantine
    plans: ChangePlanner
    past: VersionHistory
    replays: Replays
    snapshot: Callable[[], Snapshot]
    finish: Callable[[PlannedChange, Author | None], Awaitable[PlannedChange]]
    mender: FunctionMaker | None
    tokens: int = 0  # of models, in this run

    async def run(self, budget: TendingBudget, *, applies: bool) -> TendingReport:
        """Look at the library and do what is proven, or propose it."""
        run, began, stopped = Clock().new_id(), time.monotonic(), ""
        steps, seen, self.tokens = list[TendingStep](), set[tuple[str, str]](), 0
        for _ in range(_ROUNDS):
            merged = False
            for job in await self._jobs():
                if (job.kind, job.function) in seen or job.function not in self.snapshot().functions:
                    continue
                if stopped := self._over(budget, began):
                    break
                seen.add((job.kind, job.function))
                step = await self._tend(run, job, applies=applies)
                merged |= step.done and job.kind == "merge"
                steps.append(step)
            if stopped or not merged:
                break
        return TendingReport(run, tuple(steps), self.tokens, time.monotonic() - began, stopped)

    async def undo(self) -> list[UndoneStep]:
        """Take back all that is still there of the last run, the newest change first."""
        rows = [row for row in await self.store.tended() if not row.undone]
        return [await self._undo(row) for row in reversed(rows) if row.run == rows[-1].run]

    def _over(self, budget: TendingBudget, began: float) -> str:
        minutes = (time.monotonic() - began) / 60
        if self.tokens >= budget.tokens:
            return f"it took {self.tokens:,} tokens, of {budget.tokens:,}"
        return f"it took {minutes:.0f} minutes" if minutes >= budget.minutes else ""

    async def _undo(self, row: TendedRow) -> UndoneStep:
        if self._version(row.function) != row.after:
            return UndoneStep(row.function, row.kind, undone=False, why_not="it was changed since, and stays")
        try:
            if row.kind == "archived":
                await self.store.apply([UndoTended(row.n)])
                await self.quarantine.refresh()
            else:
                plan = await self.past.rollback(row.function, row.before, Author())
                plan = await self.finish(replace(plan, writes=(*plan.writes, UndoTended(row.n))), None)
                if plan.outcome == "refused":
                    return UndoneStep(row.function, row.kind, undone=False, why_not=plan.text)
        except KnapperError as error:
            return UndoneStep(row.function, row.kind, undone=False, why_not=str(error))
        return UndoneStep(row.function, row.kind, undone=True)

    async def _jobs(self) -> list[_Job]:
        """Return what is to be looked at now: what is alike, what keeps failing, what harms and what nobody calls."""
        findings = (await self.audit.report()).findings
        jobs = [
            _Job("merge", finding.function, finding.problem.message, finding.others)
            for finding in findings
            if finding.proposal == "merge"
        ]
        effects = await measured(self.store)
        for name, function in sorted(self.snapshot().functions.items()):
            if reason := await self._failing(function):
                jobs.append(_Job("mend", name, reason))
            effect = effects.get((name, function.body_hash))
            if effect and effect.worth == "harms":
                counts = f"{effect.shown} with it, {effect.masked} without"
                jobs.append(_Job("archive", name, f"turns that were shown it went worse ({counts})"))
        unused = [finding for finding in findings if finding.problem.code == "unused"]
        jobs += [_Job("archive", finding.function, finding.problem.message) for finding in unused]
        archived = {name for name, version in self.quarantine.archived if self._version(name) == version}
        return [job for job in jobs if job.kind != "archive" or job.function not in archived]

    async def _failing(self, function: Function) -> str:
        """Return in which way a function keeps failing, if it does."""
        kinds = await self.store.call_kinds(function.name)
        same = [kind for kind in kinds if kind.version == function.body_hash and kind.outcome in FAILURES]
        worst = max(same, key=lambda kind: kind.calls, default=None)
        if worst is None or (worst.calls < SAME_FAILURES and not self.quarantine.holds(function)):
            return ""
        return f"it ended the same way {worst.calls} times: {worst.error or worst.outcome.replace('_', ' ')}"

    def _version(self, name: str) -> str:
        function = self.snapshot().functions.get(name)
        return function.body_hash if function else ""

    async def _tend(self, run: str, job: _Job, *, applies: bool) -> TendingStep:
        step = TendingStep(job.kind, job.function, job.reason, job.others)
        try:
            match job.kind:
                case "merge":
                    proven = await self._merge(step)
                case "mend":
                    proven = await self._mend(step)
                case "archive":
                    # Prove that a function can go out of sight: nobody calls it, and no person has anything to do with
                    # it.
                    users = callers(step.function, self.snapshot())
                    why = f"`{users[0]}` calls it" if users else await self._why_protected(step.function)
                    proven = _Proven(replace(step, why_not=why, evidence=("no function calls it",)))
            return proven.step if proven.step.why_not or not applies else await self._apply(run, proven)
        except KnapperError as error:
            return replace(step, why_not=str(error))

    async def _apply(self, run: str, proven: _Proven) -> TendingStep:
        """Carry a step out. If one of its changes fails, those before it are taken back."""
        step = proven.step
        if step.kind == "archive":
            version = self._version(step.function)
            await self.store.apply([SaveTended(run, step.function, "archived", version, version, step.reason)])
            await self.quarantine.refresh()
        done: list[str] = []
        why = ""
        for change in proven.changes:
            try:
                why = await self._make(run, change, step.reason)
            except KnapperError as error:
                why = str(error)
            if why:
                break
            done.append(change.function)
        if why:
            rows = [row for row in await self.store.tended() if row.run == run and not row.undone]
            for row in rows[len(rows) - len(done) :][::-1]:
                await self._undo(row)
            return replace(step, why_not=why)
        return replace(step, done=True)

    async def _make(self, run: str, change: _Change, reason: str) -> str:
        """Make one change with its line in the record, in one transaction; return why it was refused, if it was."""
        plan, before = await change.plan(), self._version(change.function)
        reading = plan.change.reading if plan.change else None
        after = [own.body_hash for own in reading.functions if own.name == change.function] if reading else []
        line = SaveTended(run, change.function, change.kind, before, "".join(after), reason)
        plan = await self.finish(replace(plan, writes=(*plan.writes, line)), Author("agent"))
        return plan.text if plan.outcome == "refused" or plan.change is None else ""

    async def _why_protected(self, *names: str) -> str:
        """Return why functions are left alone: a person wrote or changed one, or keeps it at hand."""
        pinned = await self.store.pinned()
        for name in names:
            if name in pinned:
                return f"`{name}` is kept at hand"
            if any(version.row.by == "human" for version in await self.past.versions(name)):
                return f"a person wrote or changed `{name}`"
        return ""

    async def _merge(self, step: TendingStep) -> _Proven:
        """Prove that one of two functions can take the place of the other, which is deleted."""
        snapshot, left, kept = self.snapshot(), step.function, step.others[0]
        left, kept = (kept, left) if await self._why_protected(left) else (left, kept)
        step, users = replace(step, function=left, others=(kept,)), callers(left, snapshot)
        if why := await self._why_protected(left, *users):
            return _Proven(replace(step, why_not=why))
        if why := _mismatch(left, kept, snapshot):
            return _Proven(replace(step, why_not=why))
        calls = [call for call in await self._repeatable(left) if call.outcome == "returned"]
        for call in calls:
            if not (await self.replays.replay(call.call, NOW, function=kept)).same:
                return _Proven(replace(step, why_not=f"`{kept}` does not return the same for the call {call.call}"))
        evidence = [
            f"both give the same results on the examples of both, and for {len(calls)} recorded calls of `{left}`"
        ]
        changes = []
        for user in users:
            plan = await self._rewrite_caller(user, left, kept)
            draft, count = _with(snapshot, plan), 0
            for call in await self._repeatable(user):
                count += 1
                if not (await self.replays.replay(call.call, NOW, on=draft, renamed={left: kept})).same:
                    return _Proven(replace(step, why_not=f"`{user}` would answer the call {call.call} otherwise"))
            evidence.append(f"`{user}` calls `{kept}` in its place, with the same results for {count} recorded calls")
            changes.append(_Change(user, "changed", partial(self._rewrite_caller, user, left, kept)))
        changes.append(_Change(left, "deleted", partial(self.plans.delete, left, Author("agent"))))
        return _Proven(replace(step, evidence=tuple(evidence)), tuple(changes))

    async def _rewrite_caller(self, user: str, left: str, kept: str) -> PlannedChange:
        """Plan a caller that calls another function in place of one.

        Raises:
            UsageError: it does so in a way that is not rewritten, or the gate refuses it.
        """
        snapshot = self.snapshot()
        is_near = snapshot.functions[user].module == snapshot.functions[kept].module
        source = _calling(own_text(user, snapshot) or "", left, kept, by_name=is_near)
        if source is None:
            raise UsageError(f"`{user}` uses `{left}` in a way that is not rewritten.")
        plan = await self.plans.replace(user, source, "", Author("agent"), f"tend: `{kept}` for `{left}` in")
        if plan.outcome == "refused":
            raise UsageError(plan.text)
        return plan

    async def _mend(self, step: TendingStep) -> _Proven:
        """Have a model write a fix, and prove it: good calls return the same, and those that failed do not fail so."""
        name, snapshot = step.function, self.snapshot()
        if why := await self._why_protected(name):
            return _Proven(replace(step, why_not=why))
        calls = await self._repeatable(name)
        good = [call for call in calls if call.outcome == "returned"]
        bad = [call for call in calls if call.outcome in FAILURES]
        if not bad:
            return _Proven(replace(step, why_not="no recorded call fails now as it did then"))
        if self.mender is None:
            return _Proven(replace(step, why_not="there is no model that could write a fix"))
        facts = [("The function as it is", own_text(name, snapshot) or ""), ("What is to be done", _MEND + step.reason)]
        facts += [("Calls that fail", _told(bad)), ("Calls that must return the same as now", _told(good))]
        attempts: list[RefusedAttempt] = []
        for _ in range(MOST_ATTEMPTS):
            written = await self.mender.write(name, facts, attempts)
            self.tokens += written.prompt_tokens + written.completion_tokens
            if written.error:
                return _Proven(replace(step, why_not=f"{written.model} wrote no fix: {written.error}"))
            # No reason is given: a fix may lose no example, no check and no use that something was granted for.
            author = Author("agent", model=written.model)
            plan = await self.plans.replace(name, written.source, "", author, "tend: mended")
            why = shown_refusal(plan) if plan.outcome == "refused" else await self._why_unproven(name, plan, good, bad)
            if not why:
                evidence = (f"{len(bad)} calls that failed no longer do", f"{len(good)} good calls return the same")
                return _Proven(
                    replace(step, evidence=evidence, diff=_diff(snapshot, plan, name)),
                    (_Change(name, "changed", partial(_same, plan)),),
                )
            attempts.append(RefusedAttempt(written.source, why))
        return _Proven(replace(step, why_not=f"no fix of {MOST_ATTEMPTS} was proven; the last: {why}"))

    async def _why_unproven(
        self, name: str, plan: PlannedChange, good: Sequence[RecordedCall], bad: Sequence[RecordedCall]
    ) -> str:
        """Return which recorded call speaks against a fix, if any does."""
        draft = _with(self.snapshot(), plan)
        for call in good:
            replayed = await self.replays.replay(call.call, NOW, on=draft)
            if not replayed.same:
                return f"the good call {call.call}, {call.arguments}, ends otherwise: {replayed.difference}"
        for call in bad:
            outcome = (await self.replays.replay(call.call, NOW, on=draft)).outcome
            documented = outcome.error is not None and is_documented(outcome.error.type, draft.functions[name], draft)
            if outcome.outcome != "returned" and not (outcome.outcome == "raised" and documented):
                return f"the call {call.call}, {call.arguments}, still fails: {outcome.outcome} {outcome.error or ''}"
        return ""

    async def _repeatable(self, name: str) -> list[RecordedCall]:
        """Return the newest recorded calls of a function that end now as they did: others prove nothing."""
        calls = await self.replays.calls(name)
        return [call for call in calls[:_MOST_REPLAYED] if (await self.replays.replay(call.call, NOW)).same]


_MEND: Final = "Fix it, and nothing else: keep its signature, its examples and what it returns for other calls. "


async def _same(plan: PlannedChange) -> PlannedChange:
    return plan


def _with(snapshot: Snapshot, plan: PlannedChange) -> Snapshot:
    """Return the functions as they are after a plan."""
    assert plan.change is not None
    assert plan.change.reading is not None, "no plan of a replacement deletes a file"
    return snapshot.with_module(plan.change.reading)


def _diff(snapshot: Snapshot, plan: PlannedChange, name: str) -> str:
    before, after = own_text(name, snapshot) or "", own_text(name, _with(snapshot, plan)) or ""
    return "\n".join(diff_lines(bare_lines(before), bare_lines(after), ("now", "fixed"), 2))


def _told(calls: Sequence[RecordedCall]) -> str:
    return "\n".join(f"{call.function} {call.arguments} {call.ended}" for call in calls[:_SHOWN_CALLS])


def _mismatch(left: str, kept: str, snapshot: Snapshot) -> str:
    """Return why recorded calls cannot prove that a function stands for another, by what their texts say."""
    functions = snapshot.functions[left], snapshot.functions[kept]
    if words := [word for function in functions for word in reach_of_function(function, snapshot)]:
        return f"more than their arguments decides what they do: {words[0]}"
    if _shape(functions[0]) != _shape(functions[1]):
        return "their arguments differ"
    importing = importers(left, snapshot)
    return f"the module {importing[0]} imports `{left}` by name" if importing else ""


def _shape(function: Function) -> object:
    """Return what a caller must know of a function's arguments."""
    parameters = function.parameters
    kinds = [
        (name, {key: value for key, value in part.items() if key != "description"})
        for name, part in parameters.get("properties", {}).items()
    ]
    return kinds, sorted(parameters.get("required", ())), function.rest, function.extra


def _calling(source: str, old: str, new: str, *, by_name: bool) -> str | None:
    """Return a source that calls another function; None if it uses the old one in a way that cannot be rewritten."""
    places: list[tuple[ast.expr, str]] = []
    for node in ast.walk(syntax.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="call"), args=[ast.Constant(value=str(name)) as first, *_]) if (
                name == old
            ):
                places.append((first, f'"{new}"'))
            case ast.Name(id=name) if name == old:
                if not by_name or not isinstance(node.ctx, ast.Load):
                    return None
                places.append((node, new))
            case ast.Attribute(attr=name) if name == old:
                return None
    lines = [line.encode() for line in lines_of(source)]
    for place, text in sorted(places, key=lambda pair: (pair[0].lineno, pair[0].col_offset), reverse=True):
        line = lines[place.lineno - 1]
        lines[place.lineno - 1] = line[: place.col_offset] + text.encode() + line[place.end_col_offset or 0 :]
    return b"".join(lines).decode()
