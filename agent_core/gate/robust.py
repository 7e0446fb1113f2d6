"""Stage 10, robust: calls that the author may not have thought of, and the shortest one that goes wrong.

Many calls share a worker, so what they show is advice, confirmed in workers of their own. A failure unlike
anything in the examples may be outside what the author promises: it is a warning that says so.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from sandbox import Attempt, Killed, Outcome, Raised, Refused, Returned, TimedOut

from ..registry.function import Function
from .arguments.domain import Domain, domain
from .arguments.failing import Failure, described, line_of, mend_of
from .arguments.fitting import fits
from .arguments.generate import Arguments, generate, shown, written
from .arguments.likeness import Difference, Weight
from .arguments.shrink import shrink
from .draft import Draft, Finding
from .examples.enough import is_unproven
from .examples.expected import is_right, named
from .substance import HOLLOW
from .trial import Bench

STAGE = "robust"
_MOST = 3  # failures that are told
_ALONE_S = 1.0  # for a call that seems to hang
_FIRST = 0.5  # the part of the time in which all calls are tried once
_LONG = 3600.0


async def robust(draft: Draft, bench: Bench) -> Draft:
    """The draft with the calls that go wrong."""
    function = draft.loaded
    reason = _not_for(draft, function)
    if reason or function is None:
        return draft.skip(reason)
    trial = Trial(draft, function, bench)
    try:
        calls = list(trial.calls())
    except RecursionError:
        return draft.skip("its arguments are nested too deeply")
    outcomes = await trial.first(calls)
    refused = next((one.reason for one in outcomes if isinstance(one, Refused)), "")
    if not any(isinstance(one, Returned | Raised | TimedOut | Killed) for one in outcomes):
        return draft.skip(refused or "no arguments are known for it" if not calls else "time was up")
    reached = sum(one is not None for one in outcomes)
    failures = await trial.smallest(trial.failures(calls, outcomes))
    findings = [trial.told(one) for one in failures]
    late = f"{reached} of {len(calls)} calls tried: time was up" if reached < len(calls) else f"{reached} calls tried"
    return replace(draft.with_findings(STAGE, findings), note=late)


def _not_for(draft: Draft, function: Function | None) -> str:
    if function is None or draft.tree is None:
        return "the module could not be imported"
    if draft.shows(*HOLLOW):
        return "the body does nothing yet"
    if draft.shows("example-raises", "example-hangs", "example-stopped"):
        return "its own examples fail"
    if function.takes_self:
        return "what it does depends on `self`, which is empty here"
    if not function.parameters["properties"]:
        return "it takes no arguments"
    is_outward = draft.needs.is_outward or is_unproven(draft.tree, draft.function, function) == "effects"
    return "its effects cannot run here" if is_outward else ""


class Trial:
    """One function, the domain that its examples show, and the workers in which calls are tried."""

    def __init__(self, draft: Draft, function: Function, bench: Bench) -> None:
        assert draft.tree is not None
        assert draft.function is not None
        assert draft.trial is not None
        self._draft, self._function, self._bench = draft, function, bench
        self._modules = draft.trial.modules
        examples = [*(one.call for one in function.examples), *(one.call for one in draft.candidate.examples)]
        self._examples = shown(examples, function.name, function.parameters)
        self._domain: Domain = domain(self._examples, function.parameters["properties"])
        self._right = named(draft.tree, draft.function, function.examples)
        self._by_chance = is_unproven(draft.tree, draft.function, function) == "chance"
        self._until = time.monotonic() + draft.rules.robust_s

    def calls(self) -> Iterator[Arguments]:
        """What is tried."""
        function, most = self._function, self._draft.rules.robust_calls
        return generate(function.parameters, self._examples, self._domain, function.body_hash, most)

    async def first(self, calls: Sequence[Arguments]) -> tuple[Outcome | None, ...]:
        """How calls end, in as much of the time as leaves some to look at what went wrong."""
        return await self._outcomes(calls, self._draft.rules.robust_s * _FIRST)

    async def _outcomes(
        self, calls: Sequence[Arguments], most_s: float = _LONG, each_s: float = 0
    ) -> tuple[Outcome | None, ...]:
        """How calls end, in one worker as far as it goes; None for those that were not reached."""
        left = min(self._until - time.monotonic(), most_s)
        if left <= 0:
            return (None,) * len(calls)
        return await self._bench.sandbox.attempt(
            self._modules,
            self._function.module,
            self._function.name,
            [Attempt(call) for call in calls],
            each_s=each_s or self._draft.rules.robust_each_s,
            limits=replace(self._bench.limits, wall_s=min(left, self._bench.limits.wall_s)),
        )

    def failures(self, calls: Sequence[Arguments], outcomes: Sequence[Outcome | None]) -> Iterator[Failure]:
        """The calls that went wrong."""
        for call, outcome in zip(calls, outcomes, strict=True):
            if isinstance(outcome, Raised | TimedOut | Killed) and not self._is_right(outcome):
                failure = Failure(call, outcome, self._outside(call))
                if failure.is_told and not (self._by_chance and failure.code == "fails-on"):
                    yield failure

    def _is_right(self, outcome: Raised | TimedOut | Killed) -> bool:
        return isinstance(outcome, Raised) and is_right(outcome, self._right)

    def _outside(self, call: Arguments) -> tuple[Difference, ...]:
        return tuple(self._domain.outside(call))

    async def smallest(self, failures: Iterator[Failure]) -> list[Failure]:
        """One failure of each kind, at its smallest and seen again alone."""
        found = sorted(failures, key=lambda one: (one.kind, one.rank))
        first = [next(group) for _kind, group in groupby(found, key=lambda one: one.kind)]
        told = sorted(first, key=lambda one: one.rank)[:_MOST]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._confirmed(one)) for one in told]
        return [one for task in tasks if (one := task.result())]

    async def _confirmed(self, failure: Failure) -> Failure | None:
        small = failure
        if isinstance(failure.outcome, Raised):
            small = replace(failure, call=await shrink(failure.call, lambda calls: self._still(failure, calls)))
            small = replace(small, outside=self._outside(small.call))
        for one in (small, failure):
            (outcome,) = await self._outcomes([one.call], each_s=_ALONE_S)
            again = next(self.failures([one.call], [outcome]), None)
            if again is not None and again.is_like(failure):  # what only shrinking brought about is no excuse
                return replace(again, outside=tuple(how for how in again.outside if how in failure.outside))
        return None

    async def _still(self, failure: Failure, calls: Sequence[Arguments]) -> list[bool]:
        """Which of these calls fail in the same way, and are hardly less like the examples."""
        tried = [call for call in calls if self._is_near(failure, call)]
        outcomes = await self._outcomes(tried)
        again = {
            id(one.call)
            for one in self.failures(tried, outcomes)
            if (one.kind, one.code) == (failure.kind, failure.code)
        }
        return [id(call) in again for call in calls]

    def _is_near(self, failure: Failure, call: Arguments) -> bool:
        schema = self._function.parameters
        weighty = {one for one in self._outside(call) if one.weight > Weight.SLIGHT}
        return weighty <= set(failure.outside) and fits(call, schema, schema)

    def told(self, failure: Failure) -> Finding:
        """What is to be said about a call that goes wrong."""
        call = written(self._function.name, failure.call, list(self._function.parameters["properties"]))
        return Finding(failure.code, described(failure, call), mend_of(failure), self._line(failure))

    def _line(self, failure: Failure) -> int:
        """The line in the candidate's text, which the module may hold further below."""
        own = self._draft.own
        start = next((one.line for one in own.functions if one.name == self._function.name), 0) if own else 0
        line = line_of(failure.outcome)
        is_inside = self._function.line <= line <= self._function.end_line
        return line - self._function.line + start if start and is_inside else start
