"""Type hints from the text itself: types that its docstring names, and `None` if nothing is returned."""

import ast
import re
from inspect import cleandoc

from docstring_parser import ParseError
from docstring_parser import parse as parse_docstring

from agent_core.base import syntax
from agent_core.registry.examples import without_examples

from ..tree import BUILTINS, FunctionNode, body, bound_names, own_nodes, parameters
from .imports import importable
from .view import View, closing, offset

_WORDS = {
    "string": "str", "strings": "str", "strs": "str", "text": "str", "integer": "int", "integers": "int", "ints": "int",
    "boolean": "bool", "booleans": "bool", "bools": "bool", "floats": "float", "dictionary": "dict", "none": "None",
    "dicts": "dict", "lists": "list", "tuples": "tuple", "sets": "set",
}  # fmt: skip
_TYPES = frozenset(["int", "str", "float", "bool", "list", "dict", "set", "tuple", "bytes", "frozenset", "None", "Any"])
_OLD = {"List": "list", "Dict": "dict", "Set": "set", "Tuple": "tuple", "FrozenSet": "frozenset"}

_LONGEST = 200  # characters of what a docstring calls a type


def hint_none(view: View) -> str:
    """Return the text with `-> None` for a function that returns nothing."""
    text, node = view.text, view.node
    if node.returns is not None or _gives_something(node):
        return text
    place = closing(text, node)
    return text if place is None else f"{text[:place]} -> None{text[place:]}"


def _gives_something(node: FunctionNode) -> bool:
    kinds = (ast.Yield, ast.YieldFrom, ast.Raise)
    nodes = list(own_nodes(body(node)))
    returns = any(isinstance(child, ast.Return) and child.value is not None for child in nodes)
    # Nothing but an error is not `None`.
    return returns or any(isinstance(child, kinds) for child in nodes)


def hint_from_docstring(view: View) -> str:
    """Return the text with the docstring's types as hints, where the signature has none."""
    node, names = view.node, view.known | bound_names(view.tree)
    if not view.words:
        return view.text
    hints: dict[str, str] = {}
    for parameter in parameters(node):
        hint = _hint(view.described.types.get(parameter.arg, ""), names)
        if hint and parameter.annotation is None:
            hints[parameter.arg] = _with_default(hint, default_of(node, parameter))
    result = _hint(_return_type(cleandoc(view.words)), names) if node.returns is None else None
    return with_hints(view.text, node, hints, result)


def with_hints(text: str, node: FunctionNode, hints: dict[str, str], result: str | None) -> str:
    """Return the text with hints for the parameters of these names, and for the result."""
    edits = [
        (offset(text, parameter.end_lineno or 0, parameter.end_col_offset or 0), f": {hints[parameter.arg]}")
        for parameter in parameters(node)
        if parameter.arg in hints
    ]
    place = closing(text, node) if result else None
    if place is not None:
        edits.append((place, f" -> {result}"))
    for at, hint in sorted(edits, reverse=True):
        text = text[:at] + hint + _spaced(text[at:], hint)
    return text


def default_of(node: FunctionNode, parameter: ast.arg) -> ast.expr | None:
    """Return the default of a parameter, if it has one."""
    named = [*node.args.posonlyargs, *node.args.args]
    pairs = dict(zip((argument.arg for argument in reversed(named)), reversed(node.args.defaults), strict=False))
    only = dict(zip((argument.arg for argument in node.args.kwonlyargs), node.args.kw_defaults, strict=True))
    return pairs.get(parameter.arg) or only.get(parameter.arg)


def _with_default(hint: str, default: ast.expr | None) -> str:
    """Return the hint with None added if the default is None."""
    is_none = isinstance(default, ast.Constant) and default.value is None
    return f"{hint} | None" if is_none and "None" not in hint else hint


def _spaced(remainder: str, hint: str) -> str:
    """Return the equals sign of a default with spaces around it, as a hint requires."""
    match = re.match(r"\s*=\s*", remainder) if hint.startswith(":") else None
    return f" = {remainder[match.end() :]}" if match else remainder


def _return_type(written: str) -> str:
    try:
        parsed = parse_docstring(without_examples(written))
    except ParseError:
        return ""
    named = parsed.returns.type_name if parsed.returns else None
    return named or ""


def _hint(named: str, names: frozenset[str] | set[str]) -> str | None:
    """Return the hint that a docstring's words for a type certainly mean."""
    if len(named) > _LONGEST:
        return None
    words = re.sub(
        r",?\s*(?:optional|required)\b(?!\[)|,?\s*default.*$", "", named.strip().strip("`{}"), flags=re.I
    ).strip()
    words = re.sub(r"\b(list|set|tuple)s? of (?:an? )?(\w+)$", _of, words, flags=re.I)
    words = re.sub(r"\s+or\s+", " | ", words)
    words = re.sub(r"\b[A-Za-z]+\b", lambda match: _OLD.get(match[0], _WORDS.get(match[0].lower(), match[0])), words)
    words = re.sub(r"\bOptional\[(.*)\]$", r"\1 | None", words)
    try:
        tree = syntax.parse(words, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return words if words and _is_type(tree.body, names) else None


def _of(match: re.Match[str]) -> str:
    kind, inner = match[1].lower(), _WORDS.get(match[2].lower(), match[2])
    return f"tuple[{inner}, ...]" if kind == "tuple" else f"{kind}[{inner}]"


def _is_type(node: ast.expr, names: frozenset[str] | set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return (name in _TYPES and name not in names) or (
                name not in BUILTINS and name[:1].isupper() and (name in names or importable(name))
            )
        case ast.Constant(value=value):
            return value is None or value is ...
        case ast.BinOp(left=left_operand, op=ast.BitOr(), right=right):
            return _is_type(left_operand, names) and _is_type(right, names)
        case ast.Subscript(value=ast.Name() as value, slice=ast.Tuple(elts=inner)):
            return _is_type(value, names) and all(_is_type(part, names) for part in inner)
        case ast.Subscript(value=ast.Name() as value, slice=inner):
            return _is_type(value, names) and _is_type(inner, names)
        case _:
            return False
