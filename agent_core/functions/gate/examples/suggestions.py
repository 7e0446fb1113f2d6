"""Suggestions for stage 8: a call whose result differs from those of the examples.

The calls are those of the examples with one argument changed a little, tried if all results are alike.
"""

import ast
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest

from agent_core.base import syntax
from agent_core.base.problem import Problem
from agent_core.registry.function import ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from sandbox import Evaluation, Outcome, Returned

from ..arguments.variants import variants
from ..draft import Draft
from ..tree import literal
from ..trial import TrialTools, placed
from ..verdict import Disagreement
from .agreement import doctest_form

_MOST = 12  # calls that are tried
_LONGEST = 200  # characters of a result that is worth writing down


async def other_call(
    calls: Sequence[str], known_results: set[str], module: str, snapshot: Snapshot, bench: TrialTools
) -> Disagreement | None:
    """Return a call with a result that is not among the known ones, and that result; None if none was found."""
    tried = list(islice(dict.fromkeys(chain.from_iterable(zip(*map(changed, calls), strict=False))), _MOST))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(bench.run(snapshot.modules, module, Evaluation((), call))) for call in tried]
    outcomes = zip(tried, (task.result() for task in tasks), strict=True)
    returned = ((call, _result(outcome)) for call, outcome in outcomes)
    return next(
        (Disagreement(call, "", text, 0) for call, text in returned if text and text not in known_results), None
    )


def _result(outcome: Outcome) -> str:
    """Return what an example would show of an outcome, if it fits on a line."""
    text = doctest_form(outcome).text.strip() if isinstance(outcome, Returned) else ""
    return text if len(text) <= _LONGEST and "\n" not in text else ""


def changed(call: str) -> Iterator[str]:
    """Yield the call with one of its literal arguments changed, the gentlest change of each argument first."""
    try:
        node = syntax.parse(call, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if not isinstance(node, ast.Call):
        return
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    others = [[(place, variant) for variant in _others(argument)] for place, argument in enumerate(arguments)]
    for place, variant in filter(None, chain.from_iterable(zip_longest(*others))):
        new_arguments = [ast.Constant(variant) if n == place else argument for n, argument in enumerate(arguments)]
        keywords = [
            ast.keyword(keyword.arg, value)
            for keyword, value in zip(node.keywords, new_arguments[len(node.args) :], strict=True)
        ]
        yield ast.unparse(ast.Call(node.func, new_arguments[: len(node.args)], keywords))


def _others(argument: ast.expr) -> Iterator[object]:
    is_literal, value = literal(argument)
    return variants(value) if is_literal else iter(())


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
