"""The judgment on a function that may know its own examples only: from its constants, and how far its answers reach.

Strong evidence is a finding that refuses; weak evidence is a doubt, with the calls that make it one.
"""

from dataclasses import dataclass

from ..draft import Finding
from .case import Case
from .code import literals
from .memory import NOT_MEMORIZED, Memorized, Memory, Weight
from .reach import FreshCall, Reach

_FIX = "compute the result from the arguments; a table must cover what the description promises"
_ASK = "add an example with arguments that stand nowhere in the code"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for answers that were only learned, and calls that show it."""

    finding: Finding
    calls: tuple[FreshCall, ...] = ()


def memorized(case: Case) -> Evidence | None:
    """Return the evidence that a function answers its own examples only."""
    name = case.function.name
    if case.is_formula:
        message = f"`{name}` is one line of arithmetic that fits its examples: it cannot give what it promises"
        return _strong(case, message) if case.is_named_formula else Evidence(_doubt(case, message))
    if case.behavior.repeats:
        message = (
            f"`{name}` gives a text of the same length the answer of its example, with words that only that one has"
        )
        return _strong(case, message)
    memory = case.memory
    if memory is None:
        return None
    judged = memory.judge(case.behavior.others()) if memory.is_suspect else NOT_MEMORIZED
    reached, calls = (judged, ()) if judged.weight == "strong" else _reached(case, memory)
    judged = reached if reached.weight else judged
    if judged.weight == "strong":
        return _strong(case, f"`{name}` answers its own examples and no other call: {judged.reason}")
    if judged.weight == "weak":
        message = f"`{name}` may only answer its own examples: {judged.reason}"
        return Evidence(_doubt(case, message), calls)
    return None


def _doubt(case: Case, message: str) -> Finding:
    return Finding("doubt-examples", message, _ASK, case.line)


def _strong(case: Case, message: str) -> Evidence:
    return Evidence(Finding("hard-coded", message, _FIX, case.line))


def _reached(case: Case, memory: Memory) -> tuple[Memorized, tuple[FreshCall, ...]]:
    """Return how far its answers reach beyond its examples, and the calls that they do not reach."""
    reach = Reach(memory.cases, case.behavior.fresh, literals(tree) if (tree := case.draft.tree) else frozenset())
    every = [*range(len(memory.cases))]
    if len(every) > 1 and not memory.is_closed():
        if reach.always_raises() and memory.is_tied(every):
            return Memorized("strong", "it refuses everything else"), ()
        is_tied = memory.is_tied(reach.special) and not memory.is_test(reach.special)
        if reach.is_nowhere_else() and (is_tied or not case.takes_rows):  # else no row has the key of another call
            weight: Weight = "strong" if is_tied else "weak"
            return Memorized(weight, f"all {len(case.behavior.fresh)} other calls got nothing"), tuple(reach.kin)
    if silent := reach.silent_kin():
        return Memorized("weak", "most other arguments of the same kind get one answer, which no example shows"), (
            *silent,
        )
    if not memory.is_told(least=1) and (ignored := reach.ignored()):
        return Memorized("weak", f"`{ignored[0].parameter}` matters only if it is that of an example"), (*ignored,)
    if nothing := reach.says_whatever(frozenset(case.promise.sentence)):
        return Memorized("weak", "it is to take whatever there is, and gives nothing for some of it"), (*nothing,)
    return NOT_MEMORIZED, ()
