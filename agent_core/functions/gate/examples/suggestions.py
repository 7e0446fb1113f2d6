"""Suggestions for stage 8: a call whose result differs from those of the examples.

The calls are made of the examples' values, or stand at the edges of the types; they are tried if all results are alike.
"""

import ast
import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from agent_core.base.problem import Problem
from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from sandbox import Evaluation, Outcome, Returned

from ..call_arguments import edge_calls, recombined, shown, written
from ..draft import Draft
from ..trial import TrialTools, placed
from ..verdict import Disagreement
from .agreement import doctest_form

_MOST = 12  # calls that are tried
_LONGEST = 200  # characters of a result that is worth writing down


async def other_call(
    calls: Sequence[str], known_results: set[str], function: Function, snapshot: Snapshot, bench: TrialTools
) -> Disagreement | None:
    """Return a call with a result that is not among the known ones, and that result; None if none was found."""
    own, schema = function, function.parameters
    given, names = shown(calls, own.name, schema, own.rest, own.extra), [*schema["properties"]]
    anew = (arguments for arguments, _name in recombined(given, schema))
    made = (
        written(own.name, arguments, names, own.rest, own.extra) for arguments in (*anew, *edge_calls(schema, given))
    )
    tried = list(islice(dict.fromkeys(made), _MOST))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(bench.run(snapshot.modules, own.module, Evaluation((), call))) for call in tried]
    outcomes = zip(tried, (task.result() for task in tasks), strict=True)
    returned = ((call, _result(outcome)) for call, outcome in outcomes)
    return next(
        (Disagreement(call, "", text, 0) for call, text in returned if text and text not in known_results), None
    )


def _result(outcome: Outcome) -> str:
    """Return what an example would show of an outcome, if it fits on a line."""
    text = doctest_form(outcome).text.strip() if isinstance(outcome, Returned) else ""
    return text if len(text) <= _LONGEST and "\n" not in text else ""


def with_docstring(draft: Draft, text: str) -> Draft | None:
    """Return the draft with a text of which only the docstring is another one; None where that is not so."""
    fixed = draft.with_fix("example-directives", "", text)
    reading = _placed(fixed) if text != draft.text and _bare(fixed) == _bare(draft) else None
    if reading is None:
        return None
    own = read_module(ModuleSource.of(draft.candidate.module, text, draft.candidate.path), tree=fixed.tree)
    return replace(fixed, own=own, reading=reading, trial=draft.snapshot.with_module(reading))


def _bare(draft: Draft) -> str:
    """Return the draft's tree as text, without the docstring of its function."""
    tree, own = draft.tree, draft.function
    nodes = tree.body if tree else []
    return "".join(ast.dump(part) for node in nodes for part in (own.body[1:] if own and node is own else [node]))


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
