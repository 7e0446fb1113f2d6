"""Rewrites statements into one canonical shape where there are several ways to write them.

Pure: trees in, new trees out; the given ones are never changed.
"""

import ast
from collections.abc import Sequence

from .facts import Facts

_POSITIVE: dict[type[ast.cmpop], ast.cmpop] = {ast.NotEq: ast.Eq(), ast.IsNot: ast.Is(), ast.NotIn: ast.In()}
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_TRUTH = frozenset(
    ["isinstance", "bool", "any", "all", "startswith", "endswith", "isdigit", "isalpha", "isupper", "islower"]
)


def shaped(body: Sequence[ast.stmt], facts: Facts) -> list[ast.stmt]:
    """Return the statements of a block in canonical shape; nested blocks are left unchanged."""
    statements: list[ast.stmt] = []
    for index, node in enumerate(body):
        if isinstance(node, ast.If) and (ends(node.body) or ends(node.orelse)):
            statements += _branch(node, body[index + 1 :])
            break
        statements += _choice(node.test, node.body, node.orelse) if isinstance(node, ast.If) else _plain(node, facts)
        if isinstance(node, _ENDS):
            break
    return _without_temporary(statements)


def _branch(node: ast.If, following: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return a condition with a branch that ends, with the following statements moved into the other branch."""
    if ends(node.body):
        return _choice(node.test, node.body, [*node.orelse, *following])
    return _choice(node.test, [*node.body, *following], node.orelse)


def _plain(node: ast.stmt, facts: Facts) -> list[ast.stmt]:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
            return []
        case ast.AnnAssign(target=target, value=value):
            return [ast.Assign([target], value)] if value else []
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if _is_reckoned(name, value, facts):
            return [ast.Assign([ast.Name(name, ast.Store())], ast.BinOp(ast.Name(name, ast.Load()), op, value))]
        case ast.Assign():
            return _assignments(node)
        case ast.Return(value=ast.IfExp(test=test, body=body, orelse=orelse)):
            return _choice(test, [ast.Return(body)], [ast.Return(orelse)])
        case _:
            return [node]


def _is_reckoned(name: str, value: ast.expr, facts: Facts) -> bool:
    """Check whether an in-place operation equals a plain one, because the name's value is never mutated."""
    is_number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
    return is_number or name in facts.plain | facts.sure_numbers


def _assignments(node: ast.Assign) -> list[ast.stmt]:
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if _are_apart(targets, values):
            return [ast.Assign([target], value) for target, value in zip(targets, values, strict=True)]
        case ast.Assign(targets=[_, _, *_], value=ast.Constant()):
            return [ast.Assign([target], node.value) for target in node.targets]
        case ast.Assign(targets=[ast.Name() as name], value=ast.IfExp(test=test, body=body, orelse=orelse)):
            return _choice(test, [ast.Assign([name], body)], [ast.Assign([name], orelse)])
        case _:
            return [node]


def _are_apart(targets: list[ast.expr], values: list[ast.expr]) -> bool:
    """Check whether several names get values that mention none of them."""
    if len(targets) != len(values) or not all(isinstance(target, ast.Name) for target in targets):
        return False
    written = {target.id for target in targets if isinstance(target, ast.Name)}
    nodes = [node for value in values for node in ast.walk(value)]
    mentioned = any(isinstance(node, ast.Name) and node.id in written for node in nodes)
    return not mentioned and not any(isinstance(node, ast.Starred | ast.NamedExpr | ast.Await) for node in nodes)


def _choice(test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> list[ast.stmt]:
    """Return a condition that asks for what is, not for what is not."""
    test, is_other = positive(test)
    if is_other:
        body, orelse = orelse, body
    match body, orelse:
        case [ast.Return(value=ast.Constant(value=True))], [ast.Return(value=ast.Constant(value=False))] if is_truth(
            test
        ):
            return [ast.Return(test)]
        case [ast.Return(value=ast.Constant(value=False))], [ast.Return(value=ast.Constant(value=True))]:
            return [ast.Return(ast.UnaryOp(ast.Not(), test))]
        case _:
            return [ast.If(test, body, orelse)]


def positive(test: ast.expr) -> tuple[ast.expr, bool]:
    """Return a condition without its negation, and whether it had one."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            bare_test, is_other = positive(inner)
            return bare_test, not is_other
        case ast.Compare(left=left_operand, ops=[op], comparators=others) if type(op) in _POSITIVE:
            return ast.Compare(left_operand, [_POSITIVE[type(op)]], others), True
        case _:
            return test, False


def is_truth(node: ast.expr) -> bool:
    """Check whether an expression yields True or False and nothing else."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=True | False):
            return True
        case ast.BoolOp(values=values):
            return all(map(is_truth, values))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _TRUTH
        case _:
            return False


def ends(body: Sequence[ast.stmt]) -> bool:
    """Check whether nothing after these statements can be reached from them."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return ends(last.body) and ends(last.orelse)
    return isinstance(last, _ENDS)


def _without_temporary(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements with a final `x = …; return x` written as `return …`."""
    match body[-2:]:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value), ast.Return(value=ast.Name(id=result_name))] if (
            name == result_name
        ):
            return _without_temporary([*body[:-2], *_plain(ast.Return(value), Facts())])
        case _:
            return body


def without_end(body: list[ast.stmt], tail: str) -> list[ast.stmt]:
    """Return the statements without a `continue` or bare `return` at the end of a `loop` or `function`."""
    match body[-1:]:
        case [ast.Continue()] if tail == "loop":
            return without_end(body[:-1], tail)
        case [ast.Return(value=None | ast.Constant(value=None))] if tail == "function":
            return without_end(body[:-1], tail)
        case _:
            return body


def arguments(arguments: ast.arguments) -> list[ast.arg]:
    """Return every parameter, in the order of the text."""
    stars = [parameter for parameter in (arguments.vararg, arguments.kwarg) if parameter]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars]


def only_remembers(decorator: ast.expr) -> bool:
    """Check whether a decorator only caches results."""
    words = {node.id if isinstance(node, ast.Name) else getattr(node, "attr", "") for node in ast.walk(decorator)}
    return bool(words & {"cache", "lru_cache"})


def flat(node: ast.BoolOp) -> list[ast.expr]:
    """Return the operands of a nested operation: `a and (b and c)` is `a and b and c`."""
    return [
        inner
        for value in node.values
        for inner in (flat(value) if isinstance(value, ast.BoolOp) and type(value.op) is type(node.op) else [value])
    ]


def brief(func: object, args: list[ast.expr]) -> list[ast.expr]:
    """Return the arguments without redundant ones: `range(0, n, 1)` is `range(n)`."""
    if func != "@range":
        return args
    if len(args) == 3 and isinstance(args[2], ast.Constant) and args[2].value == 1:
        args = args[:2]
    starts_at_0 = len(args) == 2 and isinstance(args[0], ast.Constant) and args[0].value == 0
    return args[1:] if starts_at_0 else args
