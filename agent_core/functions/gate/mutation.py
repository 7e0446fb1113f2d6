"""The stage "mutation": checks that the examples would detect wrong behavior.

Examples run against stubs and small mutants of the body, many in one worker; their results are advice, and are compared
as in the stage "examples". A stub that passes every example causes a refusal. Surviving mutants are reported with the
kind of example that would detect them, because some changes make no difference.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, TypeAlias, TypeVar

from agent_core.base.problem import Evidence
from agent_core.base.untrusted import fence
from agent_core.registry.examples import Example
from agent_core.registry.function import Function
from sandbox import Attempt, Attempts, Evaluation, Outcome, Refused

from .call_arguments import read_cases
from .candidate import GivenExample
from .draft import NOT_IMPORTED, NOTHING_YET, OUTSIDE, Draft, Finding, TrialSubject
from .examples.agreement import agrees, expectation, literal_value, promises_floats
from .examples.sufficiency import unprovable
from .mutants import OPERATORS, Mutant, mutants, stubs
from .proof import MOST
from .substance import HOLLOW
from .trial import TrialTools
from .verdict import TOO_FEW

T = TypeVar("T")
_Steps: TypeAlias = Generator[list[Attempt], Sequence[Outcome | None], T]
STAGE: Final = "mutation"
MOST_EXAMPLES: Final = 12
MOST_SHOWN: Final = 2
# Of an attempt: the bounds of its time limit in seconds, and its factor on the function's own time.
_AT_LEAST_S, _AT_MOST_S, _TIMES = 0.05, 0.25, 20
_EMPTY: Final = ("None", "0", "0.0", '""', "[]", "{}")
_NOTHINGS: Final = {bool: ("True", "False"), int: ("0",), float: ("0.0",), str: ('""',), list: ("[]",), dict: ("{}",)}


@dataclass(frozen=True, slots=True)
class MutationResult:
    """The mutants that the examples detected; `usable` counts the examples that also agree in a shared worker.

    A stub that returns one of `stubs` passes every example. If the examples that one of `weak_stubs` passes are
    ignored, no two different results remain.
    """

    stubs: tuple[str, ...] = ()
    weak_stubs: tuple[str, ...] = ()
    survivors: tuple[Mutant, ...] = ()
    tried: int = 0
    mutant_count: int = 0
    usable: int = 0
    late: bool = False

    @property
    def is_whole(self) -> bool:
        """True if everything was tried."""
        return self.usable > 0 and self.tried == self.mutant_count

    @property
    def note(self) -> str:
        """A note on what was tried and what was not reached."""
        if not self.usable:
            return "nothing tried: time was up" if self.late else "nothing tried: its examples take too long"
        if not self.mutant_count:
            return "there is nothing in it to change"
        late = f"{self.tried} of {self.mutant_count} wrong bodies tried: time was up; "
        late = "" if self.tried == self.mutant_count else late
        bodies, noticed = "wrong body" if self.tried == 1 else "wrong bodies", self.tried - len(self.survivors)
        return f"{late}{noticed} of {self.tried} {bodies} noticed"


async def check_mutants(draft: Draft, trial: TrialTools) -> Draft:
    """Return the draft with findings about changes that its examples would not detect."""
    own, line = draft.loaded, draft.line
    if (reason := _unfit(draft, own)) or own is None:
        certain = findings(MutationResult(_echoed_parameters(draft)), draft.candidate.name, line)
        return draft.with_findings(STAGE, certain).skip(reason)
    outcome = await run_mutants(draft, own, trial)
    is_weak = draft.policy == "import" and bool(outcome.stubs or outcome.weak_stubs)
    trials = replace(draft.trials, is_unproven=draft.trials.is_unproven or is_weak)
    draft = replace(draft, unnoticed=outcome.survivors, mutants_tried=outcome.tried, trials=trials)
    draft = replace(draft, note=outcome.note, late=not outcome.is_whole)
    return draft.with_findings(STAGE, findings(outcome, own.function.name, line))


def _echoed_parameters(draft: Draft) -> tuple[str, ...]:
    """Return the parameters that every example returns, for a draft that waits for a package and cannot run."""
    function, examples = draft.own_function, draft.examples
    if function is None or not draft.has("needs-packages") or draft.shows(*TOO_FEW):
        return ()
    cases = read_cases(((example.call, literal_value(example.expected)) for example in examples), function)
    names = function.parameters["properties"] if len(cases) == len(examples) else ()
    return tuple(name for name in names if all(name in row and row[name] == result for row, result in cases))


def _unfit(draft: Draft, own: TrialSubject | None) -> str:
    """Return why its examples cannot be tried on other bodies, or an empty text."""
    if own is None:
        return NOT_IMPORTED
    count, unproven = len(draft.examples), unprovable(own)
    if unproven or not count:
        return _NO_PROOF[unproven]
    if draft.shows(*HOLLOW):
        return NOTHING_YET
    if draft.shows(*TOO_FEW):
        return "its examples are too few"
    are_wrong = draft.trials.disagreements or draft.trials.agreed < min(count, MOST)
    return "its examples do not agree yet" if are_wrong else ""


_NO_PROOF: Final = {
    "": "there are no examples",
    "effects": OUTSIDE,
    "chance": "chance or the clock decides its result",
    "no-parameters": "it takes nothing that an example could vary",
    "no-result": "it gives no result",
}


async def run_mutants(draft: Draft, subject: TrialSubject, trial: TrialTools) -> MutationResult:
    """Return what the examples detect, tried in one worker within a time limit."""
    function, text = subject.function, subject.modules[subject.function.module].text
    steps, found, known = _try_bodies(draft, function, text), list[MutationResult](), 0

    def more(outcomes: Sequence[Outcome | None]) -> Sequence[Attempt]:
        """Return the next attempts, given the outcomes of all previous ones; empty at the end."""
        nonlocal known
        new, known = outcomes[known:], len(outcomes)
        try:
            return () if found else steps.send(new)
        except StopIteration as end:
            found.append(end.value)
            return ()

    work = Attempts(function.name, next(steps), _AT_MOST_S, more)
    outcomes = [*await trial.attempt(function, subject.modules, work, draft.rules.mutation_s)]
    while not found:  # attempts that were not reached have no outcome
        outcomes += [None] * len(more(outcomes))
    return found[0]


def _try_bodies(draft: Draft, function: Function, text: str) -> _Steps[MutationResult]:
    """Try stubs on every example, then mutants on the first example, then the survivors on the others.

    If an example takes longer than the limit, no mutants are tried: a mutant would survive examples that did not run.
    """
    examples = draft.examples[:MOST_EXAMPLES]
    is_float, each_s = promises_floats(function.returns), _AT_MOST_S

    def agreement(
        texts: Sequence[Mutant | None], examples: Sequence[Example | GivenExample]
    ) -> _Steps[list[list[bool | None]]]:
        """Return one row per text: whether each example agrees; None if it was not reached."""
        nonlocal each_s
        pairs, width = list(product(texts, examples)), len(examples)
        asked = [Attempt(Evaluation(one.setup, one.call), text.text if text else None, each_s) for text, one in pairs]
        outcomes = (yield asked) if asked else ()
        first = outcomes[0] if outcomes else None
        spent_s = 0.0 if first is None or isinstance(first, Refused) else first.seconds
        each_s = min(each_s, max(_AT_LEAST_S, _TIMES * spent_s))
        agreed = [
            None if outcome is None else agrees(example, outcome, is_float=is_float)
            for (_text, example), outcome in zip(pairs, outcomes, strict=True)
        ]
        return [agreed[at * width : (at + 1) * width] for at in range(len(texts))]

    # Stubs return None, the first expected result, and empty values of the expected types.
    values = [value for value in map(literal_value, map(expectation, examples)) if type(value) in _NOTHINGS]
    nothings = [nothing for value in values for nothing in _NOTHINGS[type(value)]]
    hollow = stubs(text, function.name, ["None", *map(repr, values[:1]), *nothings])
    own, *others = yield from agreement([None, *hollow.values()], examples)
    usable = [at for at, agreed in enumerate(own) if agreed]
    if not usable:
        return MutationResult(late=None in own)
    passed = dict(zip(hollow, others, strict=True))
    all_mutants = mutants(text, function.name, draft.rules.max_mutants)
    passing = tuple(value for value, row in passed.items() if all(row))
    weak_stubs = tuple(value for value, row in passed.items() if value not in passing and _spoils(value, row, examples))
    if len(usable) < len(examples):  # it is unknown which changes the slow examples would detect
        return MutationResult(passing, weak_stubs, mutant_count=len(all_mutants), usable=len(usable))
    verdicts = [row[0] for row in (yield from agreement(all_mutants, examples[:1]))]
    alive = [mutant for mutant, agreed in zip(all_mutants, verdicts, strict=True) if agreed]
    rows = yield from agreement(alive, examples[1:])
    survivors = [mutant for mutant, row in zip(alive, rows, strict=True) if all(row)]
    missed = verdicts.count(None) + sum(None in row and False not in row for row in rows)
    survivors.sort(key=lambda mutant: (list(OPERATORS).index(mutant.operator), mutant.line))
    return MutationResult(
        passing, weak_stubs, tuple(survivors), len(all_mutants) - missed, len(all_mutants), len(usable)
    )


def _spoils(value: str, passed: Sequence[bool | None], examples: Sequence[Example | GivenExample]) -> bool:
    """Check whether the examples that this stub fails have fewer than two results; boolean stubs do not count."""
    failed = [example for example, agreed in zip(examples, passed, strict=True) if not agreed]
    promises = {one.raises or one.expected.strip() for one in failed}
    is_meant = (value.isidentifier() or value in _EMPTY) and value not in ("True", "False")
    return is_meant and any(passed) and len(promises) < 2


def findings(result: MutationResult, name: str, line: int) -> Iterator[Finding]:
    """Yield the findings about surviving stubs and mutants."""
    for value in result.stubs[:1]:
        message = f"a `{name}` with a body of only {fence(f'return {value}', 120)} would pass every example"
        fix = f"add an example with a result other than {fence(value, 80)}"
        if value.isidentifier() and value not in _EMPTY:
            fix += ", or one that looks at what else the function did, such as a file that it wrote"
        yield Finding("stub-passes", message, fix, line, evidence=(Evidence(f"return {value}"),))
    for value in result.weak_stubs[: 0 if result.stubs else 1]:
        message = f"all examples of `{name}` but those of one result would also pass if its body were only"
        fix = f"add an example with another result, which is not {fence(value, 80)}"
        stub = Evidence(f"return {value}")
        yield Finding("weak-examples", f"{message} {fence(f'return {value}', 120)}", fix, line, evidence=(stub,))
    for survivor in result.survivors[:MOST_SHOWN]:
        was = f" in place of {fence(survivor.before.strip(), 120)}" if survivor.before else " added"
        message = f"with {fence(survivor.after.strip(), 120)}{was}, every example of `{name}` still agrees"
        fix, change = f"add {survivor.notices}", Evidence(survivor.diff)
        yield Finding("weak-examples", message, fix, line + survivor.line, evidence=(change,))
