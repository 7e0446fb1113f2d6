"""The constants of a function that stand for its own examples: tables, branches, lists of pairs, membership.

Pure. A *selector* is a value that an argument is compared with or looked up by. A function is hard-coded if each
answer of its examples hangs on a selector for that very example, few others are there, and everything else gets one
default.
"""

import ast
import base64
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..tree import FunctionNode, body, calls_of, literal, nodes_of, parameters

Form: TypeAlias = Any  # a value in the form in which values are compared here
QUOTED = re.compile(r"[\"'`]([^\"'`\s]{1,20})[\"'`]")
_SEPARATED = re.compile(r"[\s,;|=:\"'{}]+")
_TESTS = frozenset({"startswith", "endswith", "find", "count", "search", "match", "fullmatch", "index", "removeprefix"})
_PLAIN_CALLS = frozenset({"len", "int", "float", "abs", "round", "bool", "divmod"})


@dataclass(frozen=True)
class Selectors:
    """The values that arguments are compared with: exactly, or in part; and every literal of the code."""

    exact: frozenset[Form]
    partly: frozenset[Form]
    values: frozenset[Form]
    tokens: tuple[frozenset[Form], ...] = field(default=())

    def are_told(self, description: str, values: set[Form], least: int) -> bool:
        """Check whether a description names each value of the code, and quotes none but these and `values`."""
        written = {int(value) if isinstance(value, float) and value.is_integer() else value for value in self.exact}
        words = {str(value) for value in written - {"", 0, 1} if isinstance(value, str | int | float)}
        quoted = {form(word) for word in QUOTED.findall(description)}
        text = description.casefold()
        return (
            len(words) >= least
            and quoted <= self.exact | values
            and all(re.search(rf"(?<![\w.]){re.escape(word)}(?!\w|\.\d)", text) for word in words)
        )


def form(value: Any) -> Form:  # Any: a literal
    """Return a value in the form in which two are compared: without case, space and kinds of rows."""
    match value:
        case str():
            return "".join(value.split()).casefold() or value.strip().casefold()
        case bool() | None:
            return (type(value).__name__, value)
        case int() | float():
            return float(value) if abs(value) < 1e300 else repr(value)[:40]
        case list() | tuple():
            return ("row", *map(form, value))
        case dict():
            return ("map", *sorted((repr(form(key)), repr(form(part))) for key, part in value.items()))
        case _:
            return repr(value)


def selectors(tree: ast.Module) -> Selectors:
    """Return the selectors and literals of a candidate's code."""
    exact, partly, values = set[Form](), set[Form](), set[Form]()
    tokens: list[frozenset[Form]] = []
    prose = set(_docstrings(tree))
    returned = {id(node.value) for node in nodes_of(tree) if isinstance(node, ast.Return)}
    for node in nodes_of(tree):
        exact.update(map(form, _exact(node, returned)))
        partly.update(map(form, _partly(node)))
        if isinstance(node, ast.expr) and id(node) not in prose:
            is_literal, value = literal(node) if isinstance(node, _LITERAL) else (False, None)
            if is_literal and not isinstance(value, bool | None):
                values.add(form(value))
            for text in _hidden(value) if is_literal else ():
                parts = _SEPARATED.split(text.strip())
                values |= {form(text), *map(form, parts)} if text != value else set()
                tokens += [frozenset(form(part) for part in parts if part)] if len(parts) > 1 else []
    return Selectors(frozenset(exact), frozenset(partly), frozenset(values), tuple(tokens))


def _hidden(value: Any) -> Iterator[str]:  # Any: a literal
    """Yield a text, and what it hides: written backwards, in base64 or in hexadecimal digits."""
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if not isinstance(text, str) or len(text) > _LONGEST:
        return
    yield text
    if len(text) >= _CODED and _ENCODED.fullmatch(text):
        for decode in (bytes.fromhex, base64.b64decode):
            with contextlib.suppress(ValueError):
                yield decode(text).decode()


def trial_values(tree: ast.Module) -> list[Any]:
    """Return the texts and numbers of the code, with the parts of its texts: what it may be made for."""
    prose, values = set(_docstrings(tree)), dict[str, Any]()
    for node in nodes_of(tree):
        if isinstance(node, ast.Constant) and id(node) not in prose and not isinstance(node.value, bool | None):
            value = node.value
            values[repr(value)] = value
            for text in _hidden(value):
                values |= {repr(part): part for part in _SEPARATED.split(text)[:_PARTS] if part}
    return [value for value in values.values() if isinstance(value, str | int | float)]


_CODED, _LONGEST, _PARTS, _PAIR = 12, 4000, 24, 2
_ENCODED = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_LITERAL = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp)


def _docstrings(tree: ast.Module) -> Iterator[int]:
    for node in nodes_of(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)


def _exact(node: ast.AST, returned: set[int]) -> Iterator[Any]:
    match node:
        case ast.Compare(left=subject, ops=ops, comparators=others):
            for operator, operand in zip(ops, others, strict=True):
                yield from _compared(subject, operator, operand)
        case ast.MatchValue(value=value):
            yield from _value(value)
        case ast.MatchSequence(patterns=patterns):
            parts = [value for part in patterns if isinstance(part, ast.MatchValue) for value in _value(part.value)]
            yield from [parts] if len(parts) == len(patterns) else []
        case ast.Dict() | ast.Call() | ast.List() | ast.Tuple() | ast.Set() if id(node) not in returned:
            yield from _listed(node)


def _compared(subject: ast.expr, operator: ast.cmpop, operand: ast.expr) -> Iterator[Any]:
    if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        yield from (*_value(subject), *_value(operand))
    elif isinstance(operator, ast.In | ast.NotIn):
        yield from _members(operand)


def _listed(node: ast.expr) -> Iterator[Any]:
    """Yield the keys of a table, and the members of rows of constants."""
    match node:
        case ast.Dict(keys=keys, values=values) if _is_table(values):
            for key in filter(None, keys):
                yield from _value(key)
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            yield from (keyword.arg for keyword in keywords if keyword.arg and literal(keyword.value)[0])
        case ast.List(elts=rows) | ast.Tuple(elts=rows) | ast.Set(elts=rows) if rows:
            yield from _rows(rows)


def _is_table(values: list[ast.expr]) -> bool:
    return all(literal(value)[0] or isinstance(value, ast.Lambda) for value in values)


def _rows(rows: list[ast.expr]) -> Iterator[Any]:
    """Yield the first of each pair in a list of pairs, or the members of a list of constants."""
    if all(isinstance(row, ast.Tuple | ast.List) and row.elts for row in rows):
        for row in rows:
            assert isinstance(row, ast.Tuple | ast.List)
            yield from _value(row.elts[0])
            yield from _value(row)
    elif all(isinstance(row, ast.Constant) for row in rows):
        for row in rows:
            yield from _value(row)


def _members(node: ast.expr) -> Iterator[Any]:
    is_literal, value = literal(node)
    if is_literal and isinstance(value, list | tuple | set | dict | frozenset):
        yield from value


def _partly(node: ast.AST) -> Iterator[Any]:
    match node:
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in _TESTS:
            for argument in args[:2]:
                for value in _value(argument):
                    yield from value if isinstance(value, tuple) else [value]
        case ast.Compare(left=ast.Constant(value=str(text)), ops=[ast.In() | ast.NotIn()]):
            yield text
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Constant(value=str(text))]):
            yield from text


def _value(node: ast.expr) -> list[Any]:
    is_literal, value = literal(node)
    return [value] if is_literal and value is not None and not isinstance(value, bool) else []


def is_arithmetic(node: FunctionNode) -> bool:
    """Check whether a function is one line of arithmetic on its arguments, with numbers of its own."""
    statements = body(node)
    if not statements or not all(isinstance(value, ast.Return | ast.Assign | ast.If) for value in statements):
        return False
    nodes = [child for statement in statements for child in nodes_of(statement)]
    if any(isinstance(child, _NOT_PLAIN) for child in nodes) or len(parameters(node)) != 1:
        return False
    calls = [child.func for child in nodes if isinstance(child, ast.Call) and not _is_extreme(child)]
    if not all(isinstance(called, ast.Name) and called.id in _PLAIN_CALLS for called in calls):
        return False
    return any(isinstance(child, ast.BinOp) for child in nodes) and bool(own_numbers(node))


def reads_made_table(tree: ast.Module, node: FunctionNode) -> bool:
    """Check whether a function reads what its module computes at import: a sieve, a table that a loop fills."""
    made = {
        target.id
        for child in tree.body
        if isinstance(child, ast.Assign | ast.AnnAssign) and (_is_made(child.value) or literal(child.value) in _EMPTY)
        for target in (child.targets if isinstance(child, ast.Assign) else [child.target])
        if isinstance(target, ast.Name)
    }
    return bool(calls_of(node, made))


def _is_made(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call | ast.ListComp | ast.DictComp | ast.SetComp)


_EMPTY: list[tuple[bool, object]] = [(True, []), (True, {}), (True, set())]


def sums_compared(node: FunctionNode) -> list[float]:
    """Return the odd numbers with which a sum or product of several parameters is compared: few calls come to them."""
    names = {parameter.arg for parameter in parameters(node)}
    nodes = nodes_of(node)
    sums = {
        child.targets[0].id
        for child in nodes
        if isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name) and _is_sum(child.value, names)
    }
    return [
        float(value)
        for child in nodes
        if isinstance(child, ast.Compare) and [*map(type, child.ops)] == [ast.Eq]
        if _is_sum(child.left, names) or (isinstance(child.left, ast.Name) and child.left.id in sums)
        for value in _value(child.comparators[0])
        if isinstance(value, int | float) and value not in (-1, 0, 1, 2)
    ]


def _is_sum(value: ast.expr, names: set[str]) -> bool:
    parts = [part for part in ast.walk(value) if not isinstance(part, ast.Load)]
    is_plain = all(isinstance(part, ast.BinOp | ast.Name | ast.Add | ast.Sub | ast.Mult | ast.Div) for part in parts)
    return is_plain and len({part.id for part in parts if isinstance(part, ast.Name)} & names) > 1


def is_loopless(node: FunctionNode) -> bool:
    """Check whether a function goes through nothing: no loop, no membership, and no call but of the plainest."""
    nodes = [child for statement in body(node) for child in nodes_of(statement)]
    if any(isinstance(child, _GOING_THROUGH) for child in nodes):
        return False
    called = [child.func for child in nodes if isinstance(child, ast.Call) and not _is_extreme(child)]
    names = {
        part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        for part in called
    }
    return names <= _PLAIN_CALLS | _PLAIN_METHODS


_PLAIN_METHODS = frozenset(
    {
        "str",
        "isinstance",
        "ValueError",
        "isdigit",
        "isalpha",
        "isalnum",
        "isupper",
        "islower",
        "isdecimal",
        "startswith",
    }
    | {"endswith", "strip", "lower", "upper", "replace", "split", "format"}
)
_GOING_THROUGH = (
    ast.For,
    ast.While,
    ast.ListComp,
    ast.GeneratorExp,
    ast.SetComp,
    ast.DictComp,
    ast.In,
    ast.NotIn,
    ast.Lambda,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
    ast.Pow,
)
_NOT_PLAIN = (
    ast.ListComp,
    ast.GeneratorExp,
    ast.SetComp,
    ast.DictComp,
    ast.Subscript,
    ast.Attribute,
    ast.JoinedStr,
    ast.Lambda,
)


def _is_extreme(node: ast.Call) -> bool:
    """Check for the larger or smaller of several values; that of a row goes through it."""
    is_plain = len(node.args) > 1 and not any(isinstance(argument, ast.Starred) for argument in node.args)
    return is_plain and isinstance(node.func, ast.Name) and node.func.id in ("min", "max")


def own_numbers(node: FunctionNode) -> list[float]:
    """Return the numbers that stand in a function."""
    constants = [child.value for child in nodes_of(node) if isinstance(child, ast.Constant)]
    return [value for value in constants if isinstance(value, int | float) and not isinstance(value, bool)]


def members_of(selector: Form) -> tuple[Form, ...]:
    """Return what a row is made of, or a selector that is none."""
    is_row = isinstance(selector, tuple) and selector[:1] == ("row",)
    return tuple(selector[1:]) if is_row else (selector,)


def is_made_of(text: str, selector: Form) -> bool:
    """Check whether a text is nothing but the texts and numbers of a row or mapping of constants, and marks."""
    pieces = [*_pieces(selector)] if isinstance(selector, tuple) else []
    if len(pieces) < _PAIR or not any(map(str.isalpha, "".join(pieces))):
        return False
    rest = text
    for piece in sorted(pieces, key=len, reverse=True):
        if piece not in rest:
            return False
        rest = rest.replace(piece, "", 1)
    return not any(map(str.isalnum, rest))


def _pieces(selector: Form) -> Iterator[str]:
    match selector:
        case ("row", *parts):
            for part in parts:
                yield from _pieces(part)
        case ("map", *pairs):
            for part in (ast.literal_eval(text) for pair in pairs for text in pair):
                yield from _pieces(part)
        case str() if selector:
            yield selector
        case float():
            yield f"{selector:g}"


def is_part(selector: Form, seen: set[Form], texts: Sequence[str]) -> bool:
    """Check whether a selector is made of arguments of examples, or is a part of one."""
    if isinstance(selector, tuple) and selector[0] == "row":
        return all(part in seen or is_part(part, seen, texts) for part in selector[1:])
    return isinstance(selector, str) and any(selector in text or (len(text) > 2 and text in selector) for text in texts)
