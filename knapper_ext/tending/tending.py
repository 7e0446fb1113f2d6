"""Tending: the library maintains itself with changes that are proven, and one command undoes them.

Near copies are merged, and so are functions that differ only in literals. Functions that keep failing are fixed,
harmful or unused ones are archived, repeated programs become functions, and descriptions that requests miss are
reworded. Functions of a person are left alone. Each change is proven by replaying recorded calls or by recorded
requests, is one transaction with its line in the record, and is reported with its evidence.
"""

import ast
import asyncio
import builtins
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Container,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, Final, Literal, TypeAlias

from agent_core.access.grants import NOTHING
from agent_core.base import syntax
from agent_core.base.clock import Clock
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.matching import diff_lines
from agent_core.base.offload import aside
from agent_core.base.problem import Place
from agent_core.base.records import dataclass, field, replace, to_json
from agent_core.functions.gate import Candidate, Gate, GivenExample
from agent_core.functions.gate.capability import reach_of_function
from agent_core.functions.gate.clones import differing, special_ones
from agent_core.functions.gate.examples import with_words
from agent_core.functions.program_text import SeenProgram
from agent_core.functions.search import COUNT, FunctionSearch
from agent_core.functions.service import history
from agent_core.functions.service.call_records import is_documented
from agent_core.functions.service.changes import ChangePlanner
from agent_core.functions.service.example_regression import proved_problems
from agent_core.functions.service.file_sync import own_text
from agent_core.functions.service.function_facts import Quarantine
from agent_core.functions.service.pins import Pins
from agent_core.functions.service.plan import USER, Author, PlannedChange, Relocated
from agent_core.functions.service.relocation import (
    RelocationPlanner,
    composed,
    placed,
    replaced,
    without,
)
from agent_core.functions.service.replay import NOW, RecordedCall, Replays
from agent_core.functions.service.version_history import (
    VersionHistory,
    candidate_of,
    with_own_helpers,
)
from agent_core.registry.depends import callers, importers
from agent_core.registry.function import Function, first_sentence, fits
from agent_core.registry.references import redirected_call
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from agent_core.storage import (
    FAILURES,
    SaveReading,
    SaveTended,
    SaveVersion,
    SetManifest,
    Store,
    TendedRow,
    UndoTended,
)
from sandbox.wire.lines import bare_lines

from .audit import Audit
from .maker import MAX_ATTEMPTS, MAX_CALLABLE, FunctionMaker, callable_functions, shown_refusal

TendingKind: TypeAlias = Literal["merge", "mend", "archive", "generalize", "keep", "reword"]
Special: TypeAlias = Mapping[str, tuple[str, ...]]
"""Functions that differ only in literals, each with its literals."""
Judge: TypeAlias = Callable[[str, Author], Awaitable[tuple[PlannedChange, str]]]
"""Judges a source that a model wrote: returns its plan, and the objection if the gate has none."""

SAME_FAILURES: Final = 3
AGENT: Final = Author("agent")
_ROUNDS: Final = 10  # of the audit, each of which compares some pairs
_MAX_CALLS: Final = 5  # recorded calls of each kind that the maker is shown
_MAX_SPECIAL: Final = 8  # functions that are merged into one at once
_MEND: Final = "Fix it, and nothing else: keep its signature, its examples and what it returns for other calls. "
_GENERAL: Final = (
    "They differ in literals alone. Write one function that does what each of them does. Its parameters are theirs, by"
    " the same names, then one for each thing in which they differ, in this order:"
)
_KEEP: Final = (
    "Write it as one function, which returns what the program says at its end. It calls the workspace's functions by"
    " `from functions.MODULE import NAME`, or self.call. Its parameters are what differs, one for each, in this order:"
)
_REWORD: Final = (
    "Reword its docstring, so that a search by the requests below finds it, and not what they find now: say what it is"
    " for, in sentences that are true of it. Keep its parameters and its examples; the code stays as it is."
)
_NOTHING: Final = PlannedChange("")
_TEXT_ROWS: Final = (SaveVersion, SetManifest, SaveReading)


@dataclass(frozen=True, slots=True)
class TendingStep:
    """One change: done, proposed (proven, `--apply` carries it out), or rejected for the reason in `why_not`."""

    kind: TendingKind
    function: str
    reason: str
    others: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    diff: str = ""
    done: bool = False
    why_not: str = ""

    @property
    def told(self) -> str:
        """The note for users who did not ask: a change that no list of functions shows, or a proposal."""
        if self.why_not or (self.done and self.kind != "archive"):
            return ""
        way = (
            "archived by tending"
            if self.done
            else f"tending proposes to {self.kind} it (functions tend shows it)"
        )
        return f"{way}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TendingReport:
    """A run of tending: its steps, its cost, and in `stopped` why something was not tried."""

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
    """A change that was undone, or why it was not."""

    function: str
    kind: str
    undone: bool
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class TendingBudget:
    """The limits of one run: it asks no model once the `tokens` are used up, and ends when the `minutes` are over."""

    tokens: int = 100_000
    minutes: float = 10.0


@dataclass(frozen=True, slots=True)
class _Proven:
    """A step that is proven, with its plan, or the reason why it is not."""

    step: TendingStep
    plan: PlannedChange | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    """A task: a function, the reason, and other functions that it concerns; or the runs of a program to keep."""

    kind: TendingKind
    function: str
    reason: str
    others: tuple[str, ...] = ()
    special: Special = field(default_factory=dict)
    runs: Sequence[SeenProgram] = ()

    def key(self, snapshot: Snapshot) -> tuple[object, ...]:
        """Return the identity of the job, including the current versions of its functions."""
        versions = [
            snapshot.functions[name].body_hash for name in (self.function, *self.others) if name
        ]
        code = self.runs[-1].code if self.runs else ""
        return self.kind, self.function, self.others, *versions, code, len(self.runs)


@dataclass(slots=True)
class Tending:
    """The tending of a workspace's functions. `finish` carries out a plan, `snapshot` returns the newest snapshot.

    It applies changes only where a person said so for this run, or where functions grow by themselves.
    """

    store: Store
    audit: Audit
    gate: Gate
    quarantine: Quarantine
    plans: ChangePlanner
    relocations: RelocationPlanner
    history: VersionHistory
    replays: Replays
    snapshot: Callable[[], Snapshot]
    finish: Callable[[PlannedChange, Author], Awaitable[PlannedChange]]
    mender: FunctionMaker | None
    search: FunctionSearch
    repeated: Callable[[], Awaitable[Sequence[Sequence[SeenProgram]]]]
    granted_names: Callable[
        [], Awaitable[Container[str]]
    ]  # functions that a person granted something
    file_patterns: Callable[
        [], Mapping[str, str]
    ]  # names and patterns in files of agents, groups and helpers
    pins: Pins
    tokens: int = 0  # used by models in this run
    seen: set[tuple[object, ...]] = field(
        default_factory=set
    )  # keys of jobs that earlier runs have done

    async def run(
        self, budget: TendingBudget, *, applies: bool, repeats: bool = True
    ) -> TendingReport:
        """Audit the library, and carry out or propose what is proven; `repeats` includes the jobs of earlier runs."""
        run = Clock().new_id()
        began = time.monotonic()
        stopped = ""
        is_late = False
        ends = began + budget.minutes * 60
        steps = list[TendingStep]()
        seen = set[tuple[object, ...]]()
        self.tokens = 0
        for _ in range(_ROUNDS):
            merged = False
            async for job in self._jobs():
                if (
                    not {name for name in (job.function, *job.others) if name}
                    <= self.snapshot().functions.keys()
                ):
                    continue
                key = job.key(self.snapshot())
                if (
                    (key[:2] in seen and not job.runs)
                    or key in seen
                    or (key in self.seen and not repeats)
                ):
                    continue
                if (left_s := ends - time.monotonic()) <= 0:
                    stopped = f"it took {budget.minutes:g} minutes"
                    is_late = True
                    break
                if self.tokens >= budget.tokens and job.kind not in ("merge", "archive"):
                    stopped = f"it took {self.tokens:,} tokens, of {budget.tokens:,}"
                    continue
                seen |= {key[:2], key}
                step = await self._tend(f"{run}/{len(steps)}", job, left_s, applies=applies)
                if time.monotonic() < ends:  # otherwise it is due again
                    self.seen.add(key)
                merged |= step.done and job.kind == "merge"
                steps.append(step)
            if is_late or not merged:
                break
        return TendingReport(run, tuple(steps), self.tokens, time.monotonic() - began, stopped)

    async def undo(self, name: str = "") -> list[UndoneStep]:
        """Undo the changes of the last run, the newest first; with a name, those of the last step with this function.

        Raises:
            UsageError: no step changed the function with this name.
        """
        rows = [row for row in await self.store.tended() if not row.undone][::-1]
        steps = dict[str, list[TendedRow]]()
        for row in rows:
            steps.setdefault(row.run, []).append(row)
        if name:
            mark = next((row.run for row in rows if row.function == name), None)
            if mark is None:
                why = f"Tending changed no `{name}`, or it was undone."
                raise UsageError(why, fix="Nothing was changed.")
            return await self._undo(steps[mark])
        last_run = rows[0].run.partition("/")[0] if rows else ""
        return [
            undone
            for mark, step in steps.items()
            if mark.partition("/")[0] == last_run
            for undone in await self._undo(step)
        ]

    async def _undo(self, rows: Sequence[TendedRow]) -> list[UndoneStep]:
        """Undo all changes of one step, or none."""
        why = ""
        writes = tuple(UndoTended(row.n) for row in rows)
        try:
            for row in rows:
                if self._version(row.function) != row.after:
                    raise UsageError(f"`{row.function}` was changed since, and stays")
            if rows[0].kind == "archived":
                await self.store.apply(writes)
                await self.quarantine.refresh()
            else:
                plan = await self._plan_back(rows)
                plan = await self.finish(replace(plan, writes=(*plan.writes, *writes)), USER)
                why = plan.text if plan.outcome == "refused" else ""
        except KnapperError as error:
            why = str(error)
        return [UndoneStep(row.function, row.kind, not why, why) for row in rows]

    async def _plan_back(self, rows: Sequence[TendedRow]) -> PlannedChange:
        """Plan the texts that functions had before a step."""
        snapshot = self.snapshot()
        texts = dict[str, str | None]()
        for row in rows:
            versions = await self.history.versions(row.function)
            module = (
                snapshot.functions[row.function].module if row.after else versions[-1].row.module
            )
            existing = snapshot.modules.get(module)
            text = texts.get(module, existing.text if existing else "") or ""
            if not row.before:
                texts[module] = without(row.function, text, module, snapshot)
                continue
            past = history.pick(row.function, versions, row.before)
            code = candidate_of(past.row.text, row.function, past.source)
            text = with_own_helpers(text, past.row.text, row.function)
            texts[module] = placed(row.function, code, text, module, snapshot)
        new_snapshot = composed(texts, snapshot)
        why = f"undone: {rows[-1].note}"
        return await self._plan_of_all(why, rows[0].function, snapshot, new_snapshot, USER)

    async def _plan_of_all(
        self, why: str, name: str, snapshot: Snapshot, new_snapshot: Snapshot, author: Author
    ) -> PlannedChange:
        """Plan a step from one snapshot to another."""
        there = new_snapshot if name in new_snapshot.functions else snapshot
        relocated = Relocated(name, name, there.functions[name].module, "", (), ())
        return await self.relocations.plan(why, relocated, snapshot, new_snapshot, author)

    async def _jobs(self) -> AsyncIterator[_Job]:
        """Yield the jobs for near copies, for functions that keep failing or are unused, and for a model."""
        findings = (await self.audit.report()).findings
        for finding in findings:
            if finding.proposal == "merge":
                yield _Job("merge", finding.function, finding.problem.message, finding.others)
        tended = await self.store.tended()
        archived = {
            (row.function, row.after) for row in tended if row.kind == "archived"
        }  # or undone by a person
        for name, function in sorted(self.snapshot().functions.items()):
            kinds = await self.store.call_kinds(name)
            same = [
                kind
                for kind in kinds
                if kind.version == function.body_hash and kind.outcome in FAILURES
            ]
            worst = max(same, key=lambda kind: kind.calls, default=None)
            if worst and (worst.calls >= SAME_FAILURES or self.quarantine.holds(function)):
                how = worst.error or worst.outcome.replace("_", " ")
                yield _Job("mend", name, f"it ended the same way {worst.calls} times: {how}")
        for finding in findings:
            if (
                finding.problem.code == "unused"
                and (finding.function, self._version(finding.function)) not in archived
            ):
                yield _Job("archive", finding.function, finding.problem.message)
        if self.mender:
            async for job in self._jobs_of_a_model():
                yield job

    async def _jobs_of_a_model(self) -> AsyncIterator[_Job]:
        """Yield the jobs for a model: functions that differ in literals, repeated programs, descriptions to reword."""
        now = self.snapshot()
        for special in await aside(
            sum(len(module.text) for module in now.modules.values()), special_ones, now
        ):
            first, *others = [*special][:_MAX_SPECIAL]
            yield _Job("generalize", first, "they differ in literals alone", tuple(others), special)
        if any(token.agents for token in await self.store.tokens()):
            return  # Tokens limit who may talk to which agent, so conversations must not end up in functions for all.
        for runs in await self.repeated():
            # A program must use only functions and builtins, and no names that an earlier program kept.
            known = self.snapshot().functions
            program = await aside(len(runs[-1].code), runs[-1].parse)
            if all(name in known or hasattr(builtins, name) for name in program.free):
                yield _Job("keep", "", f"programs like it ran {len(runs)} times", runs=runs)
        requests = await self.search.index.recorded()
        found = await self._matches(requests, self.snapshot())
        missed = {name for name, _request in {*requests} - found}
        for name in sorted(missed & self.snapshot().functions.keys()):
            served = {request for function, request in requests if function == name}
            lost = {request for request in served if (name, request) not in found}
            yield _Job(
                "reword",
                name,
                f"a search by {len(lost)} of the {len(served)} requests that it served misses it",
            )

    def _version(self, name: str) -> str:
        function = self.snapshot().functions.get(name)
        return function.body_hash if function else ""

    async def _tend(self, mark: str, job: _Job, left_s: float, *, applies: bool) -> TendingStep:
        step = TendingStep(job.kind, job.function, job.reason, job.others)
        try:
            async with asyncio.timeout(left_s) as clock:
                proven = await self._prove(step, job)
            if proven.step.why_not or not applies:
                return proven.step
            applying = asyncio.ensure_future(self._apply(mark, proven))
            try:
                return await asyncio.shield(applying)
            except asyncio.CancelledError:  # a step that has begun is completed
                await asyncio.wait([applying])
                raise
        except TimeoutError:
            if not clock.expired():
                raise
            return replace(step, why_not="the time was over before it was proven")
        except KnapperError as error:
            return replace(step, why_not=str(error))

    async def _prove(self, step: TendingStep, job: _Job) -> _Proven:
        match job.kind:
            case "merge":
                return await self._merge(step)
            case "mend":
                return await self._mend(step)
            case "generalize":
                return await self._generalize(step, job.special)
            case "keep":
                return await self._keep(step, job.runs)
            case "reword":
                return await self._reword(step)
            case "archive":
                # Archive only a function that no other function calls and that no person wrote or keeps.
                users = callers(step.function, self.snapshot())
                why = (
                    f"`{users[0]}` calls it"
                    if users
                    else await self._why_needed(step.function, self.snapshot())
                )
                return _Proven(replace(step, why_not=why, evidence=("no function calls it",)))

    async def _apply(self, mark: str, proven: _Proven) -> TendingStep:
        """Carry out a step with its lines in the record; `mark` is its run and its number."""
        step = proven.step
        if proven.plan is None:
            if await self.pins.holds(step.function):
                return replace(step, why_not=f"`{step.function}` is pinned")
            version = self._version(step.function)
            line = SaveTended(mark, step.function, "archived", version, version, step.reason)
            await self.store.apply([line])
            await self.quarantine.refresh()
            return replace(step, done=True)
        lines = self._lines(mark, proven.plan, step.reason)
        # What was proven was proven of these texts: if one of them is another now, nothing is changed.
        writes = (*proven.plan.writes, *lines)
        plan = replace(proven.plan, writes=writes, replan=None, was_agreed=True)
        plan = await self.finish(plan, AGENT)
        if plan.outcome == "refused":
            return replace(step, why_not=plan.text)
        return replace(step, done=True)

    def _lines(self, mark: str, plan: PlannedChange, reason: str) -> Iterator[SaveTended]:
        """Yield the lines of the record for each function that a plan changes."""
        modules = {change.module for change in plan.changes}
        readings = [change.reading for change in plan.changes if change.reading]
        after = {each.name: each.body_hash for reading in readings for each in reading.functions}
        before = {
            name: function.body_hash
            for name, function in self.snapshot().functions.items()
            if function.module in modules
        }
        for name in [*after, *(before.keys() - after.keys())]:
            old = before.get(name, "")
            new = after.get(name, "")
            kind = "changed" if old else "created"
            if old != new:
                yield SaveTended(mark, name, kind if new else "deleted", old, new, reason)

    async def _why_protected(self, *names: str) -> str:
        """Return why functions are left alone (a person wrote, changed, granted or pinned one), or an empty text."""
        kept = await self.store.in_own_sets()
        granted = await self.granted_names()
        for name in names:
            if await self.pins.holds(name):
                return f"`{name}` is pinned"
            if name in kept:
                return f"`{name}` is kept at hand"
            if name in granted:
                return f"`{name}` was granted something"
            if any(version.row.by == "human" for version in await self.history.versions(name)):
                return f"`{name}` was written or changed by hand"
        return ""

    async def _why_needed(self, name: str, snapshot: Snapshot, kept: str = "") -> str:
        """Return why a function is not taken away: it, or what calls it, is left alone, or a file names it.

        A pattern in a file counts if it does not fit the function that is `kept`; without one, names alone count.
        """
        for pattern, path in (await asyncio.to_thread(self.file_patterns)).items():
            stays = (
                fits([pattern], snapshot.functions[kept])
                if kept
                else "*" in pattern or "?" in pattern
            )
            if fits([pattern], snapshot.functions[name]) and not stays:
                return f"{path} names `{name}`"
        return await self._why_protected(name, *callers(name, snapshot))

    async def _merge(self, step: TendingStep) -> _Proven:
        """Prove that one of two functions can replace the other, which is deleted."""
        snapshot = self.snapshot()
        left = step.function
        kept = step.others[0]
        left, kept = (kept, left) if await self._why_needed(left, snapshot, kept) else (left, kept)
        step = replace(step, function=left, others=(kept,))
        if why := await self._why_needed(left, snapshot, kept):
            return _Proven(replace(step, why_not=why))
        if why := _mismatch(left, kept, snapshot):
            return _Proven(replace(step, why_not=why))
        likeness = await self.gate.compare(
            snapshot.functions[left], snapshot.functions[kept], snapshot, is_strict=True
        )
        if likeness != "same":
            return _Proven(
                replace(
                    step,
                    why_not=f"on calls that are no examples, they are not proven the same: {likeness}",
                )
            )
        calls = await self._repeatable(left)
        for call in calls:
            if not (await self.replays.replay(call.call, NOW, function=kept)).same:
                return _Proven(
                    replace(
                        step, why_not=f"`{kept}` does not end the same for the call {call.call}"
                    )
                )
        alike = "both give the same results on the examples of both and on other calls"
        new_snapshot, evidence = await self._prove_replacement(left, kept, snapshot)
        evidence = [f"{alike}, and for {len(calls)} recorded calls of `{left}`", *evidence]
        why = f"tend: `{kept}` for `{left}`"
        plan = await self._plan_of_all(why, left, snapshot, new_snapshot, AGENT)
        return _Proven(replace(step, evidence=tuple(evidence)), plan)

    async def _prove_replacement(
        self, left: str, kept: str, snapshot: Snapshot, more: str = ""
    ) -> tuple[Snapshot, list[str]]:
        """Prove that all callers of one function can call another one with `more` arguments, so that the first can go.

        Return the snapshot after it, and the evidence.

        Raises:
            UsageError: a caller cannot; the message says why.
        """
        size = sum(len(source.text) for source in snapshot.modules.values())
        draft = await aside(size, replaced, left, kept, snapshot, more)
        evidence = list[str]()
        users = [
            name
            for name, function in sorted(draft.functions.items())
            if function.body_hash != snapshot.functions[name].body_hash
        ]
        if why := await self._why_protected(*users):
            raise UsageError(why)
        for user in {**dict.fromkeys(users), **dict.fromkeys(callers(left, snapshot))}:
            calls = await self._repeatable(user)
            for call in calls:
                if not (await self.replays.replay(call.call, NOW, on=draft, tried=kept)).same:
                    raise UsageError(f"`{user}` would answer the call {call.call} otherwise")
            evidence.append(
                f"`{user}` calls `{kept}` in its place, with the same results for {len(calls)} recorded calls"
            )
        return draft, evidence

    async def _mend(self, step: TendingStep) -> _Proven:
        """Have a model write a fix, and prove it: good calls end the same, and failed calls no longer fail so."""
        name = step.function
        snapshot = self.snapshot()
        if why := await self._why_protected(name):
            return _Proven(replace(step, why_not=why))
        calls = await self._repeatable(name)
        errors = [(await self.replays.show(call.call)).outcome.error for call in calls]
        fails = [
            error and not is_documented(error.type, snapshot.functions[name], snapshot)
            for error in errors
        ]
        good, bad = (
            [call for call, fail in zip(calls, fails, strict=True) if bool(fail) is bad]
            for bad in (False, True)
        )
        if not bad:
            return _Proven(replace(step, why_not="no recorded call fails now as it did then"))
        source = own_text(name, snapshot) or ""
        facts = [("The function as it is", source), ("What is to be done", _MEND + step.reason)]
        facts.append(
            callable_functions(await self.search.likely(source, MAX_CALLABLE), name, snapshot)
        )
        facts += [
            ("Calls that fail", _call_lines(bad)),
            ("Calls that must return the same as now", _call_lines(good)),
        ]

        async def judge(source: str, author: Author) -> tuple[PlannedChange, str]:
            # Without a reason, nobody is asked, and a fix drops no example, no check, and no granted use.
            plan = await self.plans.replace(name, source, "", author, "tend: mended")
            return plan, "" if plan.outcome == "refused" else await self._why_unproven(
                name, plan, good, bad
            )

        plan = await self._attempt("fix", name, facts, judge)
        evidence = (
            f"{len(bad)} calls that failed no longer do",
            f"{len(good)} good calls return the same",
        )
        step = replace(step, evidence=evidence, diff=_diff(snapshot, plan, name))
        return _Proven(step, plan)

    async def _attempt(
        self, what: str, name: str, facts: Sequence[tuple[str, str]], judge: Judge
    ) -> PlannedChange:
        """Have a model write sources until one is proven, and return its plan.

        Raises:
            UsageError: none was proven.
        """
        if self.mender is None:
            raise UsageError(f"there is no model that could write a {what}")
        attempts = list[tuple[str, str]]()
        why = ""
        for _ in range(MAX_ATTEMPTS):
            written = await self.mender.write(name, facts, attempts)
            self.tokens += written.prompt_tokens + written.completion_tokens
            if written.error:
                raise UsageError(f"{written.model} wrote no {what}: {written.error}")
            plan, why = await judge(written.source, Author("agent", model=written.model))
            why = shown_refusal(plan) if plan.outcome == "refused" else why
            if not why:
                return plan
            attempts.append((written.source, why))
        raise UsageError(f"no {what} of {MAX_ATTEMPTS} was proven; the last: {why}")

    async def _generalize(self, step: TendingStep, special: Special) -> _Proven:
        """Have a model merge functions that differ in literals into one that takes these as arguments, and prove it.

        It must have all their examples and return what they returned in their recorded calls.
        """
        snapshot = self.snapshot()
        protected = {name: await self._why_needed(name, snapshot) for name in special}
        for name in [name for name in special if not _has_plain_examples(snapshot.functions[name])]:
            protected[name] = (
                f"an example of `{name}` is not a plain call, which could be made of another function"
            )
        names = [name for name, why in protected.items() if not why][:_MAX_SPECIAL]
        if len(names) < 2:
            return _Proven(replace(step, why_not=next(why for why in protected.values() if why)))
        step = replace(step, function=names[0], others=tuple(names[1:]))
        if why := next((why for name in names if (why := _mismatch(name, names[0], snapshot))), ""):
            return _Proven(replace(step, why_not=why))
        own = [*snapshot.functions[names[0]].parameters["properties"]]
        columns = differing([special[name] for name in names])
        if not columns:
            return _Proven(replace(step, why_not="they are the same"))
        calls = {name: await self._repeatable(name) for name in names}
        if silent := next((name for name in names if not calls[name]), ""):
            return _Proven(
                replace(
                    step, why_not=f"no recorded call of `{silent}` could prove another function"
                )
            )
        task = [_GENERAL, *_column_lines(names, columns)]
        facts = [
            (
                "The functions as they are",
                "\n\n".join(own_text(name, snapshot) or "" for name in names),
            )
        ]
        facts += [("What is to be done", "\n".join(task))]
        facts += [
            ("Calls of them", _call_lines([call for name in names for call in calls[name][:2]]))
        ]
        made = dict[str, dict[str, str]]()  # the additional arguments for each of the functions

        async def judge(source: str, author: Author) -> tuple[PlannedChange, str]:
            function = _single_function(source)
            parameters = [*function.parameters["properties"]] if function else []
            if (
                function is None
                or parameters[: len(own)] != own
                or len(parameters) != len(own) + len(columns)
            ):
                why = f"It must be one function, with the parameters {', '.join(own)} and {len(columns)} more."
                return _NOTHING, why
            values = [*zip(*columns, strict=True)]
            given = {
                name: dict(zip(parameters[len(own) :], values[at], strict=True))
                for at, name in enumerate(names)
            }
            examples = [
                GivenExample(call, example.expected or example.raises)
                for name in names
                for example in snapshot.functions[name].examples
                if (
                    call := redirected_call(
                        example.call,
                        snapshot.functions[name].module,
                        name,
                        function.name,
                        _arguments(given[name]),
                    )
                )
            ]
            module = snapshot.functions[names[0]].module
            reason = f"does what {' and '.join(names)} do"
            plan = await self.plans.create(
                Candidate(function.name, source, module, reason, examples=tuple(examples)), author
            )
            if plan.outcome == "refused":
                return plan, ""
            after = _with(snapshot, plan)
            if why := _why_weaker(function.name, names, after, snapshot):
                return plan, why
            made.clear()
            made.update({function.name: {name: _arguments(given[name]) for name in names}})
            return plan, await self._why_otherwise(function.name, given, calls, after)

        plan = await self._attempt("general function", "", facts, judge)
        ((general, more),) = made.items()
        draft = _with(snapshot, plan)
        evidence = list[str]()
        for name in names:
            if any(user in names for user in callers(name, snapshot)):
                return _Proven(replace(step, why_not=f"`{name}` is called by another one of them"))
            draft, facts_of_callers = await self._prove_replacement(
                name, general, draft, more[name]
            )
            evidence += facts_of_callers
            same = (
                f"with {more[name]} it has the examples of `{name}`, and gives the same results for"
            )
            evidence.append(f"{same} {len(calls[name])} recorded calls")
        diff = _diff(snapshot, plan, general)
        done = replace(
            step, function=general, others=tuple(names), evidence=tuple(evidence), diff=diff
        )
        why = f"tend: `{general}` for {', '.join(f'`{name}`' for name in names)}"
        whole = await self._plan_of_all(why, general, snapshot, draft, AGENT)
        # Of the new function, the verdict is that on the candidate.
        own = [write for write in plan.writes if not isinstance(write, _TEXT_ROWS)]
        return _Proven(done, replace(whole, writes=(*whole.writes, *own)))

    async def _why_otherwise(
        self,
        general: str,
        given: Mapping[str, Mapping[str, str]],
        calls: Mapping[str, Sequence[RecordedCall]],
        snapshot: Snapshot,
    ) -> str:
        """Return the call that a general function answers differently from a special one, or an empty text."""
        more = {
            name: {
                key: ast.literal_eval(syntax.parse(text, mode="eval")) for key, text in row.items()
            }
            for name, row in given.items()
        }
        for name, call in [(special, call) for special in given for call in calls[special]]:
            replayed = await self.replays.replay(
                call.call, NOW, on=snapshot, function=general, more=more[name]
            )
            if not replayed.same:
                ends = f"with {_arguments(given[name])}, it ends otherwise: {replayed.difference}"
                return f"The call {call.call} of `{name}`, {call.arguments}: {ends}"
        for name, row in more.items():
            both = snapshot.functions[name], snapshot.functions[general]
            likeness = await self.gate.compare(
                *both, snapshot, is_strict=True, more=tuple(row.values())
            )
            if likeness != "same":
                how = f"With {_arguments(given[name])}, it is not proven to do what `{name}` does, on calls that are"
                return f"{how} no examples: {likeness}"
        return ""

    async def _keep(self, step: TendingStep, runs: Sequence[SeenProgram]) -> _Proven:
        """Have a model turn a repeated program into a function, and prove that it returns what the runs returned."""
        size = sum(len(run.code) for run in runs)
        rows = await aside(size, lambda: [run.parse().literals() for run in runs])
        columns = differing(rows)
        if not columns:
            return _Proven(replace(step, why_not="each run had the same values"))
        values = [*zip(*columns, strict=True)]
        results = {row: repr(run.value) for row, run in zip(values, runs, strict=True)}
        names = [f"the run {at}" for at in range(1, len(runs) + 1)]
        facts = [("A program that ran again and again", runs[-1].code)]
        facts += [("What is to be done", "\n".join([_KEEP, *_column_lines(names, columns)]))]
        facts += [
            (
                "What it returned",
                "\n".join(f"({', '.join(row)}): {result}" for row, result in results.items()),
            )
        ]

        async def judge(source: str, author: Author) -> tuple[PlannedChange, str]:
            function = _single_function(source)
            if function is None or len(function.parameters["properties"]) != len(columns):
                return _NOTHING, f"It must be one function with {len(columns)} parameters."
            examples = [
                GivenExample(f"{function.name}({', '.join(row)})", text)
                for row, text in results.items()
            ]
            candidate = Candidate(
                function.name, source, function.name, step.reason, examples=tuple(examples)
            )
            return await self.plans.create(candidate, author), ""

        plan = await self._attempt("function", "", facts, judge)
        made = next(iter(plan.did.names("created")), "")
        if any(
            row.undone and row.kind == "created" and row.function == made
            for row in await self.store.tended()
        ):
            return _Proven(replace(step, function=made, why_not="it was made before, and undone"))
        evidence = (f"it returns what {len(results)} of the runs returned",)
        step = replace(
            step, function=made, evidence=evidence, diff=_diff(self.snapshot(), plan, made)
        )
        return _Proven(step, plan)

    async def _reword(self, step: TendingStep) -> _Proven:
        """Have a model reword a docstring, and prove it by the recorded requests.

        More of the function's requests must find it, and each request that found its function must still find it.
        """
        name = step.function
        snapshot = self.snapshot()
        if why := await self._why_protected(name):
            return _Proven(replace(step, why_not=why))
        requests = await self.search.index.recorded()
        before = await self._matches(requests, snapshot)
        missed = [
            request
            for function, request in requests
            if function == name and (name, request) not in before
        ]
        others = {
            found: None
            for request in missed
            for found in await self._ranked_names(request, snapshot)
        }
        told = [
            f"{other}: {first_sentence(snapshot.functions[other].description)}" for other in others
        ]
        facts = [
            ("The function as it is", own_text(name, snapshot) or ""),
            ("What is to be done", _REWORD),
        ]
        facts += [
            ("Requests that it serves", "\n".join(missed)),
            ("What they find instead", "\n".join(told)),
        ]
        gained = list[str]()

        async def judge(source: str, author: Author) -> tuple[PlannedChange, str]:
            text = with_words(own_text(name, snapshot) or "", name, source)
            draft = _with_source(snapshot, name, text) if text else snapshot
            as_read = _with_source(
                snapshot, name, own_text(name, snapshot) or ""
            )  # without a worker's schemas, too
            if draft is snapshot or _promise(draft.functions[name]) != _promise(
                as_read.functions[name]
            ):
                return (
                    _NOTHING,
                    "Only the words of its docstring may be others: keep its parameters and its examples.",
                )
            plan = await self.plans.replace(name, text or "", "", author, "tend: reworded")
            if plan.outcome == "refused":
                return plan, ""
            after = await self._matches(requests, _with(snapshot, plan))
            gained[:] = [request for request in missed if (name, request) in after]
            if lost := before - after:
                return plan, f"A request that finds `{min(lost)[0]}` now no longer would."
            return plan, "" if gained else "The requests do not find it with these words either."

        plan = await self._attempt("wording", name, facts, judge)
        evidence = (
            f"a search by {len(gained)} of the {len(missed)} finds it then",
            f"the {len(before)} recorded requests that find their function find it still",
        )
        step = replace(step, evidence=evidence, diff=_diff(snapshot, plan, name))
        return _Proven(step, plan)

    async def _matches(
        self, requests: Sequence[tuple[str, str]], snapshot: Snapshot
    ) -> set[tuple[str, str]]:
        """Return the requests that find their function by its description, as pairs of function and request."""
        return {
            (name, request)
            for name, request in requests
            if name in await self._ranked_names(request, snapshot)
        }

    async def _ranked_names(self, request: str, snapshot: Snapshot) -> list[str]:
        return [
            found.name
            for found in await self.search.index.rank(request, snapshot, COUNT, by_text=True)
        ]

    async def _why_unproven(
        self,
        name: str,
        plan: PlannedChange,
        good: Sequence[RecordedCall],
        bad: Sequence[RecordedCall],
    ) -> str:
        """Return why a fix is not proven (a call that ends differently than required), or an empty text."""
        draft = _with(self.snapshot(), plan)
        for call in good:
            replayed = await self.replays.replay(call.call, NOW, on=draft)
            if not replayed.same:
                return f"the good call {call.call}, {call.arguments}, ends otherwise: {replayed.difference}"
        for call in bad:
            replayed = await self.replays.replay(call.call, NOW, on=draft)
            error = replayed.outcome.error
            then = replayed.then.error
            is_same = (
                error and then and error.type == then.type
            )  # although it may be documented now
            if error and (is_same or not is_documented(error.type, draft.functions[name], draft)):
                return f"the call {call.call}, {call.arguments}, still fails: {error.type}: {error.message}"
        now = self.snapshot()
        both = now.functions[name], draft.functions[name]
        if await self.gate.compare(*both, now, is_strict=True, fixed_in=draft) == "different":
            return (
                f"For calls that are not on record, it does not return what `{name}` returns now."
            )
        return ""

    async def _repeatable(self, name: str) -> list[RecordedCall]:
        """Return the recorded calls of a function that end the same when replayed; others prove nothing."""
        calls = await self.replays.calls(name)
        return [call for call in calls if (await self.replays.replay(call.call, NOW)).same]


def _with(snapshot: Snapshot, plan: PlannedChange) -> Snapshot:
    """Return the snapshot after a plan."""
    assert plan.change is not None
    assert plan.change.reading is not None, "no plan of a replacement deletes a file"
    return snapshot.with_module(plan.change.reading)


def _with_source(snapshot: Snapshot, name: str, source: str) -> Snapshot:
    """Return a snapshot in which one function has another source."""
    existing = snapshot.modules[snapshot.functions[name].module]
    text = existing.text.replace(own_text(name, snapshot) or "", source, 1)
    return snapshot.with_module(read_module(ModuleSource.of(existing.module, text, existing.path)))


def _single_function(source: str) -> Function | None:
    """Return the function that a source defines, or None unless it defines exactly one."""
    functions = read_module(ModuleSource.of("text", source)).functions
    return functions[0] if len(functions) == 1 else None


def _promise(function: Function) -> object:
    return _shape(function), [
        (example.setup, example.call, example.expected, example.raises)
        for example in function.examples
    ]


def _arguments(given: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={text}" for name, text in given.items())


def _column_lines(names: Sequence[str], columns: Sequence[Sequence[str]]) -> list[str]:
    """Return a numbered line for each column: its literal in each function or run."""
    return [
        f"{number}. {', '.join(f'{text} in {name}' for name, text in zip(names, column, strict=True))}"
        for number, column in enumerate(columns, 1)
    ]


def _diff(snapshot: Snapshot, plan: PlannedChange, name: str) -> str:
    before = own_text(name, snapshot) or ""
    after = own_text(name, _with(snapshot, plan)) or ""
    return "\n".join(diff_lines(bare_lines(before), bare_lines(after), ("now", "fixed"), 2))


def _call_lines(calls: Sequence[RecordedCall]) -> str:
    return "\n".join(
        f"{call.function} {call.arguments} {call.ended}" for call in calls[:_MAX_CALLS]
    )


def _mismatch(left: str, kept: str, snapshot: Snapshot) -> str:
    """Return why recorded calls cannot prove that one function can replace another, judged by their sources."""
    functions = snapshot.functions[left], snapshot.functions[kept]
    if words := [word for function in functions for word in reach_of_function(function, snapshot)]:
        return f"more than their arguments decides what they do: {words[0]}"
    if _shape(functions[0]) != _shape(functions[1]):
        return "their arguments differ"
    importing = importers(left, snapshot)
    return f"the module {importing[0]} imports `{left}` by name" if importing else ""


def _shape(function: Function, only: Collection[str] | None = None) -> object:
    """Return the part of a function's signature that matters to callers, or that of `only` these parameters."""
    parameters = function.parameters
    properties = parameters.get("properties", {})
    names = properties.keys() if only is None else only
    kinds = [
        (name, {key: value for key, value in properties[name].items() if key != "description"})
        for name in names
    ]
    required = sorted(name for name in parameters.get("required", ()) if name in names)
    return kinds, required, function.rest, function.extra


def _why_weaker(
    general: str, names: Sequence[str], later_snapshot: Snapshot, snapshot: Snapshot
) -> str:
    """Return which check of the special functions a general one does not make, or an empty text."""
    own = snapshot.functions[names[0]]
    function = later_snapshot.functions[general]
    if _shape(function, own.parameters["properties"].keys()) != _shape(own):
        return f"It must accept the same as `{own.name}` for {', '.join(own.parameters['properties'])}."
    lost = [
        problem.message
        for name in names
        for old, new in [(own_text(name, snapshot) or "", own_text(general, later_snapshot) or "")]
        for problem in proved_problems(
            snapshot.functions[name], function, old, new, NOTHING, "refuses", Place("")
        )
    ]
    return next(iter(lost), "")


def _has_plain_examples(function: Function) -> bool:
    """Return whether all examples can be rewritten as calls of another function."""
    calls = [
        redirected_call(example.call, function.module, function.name, "other", "more=0")
        for example in function.examples
    ]
    return None not in calls and not any(example.setup for example in function.examples)
