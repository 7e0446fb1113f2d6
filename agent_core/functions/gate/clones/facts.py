"""Facts about names from a function's text: which are numbers, which hold a value that nothing else holds.

Pure syntax, and careful: a name of which that is not certain is none of them.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..tree import FunctionNode

_ONE_SHOT = frozenset(["iter", "map", "filter", "zip", "enumerate", "reversed", "open"])
_NUMERIC_CALLS = frozenset(["len", "int", "float", "abs", "round", "ord", "sum", "pow", "hash"])
_COPYING = frozenset(["len", "sum", "any", "all", "str", "set", "sorted", "list", "tuple", "dict", "repr", "range"])
_NUMBERS = frozenset(["int", "float", "bool", "complex"])
_LOOKS_UP = frozenset(["locals", "vars", "eval", "exec", "globals", "dir"])
_LOOKS = 8  # at each name, after which none of them is known to be a number
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Bound = Iterator[tuple[str, ast.expr | None]]


@dataclass(frozen=True, slots=True)
class Facts:
    """Known facts about a function's names: which are numbers, which hold a value that nothing else holds."""

    numbers: frozenset[str] = frozenset()
    sure_numbers: frozenset[str] = frozenset()  # those that are numbers on every path
    plain: frozenset[str] = frozenset()  # only ever a number or a text
    own: frozenset[str] = frozenset()  # a fresh list, dictionary or set without a second name
    one_shot: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    declared: frozenset[str] = frozenset()  # global and nonlocal
    is_by_name: bool = False  # something may look a name up by its text


def facts(function: FunctionNode) -> Facts:
    """Return what the text of a function says about its names."""
    nodes = list(nodes_of(function))
    bindings = _bindings(nodes)
    declared = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    arguments = [node for node in nodes if isinstance(node, ast.arg)]
    hinted = {
        node.arg for node in arguments if isinstance(node.annotation, ast.Name) and node.annotation.id in _NUMBERS
    }
    free = hinted - bindings.keys()
    sure = free | _all_numbers(bindings, {node.arg for node in arguments} - hinted, hinted)
    plain = {name for name, values in bindings.items() if _is_plain(values)} - {node.arg for node in arguments}
    shared = _shared(nodes)
    return Facts(
        frozenset(sure | (_seen_as_numbers(nodes) - bindings.keys())),
        frozenset(sure),
        frozenset(plain),
        frozenset(
            name
            for name, values in bindings.items()
            if name not in shared and all(_is_fresh(value) for value in values)
        ),
        frozenset(name for name, values in bindings.items() if any(_is_one_shot(value) for value in values)),
        frozenset(bindings) | {node.arg for node in arguments},
        frozenset(declared),
        any(isinstance(node, ast.Name) and node.id in _LOOKS_UP for node in nodes),
    )


def nodes_of(*roots: ast.AST, inside: bool = True) -> Iterator[ast.AST]:
    """Yield every node of some trees, in no certain order; without `inside`, skip those in functions and classes."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        if inside or not isinstance(node, _INNER):
            for value in node.__dict__.values():
                if isinstance(value, ast.AST):
                    stack.append(value)
                elif isinstance(value, list):
                    stack += [item for item in value if isinstance(item, ast.AST)]


def _bindings(nodes: list[ast.AST]) -> dict[str, list[ast.expr | None]]:
    """Return every bound name with the values it gets; None for anything but a plain assignment."""
    bindings: dict[str, list[ast.expr | None]] = {}
    for node in nodes:
        for name, value in _bound(node):
            bindings.setdefault(name, []).append(value)
    return bindings


def _bound(node: ast.AST) -> _Bound:
    match node:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            yield from _assigned(node)
        case ast.For(target=target, iter=iterated) | ast.comprehension(target=target, iter=iterated):
            yield from _paired(target, _of_range(iterated))
        case (
            ast.NamedExpr(target=target)
            | ast.AsyncFor(target=target)
            | ast.withitem(optional_vars=ast.expr() as target)
        ):
            yield from _paired(target, None)
        case ast.Delete(targets=targets):
            yield from ((target.id, None) for target in targets if isinstance(target, ast.Name))
        case ast.arg() | ast.alias() | ast.keyword():
            pass
        case _ if isinstance(getattr(node, "name", None), str):  # a definition, a handler, a pattern
            yield node.name, None  # type: ignore[attr-defined]


def _assigned(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> _Bound:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _paired(target, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            yield name, ast.BinOp(ast.Name(name), op, value)


def _paired(target: ast.expr, value: ast.expr | None) -> _Bound:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case (ast.Tuple(elts=targets), ast.Tuple(elts=values)) if len(targets) == len(values):
            for element, its in zip(targets, values, strict=True):
                yield from _paired(element, its)
        case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), _):
            for element in targets:
                yield from _paired(element.value if isinstance(element, ast.Starred) else element, None)


def _of_range(iterated: ast.expr) -> ast.expr | None:
    is_range = isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "range"
    return ast.Constant(0) if is_range else None


def _all_numbers(bindings: dict[str, list[ast.expr | None]], foreign: set[str], numeric_names: set[str]) -> set[str]:
    """Return the names that only ever get numbers."""
    values_by_name = {
        name: [value for value in values if value is not None]
        for name, values in bindings.items()
        if None not in values and name not in foreign
    }
    users: defaultdict[str, set[str]] = defaultdict(set)
    sizes: Counter[str] = Counter()
    for name, values in values_by_name.items():
        for node in nodes_of(*values):
            sizes[name] += 1
            if isinstance(node, ast.Name):
                users[node.id].add(name)
    numbers, pending, budget = values_by_name.keys() | numeric_names, set(values_by_name), _LOOKS * sizes.total()
    while pending and budget > 0:
        budget -= sum(sizes[name] for name in pending)
        wrong = {name for name in pending if not all(is_number(value, numbers) for value in values_by_name[name])}
        numbers -= wrong
        pending = numbers & {user for name in wrong for user in users[name]} & values_by_name.keys()
    return (numbers & values_by_name.keys()) if not pending else set()


def is_number(node: ast.expr, numbers: Iterable[str]) -> bool:
    """Check whether an expression yields a number, if it yields anything."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float | complex)
        case ast.Name(id=name):
            return name in numbers
        case ast.Call(func=func, args=args):
            return _calls_for_a_number(func, len(args))
        case ast.BinOp(left=left_operand, op=op, right=right):
            count = is_number(left_operand, numbers) + is_number(right, numbers)
            return count == 2 or (count == 1 and isinstance(op, ast.Sub | ast.FloorDiv | ast.Pow | ast.Add))
        case ast.IfExp(body=body, orelse=orelse):
            return is_number(body, numbers) and is_number(orelse, numbers)
        case _:
            return isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not)


def _calls_for_a_number(func: ast.expr, arguments: int) -> bool:
    match func:
        case ast.Name(id=name):
            return name in _NUMERIC_CALLS and (name != "sum" or arguments == 1)
        case ast.Attribute(value=ast.Name(id="math")):
            return True
        case _:
            return False


def _seen_as_numbers(nodes: list[ast.AST]) -> set[str]:
    """Return the names that are used as only numbers can be, unless the function checks types."""
    names: set[str] = set()
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "type")):
                return set()
            case ast.Call(func=ast.Name(id="range"), args=args):
                names |= {argument.id for argument in args if isinstance(argument, ast.Name)}
            case ast.BinOp(left=left_operand, op=ast.FloorDiv() | ast.Pow(), right=right):
                names |= {operand.id for operand in (left_operand, right) if isinstance(operand, ast.Name)}
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[limit]
            ):
                names |= {name} if isinstance(limit, ast.Constant) and isinstance(limit.value, int | float) else set()
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id=name)):
                names.add(name)
    return names


def _is_plain(values: list[ast.expr | None]) -> bool:
    """Check whether a name starts as a number or text and is only ever used in arithmetic."""
    return any(isinstance(value, ast.Constant | ast.JoinedStr) for value in values) and all(
        isinstance(value, ast.BinOp | ast.UnaryOp | ast.JoinedStr)
        or (isinstance(value, ast.Constant) and value.value is not None)
        for value in values
    )


def _is_fresh(value: ast.expr | None) -> bool:
    match value:
        case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp() | ast.Constant():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in ("list", "dict", "set", "sorted")
        case _:
            return False


def _is_one_shot(value: ast.expr | None) -> bool:
    match value:
        case ast.GeneratorExp():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in _ONE_SHOT
        case ast.Call(func=ast.Attribute(value=ast.Name(id="itertools"))):
            return True
        case _:
            return False


def _shared(nodes: list[ast.AST]) -> set[str]:
    """Return the names that appear where their value may get a second name."""
    harmless: set[int] = set()
    for node in nodes:
        match node:
            case (
                ast.Subscript(value=inner)
                | ast.For(iter=inner)
                | ast.comprehension(iter=inner)
                | ast.Return(value=inner)
            ):
                harmless.add(id(inner))
                harmless.update(
                    map(id, inner.elts) if isinstance(node, ast.Return) and isinstance(inner, ast.Tuple) else ()
                )
            case ast.Compare(left=left_operand, comparators=others):
                harmless.update(map(id, [left_operand, *others]))
            case ast.BinOp(left=left_operand, right=right):
                harmless.update([id(left_operand), id(right)])
            case (
                ast.UnaryOp(operand=inner)
                | ast.If(test=inner)
                | ast.While(test=inner)
                | ast.FormattedValue(value=inner)
            ):
                harmless.add(id(inner))
            case ast.Call(func=ast.Attribute(value=inner)):
                harmless.add(id(inner))
                harmless.update(map(id, node.args) if node.func.attr == "join" else ())  # type: ignore[attr-defined]
            case ast.Call(func=ast.Name(id=name), args=args) if name in _COPYING:
                harmless.update(map(id, args))
    return {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in harmless
    }
