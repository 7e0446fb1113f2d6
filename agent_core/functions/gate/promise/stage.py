"""Stage 9, promise: does what a function returns for other arguments fit what it promises?

Only what a promise or a constant makes suspect is run. What its name and first sentence claim is compared with its
means and with what it gives back on varied arguments; strong evidence refuses, weak evidence is a doubt.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agent_core.registry.function import Function
from sandbox import Attempt, Attempts, Outcome, Returned

from ..arguments.generation import shown, written
from ..draft import Draft
from ..rewrite import rewritten
from ..substance import HOLLOW
from ..trial import TrialTools
from ..verdict import Doubt
from .behavior import Behavior
from .case import Case
from .claims import promise_of
from .code import code_words, has_means
from .constants import trial_values
from .judgment import judge
from .memory import Memory, ShownCase
from .probes import Probe, probes

STAGE: Final = "promise"
_EACH_S = 0.25
_MOST_CALLS = 3
_LONG = 80  # characters of a call, of which somebody can hardly work out the result


async def check_promise(draft: Draft, bench: TrialTools) -> Draft:
    """Return the draft with what speaks against its promise."""
    function, tree = draft.loaded, draft.tree
    if function is None or tree is None or draft.function is None:
        return draft.skip("the module could not be imported")
    if draft.shows(*HOLLOW):
        return draft.skip("the body does nothing yet")
    draft = await rewritten(draft, bench)
    case = _case(draft, function)
    if not case.is_suspect:
        return replace(draft, note="nothing in it promises more than it computes")
    tried = [Probe({}, "again", 0)] * 4
    if function.parameters["properties"]:
        tried = probes(function, _examples(draft, function), trial_values(tree))
    outcomes = await _outcomes(function, tried, draft, bench) if tried else ()
    case = replace(case, behavior=Behavior(tried, outcomes, code_words(tree)))
    judged = judge(case)
    names = [*function.parameters["properties"]]
    telling = {
        written(function.name, dict(call.arguments), names, function.rest, function.extra): call.shown
        for call in judged.calls[:_MOST_CALLS]
    }
    calls = tuple(telling.items()) or _calls(function, tried, outcomes)
    draft = replace(draft, doubts=tuple(Doubt(doubt.code, doubt.message, calls) for doubt in judged.doubts))
    found = draft.with_findings(STAGE, [*judged.findings, *judged.doubts])
    return replace(found, note=f"{case.behavior.count} calls looked at")


def _case(draft: Draft, function: Function) -> Case:
    assert draft.tree is not None
    assert draft.function is not None
    main = function.description or draft.candidate.description
    told = [schema.get("description", "") for schema in function.parameters["properties"].values()]
    description = "\n\n".join([main, *filter(None, told)])
    promise = promise_of(function.name, main, function.parameters)
    memory = (
        None
        if draft.trials.disagreements
        else Memory(draft.tree, _shown(draft, function), function.parameters, description)
    )
    return Case(draft, function, promise, has_means(draft), memory)


def _examples(draft: Draft, function: Function) -> list[dict[str, object]]:
    calls = [*(example.call for example in function.examples), *(example.call for example in draft.candidate.examples)]
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


async def _outcomes(
    function: Function, tried: Sequence[Probe], draft: Draft, bench: TrialTools
) -> tuple[Outcome | None, ...]:
    assert draft.trial is not None
    work = Attempts(function.name, [Attempt(probe.arguments) for probe in tried], _EACH_S)
    return await bench.attempt(draft.trial.modules, function.module, work, draft.rules.promise_s)


def _calls(
    function: Function, tried: Sequence[Probe], outcomes: Sequence[Outcome | None]
) -> tuple[tuple[str, str], ...]:
    """Return calls unlike the examples, with what they returned: everyday ones first."""
    names = list(function.parameters["properties"])
    ranked = sorted(zip(tried, outcomes, strict=True), key=lambda pair: _ORDER.get(pair[0].kind, 9))
    calls = [
        (written(function.name, probe.arguments, names, function.rest, function.extra), outcome.shown)
        for probe, outcome in ranked
        if isinstance(outcome, Returned) and probe.kind in _ORDER and len(outcome.shown) < 200
    ]
    calls.sort(key=lambda call: len(call[0]) > _LONG)
    return tuple(dict(calls).items())[:_MOST_CALLS]


_ORDER: Final = {"kin": 0, "number": 1, "everyday": 2, "twin": 3, "other": 4}
