"""The JSON Schema of a result, where an annotation says exactly which JSON comes back; elsewhere there is none.

A client checks each result against it, so `float` has none: it may be infinite, which JSON cannot say.
"""

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from agent_core.base import syntax

Schema: TypeAlias = dict[str, Any]  # Any: JSON Schema

_PLAIN: Final = {"str": "string", "int": "integer", "bool": "boolean"}
_DEEPEST: Final = 8


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
