"""Stage 12, challenge: where the examples leave room for another body, the author predicts the results of other calls.

They are unlike the calls of the examples, and a change of the body that no example notices has another result there.
They are chosen in a shared worker, so the choice is advice; what the author expects is then compared like any example.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from agent_core.registry.examples import Example
from agent_core.registry.function import Function
from sandbox import Attempt, Attempts, Outcome, Raised, Returned
from sandbox.wire.lines import bare_lines

from .arguments.domain import Domain, domain
from .arguments.failed_call import is_right, named
from .arguments.generation import Arguments, generate, shown, written
from .arguments.likeness import Weight
from .candidate import GivenExample
from .draft import Draft, Finding
from .examples.agreement import doctest_form, literal_value, same
from .examples.prediction import predictions
from .examples.sufficiency import is_unproven
from .promise.code import calls_hash, docstring_of, literals
from .promise.probes import unshown
from .promise.similarity import similar_calls
from .proof import run
from .reviewer import Opinion
from .rules import CHALLENGED
from .trial import TrialTools

STAGE: Final = "challenge"
CODE: Final = "challenged"
_GENERATED = 150  # calls, of which those most like the examples' are tried
_TRIED = 24
_FORMED = 6  # calls in the form of the examples
_MOST_CHANGES = 8
_LONGEST = 80  # characters of a call, or of a result, that somebody can work out
_LONGEST_TELLING = 600  # of a result that shows a doubt: rather a long answer than none
_LONG_NUMBER = re.compile(r"\d{8}|\.\d{5}")
_FEW = 2  # calls, where none notices more than another


@dataclass(frozen=True, slots=True)
class TriedCall:
    """A call with its result as an example writes it, and the changes of the body that have another result there.

    It is `odd` if its author may not have meant such arguments.
    """

    text: str
    result: str
    notices: frozenset[int]
    odd: int


async def challenge(draft: Draft, bench: TrialTools) -> Draft:
    """Return the draft with the calls whose results its author is to predict, if its evidence is weak."""
    function = draft.loaded
    reason = _not_for(draft, function, is_reviewed=bench.reviewer is not None)
    if reason or function is None:
        return draft.skip(reason)
    draft, disputed = await _reviewed(draft, function, bench)
    promised = await _promised(draft, function, bench)
    tried = await _tried(draft, function, bench) if is_doubtful(draft) else []
    known = {example.expected.strip() for example in _examples(draft, function)}
    chosen = [*disputed, *_telling(draft), *promised, *_chosen(tried, known, draft.rules.challenges)]
    calls = tuple(dict.fromkeys(chosen))[: draft.rules.challenges]
    if not calls:
        return replace(draft, note="no other call would show more" if is_doubtful(draft) else "")
    count = "1 result" if len(calls) == 1 else f"{len(calls)} results"
    draft = replace(draft, challenges=calls, note=f"{count} to predict")
    message = f"the examples of `{function.name}` leave open what it does with other arguments"
    fix = f"say what {' and '.join(f'`{call}`' for call in calls)} must return"
    return draft.with_findings(STAGE, [Finding(CODE, message, fix, draft.function.lineno if draft.function else 0)])


def _not_for(draft: Draft, function: Function | None, *, is_reviewed: bool) -> str:
    """Return why an author is asked for nothing."""
    if draft.refuses:
        return "it is refused already"
    if function is None or draft.tree is None:
        return "the module could not be imported"
    is_hashed = calls_hash(draft.tree) and not draft.shows(*CHALLENGED)
    is_unknown = is_hashed or is_unproven(draft.tree, draft.function, function)
    if function.takes_self or draft.needs.is_outward or is_unknown:
        return "nobody can predict its results"
    asked = shown(draft.candidate.asked, function.name, function.parameters, function.rest, function.extra)
    if asked and all(call in _shown(draft, function) for call in asked):
        return "its author has answered"
    is_open = is_reviewed or is_doubtful(draft) or bool(_unshown(draft, function))
    return "" if is_open else "its examples leave little open"


def is_doubtful(draft: Draft) -> bool:
    """Check whether a finding calls for a challenge, or many changes of the body would go unnoticed: fewer of them
    where the words promise more than computing. A change of what the description tells leaves nothing open.
    """
    told, rules = docstring_of(draft.function), draft.rules
    unnoticed = sum(not _is_told(mutant.old, told) for mutant in draft.unnoticed)
    share = rules.weak_share / 2 if draft.shows("doubt-words") else rules.weak_share
    is_weak = unnoticed >= rules.weak_least and unnoticed >= share * draft.mutants_tried
    return is_weak or draft.shows(*CHALLENGED)


def _is_told(code: str, description: str) -> bool:
    """Check whether a text or number of the code stands in a description, apart from its examples."""
    prose = "\n".join(line for line in bare_lines(description) if not line.lstrip().startswith(">>>"))
    constant = code.strip("\"'")
    is_literal = code[:1] in ("'", '"') or code[:1].isdigit()
    return is_literal and len(constant) > 1 and re.search(rf"(?<!\w){re.escape(constant)}(?!\w)", prose) is not None


async def _reviewed(draft: Draft, function: Function, bench: TrialTools) -> tuple[Draft, list[str]]:
    """Return the draft with a reviewer's opinions, and the calls on which it and the function differ."""
    if bench.reviewer is None or draft.trial is None or draft.function is None:
        return draft, []
    head = ast.unparse(
        ast.FunctionDef(draft.function.name, draft.function.args, [ast.Pass()], [], draft.function.returns, lineno=1)
    )
    described = f"{head.partition(chr(10))[0]}\n{ast.get_docstring(draft.function) or ''}"
    review = await bench.reviewer.review(described)
    names = [*function.parameters["properties"]]
    calls = {  # written anew, for all that they may hold is arguments
        written(function.name, arguments, names, function.rest, function.extra): opinion.expected
        for opinion in review.opinions
        for arguments in shown([opinion.call], function.name, function.parameters, function.rest, function.extra)[:1]
    }
    expected = predictions([*calls], [*calls.values()], function.returns)
    results = await run(expected, function.module, draft.trial, bench, returns=function.returns)
    opinions = tuple(Opinion(result.call, result.expected, result.returned, result.agreed) for result in results)
    disputed = [opinion.call for opinion in opinions if not opinion.agreed]
    return replace(draft, review=replace(review, opinions=opinions)), disputed


def _unshown(draft: Draft, function: Function) -> list[Arguments]:
    """Return calls with the values that a description gives for instance, of which nothing shows what they give."""
    texts = [ast.literal_eval(text) for text in literals(draft.tree) if text[:1] in "\"'"] if draft.tree else []
    return unshown(function, _shown(draft, function), texts)[:_FEW]


async def _promised(draft: Draft, function: Function, bench: TrialTools) -> list[str]:
    """Return those calls that end in an error, or in something that somebody can work out."""
    calls = _unshown(draft, function)
    if not calls or draft.trial is None or draft.tree is None or draft.function is None:
        return []
    work = Attempts(function.name, [Attempt(call) for call in calls], draft.rules.robust_each_s)
    outcomes = await bench.attempt(draft.trial.modules, function.module, work, draft.rules.challenge_s)
    allowed, names = named(draft.tree, draft.function, function.examples), [*function.parameters["properties"]]
    return [
        text
        for call, outcome in zip(calls, outcomes, strict=True)
        if _is_clear(text := written(function.name, call, names, function.rest, function.extra))
        and (isinstance(outcome, Raised) or _result(outcome, allowed))
    ]


async def _tried(draft: Draft, function: Function, bench: TrialTools) -> list[TriedCall]:
    """Return the calls that end in something that somebody can work out."""
    calls = list(_calls(draft, function))
    texts = [None, *(mutant.text for mutant in draft.unnoticed[:_MOST_CHANGES])]
    attempts = [Attempt(arguments, text) for arguments, _ in calls for text in texts]
    if not attempts or draft.trial is None or draft.tree is None or draft.function is None:
        return []
    work = Attempts(function.name, attempts, draft.rules.robust_each_s)
    outcomes = await bench.attempt(draft.trial.modules, function.module, work, draft.rules.challenge_s)
    allowed, names = named(draft.tree, draft.function, function.examples), [*function.parameters["properties"]]
    rows = [outcomes[at : at + len(texts)] for at in range(0, len(outcomes), len(texts))]
    return [
        TriedCall(text, result, frozenset(at for at, other in enumerate(others) if _differ(own, other)), odd)
        for (arguments, odd), (own, *others) in zip(calls, rows, strict=True)
        if _is_clear(text := written(function.name, arguments, names, function.rest, function.extra))
        and (result := _result(own, allowed))
    ]


def _calls(draft: Draft, function: Function) -> Iterator[tuple[Arguments, int]]:
    """Yield calls with arguments that may have been meant: in the form of the examples, then those first in which the
    least stands in an example.
    """
    examples = _shown(draft, function)
    seen = domain(examples, function.parameters["properties"])
    generated = generate(function.parameters, examples, seen, function.body_hash, _GENERATED)
    rated = [(call, _oddity(call, seen)) for call in generated]
    usual = [(call, odd) for call, odd in rated if odd < _FEW]
    similar = [(call, _oddity(call, seen)) for call, _ in similar_calls(examples, function.parameters)]
    yield from islice(similar, _FORMED)
    yield from islice(sorted(usual, key=lambda pair: (pair[1], _repeated(pair[0], examples))), _TRIED)


def _oddity(call: Arguments, seen: Domain) -> int:
    """Return in how many ways the arguments may be others than were meant."""
    return sum(difference.weight > Weight.SLIGHT for difference in seen.outside(call))


def _telling(draft: Draft) -> Iterator[str]:
    """Yield the calls that show a doubt: they got the answer that nearly all calls get, or break a relation."""
    calls = [call for doubt in draft.doubts if doubt.code in CHALLENGED for call in doubt.calls]
    clear = (text for text, result in calls if _is_clear(text) and len(result) <= _LONGEST_TELLING)
    yield from islice(clear, _FEW)


def _examples(draft: Draft, function: Function) -> list[Example | GivenExample]:
    return [*function.examples, *draft.candidate.examples]


def _shown(draft: Draft, function: Function) -> list[Arguments]:
    """Return the arguments of the examples."""
    calls = [example.call for example in _examples(draft, function)]
    return shown(calls, function.name, function.parameters, function.rest, function.extra)


def _repeated(call: Arguments, examples: Sequence[Arguments]) -> int:
    """Return how many of the arguments stand in an example, too."""
    return sum(any(name in example and example[name] == value for example in examples) for name, value in call.items())


def _result(outcome: Outcome | None, allowed: frozenset[str]) -> str:
    """Return a result that somebody can work out as an example writes it; an error counts if it is meant."""
    if isinstance(outcome, Raised):
        return outcome.failure.type if is_right(outcome, allowed) else ""
    if not isinstance(outcome, Returned) or outcome.output:
        return ""
    text = doctest_form(outcome).text.strip()
    return text if _is_clear(text) and literal_value(text) == outcome.value else ""


def _is_clear(text: str) -> bool:
    return len(text) <= _LONGEST and "\n" not in text and not _LONG_NUMBER.search(text)


def _differ(outcome: Outcome | None, other: Outcome | None) -> bool:
    if isinstance(outcome, Returned) and isinstance(other, Returned):
        return not same(outcome.value, other.value)
    return other is not None and (type(outcome) is not type(other) or isinstance(outcome, Returned))


def _chosen(tried: Sequence[TriedCall], known: set[str], most: int) -> Iterator[str]:
    """Yield the calls that notice most together; with a finding that is no matter of changes, those of new results."""
    waiting, results, noticed = list(tried), set(known), set[int]()
    can_notice = any(call.notices for call in tried)
    for count in range(most):
        gains = {call.text: (len(call.notices - noticed), call.result not in results) for call in waiting}
        useful = [
            call for call in waiting if (gains[call.text][0] if can_notice else count < _FEW and gains[call.text][1])
        ]
        best = max(useful, key=lambda call: (gains[call.text][0] - call.odd, gains[call.text][1]), default=None)
        if best is None:
            return
        waiting.remove(best)
        noticed |= best.notices
        results.add(best.result)
        yield best.text
