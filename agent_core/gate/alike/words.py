"""A function written as words: one spelling for what can be spelled in several ways.

Pure. A name of the function's own is a number, whatever it is called; parameters are known by their place.
"""

import ast
import hashlib
from collections.abc import Callable, Sequence
from itertools import pairwise

from ..tree import FunctionNode, body, takes_self
from .commute import cannot_fail, canonical, is_pure
from .facts import Facts, is_number
from .names import Names, Word, Words
from .shape import arguments, brief, flat, is_truth, only_remembers, positive, shaped, without_end

_DROPPED = frozenset(["annotation", "returns", "type_comment", "type_params", "ctx", "decorator_list", "kind"])
_EMPTY: dict[Word, Words] = {
    "@list": ["List", "(", ",", ")"],
    "@tuple": ["Tuple", "(", ",", ")"],
    "@dict": ["Dict", "(", ",", ",", ")"],
    "@str": ["str:''"],
}
_TAKES_ALL = frozenset(["@sum", "@min", "@max", "@any", "@all", "@set", "@sorted", "@list", "@tuple", "@frozenset"])
_TURNED = {ast.Gt: "Lt", ast.GtE: "LtE"}
_SYMMETRIC = (ast.Eq, ast.Is)


class Writer:
    """Writes one function; `meaning` says what a name stands for that the function does not bind."""

    def __init__(self, known: Facts, meaning: Callable[[str], str], colours: dict[int, str]) -> None:
        self.is_tied = False
        self._known, self._colours = known, colours
        self._names = Names(meaning, is_by_name=known.is_by_name)
        self._in_try = 0

    def whole(self, node: FunctionNode) -> Words:
        """A function that a module defines."""
        own = arguments(node.args)[takes_self(node) :]
        scope = self._names.bound_in(node.body)
        scope |= {one.arg: one.arg if self._known.is_by_name else f"P{index}" for index, one in enumerate(own)}
        scope |= {"self": "Pself"} if takes_self(node) else {}
        return self._function(node, scope, tuple(one for one in node.decorator_list if not only_remembers(one)))

    def _function(self, node: FunctionNode, scope: dict[str, Word], decorators: Sequence[ast.expr]) -> Words:
        stars = "*" * bool(node.args.vararg) + "**" * bool(node.args.kwarg)
        head: Words = [type(node).__name__, f"{len(arguments(node.args))}{stars}"]
        head += [scope[one.arg] for one in arguments(node.args)]
        for one in [*decorators, *node.args.defaults, *node.args.kw_defaults]:
            head += self.write(one) if one else ["-"]
        return [*head, *self._names.inside(scope, lambda: self._block(body(node), "function"))]

    def _block(self, statements: list[ast.stmt], tail: str = "") -> Words:
        nodes = without_end(shaped(statements, self._known), tail)
        written = [self._branch(one, tail if one is nodes[-1] else "") for one in nodes]
        found: Words = ["{"]
        for index in self._order(nodes, written):
            found += [*written[index], ";"]
        return [*found, "}"]

    def _branch(self, node: ast.stmt, tail: str) -> Words:
        if not isinstance(node, ast.If):
            return self.write(node)
        return ["if", *self._test(node.test), *self._block(node.body, tail), *self._block(node.orelse, tail)]

    def _order(self, nodes: list[ast.stmt], written: list[Words]) -> list[int]:
        """The statements in one order of all those that mean the same."""
        if len(nodes) < 2 or self._in_try:
            return list(range(len(nodes)))
        order, is_tied = canonical(nodes, [self._key(one) for one in written], self._known)
        self.is_tied |= is_tied
        return order

    def _key(self, words: Words) -> str:
        return " ".join([one if isinstance(one, str) else self._colours.get(one, "v") for one in words])

    def _sorted(self, parts: list[Words]) -> list[Words]:
        keyed = sorted((self._key(one), index) for index, one in enumerate(parts))
        self.is_tied |= any(
            one == other and parts[here] != parts[there] for (one, here), (other, there) in pairwise(keyed)
        )
        return [parts[index] for _, index in keyed]

    def write(self, node: ast.AST) -> Words:
        """A statement or an expression."""
        special = _SPECIAL.get(type(node))
        return special(self, node) if special else self._plainly(node)

    def _plainly(self, node: ast.AST) -> Words:
        found: Words = [type(node).__name__, "("]
        for field in node._fields:
            if field not in _DROPPED:
                found += self._field(getattr(node, field, None))
        return [*found, ")"]

    def _field(self, value: object) -> Words:
        match value:
            case [ast.stmt(), *_] as statements:
                return self._block([one for one in statements if isinstance(one, ast.stmt)])
            case [*parts]:
                return [*(word for part in parts for word in self._field(part)), ","]
            case ast.AST():
                return self.write(value)
            case str():  # the name of a handler, a pattern, a keyword
                return [self._names.word(value) if self._names.has(value) else f"n:{value}"]
            case _:
                return [f"={value}"]

    def _test(self, node: ast.expr) -> Words:
        """An expression of which only the truth is asked."""
        return self._either(node, is_test=True) if isinstance(node, ast.BoolOp) else self.write(node)

    def _either(self, node: ast.BoolOp, *, is_test: bool = False) -> Words:
        found: Words = [type(node.op).__name__, "("]
        run: list[Words] = []
        for one in flat(node):
            words = self._test(one) if is_test else self.write(one)
            if cannot_fail(one, self._known) and (is_test or is_truth(one)):
                run.append(words)
                continue
            found += [word for part in [*self._sorted(run), words] for word in part]
            run = []
        return [*found, *(word for part in self._sorted(run) for word in part), ")"]

    def _Name(self, node: ast.Name) -> Words:
        return [self._names.word(node.id)]

    def _Constant(self, node: ast.Constant) -> Words:
        value = hex(node.value) if type(node.value) is int else repr(node.value)
        return [f"{type(node.value).__name__}:{value}"]

    def _Attribute(self, node: ast.Attribute) -> Words:
        match self.write(node.value):
            case [str(origin)] if origin.startswith("@"):
                return [f"{origin}.{node.attr}"]
            case words:
                return [".", *words, f"n:{node.attr}"]

    def _UnaryOp(self, node: ast.UnaryOp) -> Words:
        if not isinstance(node.op, ast.Not):
            return [type(node.op).__name__, *self.write(node.operand)]
        inner = self._test(node.operand)
        return inner[1:] if inner[0] == "not" and is_truth(node.operand) else ["not", *inner]

    def _Compare(self, node: ast.Compare) -> Words:
        found, is_other = positive(node)
        if is_other:
            return ["not", *self.write(found)]
        if len(node.ops) > 1:
            return self._chain(node)
        op, one, other = node.ops[0], self.write(node.left), self.write(node.comparators[0])
        if isinstance(op, ast.In) and other[0] == "List":
            other = ["Tuple", *other[1:]]
        name = type(op).__name__
        if type(op) in _TURNED and is_pure(node, self._known):
            name, one, other = _TURNED[type(op)], other, one
        elif isinstance(op, _SYMMETRIC):
            one, other = self._pair(one, other, node)
        return [name, "(", *one, ",", *other, ")"]

    def _chain(self, node: ast.Compare) -> Words:
        parts = [node.left, *node.comparators]
        names = [type(op).__name__ for op in node.ops]
        if all(type(op) in _TURNED for op in node.ops) and is_pure(node, self._known):
            parts, names = parts[::-1], [_TURNED[type(op)] for op in reversed(node.ops)]
        return ["Compare", *names, "(", *(word for one in parts for word in [*self.write(one), ","]), ")"]

    def _BinOp(self, node: ast.BinOp) -> Words:
        one, other = self.write(node.left), self.write(node.right)
        if self._is_commutative(node):
            one, other = self._pair(one, other, node)
        return [type(node.op).__name__, "(", *one, ",", *other, ")"]

    def _pair(self, one: Words, other: Words, node: ast.expr) -> tuple[Words, Words]:
        """Two operands whose order says nothing, in the order of their words."""
        first, second = self._key(one), self._key(other)
        self.is_tied |= first == second and one != other
        return (other, one) if second < first and is_pure(node, self._known) else (one, other)

    def _is_commutative(self, node: ast.BinOp) -> bool:
        if isinstance(node.op, ast.Add | ast.BitOr):
            return any(is_number(one, self._known.numbers) for one in (node.left, node.right))
        return isinstance(node.op, ast.Mult | ast.BitAnd | ast.BitXor)

    def _IfExp(self, node: ast.IfExp) -> Words:
        test, is_other = positive(node.test)
        one, other = (node.orelse, node.body) if is_other else (node.body, node.orelse)
        return ["IfExp", "(", *self._test(test), *self.write(one), *self.write(other), ")"]

    def _Call(self, node: ast.Call) -> Words:
        func = self.write(node.func)
        if not node.args and not node.keywords and func[0] in _EMPTY:
            return _EMPTY[func[0]]
        args = [self.write(one) for one in brief(func[0], node.args)]
        if (func[0] in _TAKES_ALL or func[-1] == "n:join") and len(args) == 1 and args[0][0] == "ListComp":
            args[0][0] = "GeneratorExp"
        named = [[f"k:{one.arg}", *self.write(one.value)] for one in node.keywords]
        if all(one.arg for one in node.keywords) and is_pure(
            ast.Tuple([one.value for one in node.keywords]), self._known
        ):
            named = self._sorted(named)
        return ["Call", "(", *func, *(word for part in [*args, *named] for word in [",", *part]), ")"]

    def _For(self, node: ast.For | ast.AsyncFor) -> Words:
        head = [type(node).__name__, *self.write(node.iter), *self.write(node.target)]
        return [*head, *self._block(node.body, "loop"), *self._block(node.orelse)]

    def _While(self, node: ast.While) -> Words:
        return ["While", *self._test(node.test), *self._block(node.body, "loop"), *self._block(node.orelse)]

    def _Try(self, node: ast.AST) -> Words:
        self._in_try += 1
        found = self._plainly(node)
        self._in_try -= 1
        return found

    def _Return(self, node: ast.Return) -> Words:
        return ["Return", *self.write(node.value or ast.Constant(None))]

    def _definition(self, node: FunctionNode) -> Words:
        scope: dict[str, Word] = {}
        for one in arguments(node.args):
            self._names.bind(one.arg, scope)
        return [
            self._names.word(node.name),
            *self._function(node, self._names.bound_in(node.body) | scope, node.decorator_list),
        ]

    def _ClassDef(self, node: ast.ClassDef) -> Words:
        return [
            self._names.word(node.name),
            hashlib.sha256(ast.dump(node).encode("utf-8", "surrogatepass")).hexdigest(),
        ]

    def _Lambda(self, node: ast.Lambda) -> Words:
        scope: dict[str, Word] = {}
        for one in arguments(node.args):
            self._names.bind(one.arg, scope)
        defaults = [word for one in [*node.args.defaults, *node.args.kw_defaults] if one for word in self.write(one)]
        return ["Lambda", *scope.values(), *defaults, *self._names.inside(scope, lambda: self.write(node.body))]

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Words:
        scope: dict[str, Word] = {}
        for one in node.generators:
            for name in ast.walk(one.target):
                self._names.bind(getattr(name, "id", None), scope)
        first = self.write(node.generators[0].iter)
        return [type(node).__name__, "(", *first, *self._names.inside(scope, lambda: self._comprehended(node)), ")"]

    def _comprehended(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Words:
        found: Words = []
        for index, one in enumerate(node.generators):
            found += [f"for{one.is_async}", *(self.write(one.iter) if index else ()), *self.write(one.target)]
            found += [word for test in one.ifs for word in ["if", *self._test(test)]]
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return [*found, *(word for value in values for word in ["give", *self.write(value)])]


_SPECIAL: dict[type[ast.AST], Callable[..., Words]] = {
    ast.Name: Writer._Name,
    ast.Constant: Writer._Constant,
    ast.Attribute: Writer._Attribute,
    ast.UnaryOp: Writer._UnaryOp,
    ast.BoolOp: Writer._either,
    ast.Compare: Writer._Compare,
    ast.BinOp: Writer._BinOp,
    ast.IfExp: Writer._IfExp,
    ast.Call: Writer._Call,
    ast.Lambda: Writer._Lambda,
    ast.ListComp: Writer._comprehension,
    ast.SetComp: Writer._comprehension,
    ast.DictComp: Writer._comprehension,
    ast.GeneratorExp: Writer._comprehension,
    ast.For: Writer._For,
    ast.AsyncFor: Writer._For,
    ast.While: Writer._While,
    ast.Try: Writer._Try,
    ast.TryStar: Writer._Try,
    ast.Return: Writer._Return,
    ast.FunctionDef: Writer._definition,
    ast.AsyncFunctionDef: Writer._definition,
    ast.ClassDef: Writer._ClassDef,
}
