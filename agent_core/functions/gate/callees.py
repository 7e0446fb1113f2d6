"""Calls of other functions in an example: `self.call` runs the other one in a worker of its own, without grants.

What the other needs of the world, or leaves to chance, proves nothing of its caller; so only calls of functions whose
results are their own doing are answered, and all the others leave a draft as before.
"""

import ast
import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agent_core.access.grants import NOTHING, Grants, Question
from agent_core.access.grants.items import written
from agent_core.base.untrusted import fence
from agent_core.registry.arguments import read as read_arguments
from sandbox import FunctionCall, Job, Outcome, Raised, Returned
from sandbox.access import NOTHING as NO_ACCESS
from sandbox.wire.requests import RequestRefused, without_handler

from .capability import EFFECTS, uses_context
from .examples.sufficiency import is_unproven
from .tree import find, parse

if TYPE_CHECKING:
    from agent_core.registry.snapshot import Snapshot

    from .trial import TrialTools

# By its words: in a component the numbers are others.
_SHUT_WORDS = r"(?:No such file or directory|Permission denied|Operation not permitted|Read-only file system)"
_SHUT = re.compile(r"\[Errno \d{1,3}\] " + _SHUT_WORDS + r": (?P<path>'[^']{1,300}'|\"[^\"]{1,300}\")")
_SCRATCH = re.compile(r"/scratch/|.*/knapper-scratch-")
_DEEPEST = 5
_MOST = 30  # functions that are called, one through another


def can_be_called(tree: ast.Module, snapshot: "Snapshot", guarded: frozenset[str]) -> bool:
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
    """The handler of an example's requests: calls of other functions are made, all else is refused, and remembered."""

    snapshot: "Snapshot"
    trial: "TrialTools"
    depth: int = 1
    refused: list[str] = field(default_factory=list)

    async def __call__(self, name: str, arguments: dict[str, Any]) -> Any:  # Any: values that cross the sandbox
        """Return the result of the function that is called.

        Raises:
            RequestRefused: it cannot be called, or did not return.
        """
        if name != "call":
            if name != "progress" and not name.startswith("file_"):
                self.refused.append(f"`self.{name}` reaches what an example does not have")
            return await without_handler(name, arguments)
        function = self.snapshot.functions.get(str(arguments.get("function")))
        if function is None or self.depth > _DEEPEST:
            raise RequestRefused(f"there is no function `{arguments.get('function')}` that an example may call here")
        text = json.dumps(arguments.get("arguments") or {}, default=str)
        checked = read_arguments(text, function.parameters)
        if not isinstance(checked, dict):
            raise RequestRefused("; ".join(problem.message for problem in checked))
        job = Job(
            self.snapshot.modules, function.module, FunctionCall(function.name, checked), self.trial.limits, NO_ACCESS
        )
        outcome = await self.trial.sandbox.run(replace(job, handler=replace(self, depth=self.depth + 1)))
        if isinstance(outcome, Returned):
            return outcome.value
        if path := _shut_path(outcome):
            self.refused.append(f"`{function.name}` opens {fence(path)}, and what an example calls has no grants")
        raise RequestRefused(f"`{function.name}` did not return")


def why_unrun(function: str, outcome: Outcome, refused: Sequence[str], grants: Grants) -> str:
    """Return what an example needed and did not have, with the command that grants it; empty if it lacked nothing."""
    path = _shut_path(outcome)
    missing = Grants(read=(path,)) if path else NOTHING
    if path and not grants.covers(missing):
        return f"it opens {fence(path)}, which is not granted. Type: {Question(function, missing).command}"
    return refused[0] if refused else ""


def _shut_path(outcome: Outcome) -> str:
    """Return the path that an outcome says could not be opened, as a grant names it; empty for one in scratch."""
    failure = outcome.failure if isinstance(outcome, Raised) else None
    while failure is not None:
        match = _SHUT.match(failure.message)
        if match and failure.type in ("FileNotFoundError", "PermissionError", "OSError"):
            path = match["path"][1:-1]
            return "" if _SCRATCH.match(path) else written("read", posixpath.normpath(path)) or ""
        failure = failure.cause
    return ""
