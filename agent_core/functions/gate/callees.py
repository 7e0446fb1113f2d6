"""Calls of other functions in an example: `self.call` runs the other one in a worker of its own, without grants.

What the other needs of the world, or leaves to chance, proves nothing of its caller; so only calls of functions whose
results are their own doing are answered, and all the others leave a draft as before.
"""

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from agent_core.registry.arguments import read as read_arguments
from agent_core.registry.snapshot import Snapshot
from sandbox import FunctionCall, Job, Returned
from sandbox.access import NOTHING
from sandbox.wire.requests import RequestRefused, without_handler

from .capability import EFFECTS, uses_context
from .examples.sufficiency import is_unproven
from .tree import find, parse
from .trial import TrialTools

_DEEPEST = 5
_MOST = 30  # functions that are called, one through another


def can_be_called(tree: ast.Module, snapshot: Snapshot, guarded: frozenset[str]) -> bool:
    """Check whether all that a function needs of `self` are calls of functions that can run in an example."""
    waiting, seen = list(_called(tree)), set[str]()
    if uses_context(tree) & EFFECTS != {"call"} or not waiting:
        return False
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        callee = snapshot.functions.get(name)
        text = parse(snapshot.modules[callee.module].text) if callee else None
        node = find(text, name) if isinstance(text, ast.Module) else None
        if callee is None or node is None or name in guarded or len(seen) > _MOST:
            return False
        inner = ast.Module([node], [])
        is_caller = uses_context(inner) & EFFECTS == {"call"}
        if is_unproven(inner, node, callee) not in ("", "no-parameters") and not is_caller:
            return False
        waiting += _called(inner)
    return True


def _called(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions that are called; an empty one where the text does not say which."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="self"), attr="call"), args=[ast.Constant(str(name)), *_]
            ):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="call")):
                yield ""


@dataclass(frozen=True, slots=True)
class Callees:
    """The handler of an example's requests: calls of other functions are made, all else is refused."""

    snapshot: Snapshot
    bench: TrialTools
    depth: int = 1

    async def __call__(self, name: str, arguments: dict[str, Any]) -> Any:  # Any: values that cross the sandbox
        """Return the result of the function that is called.

        Raises:
            RequestRefused: it cannot be called, or did not return.
        """
        if name != "call":
            return await without_handler(name, arguments)
        function = self.snapshot.functions.get(str(arguments.get("function")))
        if function is None or self.depth > _DEEPEST:
            raise RequestRefused(f"there is no function `{arguments.get('function')}` that an example may call here")
        text = json.dumps(arguments.get("arguments") or {}, default=str)
        checked = read_arguments(text, function.parameters)
        if not isinstance(checked, dict):
            raise RequestRefused("; ".join(problem.message for problem in checked))
        job = Job(
            self.snapshot.modules, function.module, FunctionCall(function.name, checked), self.bench.limits, NOTHING
        )
        outcome = await self.bench.sandbox.run(replace(job, handler=replace(self, depth=self.depth + 1)))
        if isinstance(outcome, Returned):
            return outcome.value
        raise RequestRefused(f"`{function.name}` did not return")
