"""Writes a function as words, with one spelling for equivalent code.

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


class CanonicalWriter:
    """Writes one function; `meaning` says what a name stands for that the function does not bind."""

    def __init__(self, facts: Facts, meaning: Callable[[str], str], colours: dict[int, str]) -> None:
        self.is_tied = False
        self._known, self._colours = facts, colours
        self._names = Names(meaning, is_by_name=facts.is_by_name)
        self._in_try = 0

    def whole(self, node: FunctionNode) -> Words:
        """Return the words of a function that a module defines."""
        own = arguments(node.args)[takes_self(node) :]
        scope = self._names.bound_in(node.body)
        scope |= {
            parameter.arg: parameter.arg if self._known.is_by_name else f"P{index}"
            for index, parameter in enumerate(own)
        }
        scope |= {"self": "Pself"} if takes_self(node) else {}
        return self._function(
            node, scope, tuple(decorator for decorator in node.decorator_list if not only_remembers(decorator))
        )

    def _function(self, node: FunctionNode, scope: dict[str, Word], decorators: Sequence[ast.expr]) -> Words:
        stars = "*" * bool(node.args.vararg) + "**" * bool(node.args.kwarg)
        head: Words = [type(node).__name__, f"{len(arguments(node.args))}{stars}"]
        head += [scope[parameter.arg] for parameter in arguments(node.args)]
        for expression in [*decorators, *node.args.defaults, *node.args.kw_defaults]:
            head += self.write(expression) if expression else ["-"]
        return [*head, *self._names.inside(scope, lambda: self._block(body(node), "function"))]

    def _block(self, statements: list[ast.stmt], tail: str = "") -> Words:
        nodes = without_end(shaped(statements, self._known), tail)
        written = [self._branch(node, tail if node is nodes[-1] else "") for node in nodes]
        output: Words = ["{"]
        for index in self._order(nodes, written):
            output += [*written[index], ";"]
        return [*output, "}"]

    def _branch(self, node: ast.stmt, tail: str) -> Words:
        if not isinstance(node, ast.If):
            return self.write(node)
        return ["if", *self._test(node.test), *self._block(node.body, tail), *self._block(node.orelse, tail)]

    def _order(self, nodes: list[ast.stmt], written: list[Words]) -> list[int]:
        """Return the canonical order of the statements among all with the same meaning."""
        if len(nodes) < 2 or self._in_try:
            return list(range(len(nodes)))
        order, is_tied = canonical(nodes, [self._key(words) for words in written], self._known)
        self.is_tied |= is_tied
        return order

    def _key(self, words: Words) -> str:
        return " ".join([word if isinstance(word, str) else self._colours.get(word, "v") for word in words])

    def _sorted(self, parts: list[Words]) -> list[Words]:
        keyed = sorted((self._key(part), index) for index, part in enumerate(parts))
        self.is_tied |= any(
            key == next_key and parts[index] != parts[next_index]
            for (key, index), (next_key, next_index) in pairwise(keyed)
        )
        return [parts[index] for _, index in keyed]

    def write(self, node: ast.AST) -> Words:
        """Return the words of a statement or an expression."""
        special = _SPECIAL.get(type(node))
        return special(self, node) if special else self._plainly(node)

    def _plainly(self, node: ast.AST) -> Words:
        output: Words = [type(node).__name__, "("]
        for field in node._fields:
            if field not in _DROPPED:
                output += self._field(getattr(node, field, None))
        return [*output, ")"]

    def _field(self, value: object) -> Words:
        match value:
            case [ast.stmt(), *_] as statements:
                return self._block([statement for statement in statements if isinstance(statement, ast.stmt)])
            case [*parts]:
                return [*(word for part in parts for word in self._field(part)), ","]
            case ast.AST():
                return self.write(value)
            case str():  # the name of a handler, a pattern, a keyword
                return [self._names.word(value) if self._names.has(value) else f"n:{value}"]
            case _:
                return [f"={value}"]

    def _test(self, node: ast.expr) -> Words:
        """Return the words of an expression that is only tested for truth."""
        return self._either(node, is_test=True) if isinstance(node, ast.BoolOp) else self.write(node)

    def _either(self, node: ast.BoolOp, *, is_test: bool = False) -> Words:
        output: Words = [type(node.op).__name__, "("]
        run: list[Words] = []
        for operand in flat(node):
            words = self._test(operand) if is_test else self.write(operand)
            if cannot_fail(operand, self._known) and (is_test or is_truth(operand)):
                run.append(words)
                continue
            output += [word for part in [*self._sorted(run), words] for word in part]
            run = []
        return [*output, *(word for part in self._sorted(run) for word in part), ")"]

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
        bare_test, is_other = positive(node)
        if is_other:
            return ["not", *self.write(bare_test)]
        if len(node.ops) > 1:
            return self._chain(node)
        op, left_words, right_words = node.ops[0], self.write(node.left), self.write(node.comparators[0])
        if isinstance(op, ast.In) and right_words[0] == "List":
            right_words = ["Tuple", *right_words[1:]]
        name = type(op).__name__
        if type(op) in _TURNED and is_pure(node, self._known):
            name, left_words, right_words = _TURNED[type(op)], right_words, left_words
        elif isinstance(op, _SYMMETRIC):
            left_words, right_words = self._pair(left_words, right_words, node)
        return [name, "(", *left_words, ",", *right_words, ")"]

    def _chain(self, node: ast.Compare) -> Words:
        parts = [node.left, *node.comparators]
        names = [type(op).__name__ for op in node.ops]
        if all(type(op) in _TURNED for op in node.ops) and is_pure(node, self._known):
            parts, names = parts[::-1], [_TURNED[type(op)] for op in reversed(node.ops)]
        return ["Compare", *names, "(", *(word for part in parts for word in [*self.write(part), ","]), ")"]

    def _BinOp(self, node: ast.BinOp) -> Words:
        left_words, right_words = self.write(node.left), self.write(node.right)
        if self._is_commutative(node):
            left_words, right_words = self._pair(left_words, right_words, node)
        return [type(node.op).__name__, "(", *left_words, ",", *right_words, ")"]

    def _pair(self, left_words: Words, right_words: Words, node: ast.expr) -> tuple[Words, Words]:
        """Return two operands with no significant order, ordered by their words."""
        first, second = self._key(left_words), self._key(right_words)
        self.is_tied |= first == second and left_words != right_words
        return (right_words, left_words) if second < first and is_pure(node, self._known) else (left_words, right_words)

    def _is_commutative(self, node: ast.BinOp) -> bool:
        if isinstance(node.op, ast.Add | ast.BitOr):
            return any(is_number(operand, self._known.numbers) for operand in (node.left, node.right))
        return isinstance(node.op, ast.Mult | ast.BitAnd | ast.BitXor)

    def _IfExp(self, node: ast.IfExp) -> Words:
        test, is_other = positive(node.test)
        then, orelse = (node.orelse, node.body) if is_other else (node.body, node.orelse)
        return ["IfExp", "(", *self._test(test), *self.write(then), *self.write(orelse), ")"]

    def _Call(self, node: ast.Call) -> Words:
        func = self.write(node.func)
        if not node.args and not node.keywords and func[0] in _EMPTY:
            return _EMPTY[func[0]]
        args = [self.write(argument) for argument in brief(func[0], node.args)]
        if (func[0] in _TAKES_ALL or func[-1] == "n:join") and len(args) == 1 and args[0][0] == "ListComp":
            args[0][0] = "GeneratorExp"
        named = [[f"k:{keyword.arg}", *self.write(keyword.value)] for keyword in node.keywords]
        if all(keyword.arg for keyword in node.keywords) and is_pure(
            ast.Tuple([keyword.value for keyword in node.keywords]), self._known
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
        words = self._plainly(node)
        self._in_try -= 1
        return words

    def _Return(self, node: ast.Return) -> Words:
        return ["Return", *self.write(node.value or ast.Constant(None))]

    def _definition(self, node: FunctionNode) -> Words:
        scope: dict[str, Word] = {}
        for parameter in arguments(node.args):
            self._names.bind(parameter.arg, scope)
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
        for parameter in arguments(node.args):
            self._names.bind(parameter.arg, scope)
        defaults = [
            word for default in [*node.args.defaults, *node.args.kw_defaults] if default for word in self.write(default)
        ]
        return ["Lambda", *scope.values(), *defaults, *self._names.inside(scope, lambda: self.write(node.body))]

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Words:
        scope: dict[str, Word] = {}
        for generator in node.generators:
            for name in ast.walk(generator.target):
                self._names.bind(getattr(name, "id", None), scope)
        first = self.write(node.generators[0].iter)
        return [type(node).__name__, "(", *first, *self._names.inside(scope, lambda: self._comprehended(node)), ")"]

    def _comprehended(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Words:
        output: Words = []
        for index, generator in enumerate(node.generators):
            output += [
                f"for{generator.is_async}",
                *(self.write(generator.iter) if index else ()),
                *self.write(generator.target),
            ]
            output += [word for test in generator.ifs for word in ["if", *self._test(test)]]
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return [*output, *(word for value in values for word in ["give", *self.write(value)])]


_SPECIAL: dict[type[ast.AST], Callable[..., Words]] = {
    ast.Name: CanonicalWriter._Name,
    ast.Constant: CanonicalWriter._Constant,
    ast.Attribute: CanonicalWriter._Attribute,
    ast.UnaryOp: CanonicalWriter._UnaryOp,
    ast.BoolOp: CanonicalWriter._either,
    ast.Compare: CanonicalWriter._Compare,
    ast.BinOp: CanonicalWriter._BinOp,
    ast.IfExp: CanonicalWriter._IfExp,
    ast.Call: CanonicalWriter._Call,
    ast.Lambda: CanonicalWriter._Lambda,
    ast.ListComp: CanonicalWriter._comprehension,
    ast.SetComp: CanonicalWriter._comprehension,
    ast.DictComp: CanonicalWriter._comprehension,
    ast.GeneratorExp: CanonicalWriter._comprehension,
    ast.For: CanonicalWriter._For,
    ast.AsyncFor: CanonicalWriter._For,
    ast.While: CanonicalWriter._While,
    ast.Try: CanonicalWriter._Try,
    ast.TryStar: CanonicalWriter._Try,
    ast.Return: CanonicalWriter._Return,
    ast.FunctionDef: CanonicalWriter._definition,
    ast.AsyncFunctionDef: CanonicalWriter._definition,
    ast.ClassDef: CanonicalWriter._ClassDef,
}
