"""Type hints that the text itself gives: types that its docstring names, and `None` where nothing is returned."""

import ast
import re
from inspect import cleandoc

from docstring_parser import ParseError
from docstring_parser import parse as parse_docstring

from ...registry.examples import without_examples
from ..tree import BUILTINS, FunctionNode, body, bound_names, own_nodes, parameters
from .imports import importable
from .signature import closing, offset
from .view import View

_WORDS = {
    "string": "str", "strings": "str", "strs": "str", "text": "str", "integer": "int", "integers": "int", "ints": "int",
    "boolean": "bool", "booleans": "bool", "bools": "bool", "floats": "float", "dictionary": "dict", "none": "None",
    "dicts": "dict", "lists": "list", "tuples": "tuple", "sets": "set",
}  # fmt: skip
_TYPES = frozenset(["int", "str", "float", "bool", "list", "dict", "set", "tuple", "bytes", "frozenset", "None", "Any"])
_OLD = {"List": "list", "Dict": "dict", "Set": "set", "Tuple": "tuple", "FrozenSet": "frozenset"}

_LONGEST = 200  # characters of what a docstring calls a type


def hint_none(view: View) -> str:
    """The text with `-> None` for a function that gives nothing back."""
    text, node = view.text, view.node
    if node.returns is not None or _gives_something(node):
        return text
    place = closing(text, node)
    return text if place is None else f"{text[:place]} -> None{text[place:]}"


def _gives_something(node: FunctionNode) -> bool:
    kinds = (ast.Yield, ast.YieldFrom, ast.Raise)
    found = list(own_nodes(body(node)))
    returns = any(isinstance(one, ast.Return) and one.value is not None for one in found)
    # Nothing but an error is not `None`.
    return returns or any(isinstance(one, kinds) for one in found)


def hint_from_docstring(view: View) -> str:
    """The text with the types that the docstring names as hints, where the signature has none."""
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
    """The text with hints at the parameters of these names, and for the result."""
    edits = [
        (offset(text, one.end_lineno or 0, one.end_col_offset or 0), f": {hints[one.arg]}")
        for one in parameters(node)
        if one.arg in hints
    ]
    place = closing(text, node) if result else None
    if place is not None:
        edits.append((place, f" -> {result}"))
    for at, hint in sorted(edits, reverse=True):
        text = text[:at] + hint + _spaced(text[at:], hint)
    return text


def default_of(node: FunctionNode, parameter: ast.arg) -> ast.expr | None:
    """The default of a parameter, if it has one."""
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
    if len(named) > _LONGEST:
        return None
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
            return (name in _TYPES and name not in names) or (
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
