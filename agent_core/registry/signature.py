"""Signatures that are written as data: names with annotations, read by the same code as functions.

They are for things with a schema but no source, such as helpers. Nothing runs: an annotation must be a single
expression and a default a single literal.
"""

import ast
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_core.base import syntax
from agent_core.base.problem import Place, Problem
from agent_core.base.untrusted import one_line

from .schema import read_module
from .source import ModuleSource, is_literal

if TYPE_CHECKING:
    from .function import Function

_IMPORTS: Final = (
    "import datetime\nfrom collections.abc import Iterable, Mapping, Sequence\n"
    "from datetime import date, timedelta\nfrom decimal import Decimal\nfrom pathlib import Path\n"
    "from typing import Annotated, Any, Dict, List, Literal, Optional, Set, Tuple, Union\nfrom uuid import UUID\n"
)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_FIX: Final = "write it as in a function: `str`, `list[str]`, `int = 5`, `Literal['a', 'b']`"
_LONGEST: Final = 1_000
PlaceOf = Callable[[str], Place]
"""Returns the place of a name in the file that contains the signature."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The name and description of a function, its parameters as `type` or `type = default`, and its result."""

    name: str
    description: str
    inputs: Mapping[str, str]
    result: str


def read_signature(signature: Signature, module: str, path: str, place: PlaceOf) -> "Function | tuple[Problem, ...]":
    """Return the function that a signature describes, or every problem with it."""
    parameters: list[str] = []
    problems: list[Problem] = []
    for name, written in signature.inputs.items():
        parameter = _parameter(name, written, place(name))
        (problems if isinstance(parameter, Problem) else parameters).append(parameter)  # type: ignore[arg-type]  # by kind
    result = _parameter("result", signature.result, place("result"))
    if isinstance(result, str) and "=" in signature.result:
        (node,) = syntax.parse(f"_: {signature.result}").body
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            result = Problem("inexpressible-type", "`result` has a default, which no result has", place("result"), _FIX)
    if isinstance(result, Problem):
        return (*problems, result)
    if problems:
        return tuple(problems)
    returns = result.partition(": ")[2]
    stars = "*, " if parameters else ""
    text = f"{_IMPORTS}\n\ndef {signature.name}({stars}{', '.join(parameters)}) -> {returns}:\n    pass\n"
    read = read_module(ModuleSource.of(module, text, path))
    own = next((function for function in read.functions if function.name == signature.name), None)
    refusing = [problem for problem in read.problems if problem.severity == "refuses"]
    if own is None:
        named = [[name for name in signature.inputs if f"`{name}`" in problem.message] for problem in refusing]
        places = [place(names[0] if names else "purpose") for names in named]
        return tuple(replace(problem, where=where) for problem, where in zip(refusing, places, strict=True))
    if unread := own.unresolved:
        return tuple(_unreadable(name, signature.inputs[name], place(name)) for name in unread)
    return replace(own, description=signature.description, returns=returns, line=place("purpose").line)


def _parameter(name: str, written: str, place: Place) -> str | Problem:
    """Return a parameter as source, after checking that it is only one expression and one literal."""
    shown = one_line(name, 80)
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name == "self":
        message = f"`{shown}` cannot be the name of an input"
        return Problem("input-name", message, place, "use letters, digits and `_`, beginning with a letter")
    try:
        body = syntax.parse(f"_: {written}").body if len(written) <= _LONGEST else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        body = []
    match body:
        case [ast.AnnAssign(annotation=annotation, value=None)]:
            return f"{name}: {ast.unparse(annotation)}"
        case [ast.AnnAssign(annotation=annotation, value=default)] if default is not None and is_literal(default):
            return f"{name}: {ast.unparse(annotation)} = {ast.unparse(default)}"
    return _unreadable(name, written, place)


def _unreadable(name: str, written: str, place: Place) -> Problem:
    message = f"`{one_line(written, 120)}` is not a type that `{one_line(name, 80)}` can have"
    return Problem("inexpressible-type", message, place, _FIX)
