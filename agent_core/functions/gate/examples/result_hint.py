"""Writes the type of the results as a hint, if every example agreed and nothing in the body contradicts it.

A part of stage 8. The text is placed anew, and nothing runs again: a builtin type changes no computation.
"""

from dataclasses import replace

from agent_core.base.problem import Problem
from agent_core.registry.function import ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from ..draft import Draft
from ..autofix import keeps_meaning, view_of
from ..fixes import hint_result, inferred
from ..trial import placed

_CODE = "inferred-hints"
_LACK = "no-return-type"


def with_result_hint(draft: Draft) -> Draft:
    """Return the draft with the type of its results, if it was admitted without one and they prove one."""
    is_refused = any(problem.severity == "refuses" for problem in draft.problems)
    lacks = not is_refused and any(problem.code == _LACK for problem in draft.problems)
    before = view_of(draft) if lacks and not draft.trials.disagreements and draft.rules.makes(_CODE) else None
    text = hint_result(before, dict(draft.trials.values)) if before else draft.text
    if before is None or text == draft.text or not keeps_meaning(draft.text, text, draft.candidate.name):
        return draft
    fixed = draft.with_fix(_CODE, "", text)
    after = view_of(fixed)
    reading = _placed(fixed)
    if after is None or reading is None:
        return draft
    fixed = draft.with_fix(_CODE, inferred(before, after), text)
    problems = tuple(problem for problem in draft.problems if problem.code != _LACK)
    return replace(fixed, problems=problems, reading=reading, trial=draft.snapshot.with_module(reading))


def _placed(draft: Draft) -> ModuleReading | None:
    """Return the module with the new text; what a worker reported of its types stays."""
    around, draft_reading = draft.snapshot.modules.get(draft.candidate.module), draft.reading
    text = placed(draft, around)
    if isinstance(text, Problem) or draft_reading is None:
        return None
    reading = read_module(ModuleSource.of(draft.candidate.module, text, around.path if around else ""))
    before = {function.name: function for function in draft_reading.functions}
    if {function.name for function in reading.functions} - before.keys():
        return None
    functions = tuple(
        replace(function, parameters=before[function.name].parameters, unresolved=before[function.name].unresolved)
        for function in reading.functions
    )
    return replace(reading, functions=functions) if reading.parsed else None
