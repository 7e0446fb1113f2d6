"""The stage "reader": compares the code with what a second model reads in the description, and what is left open.

| the reader says | and the code | so |
|---|---|---|
| it must reach something | uses no grant | refused once; if the author insists, the user decides, or it is a draft |
| this call must return X | returns Y | the author is asked what it must return, and sees neither |
| | the author also says X | refused: the body is wrong |
| | the author says Y | the user decides; without a user it becomes a draft, with both values |
| nothing (off, cannot tell, infers) | has changes that no example detects | the author predicts other results |

The author of the code also wrote the examples, so their agreement proves little. The gate's calls are made from the
examples' values.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from agent_core.base.offload import aside
from agent_core.base.problem import Evidence
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import fence
from sandbox import Attempt, Attempts, Outcome, Raised, Returned
from sandbox.wire.lines import bare_lines

from .call_arguments import Arguments, read_calls, recombine, write_call
from .capability import may_keep, reached_by
from .draft import NOT_IMPORTED, Draft, Finding, GivenExample, TrialSubject
from .examples import doctest_form, literal_value, predictions, same, unprovable
from .proof import run
from .reader import description_id
from .robust import is_right, known_errors
from .tree import constants, expression, is_bare_call, is_call_of, literal
from .verdict import CHALLENGED, DISPUTED, NOT_READ, REACHES_NOTHING, ReaderAnswer

if TYPE_CHECKING:
    from agent_core.registry.function import Function

    from .trial import TrialTools

STAGE: Final = "reader"
CHALLENGE: Final = "challenged"
WRONG_BODY: Final = "wrong-body"
_MEANS: Final = {
    "network": (
        "the network",
        "take `self` and use `self.fetch(url)`; the user is asked for the host",
    ),
    "files": (
        "files, or something that is kept after the call",
        "take `self` and read or write with a grant (files, memory, state); the user is asked",
    ),
    "device": (
        "a program, a device or a person",
        "take `self` and do it through a service (`self.fetch`) or another function (`self.call`)",
    ),
    "understanding": (
        "a mind or a trained model",
        "take `self` and ask a service (`self.fetch`) or a helper (`self.call`)",
    ),
    "knowledge": (
        "facts about the world",
        "take `self` and look them up (`self.fetch`, a file), or take them as a parameter",
    ),
}
_MOST_CHANGES = 8
_TRIED = 16
_LONGEST = 80  # characters of a call or result that can be worked out
_LONG_NUMBER = re.compile(r"\d{8}|\.\d{5}")
_NEXT_TO_IT: Final = frozenset({"constant", "boundary"})
_FEW = 2  # number of calls if none detects more than the others


async def judge_meaning(draft: Draft, trial: "TrialTools") -> Draft:
    """Return the draft with findings on what its description leaves open, and on what a reader says about it."""
    own = draft.loaded
    if own is None:
        return draft.skip(NOT_IMPORTED)
    if wrong := dict(_wrong(draft)):
        others = [
            problem
            for problem in draft.problems
            if not any(f"`{call}`" in problem.message for call in wrong)
        ]
        return replace(draft, problems=tuple(others)).with_findings(STAGE, wrong.values())
    if draft.refuses:
        return draft.skip("it is refused already")
    reached = await aside(draft.size, reached_by, draft)
    is_open = reached != "this" and not unprovable(own)
    answered = {example.call for example in draft.candidate.examples} & {*draft.candidate.asked}
    # Once its author has answered, only what a reader disputes is asked for.
    is_chosen = is_open and not (own.function.takes_self or answered)
    chosen = await _chosen(draft, own, trial) if is_chosen else []
    chosen = chosen[:_FEW] if trial.reader is not None and draft.is_read else chosen
    answer = await _answer(draft, trial, chosen) if reached != "this" else None
    if answer is not None:
        answer = await _try_calls(answer, own, trial) if is_open else answer
        draft = replace(draft, answer=answer, late=bool(answer.error))
    disputed = (
        [call for call in draft.answer.calls if not (call.agreed or call.is_inferred)]
        if draft.answer
        else []
    )
    is_beyond = draft.answer is not None and await aside(
        draft.size, _is_beyond, draft, draft.answer
    )
    if draft.answer is not None and is_beyond:  # its code cannot do what it promises
        what, means = _MEANS[draft.answer.reach]
        does = "only computes" if reached == "nothing" else "names nothing that it would reach"
        message = (
            f"by its description `{draft.candidate.name}` has to reach {what}, and its code {does}"
        )
        fix = f'do it: {means}; or say in the docstring what it really does, as in "Word the confirmation of an order"'
        thought = f" ({draft.answer.thought})" if draft.answer.thought else ""
        facts = (
            Evidence(f"a reader of its description: {draft.answer.reach}{thought}"),
            Evidence(f"its code: {does}"),
        )
        insists = draft.candidate.insists
        beyond = Finding(
            REACHES_NOTHING, message, None if insists else fix, draft.line, evidence=facts
        )
        draft = draft.with_findings(STAGE, [beyond], is_mild=insists)
    doubts = [  # a person must decide them
        Finding(
            DISPUTED,
            f"`{call.call}` returns {fence(call.returned)}; a reader of its description expects {fence(call.expected)}",
            None,
            draft.line,
            evidence=(Evidence(call=call.call, returned=call.returned, expected=call.expected),),
        )
        for call in disputed
        if call.call in answered or not draft.is_challenging
    ]
    draft = draft.with_findings(STAGE, doubts, is_mild=True)
    known = (
        [call for call in draft.answer.calls if call.agreed or not call.is_inferred]
        if draft.answer
        else []
    )
    settled = {call.call for call in known}
    asked = [call.call for call in disputed] + [call for call in chosen if call not in settled]
    calls = tuple(dict.fromkeys(call for call in asked if call not in answered))
    if draft.refuses or not calls or not draft.is_challenging:
        return replace(draft, note=draft.note or await aside(draft.size, _note, draft, trial))
    count = "1 result" if len(calls) == 1 else f"{len(calls)} results"
    message = f"the examples of `{own.function.name}` leave open what it does with other arguments"
    fix = f"say what {' and '.join(f'`{call}`' for call in calls)} must return"
    draft = replace(draft, challenges=calls, note=f"{count} to predict")
    evidence = tuple(Evidence(call=call) for call in calls)
    return draft.with_findings(
        STAGE, [Finding(CHALLENGE, message, fix, draft.line, evidence=evidence)]
    )


def _is_beyond(draft: Draft, answer: ReaderAnswer) -> bool:
    """Check whether a description promises what code without a grant cannot do."""
    return answer.reach in _MEANS and not (answer.reach == "files" and may_keep(draft))


def _note(draft: Draft, trial: "TrialTools") -> str:
    """Return a note for the verdict about what the reader did."""
    answer = draft.answer
    if answer is None:
        if reached_by(draft) == "this":
            return "it reaches outside: its grants show what"
        return (
            f"{NOT_READ}: no model reads descriptions"
            if trial.reader is None
            else "only what an agent makes is read"
        )
    if answer.error:
        return f"{NOT_READ}: {answer.error}"
    agreed = sum(call.agreed for call in answer.calls)
    calls = (
        f"; it expects what came back of {agreed} of {len(answer.calls)} calls"
        if answer.calls
        else ""
    )
    return f"has to reach {answer.reach}{calls}"


def _wrong(draft: Draft) -> Iterator[tuple[str, Finding]]:
    """Yield a call and a finding for each result that author and reader expect but the code does not return."""
    answer, line = draft.candidate.answer, draft.line
    returned = {disagreement.call: disagreement for disagreement in draft.trials.disagreements}
    for example in draft.candidate.examples if answer else ():
        read = answer.expects(example.call)  # type: ignore[union-attr]
        values = literal_value(example.expected), literal_value(read)
        are_literal = not any(type(value) is object for value in values)
        is_same = (
            same(*values, is_float=True)
            if are_literal
            else example.expected.strip() == read.strip()
        )
        if example.call in returned and read and is_same:
            back = returned[example.call].returned
            message = f"`{example.call}` must return {fence(example.expected)}, as its author and a reader of its"
            message = f"{message} description say, and the body returns {fence(back)}"
            shown_call = Evidence(call=example.call, returned=back, expected=example.expected)
            yield (
                example.call,
                Finding(WRONG_BODY, message, "fix the body", line, evidence=(shown_call,)),
            )


def description_of(draft: Draft, *, with_calls: bool = True) -> str:
    """Return a function's name, signature and docstring as a reader sees it, without the results of examples.

    Without `with_calls`, the examples are left out completely.
    """
    node = draft.function
    if node is None:
        return ""
    bare = ast.FunctionDef(node.name, node.args, [ast.Pass()], [], node.returns, lineno=1)
    head = ast.unparse(bare).partition("\n")[0]
    lines, in_result = [], False
    for line in bare_lines(ast.get_docstring(node) or ""):
        is_call = line.lstrip().startswith((">>>", "..."))
        in_result = (in_result or is_call) and bool(line.strip())
        if (is_call and with_calls) or not in_result:
            lines.append(f"    {line}".rstrip())
    text = "\n".join(lines).strip()
    text = text.replace('"""', r"\"\"\"")  # or its author could end it, and show something else
    return f'{head}\n    """{text}"""'


async def _answer(draft: Draft, trial: "TrialTools", chosen: Sequence[str]) -> ReaderAnswer | None:
    """Return the reader's answer, which is requested once per description."""
    earlier, bare = draft.candidate.answer, description_of(draft, with_calls=False)
    of = description_id(bare)
    if earlier is not None and earlier.described == of and not earlier.error:
        return earlier
    if trial.reader is None or not draft.is_read:
        return None
    return replace(await trial.reader.read(description_of(draft), chosen, bare), described=of)


async def _try_calls(
    answer: ReaderAnswer, subject: TrialSubject, trial: "TrialTools"
) -> ReaderAnswer:
    """Return the answer with the results of its calls, as far as they can be told.

    A call is any expression with a call of the function in it. It runs as an example does: in a worker, without a
    grant.
    """
    function = subject.function
    calls = {text: call for call in answer.calls if (text := _usable_call(call.call, function))}
    expected: list[GivenExample] = []
    for text, call in calls.items():
        returns = function.returns if is_bare_call(text, function.name) else ""
        expected += predictions([text], [call.expected], returns)
    results = await run(expected, function, subject.snapshot, trial)
    tried = [
        replace(
            calls[result.call], call=result.call, returned=result.returned, agreed=result.agreed
        )
        for result in results
        if result.agreed or not (result.unrun or _is_misused(result.outcome))
    ]
    return replace(answer, calls=tuple(tried))


def _usable_call(text: str, function: "Function") -> str:
    """Return an expression as Python writes it; empty if it calls the function nowhere, or not as it is called."""
    node = expression(text)
    calls = (
        [inner for inner in ast.walk(node) if is_call_of(inner, function.name)]
        if node is not None
        else []
    )
    for call in calls:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if all(literal(argument)[0] for argument in given) and not read_calls(
            [ast.unparse(call)], function
        ):
            return ""
    return ast.unparse(node) if node is not None and calls else ""


def _is_misused(outcome: Outcome) -> bool:
    """Check whether an expression failed by itself, outside of the function that it calls."""
    frames = outcome.failure.frames if isinstance(outcome, Raised) else ()
    return bool(frames) and frames[-1].path.startswith("<example")


@dataclass(frozen=True, slots=True)
class TriedCall:
    """A call with its result as in an example, and the indexes of the changes of the body that give another result."""

    text: str
    result: str
    notices: frozenset[int]


async def _chosen(draft: Draft, subject: TrialSubject, trial: "TrialTools") -> list[str]:
    """Return the calls that reveal most of what the examples leave open.

    There are none if it does not seem to serve its examples only, and most changes of its body are detected.
    """
    unnoticed, rules = draft.unnoticed, draft.rules
    is_weak = len(unnoticed) >= max(rules.weak_least, rules.weak_share * draft.mutants_tried)
    # Changes of constants and boundaries, which few examples detect, do not count by themselves.
    is_weak = is_weak and any(mutant.operator not in _NEXT_TO_IT for mutant in unnoticed)
    doubts = [
        problem
        for problem in draft.problems
        if problem.code in CHALLENGED and not draft.candidate.asked
    ]
    if not (is_weak or doubts):
        return []
    given = read_calls([example.call for example in draft.examples], subject.function)
    values = constants(subject.tree)
    numbers = [
        value for value in values if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    tried = await _results(
        draft, subject, recombine(given, subject.function.parameters, numbers)[:_TRIED], trial
    )
    doubted = [
        row.call for doubt in doubts for row in doubt.evidence if row.call and _is_clear(row.call)
    ][:_FEW]
    # The calls that together detect the most changes; if none detects any, calls with new results.
    results, noticed = {example.expected.strip() for example in draft.examples}, set[int]()
    telling = list[str]()
    can_notice = any(call.notices for call in tried)
    for _ in range(rules.challenges if can_notice else min(rules.challenges, _FEW)):
        best = max(
            tried,
            key=lambda call: (len(call.notices - noticed), call.result not in results),
            default=None,
        )
        if best is None or not (
            best.notices - noticed if can_notice else best.result not in results
        ):
            break
        noticed |= best.notices
        results.add(best.result)
        telling.append(best.text)
    return [*doubted, *telling]


async def _results(
    draft: Draft, subject: TrialSubject, calls: Sequence[Arguments], trial: "TrialTools"
) -> list[TriedCall]:
    """Return the calls with results that a person could work out."""
    function = subject.function
    texts = [None, *(mutant.text for mutant in draft.unnoticed[:_MOST_CHANGES])]
    attempts = [Attempt(arguments, text) for arguments in calls for text in texts]
    if not attempts:
        return []
    work = Attempts(function.name, attempts, draft.rules.robust_each_s)
    outcomes = await trial.attempt(function, subject.modules, work, draft.rules.challenge_s)
    allowed = known_errors(subject)
    rows = [outcomes[at : at + len(texts)] for at in range(0, len(outcomes), len(texts))]
    return [
        TriedCall(
            text,
            result,
            frozenset(at for at, other in enumerate(others) if _differ(outcome, other)),
        )
        for arguments, (outcome, *others) in zip(calls, rows, strict=True)
        if _is_clear(text := write_call(function, arguments))
        and (result := _result(outcome, allowed))
    ]


def _result(outcome: Outcome | None, allowed: frozenset[str]) -> str:
    """Return a result in the form of an example if a person could work it out; an error counts if it is intended."""
    if isinstance(outcome, Raised):
        return outcome.failure.type if is_right(outcome, allowed) else ""
    if not isinstance(outcome, Returned) or outcome.output:
        return ""
    text = doctest_form(outcome).strip()
    return text if _is_clear(text) and literal_value(text) == outcome.value else ""


def _is_clear(text: str) -> bool:
    return len(text) <= _LONGEST and "\n" not in text and not _LONG_NUMBER.search(text)


def _differ(outcome: Outcome | None, other: Outcome | None) -> bool:
    if isinstance(outcome, Returned) and isinstance(other, Returned):
        return not same(outcome.value, other.value)
    return other is not None and (type(outcome) is not type(other) or isinstance(outcome, Returned))
