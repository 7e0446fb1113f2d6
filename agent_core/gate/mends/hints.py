"""Type hints that the text itself gives: types that its docstring names, and `None` where nothing is returned."""

import ast
import re

from docstring_parser import ParseError
from docstring_parser import parse as parse_docstring

from ...registry import docstring
from ...registry.examples import without_examples
from ..tree import BUILTINS, FunctionNode, body, bound_names, find, own_nodes, parameters, parse
from .imports import importable
from .signature import closing, offset

_WORDS = {
    "string": "str", "strings": "str", "strs": "str", "text": "str", "integer": "int", "integers": "int", "ints": "int",
    "boolean": "bool", "booleans": "bool", "bools": "bool", "floats": "float", "dictionary": "dict", "none": "None",
    "dicts": "dict", "lists": "list", "tuples": "tuple", "sets": "set",
}  # fmt: skip
_TYPES = frozenset(["int", "str", "float", "bool", "list", "dict", "set", "tuple", "bytes", "frozenset", "None", "Any"])
_OLD = {"List": "list", "Dict": "dict", "Set": "set", "Tuple": "tuple", "FrozenSet": "frozenset"}


def hint_none(text: str, name: str, known: frozenset[str]) -> str:
    """The text with `-> None` for a function that gives nothing back."""
    node = _function(text, name)
    if node is None or node.returns is not None or _gives_something(node):
        return text
    place = closing(text, node)
    return text if place is None else f"{text[:place]} -> None{text[place:]}"


def _gives_something(node: FunctionNode) -> bool:
    kinds = (ast.Yield, ast.YieldFrom, ast.Raise)
    found = list(own_nodes(body(node)))
    returns = any(isinstance(one, ast.Return) and one.value is not None for one in found)
    # Nothing but an error is not `None`.
    return returns or any(isinstance(one, kinds) for one in found)


def hint_from_docstring(text: str, name: str, known: frozenset[str]) -> str:
    """The text with the types that the docstring names as hints, where the signature has none."""
    node = _function(text, name)
    written = ast.get_docstring(node) if node else None
    if node is None or not written or (node.returns and all(one.annotation for one in parameters(node))):
        return text
    described = docstring.read(written)
    tree = parse(text)
    names = known | (bound_names(tree) if isinstance(tree, ast.Module) else set())
    edits: list[tuple[int, str]] = []
    for parameter in parameters(node):
        hint = _hint(described.types.get(parameter.arg, ""), names)
        if hint and parameter.annotation is None:
            hint = _with_default(hint, _default(node, parameter))
            edits.append((offset(text, parameter.end_lineno or 0, parameter.end_col_offset or 0), f": {hint}"))
    result = _hint(_return_type(written), names)
    place = closing(text, node)
    if result and node.returns is None and place is not None:
        edits.append((place, f" -> {result}"))
    for at, hint in sorted(edits, reverse=True):
        text = text[:at] + hint + _spaced(text[at:], hint)
    return text


def _function(text: str, name: str) -> FunctionNode | None:
    tree = parse(text)
    return find(tree, name) if isinstance(tree, ast.Module) else None


def _default(node: FunctionNode, parameter: ast.arg) -> ast.expr | None:
    named = [*node.args.posonlyargs, *node.args.args]
    pairs = dict(zip((one.arg for one in reversed(named)), reversed(node.args.defaults), strict=False))
    only = dict(zip((one.arg for one in node.args.kwonlyargs), node.args.kw_defaults, strict=True))
    return pairs.get(parameter.arg) or only.get(parameter.arg)


def _with_default(hint: str, default: ast.expr | None) -> str:
    """A default of None belongs to the type."""
    is_none = isinstance(default, ast.Constant) and default.value is None
    return f"{hint} | None" if is_none and "None" not in hint else hint


def _spaced(rest: str, hint: str) -> str:
    """With a hint, the equals sign of a default stands between spaces."""
    found = re.match(r"\s*=\s*", rest) if hint.startswith(":") else None
    return f" = {rest[found.end() :]}" if found else rest


def _return_type(written: str) -> str:
    try:
        parsed = parse_docstring(without_examples(written))
    except ParseError:
        return ""
    named = parsed.returns.type_name if parsed.returns else None
    return named or ""


def _hint(named: str, names: frozenset[str] | set[str]) -> str | None:
    """The hint that a docstring's words for a type certainly mean."""
    words = re.sub(
        r",?\s*(?:optional|required)\b(?!\[)|,?\s*default.*$", "", named.strip().strip("`{}"), flags=re.I
    ).strip()
    words = re.sub(r"\b(list|set|tuple)s? of (?:an? )?(\w+)$", _of, words, flags=re.I)
    words = re.sub(r"\s+or\s+", " | ", words)
    words = re.sub(r"\b[A-Za-z]+\b", lambda found: _OLD.get(found[0], _WORDS.get(found[0].lower(), found[0])), words)
    words = re.sub(r"\bOptional\[(.*)\]$", r"\1 | None", words)
    try:
        tree = ast.parse(words, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return words if words and _is_type(tree.body, names) else None


def _of(found: re.Match[str]) -> str:
    kind, inner = found[1].lower(), _WORDS.get(found[2].lower(), found[2])
    return f"tuple[{inner}, ...]" if kind == "tuple" else f"{kind}[{inner}]"


def _is_type(node: ast.expr, names: frozenset[str] | set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in _TYPES or (
                name not in BUILTINS and name[:1].isupper() and (name in names or importable(name))
            )
        case ast.Constant(value=value):
            return value is None or value is ...
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_type(left, names) and _is_type(right, names)
        case ast.Subscript(value=ast.Name() as value, slice=ast.Tuple(elts=inner)):
            return _is_type(value, names) and all(_is_type(one, names) for one in inner)
        case ast.Subscript(value=ast.Name() as value, slice=inner):
            return _is_type(value, names) and _is_type(inner, names)
        case _:
            return False
