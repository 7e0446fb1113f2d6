"""The stage "robust": calls that the author may not have thought of, and the shortest one that fails.

Many calls share a worker, so their results are advice and are confirmed in separate workers. A failing call unlike any
example may be outside of what the author promises, so the finding is a warning that says so. A function may raise what
its docstring, an example or a `raise` names. The class hierarchy is known for builtins and a few other exceptions; any
other class only matches by its name.
"""

import ast
import asyncio
import builtins
import math
import re
import time
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, islice, zip_longest
from typing import TYPE_CHECKING, TypeAlias

from agent_core.base.offload import aside
from agent_core.base.problem import Evidence
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import fence
from agent_core.registry import docstring
from sandbox import Killed, Outcome, Raised, Refused, Returned, TimedOut

from .call_arguments import (
    Arguments,
    Value,
    checker,
    edge_calls,
    fits,
    read_calls,
    recombine,
    unseen,
    write_call,
)
from .capability import needs_with_callees
from .draft import NOT_IMPORTED, NOTHING_YET, OUTSIDE, Draft, Finding, TrialSubject
from .examples import unprovable
from .proof import lacks_grant
from .substance import HOLLOW
from .tree import constants, is_bare_call, nodes_of

if TYPE_CHECKING:
    from .trial import TrialTools


_CRASHES = frozenset(
    {"TypeError", "AttributeError", "RecursionError", "AssertionError", "ReturnTypeError", "Killed"}
)
_CODES = {"TimedOut": "hangs-on", "Unsendable": "not-json", "UnboundLocalError": "crashes"}
_NAME = re.compile(r"name '(\w{1,100})'")
_MUCH = 1000
_ENDLESS = frozenset(
    {"count", "cycle", "repeat", "iter", "append", "extend", "add", "update", "insert"}
)


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A failing call and its outcome; `unlike` are the parameters with values unlike those of all examples.

    `allowed_s` is the time limit of a call if this one may only be slow; 0 if it looks endless.
    """

    call: "Arguments"
    outcome: Raised | TimedOut | Killed
    unlike: tuple[str, ...] = ()
    allowed_s: float = 0.0

    @property
    def kind(self) -> tuple[str, int]:
        """The identity of a failure: the error and its line."""
        if not isinstance(self.outcome, Raised):
            return type(self.outcome).__name__, 0
        is_endless = (
            self.outcome.failure.type == "RecursionError"
        )  # raised at any line of the cycle
        return self.outcome.failure.type, 0 if is_endless else line_of(self.outcome)

    def is_like(self, call: "FailedCall") -> bool:
        """Return whether two failures are the same; running out of time and running out of memory count as one."""
        return self.kind == call.kind or (self._is_endless and call._is_endless)

    @property
    def _is_endless(self) -> bool:
        return not isinstance(self.outcome, Raised) or self.outcome.failure.type == "MemoryError"

    @property
    def rank(self) -> tuple[bool, int]:
        """The sort key: failures with arguments like those of examples first, then the shortest."""
        return bool(self.unlike), len(repr(self.call))

    @property
    def code(self) -> str:
        """The code of the problem; with arguments unlike all examples only a warning, except for undefined names."""
        kind = self.kind[0]
        if isinstance(self.outcome, Raised) and kind == "NameError":
            frames, name = self.outcome.failure.frames, _NAME.search(self.outcome.failure.message)
            if frames and name and name[1] in frames[-1].source:  # no arguments can excuse it
                return "crashes"
        if self.unlike:
            return "fails-on"
        if kind == "TimedOut" and self.allowed_s:
            return "slow-on"
        return _CODES.get(kind, "crashes" if kind in _CRASHES else "fails-on")


def line_of(outcome: Outcome) -> int:
    """Return the line that raised, or 0."""
    frames = outcome.failure.frames if isinstance(outcome, Raised) else ()
    return frames[-1].line if frames else 0


def describe_failure(failed: FailedCall, call: str) -> str:
    """Return what happens, where, and which arguments are unlike those of all examples."""
    names = " and ".join(f"`{name}`" for name in failed.unlike[:2])
    unseen = (
        f"; no example has such a value of {names}" if names and failed.code == "fails-on" else ""
    )
    if failed.code == "slow-on" and isinstance(failed.outcome, TimedOut):
        taken = f"takes longer than {failed.outcome.limit_s:g} s"
        return f"{fence(call, 160)} {taken}; the limit of a call is {failed.allowed_s:g} s"
    return f"{fence(call, 160)} {describe_outcome(failed.outcome)}{unseen}"


def describe_outcome(outcome: Raised | TimedOut | Killed) -> str:
    """Return a description of how a call failed."""
    match outcome:
        case Raised(failure=failure):
            at = f" at {fence(failure.frames[-1].source.strip(), 120)}" if failure.frames else ""
            return f"raises {fence(f'{failure.type}: {failure.message}'.rstrip(': '), 200)}{at}"
        case TimedOut(limit_s=limit_s):
            return f"does not end within {limit_s:g} s"
        case Killed(reason=reason):
            return f"is stopped: {fence(reason)}"


def fix_of(failed: FailedCall) -> str:
    """Return a fix for the failure."""
    kind = failed.kind[0]
    if failed.code == "slow-on":
        return "make it faster if such arguments are meant"
    if kind in _FIXES:
        return _FIXES[kind]
    named = f"`{kind}`" if kind.isidentifier() and kind.isascii() else "the exception"
    return f"handle that case, or name {named} under `Raises:` if it is meant"


_FIXES = {
    "NameError": "define that name, or fix its spelling",
    "UnboundLocalError": "give that variable a value on every way to this line",
    "ReturnTypeError": "return what the hint promises, or widen the hint",
    "Unsendable": "return text, numbers, lists or dictionaries",
    "TimedOut": "look for a loop that these arguments never end; if it is only slow, show that by an example",
    "Killed": "fix the body where it asks for too much",
}


# Standard library exceptions that a named base class covers.
_ERRORS = {
    "JSONDecodeError": "ValueError",
    "StatisticsError": "ValueError",
    "ValidationError": "ValueError",
    "ZoneInfoNotFoundError": "KeyError",
    "InvalidOperation": "ArithmeticError",
    "DivisionByZero": "ZeroDivisionError",
    "DivisionUndefined": "ZeroDivisionError",
}


def known_errors(subject: "TrialSubject") -> frozenset[str]:
    """Return the names of the exceptions that a function is expected to raise."""
    described = docstring.read(ast.get_docstring(subject.node)).raises
    shown = (example.raises.partition(":")[0].strip() for example in subject.function.examples)
    raised = [
        node.exc
        for node in nodes_of(subject.tree)
        if isinstance(node, ast.Raise) and node.exc is not None
    ]
    kinds = (ast.unparse(error.func if isinstance(error, ast.Call) else error) for error in raised)
    return frozenset(name.rpartition(".")[2] for name in (*described, *shown, *kinds) if name)


def is_right(raised: Raised, names: frozenset[str]) -> bool:
    """Check whether an exception is expected: it is named, is a subclass of a named one, or comes from a `raise`."""
    frames = raised.failure.frames
    if frames and frames[-1].source.lstrip().startswith("raise "):
        return True
    kind = raised.failure.type.rpartition(".")[2]
    known_class = _BUILTIN.get(_ERRORS.get(kind, kind))
    bases = tuple(_BUILTIN[name] for name in names & _BUILTIN.keys())
    return kind in names or (known_class is not None and issubclass(known_class, bases))


def may_loop(tree: ast.Module, name: str) -> bool:
    """Check whether code may run forever: by `while`, recursion, an endless iterator or a growing list."""
    calls = [node.func for node in nodes_of(tree) if isinstance(node, ast.Call)]
    called = {
        func.id if isinstance(func, ast.Name) else getattr(func, "attr", "") for func in calls
    }
    return bool(called & (_ENDLESS | {name})) or any(
        isinstance(node, ast.While) for node in nodes_of(tree)
    )


def is_much(value: object) -> bool:
    """Check whether arguments contain a number or collection so large that processing may take long."""
    if isinstance(value, int | float):
        return abs(value) > _MUCH
    if isinstance(value, str | bytes):
        return len(value) > _MUCH
    if isinstance(value, dict):
        return len(value) > _MUCH or any(map(is_much, value.values()))
    return isinstance(value, list | tuple | set | frozenset) and (
        len(value) > _MUCH or any(map(is_much, value))
    )


_BUILTIN: dict[str, type] = {
    name: value for name, value in vars(builtins).items() if isinstance(value, type)
}


STAGE = "robust"
_MOST = 3  # reported failures
_USE = "use it in the body, or leave it out of the parameters and of `Args:`"
_ALONE_S = 1.0  # timeout of a single call that seems to hang
_FIRST = 0.5  # share of the time in which all calls are tried once
_LARGEST = 20_000  # characters of one call
_PATIENT_S = 4.0  # timeout of a call that got little processor time
_BUSY_S = 0.5  # processor time; with less, a call waited for something or for the processor
_WAITING_S = 0.05
_LONG_TEXT = 200  # characters
_SLOW_S = 0.05  # if examples take this long, the function is slow


EndedCall: TypeAlias = tuple[Arguments, Outcome | None]
_PAIRS, _RESULTS, _KINDS = 10, 2, 2
_BASES, _VALUES = 14, 6
_REACHED = 0.9  # share of the calls
_REFUSED = ""
_MOST_DOUBTED = 30  # parameters of a function that is tried for those that change nothing


def _rows_of(calls: Sequence[EndedCall], name: str) -> list[dict[str, str]]:
    """Return the answers to calls that differ in one parameter: by value, for each set of other arguments."""
    rows: dict[str, dict[str, str]] = {}
    for arguments, outcome in calls:
        if name in arguments and isinstance(outcome, Returned | Raised):
            others = repr(
                sorted((key, repr(value)) for key, value in arguments.items() if key != name)
            )
            answer = repr(outcome.value) if isinstance(outcome, Returned) else _REFUSED
            rows.setdefault(others, {})[repr(arguments[name])] = answer
    return [*rows.values()]


def _matters(rows: Sequence[dict[str, str]]) -> bool:
    """Check whether the parameter changes a result, or is refused only with some other arguments."""
    taken = {value for row in rows for value, answer in row.items() if answer != _REFUSED}
    return any(
        len({answer for answer in row.values() if answer != _REFUSED}) > 1
        or (any(row.values()) and any(not row[value] for value in taken & row.keys()))
        for row in rows
    )


def _variations(
    calls: Sequence[EndedCall], name: str, values: Sequence[Value]
) -> Iterator[Arguments]:
    """Yield returned calls with other values of a parameter: first from `values`, then from other calls."""
    returned = [
        (call, outcome.value)
        for call, outcome in calls
        if isinstance(outcome, Returned) and name in call
    ]
    kinds = {type(call[name]) for call, _value in returned}
    wanted = [value for value in (*values, True, False) if type(value) in kinds]
    pool = {repr(value): value for value in (*wanted, *(call[name] for call, _value in returned))}
    bases = {repr(value): call for call, value in reversed(returned)}
    for base in islice(reversed(bases.values()), _BASES):
        yield from (
            base | {name: new}
            for new in islice(pool.values(), _VALUES)
            if repr(new) != repr(base[name])
        )


async def robust(draft: Draft, trial: "TrialTools") -> Draft:
    """Return the draft with findings about calls that fail."""
    prepared = await aside(draft.size, _prepare, draft, trial)
    if isinstance(prepared, str):
        return draft.skip(prepared)
    tried, calls = prepared
    outcomes = await tried.first(calls)
    refused = next((outcome.reason for outcome in outcomes if isinstance(outcome, Refused)), "")
    if not any(isinstance(outcome, Returned | Raised | TimedOut | Killed) for outcome in outcomes):
        skipped = draft.skip(
            refused or ("time was up" if calls else "no arguments are known for it")
        )
        return replace(skipped, late=bool(calls) and not refused)
    idle = await tried.idle([*zip(calls, outcomes, strict=True)])
    failures = await tried.smallest(tried.failures(calls, outcomes))
    reached = len(calls) - outcomes.count(None)
    note = f"{reached} call{'' if reached == 1 else 's'} tried"
    note = note if reached == len(calls) else f"{reached} of {len(calls)} calls tried: time was up"
    draft = draft.with_findings(STAGE, [*idle, *map(tried.finding, failures)])
    return replace(draft, note=note, late=reached < len(calls))


def _prepare(draft: Draft, trial: "TrialTools") -> "tuple[RobustTrial, list[Arguments]] | str":
    """Return the trial and its first calls, or why the function is not tried."""
    own = draft.loaded
    reason = _why_untried(draft, own)
    if reason or own is None:
        return reason
    tried = RobustTrial(draft, own, trial)
    try:
        return tried, list(tried.calls())
    except RecursionError:
        return "its arguments are nested too deeply"


def _why_untried(draft: Draft, own: TrialSubject | None) -> str:
    """Return why a function cannot be tried with other arguments, or an empty text."""
    if own is None:
        return NOT_IMPORTED
    if draft.shows(*HOLLOW):
        return NOTHING_YET
    if draft.shows("example-raises", "example-hangs", "example-stopped"):
        return "its own examples fail"
    if own.function.takes_self:
        return "what it does depends on `self`, which is empty here"
    if not own.function.parameters["properties"]:
        return "it takes no arguments"
    needs = draft.needs | needs_with_callees(own.function.name, own.snapshot)
    return OUTSIDE if needs.is_outward or unprovable(own) == "effects" else ""


class RobustTrial:
    """The trial of one function in workers, with variations of its examples' calls."""

    def __init__(self, draft: Draft, subject: TrialSubject, trial: "TrialTools") -> None:
        self._draft, self._subject, self._function, self._trial = (
            draft,
            subject,
            subject.function,
            trial,
        )
        self._examples = read_calls([example.call for example in draft.examples], subject.function)
        self._right = known_errors(subject)
        self._by_chance = unprovable(subject) == "chance"
        # A library may return values for some arguments that cannot be sent, as long as it can for others.
        self._is_sent = any(
            is_bare_call(call, subject.function.name) for call, _ in draft.trials.values
        )
        self._may_send_nothing = draft.policy == "import" and self._is_sent
        self._until = time.monotonic() + draft.rules.robust_s

    def calls(self) -> Iterator[Arguments]:
        """Yield the calls to try: recombined values of the examples and edge values of the types, alternating."""
        schema, most = self._function.parameters, self._draft.rules.robust_calls
        recombined = recombine(self._examples, schema)[: most // 2]
        in_turn = chain.from_iterable(zip_longest(recombined, edge_calls(schema, self._examples)))
        calls = {repr(call): call for call in in_turn if call is not None}
        if self._is_sent:
            known = {*map(repr, self._examples)}
        else:  # `wrapped("ab")[1]` does not prove that the result of `wrapped` can be sent
            known, calls = set[str](), {repr(call): call for call in self._examples} | calls
        yield from islice(
            (call for text, call in calls.items() if text not in known and len(text) <= _LARGEST),
            most,
        )

    async def first(self, calls: Sequence[Arguments]) -> tuple[Outcome | None, ...]:
        """Return the outcomes of the calls, leaving enough time to examine failures."""
        outcomes = await self._outcomes(calls, self._draft.rules.robust_s * _FIRST)
        is_sent = any(isinstance(outcome, Returned) for outcome in outcomes)
        self._may_send_nothing |= is_sent and self._draft.policy == "import"
        return outcomes

    async def _outcomes(
        self, calls: Sequence[Arguments], most_s: float = math.inf, each_s: float = 0
    ) -> tuple[Outcome | None, ...]:
        """Return the outcomes of calls in one worker; None for those that were not reached in time."""
        most_s = min(self._until - time.monotonic(), most_s, self._trial.limits.wall_s)
        if most_s <= 0:
            return (None,) * len(calls)
        each_s = each_s or self._draft.rules.robust_each_s
        return await self._trial.call_all(
            self._function, self._subject.modules, calls, most_s, each_s
        )

    async def idle(self, calls: Sequence[EndedCall]) -> list[Finding]:
        """Return the doubts about parameters that change nothing, with calls that should show a difference."""
        function = self._function
        names = [
            name
            for name in function.parameters["properties"]
            if name not in (function.rest, function.extra)
        ]
        asked = names if 1 < len(names) <= _MOST_DOUBTED and not self._by_chance else []
        doubtful = [
            name for name in asked if not (name.startswith("_") or _matters(_rows_of(calls, name)))
        ]
        return [doubt for name in doubtful if (doubt := await self._doubt(calls, name))]

    async def _doubt(self, calls: Sequence[EndedCall], name: str) -> Finding | None:
        own, check = self._function, checker(self._function.parameters)
        shown_values = [example[name] for example in self._examples if name in example]
        plain = [
            value for value in constants(self._subject.tree) if isinstance(value, str | int | float)
        ]
        values = [*shown_values, *(value for value in plain if len(str(value)) < _LONG_TEXT)]
        wanted = [call for call in _variations(calls, name, values) if fits(call, check)]
        more = [*zip(wanted, await self._outcomes(wanted), strict=True)]
        tried = [*calls, *more]
        rows, reached = (
            _rows_of(tried, name),
            sum(outcome is not None for _arguments, outcome in tried),
        )
        if reached < _REACHED * len(tried) or _matters(rows):
            return None  # a call that was not reached might differ
        answered = [
            {value: answer for value, answer in row.items() if answer != _REFUSED} for row in rows
        ]
        pairs = [row for row in answered if len(row) > 1]
        results, kinds = {answer for row in pairs for answer in row.values()}, set().union(*pairs)
        if (
            sum(len(row) - 1 for row in pairs) < _PAIRS
            or len(kinds) < _KINDS
            or len(results) < _RESULTS
        ):
            return None  # too little to conclude that the parameter has no effect
        returned = [
            (call, outcome.shown) for call, outcome in more if isinstance(outcome, Returned)
        ]
        telling = {
            write_call(own, call): shown for call, shown in returned if call not in self._examples
        }
        message = f"`{name}` changes nothing in what `{own.name}` returns: calls that differ in it alone gave the same"
        evidence = tuple(
            Evidence(call=call, returned=result) for call, result in [*telling.items()][:_MOST]
        )
        return Finding("doubt-parameter", message, _USE, own.line, evidence=evidence)

    def failures(
        self, calls: Sequence[Arguments], outcomes: Sequence[Outcome | None]
    ) -> Iterator[FailedCall]:
        """Yield the calls that failed."""
        for call, outcome in zip(calls, outcomes, strict=True):
            if not isinstance(outcome, Raised | TimedOut | Killed):
                continue
            if isinstance(outcome, Raised) and is_right(outcome, self._right):
                continue
            failure = FailedCall(call, outcome, tuple(unseen(call, self._examples)))
            is_reported = lacks_grant(outcome, self._draft.needs)  # with the examples
            if not is_reported and not (self._by_chance and failure.code == "fails-on"):
                yield failure

    async def smallest(self, failures: Iterator[FailedCall]) -> list[FailedCall]:
        """Return the shortest failure of each kind, each confirmed alone."""
        by_kind = sorted(failures, key=lambda failure: (failure.kind, failure.rank))
        first = [next(group) for _kind, group in groupby(by_kind, key=lambda failure: failure.kind)]
        selection = sorted(first, key=lambda failure: failure.rank)[:_MOST]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._confirm(failure)) for failure in selection]
        return [failure for task in tasks if (failure := task.result())]

    async def _confirm(self, failed: FailedCall) -> FailedCall | None:
        """Return a failure as it repeats in a separate worker; None if it does not."""
        (outcome,) = await self._outcomes([failed.call], each_s=_ALONE_S)
        if isinstance(outcome, TimedOut) and _WAITING_S <= (outcome.cpu_s or 0.0) < _BUSY_S:
            # The machine was busy: the call gets more time.
            function, modules = self._function, self._subject.modules
            (outcome,) = await self._trial.call_all(
                function, modules, [failed.call], 2 * _PATIENT_S, _PATIENT_S
            )
        repeat = next(self.failures([failed.call], [outcome]), None)
        if repeat is None or not repeat.is_like(failed):
            return None
        if not isinstance(repeat.outcome, TimedOut):
            return repeat
        cpu_s = repeat.outcome.cpu_s
        is_waiting, is_loop = (
            cpu_s is not None and cpu_s < _BUSY_S,
            may_loop(self._subject.tree, self._function.name),
        )
        may_end = (
            is_waiting
            or is_much(repeat.call)
            or not is_loop
            or self._draft.trials.slowest_s >= _SLOW_S
        )
        # A call that may end later is not certainly an endless loop.
        return replace(repeat, allowed_s=self._trial.limits.wall_s) if may_end else repeat

    def finding(self, failed: FailedCall) -> Finding:
        """Return the finding about a call that fails."""
        call = write_call(self._function, failed.call)
        code = "fails-on" if failed.code == "not-json" and self._may_send_nothing else failed.code
        evidence = (Evidence(call=call, returned=describe_outcome(failed.outcome)),)
        # The lines of the candidate's text may differ from those of its module.
        start = self._draft.own_function.line if self._draft.own_function else 0
        line = line_of(failed.outcome)
        is_inside = self._function.line <= line <= self._function.end_line
        line = line - self._function.line + start if start and is_inside else start
        return Finding(
            code, describe_failure(failed, call), fix_of(failed), line, evidence=evidence
        )
