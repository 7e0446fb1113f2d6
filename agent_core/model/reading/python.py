"""Calls written as Python: `count_vowels(text="x")`, one per line or in a list. Parsed, never run."""

import ast
import warnings
from collections.abc import Sequence
from typing import Any, Final

from .forms import forms
from .found import ParsedCall, Shown, meant, parsed_call

_MOST_CHARS: Final = 20_000


def read_python(text: str, shown: Shown) -> tuple[ParsedCall, ...]:
    """Return the calls that make up the whole text; none if a statement is something else or an argument is no
    literal.
    """
    calls = [_call(node, shown) for node in _expressions(text)]
    whole = tuple(call for call in calls if call is not None)
    return whole if len(whole) == len(calls) else ()


def _expressions(text: str) -> Sequence[ast.expr | None]:
    text = text.strip()
    name = text.partition("(")[0]  # Python takes other letters for these, and nobody writes them so
    if len(text) > _MOST_CHARS or not text.endswith((")", "]", ";")) or not name.isascii():
        return ()
    try:
        with warnings.catch_warnings(action="ignore"):  # of odd escapes in somebody else's text
            body = ast.parse(text).body
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    nodes = [node.value if isinstance(node, ast.Expr) else None for node in body]
    if len(nodes) == 1 and isinstance(nodes[0], ast.List):
        return nodes[0].elts
    return nodes


def _call(node: ast.expr | None, shown: Shown) -> ParsedCall | None:
    if not isinstance(node, ast.Call):
        return None
    space, _, last = _dotted(node.func).rpartition(".")
    name = meant(last, shown) if not space or space in forms().namespaces else None
    if name is None or len(node.args) > len(shown[name]):
        return None
    try:
        arguments = _arguments(node, shown[name])
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None
    return parsed_call(name, arguments) if arguments is not None else None


def _arguments(node: ast.Call, parameters: Sequence[str]) -> dict[str, Any] | None:  # Any: literals
    arguments = {name: ast.literal_eval(value) for name, value in zip(parameters, node.args, strict=False)}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            return None
        arguments[keyword.arg] = ast.literal_eval(keyword.value)
    return arguments


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
