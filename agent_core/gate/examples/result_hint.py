"""The type of what came back, as a hint: written where every example agreed and nothing in the body speaks against it.

A part of stage 8. The text is placed anew, and nothing runs again: a builtin type changes no computation.
"""

from dataclasses import replace

from ...problem import Problem
from ...registry.function import Reading
from ...registry.schema import read_module
from ...registry.source import Source
from ..draft import Draft
from ..mend import keeps_meaning, view_of
from ..mends import hint_result, inferred
from ..trial import placed

_CODE = "inferred-hints"
_LACK = "no-return-type"


def with_result_hint(draft: Draft) -> Draft:
    """The draft with the type of its results, if it was admitted without and they prove one."""
    is_refused = any(one.severity == "refuses" for one in draft.problems)
    lacks = not is_refused and any(one.code == _LACK for one in draft.problems)
    before = view_of(draft) if lacks and not draft.trials.disagreements and draft.rules.makes(_CODE) else None
    text = hint_result(before, dict(draft.trials.values)) if before else draft.text
    if before is None or text == draft.text or not keeps_meaning(draft.text, text, draft.candidate.name):
        return draft
    mended = draft.with_mend(_CODE, "", text)
    after = view_of(mended)
    reading = _placed(mended)
    if after is None or reading is None:
        return draft
    mended = draft.with_mend(_CODE, inferred(before, after), text)
    left = tuple(one for one in draft.problems if one.code != _LACK)
    return replace(mended, problems=left, reading=reading, trial=draft.snapshot.with_module(reading))


def _placed(draft: Draft) -> Reading | None:
    """The module with the new text; what a worker told of its types stays."""
    around, known = draft.snapshot.modules.get(draft.candidate.module), draft.reading
    text = placed(draft, around)
    if isinstance(text, Problem) or known is None:
        return None
    reading = read_module(Source.of(draft.candidate.module, text, around.path if around else ""))
    before = {one.name: one for one in known.functions}
    if {one.name for one in reading.functions} - before.keys():
        return None
    functions = tuple(
        replace(one, parameters=before[one.name].parameters, unresolved=before[one.name].unresolved)
        for one in reading.functions
    )
    return replace(reading, functions=functions) if reading.parsed else None
