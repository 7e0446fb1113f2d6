"""What must hold between the results of several calls: of a list in another order, of other words in the same places.

Pure; which promise is held to which relation is data, in `relations.toml`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox import Returned

from ..draft import Finding
from .answers import RUNNING, WORD, coarse, leaves, plain, shape, skeleton, texts_of, words_of
from .behavior import Behavior
from .case import Case, Suspicion, is_row_in
from .lexicon import is_same_verb, relation_words
from .probes import NUMBERS, Probe, has_letters
from .reach import FreshCall

_ENOUGH, _SOME, _PAIRS, _NEARLY = 8, 4, 2, 0.8
_UNLIKE = frozenset({"similar", "twin", "everyday", "everyday-twin"})
_VARIED = frozenset({"number", "moved", "swapped", "similar"})
_CLOSE = 1e-6
_WORK = "do that work in the body, or promise only what it does"


def _leading(case: Case) -> tuple[str, ...]:
    return (*case.promise.name, *case.promise.sentence[:5])


def judge_relations(case: Case) -> Iterator[Suspicion]:
    """Yield each relation that does not hold."""
    yield from _order(case)
    yield from _unchanged(case)
    yield from _unread(case)
    yield from _size_only(case)
    yield from _rows_back(case)
    yield from _rows_by_name(case)
    yield from _fillers(case)
    yield from _emptiness_only(case)
    yield from _yes_to_all(case)
    yield from _by_place(case)
    yield from _container(case)
    yield from _unmeasured(case)
    yield from _keys_only(case)
    yield from _equality(case)
    yield from _invariants(case)
    yield from _dropped_pieces(case)


def suspicion(case: Case, code: str, message: str, fix: str, calls: Sequence[tuple[Probe, Any]] = ()) -> Suspicion:
    """Return what speaks against a promise, with the calls that show it."""
    return Suspicion(Finding(code, message, fix, case.line), tuple(fresh_call(probe, value) for probe, value in calls))


def fresh_call(probe: Probe, value: Any) -> FreshCall:  # Any: a value that crossed
    """Return a call that returned, as one that its author can be asked for."""
    return FreshCall(probe.arguments, skeleton(value, probe.arguments), repr(value), probe.kind, probe.parameter)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two calls whose lists have the same members in another order, and whether their results are the same."""

    call: tuple[Probe, Any]
    is_same: bool


def _order(case: Case) -> Iterator[Suspicion]:
    """Judge what is to be the same for a list in any order."""
    order, name = relation_words()["order"], case.function.name
    if order["free"].isdisjoint(_leading(case)) or not order["kept"].isdisjoint(
        (*case.promise.name, *case.promise.sentence[1:])
    ):
        return
    pairs = [*_pairs(case.behavior)]
    violating = [pair for pair in pairs if not pair.is_same]
    if len(violating) < min(_PAIRS, len(pairs)) or not violating:
        return
    message = f"`{name}` gives another result for the same members in another order, as {_told(violating[0].call)}"
    is_sure = len(violating) == len(pairs) >= _PAIRS and not order["sure"].isdisjoint(_leading(case))
    code = "claims-work" if is_sure else "doubt-work"
    yield suspicion(case, code, message, _WORK, [pair.call for pair in violating])


def _told(call: tuple[Probe, Any]) -> str:
    probe, value = call
    return f"{repr(list(probe.arguments.values()))[1:-1][:60]} → {repr(value)[:40]}"


def _pairs(behavior: Behavior) -> Iterator[_Pair]:
    """Yield each example whose list has different members with the call on the same list in another order."""
    examples = [(probe, value) for probe, value in behavior.returned if probe.kind == "example"]
    others = [(probe, value) for probe, value in behavior.returned if probe.kind == "similar" and probe.parameter]
    for base, result in examples:
        for probe, value in others:
            own, row = base.arguments.get(probe.parameter), probe.arguments.get(probe.parameter)
            if not isinstance(own, list) or not isinstance(row, list) or row == own or len(row) != len(own):
                continue
            rest = {key: part for key, part in base.arguments.items() if key != probe.parameter}
            is_rest = all(probe.arguments.get(key) == part for key, part in rest.items())
            if is_rest and sorted(map(repr, own)) == sorted(map(repr, row)):
                yield _Pair((probe, value), _is_same(result, value))


def _is_same(first: Any, second: Any) -> bool:  # Any: values that crossed
    if isinstance(first, int | float) and isinstance(second, int | float):
        return math.isclose(first, second, rel_tol=_CLOSE, abs_tol=_CLOSE)
    if isinstance(first, dict) and isinstance(second, dict):
        return sorted(map(repr, first.items())) == sorted(map(repr, second.items()))
    return bool(first == second)


def _unchanged(case: Case) -> Iterator[Suspicion]:
    """Judge what is to change a text, and only puts something around it."""
    if relation_words()["text"]["changing"].isdisjoint(case.heads):
        return
    for name in case.function.parameters["properties"]:
        calls = [
            (probe, value)
            for probe, value in case.behavior.returned
            if probe.kind in ("example", "similar", "everyday")
            and isinstance(text := probe.arguments.get(name), str)
            and len(text) > 1
            and (probe.kind == "example" or probe.parameter in (name, ""))
        ]
        as_read = _letters if _is_reworded(case) else str
        whole = [
            (probe, value)
            for probe, value in calls
            if any(as_read(probe.arguments[name]) in as_read(part) for part in texts_of(value))
        ]
        if len(calls) >= _ENOUGH and len(whole) == len(calls):
            message = f"`{case.function.name}` gives back whatever `{name}` is, as it came: nothing in it is changed"
            similar = [call for call in whole if call[0].kind == "similar"]
            yield suspicion(case, "doubt-work", message, _WORK, similar or whole)


def _is_reworded(case: Case) -> bool:
    """Check whether it is the words of a text that are to be others, and not its marks."""
    words, said = relation_words()["text"], {*case.promise.name, *case.promise.sentence}
    return not words["worded"].isdisjoint(case.heads) and words["marks"].isdisjoint(said)


def _letters(text: str) -> str:
    """Return the letters and digits of a text, in small letters."""
    return "".join(filter(str.isalnum, text.casefold()))


def _unread(case: Case) -> Iterator[Suspicion]:
    """Judge results for which no letter of a text matters, where it is to be read."""
    words, behavior = relation_words(), case.behavior
    said = {*case.promise.name, *case.promise.sentence}
    apart = words["text"]["place"] | words["size"]["said"] | words["empty"]["said"]
    if words["text"]["reading"].isdisjoint(case.heads) or said & apart or not case.takes_text():
        return
    is_free = behavior.is_free(texts_only=True) and not behavior.everyday_hits and not behavior.example_hits
    is_open = is_free and not (_reads_marks(behavior) or behavior.chooses_values)
    if is_open and len(behavior.returned) >= _ENOUGH:
        message = f"no letter of what `{case.function.name}` is given matters for its result: it hands on or counts"
        yield suspicion(
            case, "doubt-work", message, _WORK, _of_kind(behavior, "similar") or _of_kind(behavior, "everyday")
        )


def _reads_marks(behavior: Behavior) -> bool:
    """Check whether something of a text was handed on, or the form of a result is another, by what marks are in it."""
    forms: dict[str, list[str]] = {"example": [], "everyday": []}
    for probe, value in behavior.returned:
        if probe.kind in forms and _is_full(probe.arguments) and has_letters(probe.arguments):
            forms[probe.kind].append(coarse(skeleton(value, probe.arguments, loose=True)))
    is_chosen = len({"<*>" in form for form in forms["everyday"]}) > 1
    shown = forms["example"] if behavior.gives_truths else forms["example"][:1]
    return is_chosen or not {*shown} <= {*forms["everyday"]}


def _size_only(case: Case) -> Iterator[Suspicion]:
    """Judge numbers and labels that hang on nothing but how large the arguments are."""
    behavior, size = case.behavior, relation_words()["size"]["said"]
    words = {*case.promise.name, *case.promise.sentence}
    if words & size or (case.promise.says("length") and not case.takes_rows):
        return
    if case.takes_numbers or behavior.hands_on:
        return
    if _is_by(behavior, shape) or (behavior.gives_numbers and _is_by(behavior, _word_lengths, case.code_words)):
        message = (
            f"`{case.function.name}` gives a result that hangs on the size of its arguments alone, whatever is in them"
        )
        code = "claims-work" if case.promise.claims else "doubt-work"
        yield suspicion(case, code, message, _WORK, [*_of_kind(behavior, "similar"), *_of_kind(behavior, "everyday")])


def _is_by(behavior: Behavior, size: Callable[[Any], object], code_words: frozenset[str] = frozenset()) -> bool:
    """Check whether calls of one size get one result each, but for those with words of the code."""
    groups: dict[object, set[str]] = {}
    contents: dict[object, set[str]] = {}
    for probe, value in behavior.returned:
        if probe.kind != "again" and code_words.isdisjoint(words_of(probe.arguments)):
            key = size(probe.arguments)
            groups.setdefault(key, set()).add(repr(value))
            contents.setdefault(key, set()).add(repr(probe.arguments))
    compared = [key for key in groups if len(contents[key]) > 1]
    results = {result for group in groups.values() for result in group}
    return len(compared) >= _SOME and len(results) >= _SOME and all(len(group) == 1 for group in groups.values())


def _word_lengths(arguments: Mapping[str, Any]) -> tuple[int, ...]:  # Any: whatever an argument is
    return tuple(sorted(len(word) for text in texts_of([*arguments.values()]) for word in text.split()))


def _of_kind(behavior: Behavior, kind: str) -> list[tuple[Probe, Any]]:
    return [(probe, value) for probe, value in behavior.returned if probe.kind == kind]


def _rows_back(case: Case) -> Iterator[Suspicion]:
    """Judge a list that comes back in the order in which it came, in each example and in nearly all other calls."""
    if not case.returns_rows or case.memorization is None:
        return
    calls = [(probe, value) for probe, value in case.behavior.returned if probe.kind != "again"]
    names = [name for name, schema in case.function.parameters["properties"].items() if schema.get("type") == "array"]
    for name in names:
        unchanged = [call for call in calls if is_row_in(call[1], call[0].arguments.get(name))]
        if len(calls) >= _ENOUGH and len(unchanged) > _NEARLY * len(calls):
            message = f"`{case.function.name}` gives `{name}` back in the order in which it came, in nearly all calls"
            yield suspicion(
                case, "doubt-work", message, _WORK, [call for call in unchanged if call[0].kind == "similar"]
            )


def _rows_by_name(case: Case) -> Iterator[Suspicion]:
    """Judge what is best or is a route, where it is the names that came in, by the alphabet."""
    words, said = relation_words()["choice"], {*case.promise.name, *case.promise.sentence}
    if not (case.is_optimum or said & words["route"]) or said & words["alphabet"]:
        return
    calls = [
        (probe, value, row)
        for probe, value in case.behavior.returned
        if probe.kind != "again" and isinstance(value, list)
        for row in probe.arguments.values()
        if isinstance(row, list) and len({*filter(_is_word, row)}) == len(row) >= _PAIRS
    ]
    sorted_calls = [
        (probe, value) for probe, value, row in calls if [part for part in value if part in row] == sorted(row)
    ]
    if len(calls) >= _SOME and len(sorted_calls) > _NEARLY * len(calls):
        message = f"`{case.function.name}` gives the names that came in by the alphabet, and promises another order"
        yield suspicion(case, "doubt-work", message, _WORK, sorted_calls)


def _is_word(value: Any) -> bool:  # Any: a member of a row
    return isinstance(value, str)


def _fillers(case: Case) -> Iterator[Suspicion]:
    """Judge results with words that stand for what is not there: `TBD`, `Option A`, `object_1`."""
    filler, described = relation_words()["filler"], case.promise.words
    shown = [(case_.arguments, case_.value) for case_ in case.memorization.cases] if case.memorization else []
    for arguments, value in [*shown, *((probe.arguments, value) for probe, value in case.behavior.returned)]:
        given = " ".join(str(leaf) for leaf in leaves([*arguments.values()])).casefold()
        texts = [text for text in texts_of(value) if text]
        words = {word for text in texts for word in WORD.findall(text.casefold())}
        own = words & filler["words"] & case.code_words if described.isdisjoint(filler["meant"]) else frozenset()
        unfinished = sorted(own - described - set(WORD.findall(given)))
        vague = words & filler["vague"] & case.code_words - described - set(WORD.findall(given))
        if vague and not unfinished:
            message = f"`{case.function.name}` says `{min(vague)}` where something is promised"
            yield suspicion(case, "doubt-template", message, _WORK, _of_kind(case.behavior, "similar"))
            return
        if unfinished:
            message = f"`{case.function.name}` gives `{unfinished[0]}` where the work should stand"
            yield suspicion(case, "claims-work", message, _WORK)
            return
        numbered = [match for text in texts for match in RUNNING.finditer(text) if match[1].casefold() not in given]
        repeated = {match[1] for match in numbered if len({other[0] for other in numbered if other[1] == match[1]}) > 1}
        if repeated and not (described & filler["numbered"] & {*case.promise.name, *case.promise.sentence}):
            message = f"`{case.function.name}` gives running numbers for what it promises, such as `{numbered[0][0]}`"
            is_sure = len(repeated) > 1 or (case.promise.claims and not case.is_worded)
            code = "claims-work" if is_sure else "doubt-template"
            yield suspicion(case, code, message, _WORK, _of_kind(case.behavior, "similar"))
            return


def _emptiness_only(case: Case) -> Iterator[Suspicion]:
    """Judge a yes or no that hangs on nothing but whether an argument is empty."""
    cases = case.memorization.cases if case.memorization else ()
    deed = case.promise.claim("effect")  # of which nobody asks whether something is there
    is_asked = bool(case.promise.words & relation_words()["empty"]["said"]) and not deed
    if not case.behavior.gives_truths or is_asked:
        return
    by_fullness: dict[bool, set[object]] = {True: set(), False: set()}
    for shown_case in cases:
        by_fullness[_is_full(shown_case.arguments)].add(shown_case.value)
    full = [
        (probe, value)
        for probe, value in case.behavior.returned
        if _is_full(probe.arguments) and not (deed and probe.kind == "other")  # it may be careful with a number below 0
    ]
    fresh = [(probe, value) for probe, value in full if probe.kind not in ("example", "again")]
    if len(by_fullness[True]) != 1 or len(by_fullness[False]) != 1 or by_fullness[True] == by_fullness[False]:
        return
    if len(fresh) >= _ENOUGH and {value for _probe, value in full} == by_fullness[True]:
        message = f"`{case.function.name}` says the same of all that is not empty, whatever it is"
        is_done = deed and is_same_verb(case.promise.sentence[0], deed.verb) and not case.takes_rows
        yield suspicion(case, "claims-effect" if is_done else "doubt-work", message, _WORK, fresh)


def _is_full(arguments: Mapping[str, Any]) -> bool:  # Any: whatever an argument is
    """Check whether no argument is empty, or a text of blanks and marks."""
    return all(any(map(str.isalnum, value)) if isinstance(value, str) else value for value in arguments.values())


def _yes_to_all(case: Case) -> Iterator[Suspicion]:
    """Judge a yes or no that is yes for whatever is unlike the examples, also for twins of those that got a no."""
    behavior, memorization = case.behavior, case.memorization
    if not behavior.gives_truths or memorization is None or memorization.is_told(least=1):
        return
    refused = [shown.arguments for shown in memorization.cases if shown.value is False and _is_full(shown.arguments)]
    is_twinned = any(has_letters([*arguments.values()]) for arguments in refused)
    calls = [
        (probe, value)
        for probe, value in behavior.returned
        if probe.kind in _UNLIKE and probe.arguments not in refused and _is_full(probe.arguments)
    ]
    if is_twinned and len(calls) >= _ENOUGH and all(value is True for _probe, value in calls):
        message = f"`{case.function.name}` says yes to all that is unlike its examples, whatever it is"
        yield suspicion(case, "doubt-work", message, _WORK, _of_kind(behavior, "everyday"))


def _by_place(case: Case) -> Iterator[Suspicion]:
    """Judge a choice of the best among names that hangs on the place alone."""
    if not case.is_choice or not case.behavior.is_free(texts_only=True):
        return
    places: dict[object, set[int]] = {}
    chosen: list[tuple[Probe, Any]] = []
    for probe, value in case.behavior.returned:
        rows = [row for row in probe.arguments.values() if isinstance(row, list) and len(row) > 1]
        named = {text for text in texts_of(value) if rows and text in rows[0]}  # the choice, whatever stands beside it
        if len(rows) == 1 and len(named) == 1 and rows[0].count(name := min(named)) == 1 and probe.kind != "again":
            places.setdefault(len(rows[0]), set()).add(rows[0].index(name))
            chosen.append((probe, value))
    if len(chosen) >= _ENOUGH and all(len(ats) == 1 for ats in places.values()):
        message = f"`{case.function.name}` chooses by the place in the list alone, whatever stands there"
        yield suspicion(case, "doubt-work", message, _WORK, [call for call in chosen if call[0].kind == "similar"])


def _unmeasured(case: Case) -> Iterator[Suspicion]:
    """Judge a choice of the best by numbers that came in, for which none of them matters."""
    if not case.is_optimum:
        return
    outcomes = case.behavior.outcomes
    moved = [
        (probe, plain(outcome.value), outcomes[probe.of][1])
        for probe, outcome in outcomes
        if probe.kind == "moved" and isinstance(outcome, Returned)
    ]
    is_same = all(isinstance(first, Returned) and plain(first.value) == value for _probe, value, first in moved)
    if len(moved) >= _PAIRS and is_same:
        message = f"`{case.function.name}` promises the best, and none of the numbers that came in matters for it"
        yield suspicion(case, "doubt-work", message, _WORK, [(probe, value) for probe, value, _first in moved])


def _keys_only(case: Case) -> Iterator[Suspicion]:
    """Judge a mapping of which only the keys matter: nothing changes with what it holds."""
    if not relation_words()["keys"]["said"].isdisjoint((*case.promise.name, *case.promise.sentence)):
        return
    outcomes = case.behavior.outcomes
    changed: dict[str, list[tuple[Probe, Any, bool]]] = {}
    for probe, outcome in outcomes:
        is_of_values = probe.kind in ("swapped", "twin", "number") and isinstance(
            probe.arguments.get(probe.parameter), dict
        )
        if is_of_values and isinstance(outcome, Returned):
            first, value = outcomes[probe.of][1], plain(outcome.value)
            is_same = isinstance(first, Returned) and plain(first.value) == value
            changed.setdefault(probe.parameter, []).append((probe, value, is_same))
    for name, calls in changed.items():
        swapped = [(probe, value) for probe, value, _is_same in calls if probe.kind == "swapped"]
        if swapped and len(calls) >= _SOME and all(is_same for _probe, _value, is_same in calls):
            message = f"`{case.function.name}` reads the keys of `{name}` alone: what it holds changes nothing"
            yield suspicion(case, "doubt-work", message, _WORK, swapped)


def _equality(case: Case) -> Iterator[Suspicion]:
    """Judge the likeness of two texts that is nothing but that they are the same."""
    if not case.is_likeness:
        return
    calls = [
        (probe, plain(outcome.value))
        for probe, outcome in case.behavior.outcomes
        if probe.kind == "slight" and isinstance(outcome, Returned)
    ]
    unlike = [value for probe, value in case.behavior.returned if probe.kind == "other"]
    if len(calls) < _SOME or calls[0][1] in [value for _probe, value in calls[1:]]:
        return
    if {repr(value) for _probe, value in calls[1:]} <= {repr(value) for value in unlike}:
        message = f"`{case.function.name}` finds likeness only in the same text: a slight variation is as good as any"
        yield suspicion(case, "doubt-work", message, _WORK, calls[1:])


def _invariants(case: Case) -> Iterator[Suspicion]:
    """Judge what holds in every example, and not in another call."""
    for invariant in case.invariants:
        broken = [
            (probe, plain(outcome.value))
            for probe, outcome in case.behavior.outcomes
            if probe.kind in _VARIED and isinstance(outcome, Returned)
            if invariant.holds(probe.arguments, plain(outcome.value)) is False
        ]
        if broken:
            message = f"in the examples of `{case.function.name}` {invariant.shown}, and not in other calls"
            yield suspicion(case, "doubt-work", message, _WORK, broken)
            return


def _dropped_pieces(case: Case) -> Iterator[Suspicion]:
    """Judge a number in a text that changes no result, where each other one of that text does."""
    if not case.takes_pieces or not relation_words()["pieces"]["left"].isdisjoint(case.promise.words):
        return
    outcomes = case.behavior.outcomes
    for name in case.function.parameters["properties"]:
        live: dict[int, set[int]] = {}
        tried: dict[int, dict[int, tuple[Probe, Any]]] = {}
        for probe, outcome in outcomes:
            if probe.kind != "piece" or probe.parameter != name or outcome is None:
                continue
            first = outcomes[probe.of]
            at = _changed_piece(first[0].arguments[name], probe.arguments[name])
            is_same = (
                isinstance(outcome, Returned) and isinstance(first[1], Returned) and outcome.value == first[1].value
            )
            value = plain(outcome.value) if isinstance(outcome, Returned) else None
            tried.setdefault(probe.of, {}).setdefault(at, (probe, value))
            live.setdefault(probe.of, set()).update(() if is_same else (at,))
        dropped = [set(tried[of]) - live[of] for of in tried]
        if len(dropped) > 1 and len(dropped[0]) == 1 and all(one == dropped[0] for one in dropped):
            message = f"a number in `{name}` changes no result of `{case.function.name}`, and each other one does"
            calls = [calls[at] for calls in tried.values() for at in dropped[0]]
            yield suspicion(case, "doubt-work", message, _WORK, calls)


def _changed_piece(text: str, other: str) -> int:
    """Return which number of a text is another in the other text."""
    pairs = zip(NUMBERS.findall(text), NUMBERS.findall(other), strict=True)
    return next(at for at, (first, second) in enumerate(pairs) if first != second)


def _container(case: Case) -> Iterator[Suspicion]:
    """Judge a file of a format that is no text, of which the text that came in is all that is made."""
    sentence = case.promise.sentence
    named = [word for at, word in enumerate(sentence[:9]) if {"to", "into", "as"} & {*sentence[max(0, at - 2) : at]}]
    formats = relation_words()["media"]["formats"] & {*named, *case.promise.name[1:]}
    is_pasted = case.behavior.gives_back or case.behavior.is_free(loose=True, texts_only=True)
    if formats and case.behavior.hands_on and is_pasted:
        message = f"`{case.function.name}` promises {min(formats)}, and only puts what came in between fixed words"
        everyday = [*_of_kind(case.behavior, "similar"), *_of_kind(case.behavior, "everyday")]
        yield suspicion(case, "doubt-work", message, _WORK, everyday)
