"""Stage 8, examples: each example runs in a worker of its own, and its result is compared here with the docstring.

A disagreement shows both sides and presumes neither. A pure function needs two examples with different
results; one with effects that cannot run here is a draft, and says so.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from agent_core.access.grants import Grants
from agent_core.base.problem import Evidence
from agent_core.base.untrusted import fence
from agent_core.registry.examples import Example
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from sandbox import Evaluation, Killed, Outcome, Raised, Refused, Returned, TimedOut

from .call_arguments import edge_calls, recombined, shown, written
from .callees import Callees, can_be_called, why_unrun
from .candidate import GivenExample
from .capability import uses_context
from .draft import Draft, ExampleTrials, Finding
from .examples.agreement import agrees, doctest_form, given_agrees, promises_floats
from .examples.excuses import SKIP, excuse, option_for, with_directives, with_docstring
from .examples.sufficiency import ALIKE, Unproven, contradicted, is_unproven, too_few
from .substance import HOLLOW
from .trial import TrialTools
from .verdict import TOO_FEW, Disagreement

STAGE = "examples"
_SHUT = frozenset(  # what is raised where nothing of the world outside is granted
    {"PermissionError", "FileNotFoundError", "NotADirectoryError", "URLError", "ConnectionError", "ConnectError"}
    | {"RequestException", "MaxRetryError", "OperationalError", "OSError", "gaierror"}
)
_ABSENT = frozenset({"ModuleNotFoundError", "ImportError"})
EXCUSED = "example-directives"
"""The code of the fix that writes doctest directives at a library's examples."""
_ENOUGH = 2
_MOST_OFFERED, _LONGEST = 12, 200  # calls that are tried for another result, and its characters
MOST = 50  # examples that are run of one function


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """One example as it ran: what is written, what it returned, and whether the two agree.

    `unrun` says what it reached for in vain: then it did not run, and shows nothing.
    """

    example: Example | GivenExample
    outcome: Outcome
    agreed: bool
    unrun: str = ""

    @property
    def call(self) -> str:
        """The call as text."""
        return self.example.call

    @property
    def line(self) -> int:
        """The example's line in its text; 0 for one that was sent next to it."""
        return self.example.line if isinstance(self.example, Example) else 0

    @property
    def expected(self) -> str:
        """The expected result written under the call."""
        raises = self.example.raises if isinstance(self.example, Example) else ""
        return raises or self.example.expected.rstrip("\n")

    @property
    def printed(self) -> str:
        """The output of a call that returned, with which `returned` then begins; not trusted."""
        return self.outcome.output.rstrip("\n") if isinstance(self.outcome, Returned) else ""

    @property
    def value(self) -> str:
        """The result without the printed output; not trusted."""
        return self.returned.removeprefix(self.printed).lstrip("\n") or "None"

    @property
    def returned(self) -> str:
        """The result in the form in which an example writes it; not trusted."""
        match self.outcome:
            case Returned():
                return doctest_form(self.outcome).text.rstrip("\n") or "None"
            case Raised(failure=failure):
                return f"{failure.type}: {failure.message}".rstrip(": ")
            case TimedOut(limit_s=limit_s):
                return f"nothing within {limit_s:g} s"
            case Killed(reason=reason) | Refused(reason=reason):
                return reason


async def prove(draft: Draft, trial: TrialTools) -> Draft:
    """Return the draft with the results of its examples."""
    function = draft.loaded
    if function is None or draft.tree is None:
        return _counted(draft).skip("the module could not be imported")
    if draft.has(*HOLLOW):
        return draft.skip("the body does nothing yet")
    unproven = _unproven(draft, function, len(function.examples) + len(draft.candidate.examples))
    if unproven == "effects":
        message = f"`{function.name}` uses what an example cannot have here, so it is added as a draft"
        draft = replace(draft, trials=ExampleTrials(is_unproven=True))
        return replace(
            draft.with_findings(STAGE, [Finding("unproven", message)]),
            note="it acts on the outside, which is not tried here",
        )
    draft, examples, results = await _tried(draft, function, trial)
    if draft.shows("unproven"):
        unproven = "effects"
    trials = _trials(results, unproven)
    line = draft.function.lineno if draft.function else function.line  # of the candidate's text, as its author sees it
    missing = [*too_few(replace(function, line=line), examples, unproven)]
    if any(finding.code in {*TOO_FEW, *ALIKE} for finding in missing) and not draft.candidate.exact:
        trials = replace(trials, offered=await _other_call(results, draft, trial))
    twice = contradicted(examples)
    told_of = [result for result in results if not result.agreed and result.call not in twice]
    offers = [_offering(finding, trials.offered) for finding in missing]
    draft = replace(draft, trials=trials, note=_note(trials.agreed, len(results), len(examples)))
    return draft.with_findings(STAGE, [*(example_finding(result, function.name) for result in told_of), *offers])


def _counted(draft: Draft) -> Draft:
    """Return a draft that waits for a package with what its examples lack already now: no human is asked in vain."""
    name, written = draft.candidate.name, draft.own.functions if draft.own else ()
    function = next((function for function in written if function.name == name), None)
    if function is None or draft.tree is None or not draft.has("needs-packages") or draft.has(*HOLLOW):
        return draft
    examples: list[Example | GivenExample] = [*function.examples, *draft.candidate.examples]
    unproven = _unproven(draft, function, len(examples))
    return draft if unproven else draft.with_findings(STAGE, too_few(function, examples, ""))


async def _tried(
    draft: Draft, function: Function, trial: TrialTools
) -> tuple[Draft, list[Example | GivenExample], list[ExampleResult]]:
    """Return the draft, the examples that count and their results, without those that a grant alone can give."""
    assert draft.trial is not None
    examples: list[Example | GivenExample] = [*function.examples, *draft.candidate.examples]
    tried = await run(examples[:MOST], function.module, draft.trial, trial, returns=function.returns)
    results = [result for result in tried if not wants_grant(result, draft.needs)]
    draft, excused = await _excused(draft, results, trial)
    if unrun := len(tried) - len(results):
        message = f"{unrun} of its examples need what a grant alone gives, so it is added as a draft"
        draft = draft.with_findings(STAGE, [Finding("unproven", f"`{function.name}`: {message}")])
    return (draft, examples, results) if excused is None else (draft, [item.example for item in excused], excused)


def _unproven(draft: Draft, function: Function, count: int) -> Unproven:
    """Return why its examples cannot prove a function, or not without more."""
    assert draft.tree is not None
    unproven = is_unproven(draft.tree, draft.function, function)
    if unproven == "effects" and draft.trial and can_be_called(draft.tree, draft.trial, draft.guarded):
        return "calls"
    if not unproven and (draft.needs.read or draft.needs.write):
        return "calls"  # what it does depends on files, which an example has only if it makes them itself
    if not unproven and count < _ENOUGH and {"scratch", "state"} & uses_context(draft.tree):
        return "calls"  # its files and its state are those of earlier calls, which an example does not have
    return unproven


async def _excused(
    draft: Draft, results: Sequence[ExampleResult], trial: TrialTools
) -> tuple[Draft, list[ExampleResult] | None]:
    """Return the draft of a library's function with directives for examples that cannot agree here, and the results
    of the others; None if there is nothing to excuse.
    """
    function, failing = draft.loaded, [result for result in results if not result.agreed and result.line]
    if draft.policy != "import" or not draft.rules.makes(EXCUSED) or not failing:
        return draft, None
    assert function is not None
    assert draft.trial is not None
    again = await run([result.example for result in failing], function.module, draft.trial, trial)
    reasons = {result.line: _reason(result, repeat, draft) for result, repeat in zip(failing, again, strict=True)}
    directives = {line: directive for line, (directive, _) in reasons.items() if directive}
    fixed = with_docstring(draft, with_directives(draft.text, directives)) if directives else None
    if fixed is None or fixed.own is None:
        return draft, None
    own = next((own for own in fixed.own.functions if own.name == function.name), function)
    remaining = {example.line: example for example in own.examples}
    left_out = [line for line in directives if line not in remaining]
    message = f"wrote doctest directives at {len(directives)} of its {len(function.examples)} examples"
    fixed = replace(fixed, fixes=(*fixed.fixes[:-1], replace(fixed.fixes[-1], message=message)))
    findings = [
        Finding("example-left-out", f"an example is left out: {reasons[line][1]}", None, line) for line in left_out
    ]
    is_float = promises_floats(function.returns)
    others = [(result, remaining.get(result.line)) for result in results]
    return fixed.with_findings(STAGE, findings), [
        _result(example, result.outcome, is_float) if example else result
        for result, example in others
        if example is not None or not result.line
    ]


def _reason(result: ExampleResult, second_result: ExampleResult, draft: Draft) -> tuple[str, str]:
    """Return the directive for an example that does not agree, and why it is left out; both empty if it is wrong."""
    assert isinstance(result.example, Example)
    assert draft.tree is not None
    is_float = bool(draft.loaded and promises_floats(draft.loaded.returns))
    options = option_for(result.example, result.outcome, is_float=is_float)
    if draft.needs.is_outward and not options:
        return f"+{SKIP}", "it needs what a grant alone gives"
    reason = "" if options else excuse(result.example, result.outcome, second_result.outcome, draft.tree)
    return options or (f"+{SKIP}" if reason else ""), reason


def _trials(results: Sequence[ExampleResult], unproven: str) -> ExampleTrials:
    agreed = sum(result.agreed for result in results)
    is_unproven = unproven == "effects" or (bool(unproven) and agreed < (2 if unproven == "calls" else 1))
    ended = [result.outcome for result in results if not isinstance(result.outcome, Refused)]
    slowest_s = max((outcome.cpu_s or 0.0 for outcome in ended), default=0.0)
    returned = [result for result in results if isinstance(result.outcome, Returned)]
    values = tuple((result.call, result.outcome.value) for result in returned if result.agreed)  # type: ignore[union-attr]
    return ExampleTrials(agreed, tuple(_disagreements(results)), is_unproven, values, slowest_s=slowest_s)


async def _other_call(results: Sequence[ExampleResult], draft: Draft, trial_tools: TrialTools) -> Disagreement | None:
    """Return a call with another result than the examples that agree, or than they return if none agrees.

    It is made of the examples' values, or stands at the edges of the types.
    """
    known_results = {result.returned for result in results if result.agreed}
    known_results = known_results or {disagreement.returned for disagreement in _disagreements(results)}
    own, trial = draft.loaded, draft.trial
    if not known_results or trial is None or own is None:
        return None
    schema, names = own.parameters, [*own.parameters["properties"]]
    given = shown([result.call for result in results], own.name, schema, own.rest, own.extra)
    anew = (arguments for arguments, _name in recombined(given, schema))
    calls = (written(own.name, call, names, own.rest, own.extra) for call in (*anew, *edge_calls(schema, given)))
    tried = [GivenExample(call, "") for call in islice(dict.fromkeys(calls), _MOST_OFFERED)]
    for result in await run(tried, own.module, trial, trial_tools):
        is_line = len(result.returned) <= _LONGEST and "\n" not in result.returned and result.returned != "None"
        if isinstance(result.outcome, Returned) and is_line and result.returned not in known_results:
            return Disagreement(result.call, "", result.returned, 0)
    return None


def _offering(finding: Finding, offered: Disagreement | None) -> Finding:
    """Return the finding that all results are alike, with a call in its fix that gives another."""
    if offered is None or finding.code not in ALIKE:
        return finding
    first = "take one of the two out; " if finding.code == "contradictory-examples" else ""
    fix = f"{first}add a line `>>> {offered.call}`, which gives another result, and that result on the line below"
    return replace(finding, fix=fix)


def wants_grant(result: ExampleResult, grants: Grants) -> bool:
    """Check whether an example failed because outside access is not granted, which only makes it a draft."""
    return not result.agreed and lacks_grant(result.outcome, grants)


def lacks_grant(outcome: Outcome, grants: Grants) -> bool:
    """Check whether a call failed as calls do for which some of these grants are not given."""
    if not isinstance(outcome, Raised):
        return False
    kind = outcome.failure.type.rpartition(".")[2]
    return (grants.is_outward and kind in _SHUT) or (bool(grants.packages) and kind in _ABSENT)


def _note(agreed: int, ran: int, written: int) -> str:
    if not written:
        return "it has no example"
    suffix = f"; {written - ran} more were not run" if written > ran else ""
    return f"{agreed} of {ran} examples agree{suffix}"


async def run(
    examples: Sequence[Example | GivenExample], module: str, snapshot: Snapshot, trial: TrialTools, *, returns: str = ""
) -> tuple[ExampleResult, ...]:
    """Run every example in a worker of its own, as parallel as the sandbox allows; `returns` is the promised type."""
    is_float = promises_floats(returns)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_outcome(example, module, Callees(snapshot, trial))) for example in examples]
    return tuple(_result(example, task.result(), is_float) for example, task in zip(examples, tasks, strict=True))


async def rerun(function: Function, snapshot: Snapshot, trial: TrialTools, grants: Grants) -> tuple[ExampleResult, ...]:
    """Run the examples of a function that has these grants; those that lack one are said not to have run."""
    is_float, name = promises_floats(function.returns), function.name

    async def tried(example: Example) -> ExampleResult:
        handler = Callees(snapshot, trial)
        result = _result(example, await _outcome(example, function.module, handler), is_float)
        return replace(result, unrun="" if result.agreed else why_unrun(name, result.outcome, handler.refused, grants))

    return tuple(await asyncio.gather(*map(tried, function.examples)))


async def _outcome(example: Example | GivenExample, module: str, callees: Callees) -> Outcome:
    setup = example.setup if isinstance(example, Example) else ()
    return await callees.trial.run(callees.snapshot.modules, module, Evaluation(setup, example.call), callees)


def _result(example: Example | GivenExample, outcome: Outcome, is_float: bool) -> ExampleResult:  # noqa: FBT001 - a fact
    if isinstance(example, Example):
        return ExampleResult(example, outcome, agrees(example, outcome, is_float=is_float))
    return ExampleResult(example, outcome, given_agrees(example, outcome))


def _disagreements(results: Sequence[ExampleResult]) -> Iterator[Disagreement]:
    for result in results:
        if not result.agreed and isinstance(result.outcome, Returned):
            yield Disagreement(result.call, result.expected, result.returned, result.line)


def example_finding(result: ExampleResult, name: str) -> Finding:
    """Return the finding about an example that does not agree."""
    evidence = (Evidence(call=result.call, returned=result.returned, expected=result.expected),)
    wrote = f"for `{result.call}` you wrote {fence(result.expected or '(no result)', 120)}"
    match result.outcome:
        case Returned():
            back = fence(result.returned)
            fix = f"if {back} is right, write it there; if not, fix the body"
            came = f"it printed {back}" if result.printed and result.value == "None" else f"it returned {back}"
            if result.printed and result.value != "None":
                came = f"it printed {fence(result.printed, 120)} and returned {fence(result.value, 120)}"
                fix = f"an example shows both: write {back} there if that is right; if not, fix the body"
            return Finding("example-disagrees", f"{wrote}, {came}", fix, result.line, 0, evidence)
        case Raised(failure=failure):
            frame = failure.frames[-1] if failure.frames else None
            at = f" at {fence(frame.source.strip(), 120)}" if frame and frame.source else ""
            fix = "fix that line; an error that is meant is written as a `Traceback (most recent call last):`"
            return Finding(
                "example-raises", f"{wrote}, it raised {fence(result.returned)}{at}", fix, result.line, 0, evidence
            )
        case TimedOut():
            fix = "look for a loop that never ends, or give the example less to do"
            return Finding("example-hangs", f"{wrote}, there was {result.returned}", fix, result.line, 0, evidence)
        case Killed() | Refused():
            fix = "fix the call, or the body where it asks for too much"
            return Finding(
                "example-stopped", f"{wrote}, it was stopped: {fence(result.returned)}", fix, result.line, 0, evidence
            )
