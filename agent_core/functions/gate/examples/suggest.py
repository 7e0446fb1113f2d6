"""Finds a call with another result than the examples, to suggest it if their results are all alike.

The calls are those of the examples with one argument changed a little.
"""

import ast
import asyncio
from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest

from sandbox import Evaluation, Outcome, Returned

from agent_core.registry.snapshot import Snapshot
from ..arguments.vary import variants
from ..tree import literal
from ..trial import TrialTools
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
        node = ast.parse(call, mode="eval").body
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
