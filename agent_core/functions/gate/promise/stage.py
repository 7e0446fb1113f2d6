"""Stage 9, promise: does what a function returns for other arguments fit what it promises?

Only what a promise or a constant makes suspect is run. What its name and first sentence claim is compared with its
means and with what it gives back on varied arguments; strong evidence refuses, weak evidence is a doubt.
"""

import re
from dataclasses import replace
from typing import Final

from agent_core.registry.function import Function
from sandbox import Attempt, Attempts, Returned

from ..arguments.generation import shown, written
from ..draft import Draft
from ..rewrite import check_rewrite
from ..substance import HOLLOW
from ..trial import TrialTools
from ..verdict import Doubt
from .behavior import Behavior
from .case import Case
from .claims import promise_of
from .code import code_words, has_means
from .constants import trial_values
from .judgment import PromiseJudgment, judge
from .known_tasks import known_calls
from .memorization import Memorization
from .probes import Probe, probes
from .reach import ShownCase
from .stated import stated_calls

STAGE: Final = "promise"
_EACH_S = 0.25
_TURNS = 3
_ASSIGNED = re.compile(r"^\w+ *= *(?!=)")
_HALF = 0.5  # of the calls: what nothing speaks against then is not tried again
_MOST_CALLS = 3
_LONG = 80  # characters of a call, of which somebody can hardly work out the result


async def check_promise(draft: Draft, bench: TrialTools) -> Draft:
    """Return the draft with what speaks against its promise."""
    function, tree = draft.loaded, draft.tree
    if function is None or tree is None or draft.function is None:
        return draft.skip("the module could not be imported")
    if draft.shows(*HOLLOW):
        return draft.skip("the body does nothing yet")
    draft = await check_rewrite(draft, bench)
    description = _description(draft, function)
    case = _case(draft, function, description)
    known = [] if case.has_means else known_calls(case)
    calls_to_try = [Probe(arguments, "known") for arguments, _call in known]
    if not (case.is_suspect or calls_to_try):
        return replace(draft, note="nothing in it promises more than it computes")
    if case.is_suspect and function.parameters["properties"]:
        examples = _examples(draft, function)
        stated = stated_calls(function.parameters, examples, function.description if case.unknown_numbers else "")
        calls_to_try = [*probes(function, examples, trial_values(tree), description), *stated, *calls_to_try]
    elif case.is_suspect:
        calls_to_try = [Probe({}, "again", 0)] * 4
    case, judged = await _judged(replace(case, behavior=Behavior(calls_to_try, (), code_words(tree))), bench)
    names = [*function.parameters["properties"]]
    telling = {
        written(function.name, dict(call.arguments), names, function.rest, function.extra): call.shown
        for call in judged.calls[:_MOST_CALLS]
    }
    calls = tuple(telling.items()) or _calls(function, case.behavior)
    draft = replace(draft, doubts=tuple(Doubt(doubt.code, doubt.message, calls) for doubt in judged.doubts))
    judged_draft = draft.with_findings(STAGE, [*judged.findings, *judged.doubts])
    calls_made = f"{case.behavior.count} call{'' if case.behavior.count == 1 else 's'}"
    return replace(judged_draft, note=f"{calls_made} compared with it")


def _description(draft: Draft, function: Function) -> str:
    main = function.description or draft.candidate.description
    parameter_texts = [schema.get("description", "") for schema in function.parameters["properties"].values()]
    return "\n\n".join([main, *filter(None, parameter_texts)])


def _case(draft: Draft, function: Function, description: str) -> Case:
    assert draft.tree is not None
    assert draft.function is not None
    main = function.description or draft.candidate.description
    promise = promise_of(function.name, main, function.parameters, function.returns)
    memorization = (
        None
        if draft.trials.disagreements
        else Memorization(draft.tree, _shown(draft, function), function.parameters, description)
    )
    return Case(draft, function, promise, has_means(draft), memorization)


def _examples(draft: Draft, function: Function) -> list[dict[str, object]]:
    given = [_ASSIGNED.sub("", text.strip()) for example in function.examples for text in example.setup]
    written = [*given, *(example.call for example in function.examples)]
    calls = [*dict.fromkeys(written), *(example.call for example in draft.candidate.examples)]
    return shown(calls, function.name, function.parameters, function.rest, function.extra)


def _shown(draft: Draft, function: Function) -> list[ShownCase]:
    """Return the examples that agreed, with arguments that can be read, without those that the gate asked for."""
    cases = []
    for call, value in draft.trials.values:
        if call in draft.candidate.asked:
            continue
        arguments = shown([call], function.name, function.parameters, function.rest, function.extra)
        cases += [ShownCase(arguments[0], value)] if len(arguments) == 1 and call.startswith(function.name) else []
    return cases


async def _judged(case: Case, bench: TrialTools) -> tuple[Case, PromiseJudgment]:
    """Return a function with its behavior and the judgment: calls that a busy machine did not reach are tried again."""
    draft, function, judged = case.draft, case.function, judge(case)
    assert draft.trial is not None
    for turn in range(_TURNS):
        calls = [Attempt(probe.arguments) for probe, outcome in case.behavior.outcomes if outcome is None]
        if not calls:
            break
        work = Attempts(function.name, calls, _EACH_S, is_patient=True)
        most_s = draft.rules.promise_s * 2**turn
        reached = await bench.attempt(draft.trial.modules, function.module, work, most_s)
        case = replace(case, behavior=case.behavior.completed(reached))
        judged = judge(case)
        if _is_settled(case.behavior, judged):
            break
    return case, judged


def _is_settled(behavior: Behavior, judged: PromiseJudgment) -> bool:
    """Check whether more calls change nothing: enough ended, one did not, or half of them say nothing against it."""
    if behavior.has_hung or not behavior.is_cut_short:
        return True
    return behavior.is_reached(_HALF) and not (judged.findings or judged.doubts)


def _calls(function: Function, behavior: Behavior) -> tuple[tuple[str, str], ...]:
    """Return calls unlike the examples, with what they returned: everyday ones first."""
    names = list(function.parameters["properties"])
    ranked = sorted(behavior.outcomes, key=lambda pair: _ORDER.get(pair[0].kind, 9))
    calls = [
        (written(function.name, probe.arguments, names, function.rest, function.extra), outcome.shown)
        for probe, outcome in ranked
        if isinstance(outcome, Returned) and probe.kind in _ORDER and len(outcome.shown) < 200
    ]
    calls.sort(key=lambda call: len(call[0]) > _LONG)
    return tuple(dict(calls).items())[:_MOST_CALLS]


_ORDER: Final = {"similar": 0, "number": 1, "everyday": 2, "twin": 3, "other": 4}
