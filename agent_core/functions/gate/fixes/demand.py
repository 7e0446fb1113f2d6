"""What a body asks of the values that come out of a parameter: to be moved about, to be numbers, or something else.

Pure, from the tree alone, and careful to one side: what is not known to take more counts as something else.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from ..tree import FunctionNode, bound_names, functions, nodes_of, parse
from .carriers import FILLING, carriers_of, is_filled, local_names, sort_keys
from .depth import is_written, levels, writes
from .factors import Factors
from .view import View


class Demand(IntEnum):
    """What is asked of a value, from what any value can give to what is not known."""

    MOVED = 0
    NUMBER = 1
    OTHER = 2


@dataclass(frozen=True, slots=True)
class Use:
    """What is asked of a parameter's values, which names carry them, and whether its parts are taken apart, too."""

    demand: Demand
    names: frozenset[str]
    is_deep: bool = False


Step: TypeAlias = tuple[Demand, bool]  # what one node asks, and whether what is above it gets another value
_ON, _END, _OTHER = (Demand.MOVED, False), (Demand.MOVED, True), (Demand.OTHER, True)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ROOTS = frozenset(
    ["sqrt", "log", "log2", "log10", "exp", "sin", "cos", "tan", "atan", "atan2", "hypot", "floor", "ceil"]
)
_MEANS = frozenset(["mean", "fmean", "median", "fsum", "prod", "stdev", "pstdev", "variance", "pvariance", "isclose"])
_NUMBERS = frozenset(["sum", "min", "max", "sorted", "abs", "round", "float", "degrees", "radians"]) | _ROOTS | _MEANS
_KINDS = frozenset(["list", "tuple", "set", "dict", "frozenset", "str", "repr", "bool", "deque", "Counter"])
_MOVING = frozenset(["enumerate", "zip", "reversed", "iter", "next", "len", "any", "all", "print", "chain", "islice"])
_FIRST_ONLY = frozenset(["enumerate", "round", "islice", "deque", "Counter", "iter", "index"])
_STANDARD = frozenset(["math", "statistics", "itertools", "collections"])
_ENDS = frozenset(["len", "bool", "any", "all", "print"])
_SORT_KEYS = frozenset(["len", "abs", "str", "repr", "float"])
_TAKING = frozenset(["remove", "count", "get", "index"]) | FILLING
_METHODS = _TAKING | {"pop", "copy", "reverse", "items", "keys", "values", "clear", "most_common", "popleft"}
_TAKEN = ast.Return | ast.Expr | ast.Assign | ast.AnnAssign | ast.For | ast.While | ast.If | ast.Assert | ast.Delete
_ENDING = _TAKEN | ast.Raise | ast.comprehension
_DISPLAY = ast.List | ast.Tuple | ast.Set | ast.Dict | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
_PASSING = _DISPLAY | ast.BoolOp | ast.NamedExpr | ast.Starred | ast.Yield | ast.YieldFrom | ast.JoinedStr
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Demands:
    """The uses of the parameters of one body, whose hints are these."""

    def __init__(self, view: View, hints: Mapping[str, str]) -> None:
        self._node, self._hints, self._local = view.node, hints, local_names(view.node)
        self._parents = {id(child): node for node in nodes_of(view.node) for child in ast.iter_child_nodes(node)}
        self._keys = {id(key) for one in nodes_of(view.node) if isinstance(one, ast.Call) for key in sort_keys(one)}
        self._inner = _inner_names(view.node, self._keys)
        self._own = self._local | _own_names(view)
        self._factors = Factors(view, hints)

    def of(self, name: str) -> Use:
        """Return the use of a parameter."""
        hint = self._hints.get(name, "")
        carriers = carriers_of(self._node, name, by_key=hint.startswith("dict"))
        nodes = [one for one in nodes_of(self._node) if isinstance(one, ast.Name) and one.id in carriers.names]
        demand = max(map(self._demand, nodes), default=Demand.MOVED)
        depth = max((levels(node, self._parents, carriers.parts) for node in nodes), default=0)
        if depth and "[" not in hint and any(is_written(node, self._parents) for node in nodes):
            demand = Demand.OTHER  # the digits of a number are taken apart
        return Use(demand, carriers.names, depth > 1)

    def _demand(self, node: ast.Name) -> Demand:
        """Return what is asked of the value of a name on its way up to its statement."""
        if node.id in self._inner:
            return Demand.OTHER
        parent = self._parents.get(id(node))
        if not isinstance(node.ctx, ast.Load):
            return self._reckoned(parent.op, node, parent.value) if isinstance(parent, ast.AugAssign) else Demand.MOVED
        most, is_text, is_end = Demand.MOVED, False, False
        child: ast.AST = node
        while not is_end and most is not Demand.OTHER:
            parent = self._parents[id(child)]
            step, is_end = self._step(parent, child)
            if not (is_text and _joins(parent)):
                most = max(most, step)
            elif step is Demand.OTHER:
                is_end = False
            is_text = is_text or writes(parent)
            child = parent
        return most

    def _step(self, parent: ast.AST, child: ast.AST) -> Step:
        match parent:
            case ast.AugAssign() | ast.BinOp() | ast.UnaryOp() | ast.Compare():
                return self._of_operator(parent, child)
            case ast.Attribute() | ast.Call() | ast.Lambda():
                return self._of_call(parent, child)
            case ast.Subscript(value=value) if child is not value:
                return _END if isinstance(value, ast.Name) and is_filled(self._node, value.id) else _OTHER
            case ast.IfExp(test=test):
                return _END if child is test else _ON
            case ast.FormattedValue(format_spec=None) | ast.Subscript():
                return _ON
        return _END if isinstance(parent, _ENDING) else _ON if isinstance(parent, _PASSING) else _OTHER

    def _of_operator(self, parent: ast.AugAssign | ast.BinOp | ast.UnaryOp | ast.Compare, child: ast.AST) -> Step:
        match parent:
            case ast.AugAssign(op=op, target=target, value=value):
                return self._reckoned(op, child, value if child is target else target), True
            case ast.BinOp(op=op, left=left, right=right):
                return self._reckoned(op, child, right if child is left else left), False
            case ast.Compare(ops=ops):
                return (Demand.NUMBER if any(isinstance(op, _ORDER) for op in ops) else Demand.MOVED), True
            case ast.UnaryOp(op=ast.Not()):
                return _END
            case _:
                return (Demand.OTHER if isinstance(parent.op, ast.Invert) else Demand.NUMBER), False

    def _reckoned(self, op: ast.operator, child: ast.AST, other: ast.expr) -> Demand:
        if isinstance(op, ast.Add) and self._is_row(child):
            return Demand.MOVED
        if isinstance(op, ast.Mult) and not self._factors.has(other):
            return Demand.OTHER
        return Demand.NUMBER if isinstance(op, _ARITHMETIC) else Demand.OTHER

    def _is_row(self, node: ast.AST) -> bool:
        """Check whether an operand of `+` is certainly a list or a text, which takes in whatever is in it."""
        match node:
            case ast.List() | ast.ListComp() | ast.Subscript(slice=ast.Slice()):
                return True
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._is_row(left) or self._is_row(right)
            case ast.Name(id=name):
                return self._hints.get(name, "").startswith(("list", "tuple"))
            case _:
                return False

    def _of_call(self, parent: ast.Attribute | ast.Call | ast.Lambda, child: ast.AST) -> Step:
        above = self._parents[id(parent)]
        match parent:
            case ast.Attribute(attr=method) if isinstance(above, ast.Call) and above.func is parent:
                return (Demand.NUMBER, True) if method == "sort" else _ON if method in _METHODS else _OTHER
            case ast.Lambda():
                return (Demand.NUMBER, True) if id(parent) in self._keys else _OTHER
            case ast.Call(func=function, args=arguments) if child is not function and child in arguments:
                if isinstance(above, ast.Raise):
                    return _END
                return self._of_argument(function, arguments.index(child)) if _is_plain(parent) else _OTHER
            case ast.Call():
                return _ON if isinstance(child, ast.Attribute) else _OTHER
        return _OTHER

    def _of_argument(self, function: ast.expr, place: int) -> Step:
        """Return what a call asks of the argument at a place."""
        match function:
            case ast.Name(id=name) if name not in self._own:
                pass
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in _STANDARD - self._own:
                pass
            case ast.Attribute(value=receiver, attr=name) if not isinstance(receiver, ast.Name) or self._has(receiver):
                is_right = place == 1 if name == "insert" else not place or name in ("get", "setdefault")
                return _ON if name in _TAKING and is_right else _OTHER
            case _:
                return _OTHER
        if place and name in _FIRST_ONLY:
            return _OTHER
        if name in _NUMBERS:
            return Demand.NUMBER, False
        return _END if name in _ENDS else _ON if name in _MOVING | _KINDS else _OTHER

    def _has(self, name: ast.Name) -> bool:
        return name.id in self._local and name.id != "self"


def _inner_names(node: FunctionNode, keys: set[int]) -> frozenset[str]:
    """Return the names that inner functions and classes use, without those of a sort key."""
    inner = [child for child in nodes_of(node) if isinstance(child, _INNER) and child is not node]
    names = [name for child in inner if id(child) not in keys for name in nodes_of(child) if isinstance(name, ast.Name)]
    return frozenset(name.id for name in names)


def _own_names(view: View) -> set[str]:
    """Return the names of the module that are not those of Python and of its libraries for numbers."""
    trees = [tree for tree in (view.tree, parse(view.around)) if isinstance(tree, ast.Module)]
    standard, own = set[str](), set[str]()
    for tree in trees:
        own |= {function.name for function in functions(tree)}
        for node in nodes_of(tree):
            match node:
                case ast.ImportFrom(module=module, names=aliases) if module in _STANDARD:
                    standard |= {alias.name for alias in aliases if alias.asname in (None, alias.name)}
                case ast.Import(names=aliases):
                    standard |= {alias.name for alias in aliases if alias.name in _STANDARD and not alias.asname}
                case ast.ImportFrom(names=aliases):
                    own |= {alias.asname or alias.name for alias in aliases}
    return own | ({name for tree in trees for name in bound_names(tree)} - standard)


def _is_plain(call: ast.Call) -> bool:
    """Check whether a call has no key of an order that may ask for more than the order itself."""
    match [keyword.value for keyword in call.keywords if keyword.arg in ("key", None)]:
        case [] | [ast.Lambda()]:
            return True
        case [ast.Name(id=name)]:
            return name in _SORT_KEYS
        case _:
            return False


def _joins(node: ast.AST) -> bool:
    """Check whether a node only adds a text to others."""
    match node:
        case ast.BinOp(op=ast.Add()) | ast.AugAssign(op=ast.Add()) | ast.Call(func=ast.Attribute(attr="join")):
            return True
        case _:
            return False
