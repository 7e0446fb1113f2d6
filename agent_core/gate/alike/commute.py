"""What may change places without a change of meaning: which expressions are pure, what a statement reads and writes.

Pure syntax, and careful: what is not known to be harmless keeps its place.
"""

import ast
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

from .facts import Facts, is_number, nodes_of

_BUILTINS = """
abs all any ascii bin bool bytes chr complex dict divmod enumerate filter float format frozenset hash hex int isinstance
issubclass len list map max min oct ord pow range repr reversed round set slice sorted str sum tuple type zip
"""
_METHODS = """
bit_length capitalize casefold center copy count difference encode endswith find format get index intersection isalnum
isalpha isdecimal isdigit isdisjoint islower isnumeric isspace issubset issuperset istitle isupper is_integer isoformat
items join keys ljust lower lstrip most_common partition removeprefix removesuffix replace rfind rindex rjust rpartition
rsplit rstrip split splitlines startswith strip swapcase symmetric_difference title total_seconds translate union upper
values zfill
"""
_MODULES = "bisect cmath collections decimal fractions itertools json math operator re statistics string textwrap"
_CHANGES = "add append appendleft clear discard extend insert remove reverse setdefault sort update"
_PURE, _PURE_METHODS = frozenset(_BUILTINS.split()), frozenset(_METHODS.split())
_PURE_MODULES, _MUTATING = frozenset(_MODULES.split()), frozenset(_CHANGES.split())


@dataclass(frozen=True, slots=True)
class Act:
    """What a statement reads and writes."""

    reads: frozenset[str]
    writes: frozenset[str]

    def commutes_with(self, other: "Act") -> bool:
        """The two may change places."""
        return not (self.writes & (other.reads | other.writes) or other.writes & self.reads)


_NOTHING = Act(frozenset(), frozenset())


def is_pure(node: ast.AST, known: Facts) -> bool:
    """Evaluating an expression changes nothing, whenever that is done."""
    return all(_is_pure_node(one, known) for one in nodes_of(node))


def _is_pure_node(node: ast.AST, known: Facts) -> bool:
    match node:
        case ast.Call():
            return _is_pure_call(node, known)
        case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
            return False
        case ast.Name(id=name):
            return name not in known.one_shot
        case _:
            return True


def _is_pure_call(node: ast.Call, known: Facts) -> bool:
    called = [*(one.value for one in node.keywords if one.arg in ("key", "default_factory"))]
    match node.func:
        case ast.Name(id=name) if name in _PURE and name not in known.bound:
            called += node.args[:1] if name in ("map", "filter") else []
        case ast.Attribute(attr=attr) if attr in _PURE_METHODS:
            pass
        case ast.Attribute(value=ast.Name(id=module), attr=attr) if module in _PURE_MODULES - known.bound:
            called += [] if attr not in ("sub", "accumulate", "groupby") else node.args
        case _:
            return False
    return all(not isinstance(one, ast.Name) or (one.id in _PURE and one.id not in known.bound) for one in called)


def cannot_fail(node: ast.expr, known: Facts) -> bool:
    """Evaluating an expression neither changes anything nor raises."""
    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return cannot_fail(inner, known)
        case ast.BoolOp(values=values):
            return all(cannot_fail(one, known) for one in values)
        case ast.Compare(left=left, ops=ops, comparators=others):
            parts = [left, *others]
            by_value = all(isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot) for op in ops)
            ordered = by_value or all(is_number(one, known.sure_numbers) for one in parts)
            return ordered and all(cannot_fail(one, known) for one in parts)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Mod() | ast.FloorDiv()):
            return _reckons(node, known)
        case _:
            return False


def _reckons(node: ast.BinOp, known: Facts) -> bool:
    """Whole numbers are added, or divided by one that is not zero."""
    if isinstance(node.op, ast.Mod | ast.FloorDiv) and not (isinstance(node.right, ast.Constant) and node.right.value):
        return False
    return all(is_number(one, known.sure_numbers) and cannot_fail(one, known) for one in (node.left, node.right))


def act(node: ast.stmt, known: Facts, *, in_loop: bool = False) -> Act | None:
    """What a statement reads and writes; None if it has to stay where it is."""
    match node:
        case ast.Assign() | ast.AugAssign():
            return _assignment(node, known)
        case ast.Expr(value=ast.Call() as call):
            return _change(call, known)
        case ast.If() | ast.While() | ast.For():
            return _compound(node, known, in_loop=in_loop)
        case ast.FunctionDef(name=name, decorator_list=[]):
            return Act(names(node), frozenset([name]))
        case ast.Break() | ast.Continue():
            return _NOTHING if in_loop else None
        case _:
            return _NOTHING if isinstance(node, ast.Pass) else None


def _assignment(node: ast.Assign | ast.AugAssign, known: Facts) -> Act | None:
    if not is_pure(node.value, known):
        return None
    match node:
        case ast.Assign(targets=[target]):
            return _written(target, names(node.value), known)
        case ast.AugAssign(target=ast.Name(id=name)) if name not in known.plain | known.own | known.numbers:
            return None
        case ast.AugAssign(target=target):
            return _written(target, names(node.value) | names(target), known)
        case _:
            return None


def _change(call: ast.Call, known: Facts) -> Act | None:
    """A value that only this function holds is changed by one of its methods."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method), args=args, keywords=[]):
            if method in _MUTATING and name in known.own and all(is_pure(one, known) for one in args):
                return Act(frozenset([name]).union(*map(names, args)), frozenset([name]))
    return None


def _compound(node: ast.If | ast.While | ast.For, known: Facts, *, in_loop: bool) -> Act | None:
    asked = node.iter if isinstance(node, ast.For) else node.test
    if not is_pure(asked, known):
        return None
    loops = in_loop or not isinstance(node, ast.If)
    head = _written(node.target, names(asked), known) if isinstance(node, ast.For) else Act(names(asked), frozenset())
    return _joined([head, *(act(one, known, in_loop=loops) for one in [*node.body, *node.orelse])])


def _joined(acts: Sequence[Act | None]) -> Act | None:
    known = [one for one in acts if one is not None]
    if len(known) < len(acts):
        return None
    return Act(frozenset().union(*(one.reads for one in known)), frozenset().union(*(one.writes for one in known)))


def _written(target: ast.expr, reads: frozenset[str], known: Facts) -> Act | None:
    match target:
        case ast.Name(id=name):
            return None if name in known.declared else Act(reads, frozenset([name]))
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            return _joined([_written(one, reads, known) for one in targets]) if targets else None
        case ast.Subscript(value=ast.Name(id=name), slice=index) if name in known.own and is_pure(index, known):
            return Act(reads | names(index) | {name}, frozenset([name]))
        case _:
            return None


def names(node: ast.AST) -> frozenset[str]:
    """Every name that is mentioned."""
    return frozenset(one.id for one in nodes_of(node) if isinstance(one, ast.Name))


def canonical(nodes: Sequence[ast.stmt], keys: Sequence[str], known: Facts) -> tuple[list[int], bool]:
    """One order of all those in which the statements mean the same, and whether equal keys left a choice."""
    if all(one < other for one, other in pairwise(keys)):
        return list(range(len(nodes))), False
    followers, awaited = _followers([act(one, known) for one in nodes])
    ready = [(keys[each], each) for each, count in enumerate(awaited) if not count]
    heapify(ready)
    order, is_tied = [], False
    while ready:
        key, chosen = heappop(ready)
        is_tied |= bool(ready) and ready[0][0] == key
        order.append(chosen)
        for each in followers[chosen]:
            awaited[each] -= 1
            if not awaited[each]:
                heappush(ready, (keys[each], each))
    return order, is_tied


def _followers(acts: Sequence[Act | None]) -> tuple[list[list[int]], list[int]]:
    """Which statements come after each, and how many each comes after; what follows from two others is left out."""
    followers: list[list[int]] = [[] for _ in acts]
    awaited = [0] * len(acts)
    writers: dict[str, int] = {}
    readers: defaultdict[str, list[int]] = defaultdict(list)  # of the value that the last writer left
    fixed, since = -1, 0  # the last statement that has to stay where it is, and the first one after it
    for index, one in enumerate(acts):
        if one is None:
            before = {*range(since, index), *([fixed] if fixed >= 0 else [])}
            fixed, since = index, index + 1
            writers, readers = {}, defaultdict(list)
        else:
            before = {writers[name] for name in one.reads | one.writes if name in writers}
            before.update(*(readers.pop(name) for name in one.writes if name in readers))
            before |= {fixed} if fixed >= 0 else set()
            writers |= dict.fromkeys(one.writes, index)
            for name in one.reads - one.writes:
                readers[name].append(index)
        awaited[index] = len(before)
        for each in before:
            followers[each].append(index)
    return followers, awaited
