"""Tools as clients see them: three that are always there, four for clients that may grow, and one for a function.

A client checks each result against its JSON Schema, so there is one only where an annotation says exactly which JSON
comes back. `float` has none: it may be infinite, which JSON cannot say.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from agent_core.base import syntax
from agent_core.base.untrusted import shorten, visible
from agent_core.registry.function import Function

Schema: TypeAlias = dict[str, Any]  # Any: JSON Schema

FIND: Final = "find_functions"
DESCRIBE: Final = "describe_function"
CALL: Final = "call_function"
PROGRAM: Final = "run_program"
LONGEST_DESCRIPTION: Final = 2_000  # characters
_PLAIN: Final = {"str": "string", "int": "integer", "bool": "boolean"}
_DEEPEST: Final = 8  # levels of an annotation


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as clients see it. `result` is the JSON Schema of its structured result, if it has one."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # Any: JSON Schema
    result: Schema | None = None
    reads_only: bool = False


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


_NAME: Final = _text("The name of the function.")
_ARGUMENTS: Final = {"type": "object", "description": "Its arguments, by name."}
_REASON: Final = _text("Why, in a few words.")

LOOKING: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            FIND,
            "Find functions of this workspace by what is to be done. New ones may appear at any time.",
            _object(
                ("need",),
                need=_text("What is to be done, in a few words."),
                count={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 50,
                    "default": 5,
                    "description": "At most so many.",
                },
            ),
            reads_only=True,
        ),
        Tool(
            DESCRIBE,
            "Describe a function: what it does, its arguments as JSON Schema, its examples.",
            _object(("function_name",), function_name=_NAME),
            reads_only=True,
        ),
        Tool(
            CALL,
            "Call any function of this workspace by name, also one that is no tool of its own.",
            _object(("function_name",), function_name=_NAME, arguments=_ARGUMENTS),
        ),
    )
}

GROWING: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            "create_function",
            "Make a new Python function. It is tested in a sandbox, and can be called at once if it passes. It needs"
            " type hints, and a docstring with a description, `Args:` and two examples with different results.",
            _object(
                ("function_name", "function_code_with_docstring"),
                function_name=_NAME,
                function_code_with_docstring=_text("The whole source: imports it needs, then one function."),
                module_name=_text("The module it joins, such as `text`."),
                reason=_REASON,
            ),
        ),
        Tool(
            "edit_function",
            "Change one place in the source of a function, or of a candidate that was rejected.",
            _object(
                ("function_name", "old_text", "new_text"),
                function_name=_NAME,
                old_text=_text("The exact text to replace; it must occur exactly once."),
                new_text=_text("The text in its place."),
                reason=_REASON,
            ),
        ),
        Tool(
            PROGRAM,
            "Run Python that calls functions of this workspace by name: many calls, loops, sums in one step."
            " Its last value is returned; each(f, rows) calls f for each row.",
            _object(("code",), code=_text("Lines of Python.")),
        ),
        Tool(
            "test_function",
            "Run a function's examples or, with arguments, one call of it, off the record.",
            _object(("function_name",), function_name=_NAME, arguments=_ARGUMENTS),
        ),
    )
}


def function_tool(function: Function, ending: str) -> Tool:
    """Return the tool of a function of the workspace; `ending` is the end of its description, however long that is."""
    text = shorten(visible(function.description), LONGEST_DESCRIPTION) + visible(ending)
    return Tool(function.name, text, function.parameters, result_schema(function.returns))


@lru_cache(maxsize=1024)
def result_schema(returns: str) -> Schema | None:
    """Return the schema of an object whose `result` is what an annotation describes, or None if it leaves any open."""
    try:
        schema = _schema(syntax.parse(returns, mode="eval").body, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return schema and {"type": "object", "properties": {"result": schema}, "required": ["result"]}


def _schema(node: ast.expr, depth: int) -> Schema | None:
    match node:
        case ast.Name(id=name) if name in _PLAIN:
            return {"type": _PLAIN[name]}
        case ast.Constant(value=None):
            return {"type": "null"}
        case _ if depth > _DEEPEST:
            pass
        case ast.Subscript(value=ast.Name(id="list"), slice=inner):
            return _around(inner, depth, lambda items: {"type": "array", "items": items})
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[ast.Name(id="str"), inner])):
            return _around(inner, depth, lambda values: {"type": "object", "additionalProperties": values})
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _around(left, depth, lambda one: _around(right, depth, lambda other: {"anyOf": [one, other]}))
    return None


def _around(inner: ast.expr, depth: int, schema_of: Callable[[Schema], Schema | None]) -> Schema | None:
    schema = _schema(inner, depth + 1)
    return None if schema is None else schema_of(schema)
