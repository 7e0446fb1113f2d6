"""The audit of a library: what to improve in its functions, each with a proposal, and an overall score."""

import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass
from agent_core.functions.gate import Gate
from agent_core.functions.gate.call_arguments import write_call
from agent_core.functions.search import (
    NEAR,
    Confusion,
    FunctionSearch,
    confusions,
    describe_difference,
)
from agent_core.functions.service import function_facts
from agent_core.functions.service.call_records import by_function
from agent_core.functions.service.function_facts import Quarantine, ViewContext
from agent_core.functions.service.judgment import judgment_on
from agent_core.functions.worker_api import large_of
from agent_core.registry.function import Function
from agent_core.registry.registry import Snapshot
from agent_core.storage import KindRow, Stats
from sandbox.wire.large import Large
from sandbox.wire.values import read_row

if TYPE_CHECKING:
    from agent_core.functions.service import FunctionService

Proposal: TypeAlias = Literal[
    "rename", "reword", "merge", "retire", "fix", "document", "example", "split"
]

WEIGHTS: Final[Mapping[str, int]] = {
    "confusable": 30,
    "failing": 20,
    "missing-examples": 20,
    "undocumented-limit": 15,
    "unused": 10,
    "many-parameters": 5,
}
"""The parts of the score, weighted by the share of functions without such a finding."""

MAX_PARAMETERS: Final = 7
_COMPARED: Final = 40  # pairs that are compared by running them
_FAILURE_RUN = 3
_LEAST_FAILED = 2
_MAX_CALL_CHARS: Final = 120
_ENDS: Final = {"timed_out": "ran out of time", "killed": "was stopped at a limit of the sandbox"}


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One possible improvement of a function: the problem, the proposal, and the command that starts it.

    `steps` are the words of the command after `knapper functions`; `others` are other functions that it concerns.
    """

    function: str
    problem: Problem
    proposal: Proposal
    steps: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command as typed in a shell."""
        return f"knapper functions {shlex.join(self.steps)}"

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the published shape."""
        head = {"function": self.function, "others": [*self.others]}
        return {
            **head,
            **self.problem.to_json(),
            "proposal": self.proposal,
            "command": self.command,
        }


@dataclass(frozen=True, slots=True)
class ScorePart:
    """The remaining points for one kind of finding."""

    code: str
    points: float
    most: int
    functions: int


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The state of a library: a score from 0 to 100 with its parts, and the findings, the most serious first.

    Starters are left out: they came with the workspace, and nobody here is to blame for them.
    `trouble` says why the search for confusable functions was skipped, if it was.
    """

    functions: int
    score: int
    parts: tuple[ScorePart, ...]
    findings: tuple[AuditFinding, ...]
    trouble: str = ""


class Audit:
    """The audit of a workspace's functions."""

    def __init__(
        self,
        view: Callable[[], ViewContext],
        search: FunctionSearch,
        gate: Gate,
        quarantine: Quarantine,
    ) -> None:
        self._view = view
        self._search = search
        self._gate = gate
        self._quarantine = quarantine

    async def report(self) -> AuditReport:
        """Return the current state of the library."""
        view = self._view()
        rows = by_function(await view.store.call_stats())
        findings = [finding async for finding in self._confusable(view.snapshot, rows)]
        starters = await function_facts.starters_in(view)
        for name in sorted(await function_facts.unused(view, rows)):
            function = view.snapshot.functions[name]
            fix = "delete it if nobody needs it"
            findings.append(
                _finding(function, "unused", "nobody has called it for a long time", fix, "retire")
            )
        examples = await _calls_that_returned(view)
        own = {
            name: function
            for name, function in view.snapshot.functions.items()
            if name not in starters
        }
        for name, function in sorted(own.items()):
            present = next(
                (row for row in rows.get(name, ()) if row.version == function.body_hash), None
            )
            kinds = (
                await view.store.call_kinds(name)
                if present and present.returned < present.calls
                else ()
            )
            why = await self._failing(function, present, view)
            fixing = (
                [_finding(function, "failing", why, "fix it, or delete it", "fix")] if why else []
            )
            findings += fixing or _limits(
                function, [row for row in kinds if row.version == function.body_hash]
            )
            if not function.examples:
                call, result = examples.get(name, (f"{name}(…)", "…"))
                recorded = ", such as this recorded one if it is right" if name in examples else ""
                steps = "add-example", name, "--call", call, "--expected", result
                fix = f"add a call with its result{recorded}"
                findings.append(
                    _finding(
                        function, "missing-examples", "it has no example", fix, "example", steps
                    )
                )
            many = len(function.parameters.get("properties", {}))
            if many > MAX_PARAMETERS:
                fix = "split it, or take what belongs together as one object"
                findings.append(
                    _finding(function, "many-parameters", f"it has {many} parameters", fix, "split")
                )
        findings = [finding for finding in findings if finding.function in own]
        findings.sort(key=lambda finding: [*WEIGHTS].index(finding.problem.code))
        count = len(own)
        parts = list[ScorePart]()
        for code, most in WEIGHTS.items():
            those = [finding for finding in findings if finding.problem.code == code]
            affected = {
                name
                for finding in those
                for name in {finding.function, *finding.others} & own.keys()
            }
            points = round(most * (1 - len(affected) / count), 1) if count else most
            parts.append(ScorePart(code, points, most, len(affected)))
        score = round(sum(part.points for part in parts))
        return AuditReport(count, score, tuple(parts), tuple(findings), self._search.index.trouble)

    async def _confusable(
        self, snapshot: Snapshot, rows: Mapping[str, Sequence[Stats]]
    ) -> AsyncIterator[AuditFinding]:
        confused_pairs = await confusions(self._search.index, snapshot)
        told = {frozenset((pair.name, pair.other)) for pair in confused_pairs}
        near = sorted(await self._search.index.near(snapshot, NEAR), key=lambda row: -row[2])
        # Two functions may do the same even if no request has confused them yet.
        alike = [Confusion(*row, "") for row in near if frozenset(row[:2]) not in told]
        for at, pair in enumerate(
            [*alike[: max(0, _COMPARED - len(confused_pairs))], *confused_pairs]
        ):
            first = snapshot.functions[pair.name]
            second = snapshot.functions[pair.other]
            likeness = (
                await self._gate.compare(first, second, snapshot) if at < _COMPARED else "unknown"
            )
            calls = {
                name: sum(row.calls for row in rows.get(name, ()))
                for name in (pair.name, pair.other)
            }
            if likeness == "same":
                kept, left = sorted((pair.name, pair.other), key=lambda name: (-calls[name], name))
                how = (
                    "a request cannot tell it from"
                    if pair.request
                    else "it says nearly the same as"
                )
                message = f"{how} `{kept}`, and both give the same results on the examples of both"
                fix = f"call `{kept}` in its place, and delete it"
                steps = "delete", left
                yield _finding(
                    snapshot.functions[left], "confusable", message, fix, "merge", steps, (kept,)
                )
            elif pair.request:
                also = ", and the two give different results" if likeness == "different" else ""
                yield confused(pair, snapshot, calls, also=also)

    async def _failing(self, function: Function, stats: Stats | None, view: ViewContext) -> str:
        """Return why a function needs a fix, or an empty text; `stats` are the calls of its current version."""
        verdict = await judgment_on(view.store, function.body_hash, function.name)
        if self._quarantine.holds(function):
            return "it kept failing and is quarantined"
        if function_facts.is_unfit(function, verdict, view.snapshot):
            return "its examples fail with the code that it uses now"
        if verdict is not None and verdict.thumb == "bad":
            return "its result was called wrong"
        if stats is None:
            return ""
        is_often = stats.failed >= _LEAST_FAILED and 2 * stats.failed > stats.calls
        return (
            f"{stats.failed} of its {stats.calls} calls failed"
            if stats.failing >= _FAILURE_RUN or is_often
            else ""
        )


def audit_of(service: "FunctionService") -> Audit:
    """Return the audit of a workspace's functions."""
    return Audit(service.view, service.finder, service.parts.gate(), service.quarantine)


def confused(
    confusion: Confusion, snapshot: Snapshot, calls: Mapping[str, int], also: str = ""
) -> AuditFinding:
    """Return the finding about two functions that a request confuses."""
    function = snapshot.functions[confusion.name]
    other = snapshot.functions[confusion.other]
    message = f"a request cannot tell it from `{confusion.other}`: “{confusion.request}” finds that one first{also}"
    if calls[confusion.other] and not calls[confusion.name]:
        fix = f"delete it if `{confusion.other}` does, or {describe_difference(function, other)}"
        return _finding(function, "confusable", message, fix, "retire", others=(confusion.other,))
    numbered = confusion.name.rstrip("0123456789_") == confusion.other.rstrip("0123456789_")
    fix = (
        f"rename it, and {describe_difference(function, other)}"
        if numbered
        else describe_difference(function, other)
    )
    return _finding(
        function,
        "confusable",
        message,
        fix,
        "rename" if numbered else "reword",
        others=(confusion.other,),
    )


def _limits(function: Function, kinds: Sequence[KindRow]) -> list[AuditFinding]:
    """Return a finding if calls ended in ways that the docstring does not mention."""
    raised = [f"raised `{row.error}` {row.calls} ×" for row in kinds if row.outcome == "raised"]
    ended = [f"{_ENDS[row.outcome]} {row.calls} ×" for row in kinds if row.outcome in _ENDS]
    if not raised and not ended:
        return []
    errors = ", ".join(f"`{row.error}: …`" for row in kinds if row.outcome == "raised")
    fix = (
        f"write {errors} under `Raises:`" if errors else "say in its docstring how much it can take"
    )
    message = f"it {', '.join([*raised, *ended])}, of which its docstring says nothing"
    return [_finding(function, "undocumented-limit", message, fix, "document")]


def _finding(
    function: Function,
    code: str,
    message: str,
    fix: str,
    proposal: Proposal,
    steps: tuple[str, ...] = (),
    others: tuple[str, ...] = (),
) -> AuditFinding:
    verb = "delete" if proposal == "retire" else "edit"
    problem = Problem(code, message, Place(function.path, function.line), fix, "warns")
    return AuditFinding(function.name, problem, proposal, steps or (verb, function.name), others)


async def _calls_that_returned(view: ViewContext) -> dict[str, tuple[str, str]]:
    """Return the newest short call that returned, with its result, for each function without examples."""
    calls: dict[str, tuple[str, str]] = {}
    for row in await view.store.recorded_calls(outcomes=("returned",)):
        function = view.snapshot.functions.get(row.function)
        if function is None or function.examples or row.function in calls:
            continue
        arguments = row.data["arguments"]
        value = row.data["outcome"]["value"]
        if value is None or not isinstance(arguments, dict):
            continue
        value = read_row(value)
        given = read_row(arguments)  # an example has it as Python writes it
        if isinstance(value, Large) or large_of(given):
            continue
        if arguments.keys() <= {*function.parameters["properties"]}:
            call = write_call(function, arguments)
            calls |= (
                {row.function: (call, repr(value))}
                if max(len(call), len(repr(value))) <= _MAX_CALL_CHARS
                else {}
            )
    return calls
