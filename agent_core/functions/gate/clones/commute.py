"""Analyzes which statements can be reordered: which expressions are pure, what a statement reads and writes.

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
    """The names that a statement reads and writes."""

    reads: frozenset[str]
    writes: frozenset[str]

    def commutes_with(self, other_act: "Act") -> bool:
        """Check whether two statements may be reordered."""
        return not (self.writes & (other_act.reads | other_act.writes) or other_act.writes & self.reads)


_NOTHING = Act(frozenset(), frozenset())


def is_pure(node: ast.AST, facts: Facts) -> bool:
    """Check whether evaluating an expression changes nothing, whenever it happens."""
    return all(_is_pure_node(child, facts) for child in nodes_of(node))


def _is_pure_node(node: ast.AST, facts: Facts) -> bool:
    match node:
        case ast.Call():
            return _is_pure_call(node, facts)
        case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
            return False
        case ast.Name(id=name):
            return name not in facts.one_shot
        case _:
            return True


def _is_pure_call(node: ast.Call, facts: Facts) -> bool:
    called = [*(keyword.value for keyword in node.keywords if keyword.arg in ("key", "default_factory"))]
    match node.func:
        case ast.Name(id=name) if name in _PURE and name not in facts.bound:
            called += node.args[:1] if name in ("map", "filter") else []
        case ast.Attribute(attr=attr) if attr in _PURE_METHODS:
            pass
        case ast.Attribute(value=ast.Name(id=module), attr=attr) if module in _PURE_MODULES - facts.bound:
            called += [] if attr not in ("sub", "accumulate", "groupby") else node.args
        case _:
            return False
    return all(
        not isinstance(callee, ast.Name) or (callee.id in _PURE and callee.id not in facts.bound) for callee in called
    )


def cannot_fail(node: ast.expr, facts: Facts) -> bool:
    """Check whether evaluating an expression neither changes anything nor raises."""
    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return cannot_fail(inner, facts)
        case ast.BoolOp(values=values):
            return all(cannot_fail(value, facts) for value in values)
        case ast.Compare(left=left_operand, ops=ops, comparators=others):
            parts = [left_operand, *others]
            by_value = all(isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot) for op in ops)
            ordered = by_value or all(is_number(part, facts.sure_numbers) for part in parts)
            return ordered and all(cannot_fail(part, facts) for part in parts)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Mod() | ast.FloorDiv()):
            return _reckons(node, facts)
        case _:
            return False


def _reckons(node: ast.BinOp, facts: Facts) -> bool:
    """Check whether the operands are numbers that cannot fail, and a divisor is a constant other than zero."""
    if isinstance(node.op, ast.Mod | ast.FloorDiv) and not (isinstance(node.right, ast.Constant) and node.right.value):
        return False
    return all(
        is_number(operand, facts.sure_numbers) and cannot_fail(operand, facts) for operand in (node.left, node.right)
    )


def act(node: ast.stmt, facts: Facts, *, in_loop: bool = False) -> Act | None:
    """Return what a statement reads and writes; None if it must stay where it is."""
    match node:
        case ast.Assign() | ast.AugAssign():
            return _assignment(node, facts)
        case ast.Expr(value=ast.Call() as call):
            return _change(call, facts)
        case ast.If() | ast.While() | ast.For():
            return _compound(node, facts, in_loop=in_loop)
        case ast.FunctionDef(name=name, decorator_list=[]):
            return Act(names(node), frozenset([name]))
        case ast.Break() | ast.Continue():
            return _NOTHING if in_loop else None
        case _:
            return _NOTHING if isinstance(node, ast.Pass) else None


def _assignment(node: ast.Assign | ast.AugAssign, facts: Facts) -> Act | None:
    if not is_pure(node.value, facts):
        return None
    match node:
        case ast.Assign(targets=[target]):
            return _written(target, names(node.value), facts)
        case ast.AugAssign(target=ast.Name(id=name)) if name not in facts.plain | facts.own | facts.numbers:
            return None
        case ast.AugAssign(target=target):
            return _written(target, names(node.value) | names(target), facts)
        case _:
            return None


def _change(call: ast.Call, facts: Facts) -> Act | None:
    """Return the effect of a method call that changes a value only this function holds; None otherwise."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method), args=args, keywords=[]):
            if method in _MUTATING and name in facts.own and all(is_pure(argument, facts) for argument in args):
                return Act(frozenset([name]).union(*map(names, args)), frozenset([name]))
    return None


def _compound(node: ast.If | ast.While | ast.For, facts: Facts, *, in_loop: bool) -> Act | None:
    expression = node.iter if isinstance(node, ast.For) else node.test
    if not is_pure(expression, facts):
        return None
    loops = in_loop or not isinstance(node, ast.If)
    head = (
        _written(node.target, names(expression), facts)
        if isinstance(node, ast.For)
        else Act(names(expression), frozenset())
    )
    return _joined([head, *(act(statement, facts, in_loop=loops) for statement in [*node.body, *node.orelse])])


def _joined(acts: Sequence[Act | None]) -> Act | None:
    parts = [part for part in acts if part is not None]
    if len(parts) < len(acts):
        return None
    return Act(frozenset().union(*(part.reads for part in parts)), frozenset().union(*(part.writes for part in parts)))


def _written(target: ast.expr, reads: frozenset[str], facts: Facts) -> Act | None:
    match target:
        case ast.Name(id=name):
            return None if name in facts.declared else Act(reads, frozenset([name]))
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            return _joined([_written(element, reads, facts) for element in targets]) if targets else None
        case ast.Subscript(value=ast.Name(id=name), slice=index) if name in facts.own and is_pure(index, facts):
            return Act(reads | names(index) | {name}, frozenset([name]))
        case _:
            return None


def names(node: ast.AST) -> frozenset[str]:
    """Return every name that is mentioned."""
    return frozenset(child.id for child in nodes_of(node) if isinstance(child, ast.Name))


def canonical(nodes: Sequence[ast.stmt], keys: Sequence[str], facts: Facts) -> tuple[list[int], bool]:
    """Return the canonical one of all orders with the same meaning, and whether equal keys left a choice."""
    if all(earlier < later for earlier, later in pairwise(keys)):
        return list(range(len(nodes))), False
    followers, awaited = _followers([act(node, facts) for node in nodes])
    ready = [(keys[index], index) for index, count in enumerate(awaited) if not count]
    heapify(ready)
    order, is_tied = [], False
    while ready:
        key, chosen = heappop(ready)
        is_tied |= bool(ready) and ready[0][0] == key
        order.append(chosen)
        for follower in followers[chosen]:
            awaited[follower] -= 1
            if not awaited[follower]:
                heappush(ready, (keys[follower], follower))
    return order, is_tied


def _followers(acts: Sequence[Act | None]) -> tuple[list[list[int]], list[int]]:
    """Return the statements that must follow each one, and how many each must follow; transitive ones are omitted."""
    followers: list[list[int]] = [[] for _ in acts]
    awaited = [0] * len(acts)
    writers: dict[str, int] = {}
    readers: defaultdict[str, list[int]] = defaultdict(list)  # of the value that the last writer left
    fixed, since = -1, 0  # the last statement that has to stay where it is, and the first one after it
    for index, entry in enumerate(acts):
        if entry is None:
            before = {*range(since, index), *([fixed] if fixed >= 0 else [])}
            fixed, since = index, index + 1
            writers, readers = {}, defaultdict(list)
        else:
            before = {writers[name] for name in entry.reads | entry.writes if name in writers}
            before.update(*(readers.pop(name) for name in entry.writes if name in readers))
            before |= {fixed} if fixed >= 0 else set()
            writers |= dict.fromkeys(entry.writes, index)
            for name in entry.reads - entry.writes:
                readers[name].append(index)
        awaited[index] = len(before)
        for predecessor in before:
            followers[predecessor].append(index)
    return followers, awaited
