"""The stage "examples": each example runs in a separate worker, and its result is compared with the docstring.

A disagreement shows both sides and assumes neither to be right. A pure function needs two examples with different
results. A function with effects that cannot run here becomes a draft with a note.
"""

import ast
import asyncio
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from itertools import islice
from typing import Any

from agent_core.access.grants import NOTHING, FileRequests, Grants, Question
from agent_core.access.grants.content import runnable, runs_among, withheld
from agent_core.access.grants.value import written as grant_item
from agent_core.base.offload import aside
from agent_core.base.problem import Evidence, Problem
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import fence
from agent_core.registry.arguments import read as read_arguments
from agent_core.registry.examples import Example
from agent_core.registry.function import Function
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from sandbox import (
    Evaluation,
    FunctionCall,
    Job,
    Killed,
    Outcome,
    Raised,
    Refused,
    Returned,
    TimedOut,
)
from sandbox.access import NOTHING as NO_ACCESS
from sandbox.code import Modules
from sandbox.wire.lines import lines_of
from sandbox.wire.requests import CalledHere, RequestRefused, without_handler

from ..answers import callee_error
from .call_arguments import edge_calls, read_calls, recombine, write_call
from .capability import may_open
from .draft import (
    NOT_IMPORTED,
    NOTHING_YET,
    OUTSIDE,
    Draft,
    ExampleTrials,
    Finding,
    GivenExample,
    TrialSubject,
)
from .examples import (
    ALIKE,
    Unproven,
    agrees,
    contradictions,
    doctest_form,
    may_be_value,
    promises_floats,
    same,
    too_few,
    unprovable,
    value_imports,
)
from .running import EFFECTS, called_by_self, is_by_chance, uses_context
from .substance import HOLLOW
from .tree import bound_names, expression, function_in, parse
from .trial import Granted, TrialTools
from .verdict import TOO_FEW, Disagreement

SKIP = "SKIP"
_ELSEWHERE = frozenset({"NameError", "ImportError", "ModuleNotFoundError"})
_ADDRESS = re.compile(
    r"\b0x(?:[0-9a-fA-F]{4,}\b|\.{3})"
)  # also matches an address with an ellipsis
_TEXT_OPTIONS = (("NORMALIZE_WHITESPACE",), ("ELLIPSIS",), ("ELLIPSIS", "NORMALIZE_WHITESPACE"))
_OPEN = re.compile(r"""\"\"\"|\'\'\'""")


def option_for(example: Example, outcome: Outcome, *, is_float: bool) -> str:
    """Return the doctest options under which an example agrees, or an empty text.

    Another Python version may word an error differently; in a literal, each character counts.
    """
    node = expression(example.expected)
    is_plain = node is not None and not any(
        getattr(inner, "value", None) is ... for inner in ast.walk(node)
    )
    options = _TEXT_OPTIONS if isinstance(outcome, Returned) and not is_plain else ()
    for names in (("IGNORE_EXCEPTION_DETAIL",),) if isinstance(outcome, Raised) else options:
        loose = replace(example, options=(*example.options, *((name, True) for name in names)))
        if agrees(loose, outcome, is_float=is_float):
            return ", ".join(f"+{name}" for name in names)
    return ""


def excuse(example: Example, outcome: Outcome, again: Outcome, code: ast.Module) -> str:
    """Return why a failing example is inconclusive, or an empty text if it is wrong.

    `again` is the outcome of a second run, `code` the module with its function.
    """
    match outcome:
        case Raised(failure=failure):
            if failure.type == "Unsendable":
                return "its result is nothing that can be sent"
            frames, kind = failure.frames, failure.type.rpartition(".")[2]
            is_package = kind in (
                "ImportError",
                "ModuleNotFoundError",
            )  # also when the function itself raises it
            is_own = is_package or (
                bool(frames) and frames[-1].path.startswith(("<example", "<setup"))
            )
            is_module = kind == "AttributeError" and failure.message.startswith("module ")
            return (
                "it uses what is not here" if is_own and (kind in _ELSEWHERE or is_module) else ""
            )
        case TimedOut():
            return "it takes too long"
        case Returned() if not example.raises:
            return _uncertain(example, outcome, again, code)
    return ""


def _uncertain(example: Example, returned: Returned, again: Outcome, code: ast.Module) -> str:
    """Return why the result may legitimately differ from the written one, or an empty text."""
    if not example.expected.strip():
        return "no result is written"
    if _ADDRESS.search(example.expected):
        return "its result shows an address"
    if not isinstance(again, Returned) or doctest_form(again) != doctest_form(returned):
        return "its result differs from one run to the next"
    own = parse("\n".join((*example.setup, example.call)))
    is_chance = is_by_chance(code) or (isinstance(own, ast.Module) and is_by_chance(own))
    return "chance or the clock decides its result" if is_chance else ""


def with_directives(text: str, directives: Mapping[int, str]) -> str:
    """Return the text with a doctest directive at the end of each example that begins on one of these lines."""
    lines = lines_of(text)
    for number, options in directives.items():
        at = number - 1
        if not 0 <= at < len(lines) or not lines[at].lstrip().startswith(">>>"):
            continue
        while at + 1 < len(lines) and re.match(r"\s*\.\.\.(?: |$)", lines[at + 1]):
            at += 1
        bare = lines[at].rstrip("\r\n")
        is_open = _OPEN.search("".join(lines[number - 1 : at + 1])) or lines[at].rstrip().endswith(
            "\\"
        )
        if not is_open:  # otherwise no comment can be added there
            lines[at] = f"{bare}  # doctest: {options}{lines[at][len(bare) :]}"
    return "".join(lines)


def with_docstring(draft: Draft, text: str) -> Draft | None:
    """Return the draft with a text that only changes the docstring of its function; None if more changes."""
    fixed, module = draft.with_fix(EXCUSED, "", text), draft.candidate.module
    around, placed = fixed.around, fixed.placed
    is_same = _without_docstring(fixed) == _without_docstring(draft)
    if text == draft.text or not is_same or draft.reading is None or isinstance(placed, Problem):
        return None
    reading = read_module(ModuleSource.of(module, placed, around.path if around else ""))
    before = {function.name: function for function in draft.reading.functions}
    if {function.name for function in reading.functions} - before.keys():
        return None
    functions = tuple(  # keep what a worker reported of its types
        replace(
            function,
            parameters=before[function.name].parameters,
            unresolved=before[function.name].unresolved,
        )
        for function in reading.functions
    )
    reading = replace(reading, functions=functions)
    own = read_module(ModuleSource.of(module, text, draft.candidate.path), tree=fixed.tree)
    return replace(fixed, own=own, reading=reading, trial=draft.snapshot.with_module(reading))


def _without_docstring(draft: Draft) -> str:
    """Return the dump of a draft's tree without the docstring of its function."""
    dump = ast.dump(draft.tree) if draft.tree else ""
    return dump.replace(ast.dump(draft.function.body[0]), "", 1) if draft.function else dump


_SHUT_PATH = re.compile(r"\[Errno \d{1,3}\] [^:]{1,99}: (?P<path>'[^']{1,300}'|\"[^\"]{1,300}\")")
_SCRATCH = re.compile(r"/scratch/|.*/knapper-scratch-")
_DEEPEST = 5
_MOST = 30  # functions called, directly or indirectly


def can_be_called(tree: ast.Module, snapshot: Snapshot, guarded: frozenset[str]) -> bool:
    """Check whether a function only uses `self` to call functions that can run in an example."""
    waiting, seen = list(called_by_self(tree)), set[str]()
    if uses_context(tree) & EFFECTS != {"call"} or not waiting:
        return False
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        callee = snapshot.functions.get(name)
        node = function_in(snapshot.modules[callee.module].text, name) if callee else None
        if callee is None or node is None or name in guarded or len(seen) > _MOST:
            return False
        inner = ast.Module([node], [])
        is_caller = uses_context(inner) & EFFECTS == {"call"}
        if (
            unprovable(TrialSubject(callee, node, inner, snapshot)) not in ("", "no-parameters")
            and not is_caller
        ):
            return False
        waiting += called_by_self(inner)
    return True


@dataclass(frozen=True, slots=True)
class Callees:
    """The handler of an example's requests: granted files are read, and other functions called, but without grants.

    If the example has no grants either, what it calls runs next to it, in these `shared` modules if they have all that
    it uses, and sees the files that it made. All other requests are refused and recorded.
    """

    snapshot: Snapshot
    trial: TrialTools
    files: FileRequests | None = None
    shared: Modules = field(default_factory=dict)
    depth: int = 1
    refused: list[str] = field(default_factory=list)

    async def __call__(
        self, name: str, arguments: dict[str, Any]
    ) -> Any:  # Any: values that cross the sandbox
        """Return the result of the called function.

        Raises:
            RequestRefused: it cannot be called, or did not return.
        """
        if self.files is not None and name.startswith("file_"):
            return await self.files.answer(name, arguments)
        if name != "call":
            if name != "progress" and not name.startswith("file_"):
                self.refused.append(f"`self.{name}` reaches what an example does not have")
            return await without_handler(name, arguments)
        function = self.snapshot.functions.get(str(arguments.get("function")))
        if function is None or self.depth > _DEEPEST:
            raise RequestRefused(
                f"there is no function `{arguments.get('function')}` that an example may call here"
            )
        text = json.dumps(arguments.get("arguments") or {}, default=str)
        checked = read_arguments(text, function.parameters)
        if not isinstance(checked, dict):
            raise RequestRefused("; ".join(problem.message for problem in checked))
        if self.shared and runs_among(function, self.shared, self.snapshot.modules):
            return CalledHere(function.module, function.name, checked)
        modules = runnable(function, self.snapshot.modules)
        job = Job(
            modules,
            function.module,
            FunctionCall(function.name, checked),
            self.trial.limits,
            NO_ACCESS,
        )
        outcome = await self.trial.sandbox.run(
            replace(job, handler=replace(self, files=None, depth=self.depth + 1))
        )
        if isinstance(outcome, Returned):
            return outcome.value
        if path := _shut_path(outcome):
            self.refused.append(
                f"`{function.name}` opens {fence(path)}, and what an example calls has no grants"
            )
        raise callee_error(function.name, outcome)


def _shut_path(outcome: Outcome) -> str:
    """Return the path that could not be opened, as a grant names it; empty if there is none or it is in scratch."""
    failure = outcome.failure if isinstance(outcome, Raised) else None
    while failure is not None:
        match = _SHUT_PATH.match(failure.message)
        if match and failure.type in ("FileNotFoundError", "PermissionError", "OSError"):
            path = match["path"][1:-1]
            return (
                "" if _SCRATCH.match(path) else grant_item("read", posixpath.normpath(path)) or ""
            )
        failure = failure.cause
    return ""


STAGE = "examples"
_SHUT = frozenset(  # errors that are raised when access to the outside is not granted
    {
        "PermissionError",
        "FileNotFoundError",
        "NotADirectoryError",
        "URLError",
        "ConnectionError",
        "ConnectError",
    }
    | {"RequestException", "MaxRetryError", "OperationalError", "OSError", "gaierror"}
)
_ABSENT = frozenset({"ModuleNotFoundError", "ImportError"})
EXCUSED = "example-directives"
"""The code of the fix that adds doctest directives to a library's examples."""
_ENOUGH = 2
_MOST_OFFERED, _LONGEST = 12, 200  # calls tried for another result, and the length of that result
MOST = 50  # examples of one function that are run


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """The result of one example: what is written, what it returned, and whether the two agree.

    `unrun` says what it needed and did not have: then it did not run, and proves nothing. `lacks` says what it may have
    failed for.
    """

    example: Example | GivenExample
    outcome: Outcome
    agreed: bool
    unrun: str = ""
    lacks: str = ""

    @property
    def call(self) -> str:
        """The call as text."""
        return self.example.call

    @property
    def line(self) -> int:
        """The example's line in its text; 0 for one that was sent with the code."""
        return self.example.line

    @property
    def expected(self) -> str:
        """The expected result written under the call."""
        return self.example.raises or self.example.expected.rstrip("\n")

    @property
    def printed(self) -> str:
        """The printed output of a call that returned, with which `returned` then begins; untrusted."""
        return self.outcome.output.rstrip("\n") if isinstance(self.outcome, Returned) else ""

    @property
    def value(self) -> str:
        """The result without the printed output; untrusted."""
        return self.returned.removeprefix(self.printed).lstrip("\n") or "None"

    @property
    def returned(self) -> str:
        """The result as an example writes it; untrusted."""
        match self.outcome:
            case Returned():
                return doctest_form(self.outcome).removesuffix("\n") or "None"
            case Raised(failure=failure):
                return f"{failure.type}: {failure.message}".rstrip(": ")
            case TimedOut(limit_s=limit_s):
                return f"nothing within {limit_s:g} s"
            case Killed(reason=reason) | Refused(reason=reason):
                return reason


async def prove(draft: Draft, trial: TrialTools) -> Draft:
    """Return the draft with the results of its examples."""
    own = draft.loaded
    if own is None:
        function, node = draft.own_function, draft.function
        if (
            function
            and draft.tree
            and node
            and draft.has("needs-packages")
            and not draft.has(*HOLLOW)
        ):
            # It waits for a package: with too few examples, a human would be asked in vain.
            subject = TrialSubject(function, node, draft.tree, draft.snapshot)
            unproven = await aside(draft.size, _unproven, draft, subject)
            draft = (
                draft
                if unproven
                else draft.with_findings(STAGE, too_few(function, draft.examples, ""))
            )
        return draft.skip(NOT_IMPORTED)
    if draft.has(*HOLLOW):
        return draft.skip(NOTHING_YET)
    unproven = await aside(draft.size, _unproven, draft, own)
    line = own.node.lineno  # in the candidate's text, which its author sees
    if unproven == "effects":
        message = f"`{own.function.name}` uses what an example cannot have here, so it is added as a draft"
        draft = replace(draft, trials=ExampleTrials(is_unproven=True), note=OUTSIDE)
        return draft.with_findings(STAGE, [Finding("unproven", message, line=line)])
    examples: Sequence[Example | GivenExample] = draft.examples
    tried = await run(examples[:MOST], own.function, own.snapshot, trial)
    results = [
        result for result in tried if result.agreed or not lacks_grant(result.outcome, draft.needs)
    ]
    unrun = len(tried) - len(results)
    draft, excused = await _excuse_failures(draft, own, results, trial)
    if excused is not None:
        examples, results = [item.example for item in excused], excused
    if unrun:
        message = (
            f"`{own.function.name}`: {unrun} of its examples need what a grant alone gives, "
            f"so it is added as a draft"
        )
        draft = draft.with_findings(STAGE, [Finding("unproven", message, line=line)])
    if draft.shows("unproven"):
        unproven = "effects"
    trials = _trials(results, unproven)
    missing = [*too_few(replace(own.function, line=line), examples, unproven)]
    if any(finding.code in {*TOO_FEW, *ALIKE} for finding in missing) and not draft.candidate.exact:
        trials = replace(trials, offered=await _other_call(results, own, trial))
    twice = contradictions(examples)
    told_of = [result for result in results if not result.agreed and result.call not in twice]
    offers: list[Finding] = []
    for finding in missing:
        fix = finding.fix
        if trials.offered is not None and finding.code in ALIKE:
            fix = "take one of the two out; " if finding.code == "contradictory-examples" else ""
            fix += f"add a line `>>> {trials.offered.call}`, which gives another result, and that result on the line"
            fix += " below"
        offers.append(replace(finding, fix=fix))
    ran, left = len(results), len(examples) - len(results)
    note = f"{trials.agreed} of {ran} examples agree" + (
        f"; {left} more were not run" if left > 0 else ""
    )
    draft = replace(draft, trials=trials, note=note if examples else "")
    return draft.with_findings(STAGE, [*_example_findings(told_of), *offers])


def _unproven(draft: Draft, subject: TrialSubject) -> Unproven:
    """Return why a function's examples cannot prove it, or not by themselves."""
    unproven = unprovable(subject)
    if (
        unproven == "effects"
        and draft.trial
        and can_be_called(subject.tree, draft.trial, draft.guarded)
    ):
        return "calls"
    if not unproven and may_open(draft):
        return "calls"  # depends on files, which an example must create itself, or on a server
    if (
        not unproven
        and len(draft.examples) < _ENOUGH
        and {"scratch", "state"} & uses_context(subject.tree)
    ):
        return (
            "calls"  # depends on files and state of earlier calls, which an example does not have
        )
    return unproven


async def _excuse_failures(
    draft: Draft, subject: TrialSubject, results: Sequence[ExampleResult], trial: TrialTools
) -> tuple[Draft, list[ExampleResult] | None]:
    """Return the draft of a library's function with directives for inconclusive examples, and the other results.

    The results are None if there is nothing to excuse.
    """
    function, failing = (
        subject.function,
        [result for result in results if not result.agreed and result.line],
    )
    if draft.policy != "import" or not draft.rules.makes(EXCUSED) or not failing:
        return draft, None
    again = await run([result.example for result in failing], function, subject.snapshot, trial)
    is_float, outward = promises_floats(function.returns), draft.needs.is_outward
    reasons: dict[
        int, tuple[str, str]
    ] = {}  # by line, the directive and why the example is excluded
    for result, repeat in zip(failing, again, strict=True):
        assert isinstance(result.example, Example)
        options = option_for(result.example, result.outcome, is_float=is_float)
        if outward and not options:
            reasons[result.line] = f"+{SKIP}", "it needs what a grant alone gives"
            continue
        reason = (
            "" if options else excuse(result.example, result.outcome, repeat.outcome, subject.tree)
        )
        reasons[result.line] = options or (f"+{SKIP}" if reason else ""), reason
    directives = {line: directive for line, (directive, _) in reasons.items() if directive}
    fixed = with_docstring(draft, with_directives(draft.text, directives)) if directives else None
    if fixed is None or fixed.own is None:
        return draft, None
    own = fixed.own.function(function.name) or function
    remaining = {example.line: example for example in own.examples}
    left_out = [line for line in directives if line not in remaining]
    message = (
        f"wrote doctest directives at {len(directives)} of its {len(function.examples)} examples"
    )
    fixed = replace(fixed, fixes=(*fixed.fixes[:-1], replace(fixed.fixes[-1], message=message)))
    findings = [
        Finding("example-left-out", f"an example is left out: {reasons[line][1]}", None, line)
        for line in left_out
    ]
    others = [(result, remaining.get(result.line)) for result in results]
    return fixed.with_findings(STAGE, findings), [
        _result(example, result.outcome, is_float) if example else result
        for result, example in others
        if example is not None or not result.line
    ]


def _trials(results: Sequence[ExampleResult], unproven: str) -> ExampleTrials:
    agreed = sum(result.agreed for result in results)
    is_unproven = unproven == "effects" or (
        bool(unproven) and agreed < (2 if unproven == "calls" else 1)
    )
    ended = [result.outcome for result in results if not isinstance(result.outcome, Refused)]
    slowest_s = max((outcome.cpu_s or 0.0 for outcome in ended), default=0.0)
    returned = [result for result in results if isinstance(result.outcome, Returned)]
    values = tuple((result.call, result.outcome.value) for result in returned if result.agreed)  # type: ignore[union-attr]
    return ExampleTrials(
        agreed, tuple(_disagreements(results)), is_unproven, values, slowest_s=slowest_s
    )


async def _other_call(
    results: Sequence[ExampleResult], subject: TrialSubject, trial: TrialTools
) -> Disagreement | None:
    """Return a call whose result differs from those of the agreeing examples, or of all examples if none agrees.

    It is made from the examples' values, or from edge values of the types.
    """
    known_results = {result.returned for result in results if result.agreed}
    known_results = known_results or {
        disagreement.returned for disagreement in _disagreements(results)
    }
    if not known_results:
        return None
    own, schema = subject.function, subject.function.parameters
    given = read_calls([result.call for result in results], own)
    calls = (
        write_call(own, call) for call in (*recombine(given, schema), *edge_calls(schema, given))
    )
    tried = [GivenExample(call, "") for call in islice(dict.fromkeys(calls), _MOST_OFFERED)]
    for result in await run(tried, own, subject.snapshot, trial):
        is_line = (
            len(result.returned) <= _LONGEST
            and "\n" not in result.returned
            and result.returned != "None"
        )
        if (
            isinstance(result.outcome, Returned)
            and is_line
            and result.returned not in known_results
        ):
            return Disagreement(result.call, "", result.returned, 0)
    return None


def lacks_grant(outcome: Outcome, grants: Grants) -> bool:
    """Check whether a call failed in a way that a missing grant explains."""
    if not isinstance(outcome, Raised):
        return False
    kind = outcome.failure.type.rpartition(".")[2]
    if grants.packages and kind in _ABSENT:
        return True
    return kind in _SHUT and (grants.is_outward or bool(grants.packages))


async def run(
    examples: Sequence[Example | GivenExample],
    function: Function,
    snapshot: Snapshot,
    trial: TrialTools,
    granted: Granted | None = None,
) -> tuple[ExampleResult, ...]:
    """Run every example in a separate worker, as parallel as the sandbox allows.

    If the function was `granted` something, examples that need another grant are marked as not run.
    """
    if not examples:
        return ()
    is_float = promises_floats(function.returns)
    text = snapshot.modules[function.module].text
    own = await aside(len(text), runnable, function, snapshot.modules)
    modules = granted.served if granted and granted.served is not None else own

    async def tried(example: Example | GivenExample) -> ExampleResult:
        if isinstance(example, GivenExample):
            known = (
                bound_names(tree)
                if isinstance(tree := parse(modules[function.module].text), ast.Module)
                else ()
            )
            setup = value_imports([example.call], known)
        else:
            setup = example.setup
        work = Evaluation(setup, example.call, asks=trial.files is not None)
        with closing(trial.files()) if trial.files else nullcontext() as files:
            shared = own if modules is own and not trial.access.paths else {}
            callees = Callees(snapshot, trial, files, shared)
            result = _result(
                example, await trial.run(modules, function.module, work, callees), is_float
            )
        if isinstance(result.outcome, Raised) and not result.agreed:
            result = replace(
                result, lacks=withheld(modules, snapshot.modules, result.outcome.failure)
            )
        if isinstance(example, GivenExample) and not result.agreed and may_be_value(example):
            values = value_imports([example.expected], ())
            promised = await trial.run(
                modules, function.module, Evaluation(values, example.expected)
            )
            return _result_by_value(result, example, promised)
        if result.agreed or granted is None:
            return result
        path, unrun = _shut_path(result.outcome), callees.refused[0] if callees.refused else ""
        missing = Grants(read=(path,)) if path else NOTHING
        if path and not granted.grants.covers(missing):
            unrun = f"it opens {fence(path)}, which is not granted. Type: {Question(function.name, missing).command}"
        return replace(result, unrun=unrun)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(tried(example)) for example in examples]
    return tuple(task.result() for task in tasks)


def _result(example: Example | GivenExample, outcome: Outcome, is_float: bool) -> ExampleResult:  # noqa: FBT001 - a fact
    return ExampleResult(example, outcome, agrees(example, outcome, is_float=is_float))


def _result_by_value(
    result: ExampleResult, example: GivenExample, promised: Outcome
) -> ExampleResult:
    """Return the result of an example whose expected result was evaluated: equal values agree, however written."""
    if not isinstance(promised, Returned):
        return replace(result, unrun="its expected result is no value")
    is_same = isinstance(result.outcome, Returned) and same(
        promised.value, result.outcome.value, is_float=True, approx=example.approx
    )
    return replace(result, agreed=is_same)


def _disagreements(results: Sequence[ExampleResult]) -> Iterator[Disagreement]:
    for result in results:
        if not result.agreed and isinstance(result.outcome, Returned):
            yield Disagreement(result.call, result.expected, result.returned, result.line)


def _example_findings(results: Sequence[ExampleResult]) -> Iterator[Finding]:
    """Yield the findings about failing examples; an error that several raise at one place is told once."""
    alike: dict[object, list[ExampleResult]] = {}
    for result in results:
        outcome = result.outcome
        failure = outcome.failure if isinstance(outcome, Raised) else None
        place = (
            (failure.type, failure.message, failure.frames[-1].line)
            if failure and failure.frames
            else None
        )
        is_inside = (
            failure is not None
            and bool(failure.frames)
            and not failure.frames[-1].path.startswith("<")
        )
        alike.setdefault(place if is_inside else result.example, []).append(result)
    for first, *others in alike.values():
        finding = example_finding(first)
        also = (
            f", and so do {len(others)} more of its examples"
            if len(others) > 1
            else ", and so does one more example"
        )
        yield replace(finding, message=finding.message + also) if others else finding


def example_finding(result: ExampleResult) -> Finding:
    """Return the finding about a failing example."""
    back = fence(result.returned)
    match result.outcome:
        case Returned():
            code, came = (
                "example-disagrees",
                f"printed {back}" if result.printed else f"returned {back}",
            )
            fix = f"if {back} is right, write it there; if not, fix the body"
            if result.printed and result.value != "None":
                came = (
                    f"printed {fence(result.printed, 120)} and returned {fence(result.value, 120)}"
                )
                fix = f"an example shows both: write {back} there if that is right; if not, fix the body"
        case Raised(failure=failure):
            frame = failure.frames[-1] if failure.frames else None
            at = f" at {fence(frame.source.strip(), 120)}" if frame and frame.source else ""
            code, came = "example-raises", f"raised {back}{at}"
            fix = "fix that line; an error that is meant is written as a `Traceback (most recent call last):`"
            fix = result.lacks or fix
        case TimedOut():
            code, came = "example-hangs", f"gave {result.returned}"
            fix = "look for a loop that never ends, or give the example less to do"
        case Killed() | Refused():
            code, came = "example-stopped", f"was stopped: {back}"
            fix = "fix the call, or the body where it asks for too much"
    evidence = (Evidence(call=result.call, returned=result.returned, expected=result.expected),)
    says = f"says {fence(result.expected, 120)}" if result.expected else "shows no result"
    return Finding(
        code, f"`{result.call}` {came}; its example {says}", fix, result.line, 0, evidence
    )
