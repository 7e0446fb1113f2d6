"""What a description promises to cover, against what the code says of it: values that it names, results, a range.

Pure. Code for the cases of its examples gives all others one answer, however right that is for some of them.
"""

import re
from collections.abc import Iterator
from typing import Any

from agent_core.registry import docstring
from sandbox import Outcome, Raised, Returned

from .answers import plain
from .case import Case, Suspicion
from .code import docstring_of, literals
from .memorization import Memorization
from .probes import NONSENSE, Probe
from .relations import suspicion

_SOME, _PAIRS = 4, 2
_COVER = "cover what the description promises, or promise only what it does"
_QUOTED = re.compile(r"(?<!\w)(['\"`])([A-Za-z][\w -]{1,24})\1(?!\w)")


def judge_coverage(case: Case) -> Iterator[Suspicion]:
    """Yield what is promised and not covered."""
    yield from _undone_values(case)
    yield from _end_of_range(case)
    yield from _unmade_results(case)
    yield from _others_alike(case)
    yield from _unknown_numbers(case)


def _undone_values(case: Case) -> Iterator[Suspicion]:
    """Judge values that the description names, and that get what a word without a meaning gets."""
    named = [(probe, outcome) for probe, outcome in case.behavior.outcomes if probe.kind in ("documented", "instance")]
    for parameter in dict.fromkeys(probe.parameter for probe, _outcome in named):
        calls = [(probe, outcome) for probe, outcome in named if probe.parameter == parameter and outcome is not None]
        empty = {_rest(probe): _told_of(probe, outcome) for probe, outcome in calls if _is_nonsense(probe)}
        examples = [pair for pair in case.behavior.outcomes if pair[0].kind == "example" and pair[1] is not None]
        is_read = any(
            empty.get(_rest(probe, parameter), "") not in ("", _told_of(probe, outcome, parameter))
            for probe, outcome in examples
            if outcome is not None
        )
        others = [(probe, outcome) for probe, outcome in calls if not _is_nonsense(probe) and _rest(probe) in empty]
        silent = [(probe, outcome) for probe, outcome in others if empty[_rest(probe)] == _told_of(probe, outcome)]
        is_listed = any(probe.kind == "documented" for probe, _outcome in silent)
        if is_read and silent and (is_listed or not case.behavior.gives_truths):
            is_answered = bool(case.draft.candidate.asked)  # who predicted other calls is only doubted
            is_all = is_listed and not is_answered and len(silent) == len(others)
            yield _silent_values(case, [probe for probe, _outcome in silent], is_all=is_all)


def _silent_values(case: Case, calls: list[Probe], *, is_all: bool) -> Suspicion:
    values = dict.fromkeys(str(_value(probe)) for probe in calls)
    name, value = case.function.name, next(iter(values))
    message = f"the description of `{name}` names `{value}`, which gets what a word without a meaning gets"
    outcomes = {id(probe): outcome for probe, outcome in case.behavior.outcomes}
    shown = [(probe, plain(outcome.value)) for probe in calls if isinstance(outcome := outcomes[id(probe)], Returned)]
    return suspicion(case, "hard-coded" if is_all and len(values) > 1 else "doubt-examples", message, _COVER, shown)


def _is_nonsense(probe: Probe) -> bool:
    return str(_value(probe)).casefold() == NONSENSE


def _value(probe: Probe) -> object:
    return probe.arguments[probe.parameter]


def _rest(probe: Probe, parameter: str = "") -> str:
    """Return the other arguments of a call."""
    name = parameter or probe.parameter
    return name + repr(sorted((key, repr(value)) for key, value in probe.arguments.items() if key != name))


def _told_of(probe: Probe, outcome: Outcome, parameter: str = "") -> str:
    """Return what a call says of a value, without that value."""
    value = str(probe.arguments.get(parameter or probe.parameter, ""))
    if isinstance(outcome, Returned):
        return repr(plain(outcome.value)).casefold().replace(value.casefold(), "<>") if value else ""
    return outcome.failure.type if isinstance(outcome, Raised) else "none"


_NOTHING = frozenset({"None", "-1", "0", "''", "[]", "{}", "False", "()", "'unknown'", "'Unknown'"})


def _end_of_range(case: Case) -> Iterator[Suspicion]:
    """Judge a function that computes for numbers up to those of its examples, and gives one empty answer above."""
    names = [
        name
        for name, schema in case.function.parameters["properties"].items()
        if schema.get("type") in ("integer", "number")
    ]
    if len(names) != 1 or len(case.function.parameters["properties"]) != 1 or case.memorization is None:
        return
    calls = sorted(
        (
            (probe, plain(outcome.value))
            for probe, outcome in case.behavior.outcomes
            if isinstance(outcome, Returned)
            and probe.kind != "again"
            and isinstance(probe.arguments.get(names[0]), int | float)
            and probe.arguments[names[0]] > 0
        ),
        key=lambda call: float(call[0].arguments[names[0]]),
    )
    shown = {repr(example.value) for example in case.memorization.cases}
    empty = repr(calls[-1][1]) if calls else ""
    is_answer = empty in _NOTHING or (case.draft.tree is not None and empty in literals(case.draft.tree))
    if not is_answer or empty in shown or empty.strip("'") in case.memorization.description:
        return
    above = [call for call in calls if repr(call[1]) == empty]
    below = calls[: len(calls) - len(above)]
    if len(above) < _SOME - 1 or calls[len(below) :] != above or len({repr(value) for _probe, value in below}) < _PAIRS:
        return
    first = above[0][0].arguments[names[0]]
    message = f"`{case.function.name}` gives `{empty}` for every number from {first} on, of which nothing tells"
    yield suspicion(case, "doubt-examples", message, _COVER, above)


def _unmade_results(case: Case) -> Iterator[Suspicion]:
    """Judge answers out of the code, where the description quotes another one that the code does not have."""
    tree = case.draft.tree
    if tree is None or not case.behavior.is_of(literals(tree)):
        return
    quoted = [text for _mark, text in _QUOTED.findall(docstring.read(docstring_of(case.draft.function)).returns)]
    texts = [text.casefold() for text in literals(tree) if text[:1] in "\"'"]
    unmade = [text for text in quoted if not any(text.casefold() in literal for literal in texts)]
    if unmade and len(unmade) < len(quoted):
        message = (
            f"the description of `{case.function.name}` names the result `{unmade[0]}`, which its code never gives"
        )
        calls = [call for call in case.behavior.returned if call[0].kind == "similar"]
        yield suspicion(case, "doubt-examples", message, _COVER, calls)


def _others_alike(case: Case) -> Iterator[Suspicion]:
    """Judge a function with an answer of its own for the values of its examples alone, and one for all other values."""
    memorization = case.memorization
    if memorization is None or memorization.is_closed() or memorization.is_told(least=1):
        return
    for name in case.function.parameters["properties"]:
        own = memorization.values_of(name)
        groups: dict[str, list[tuple[Probe, Any]]] = {}
        for probe, value in case.behavior.returned:
            is_other = not memorization.is_selected(probe.arguments.get(name))
            if probe.kind not in ("again", "twin", "everyday-twin") and probe.parameter == name and is_other:
                groups.setdefault(_rest(probe), []).append((probe, value))
        calls = max(groups.values(), key=len, default=[])
        answers = {repr(value) for _probe, value in calls}
        if memorization.has_more and not _is_untold(case, memorization, answers):
            continue
        if len(own) >= _PAIRS and len(calls) >= _SOME and len(answers) == 1 and not isinstance(calls[0][1], bool):
            message = f"`{case.function.name}` has answers for the `{name}` of its examples, and one for all others"
            known_calls = [shown.arguments for shown in memorization.cases]
            unlike = [call for call in calls if call[0].arguments not in known_calls]
            yield suspicion(case, "doubt-examples", message, _COVER, unlike[::-1])


def _unknown_numbers(case: Case) -> Iterator[Suspicion]:
    """Judge a rule whose number the description states, and of which the code knows nothing."""
    if not case.unknown_numbers:
        return
    shown = ", ".join(dict.fromkeys(one.shown for one in case.unknown_numbers))
    message = f"the description of `{case.function.name}` states {shown}, of which its code knows nothing"
    calls = [
        (probe, plain(outcome.value))
        for probe, outcome in case.behavior.outcomes
        if probe.kind == "stated" and isinstance(outcome, Returned)
    ]
    yield suspicion(case, "doubt-work", message, _COVER, calls)


def _is_untold(case: Case, memorization: Memorization, answers: set[str]) -> bool:
    """Check whether no example shows an answer, and the description has no word of others."""
    shown = {repr(example.value) for example in memorization.cases}
    described = docstring_of(case.draft.function).casefold()
    return (
        answers.isdisjoint(shown)
        and not _OTHERS.search(described)
        and not any(answer.strip("'").casefold() in described for answer in answers)
    )


_OTHERS = re.compile(
    r"\b(?:others?|otherwise|else|unknown|default|any|everything|missing|fall ?back|not (?:found|listed|known))\b"
)
