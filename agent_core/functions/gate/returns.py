"""The answers of a body, read from its tree: a constant, an argument unchanged, or something computed.

Pure, and careful to one side: where the tree does not decide, the body counts as one that computes.
"""

import ast
from collections.abc import Iterable, Iterator

from .tree import FunctionNode, literal, own_nodes, parameters

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Raise)
_LEAVES = (ast.Return, ast.Raise)
_HARMLESS_WORDS = """len sum min max sorted str repr int float bool abs round any all type isinstance print"""
_HARMLESS = frozenset(_HARMLESS_WORDS.split())


def reachable(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements up to the first one, at this level, that always leaves."""
    for index, statement in enumerate(statements):
        if isinstance(statement, _LEAVES):
            return statements[: index + 1]
    return statements


def returned(statements: Iterable[ast.stmt]) -> Iterator[ast.Return]:
    """Yield the reachable return statements of a body, without those of inner functions."""
    for statement in reachable(list(statements)):
        if isinstance(statement, ast.Return):
            yield statement
        elif not isinstance(statement, _SIMPLE):
            for block in _blocks(statement):
                yield from returned(block)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if block:
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


_EFFECTS = (ast.Yield, ast.YieldFrom, ast.Raise, ast.Assert)


def has_effects(statements: Iterable[ast.stmt]) -> bool:
    """Check whether the body yields, raises, asserts or uses the call's context: its answer is then not all it does."""
    for node in own_nodes(list(statements)):
        if isinstance(node, ast.Name):
            if node.id == "self":
                return True
        elif isinstance(node, _EFFECTS):
            return True
    return False


def constant_answer(statements: list[ast.stmt], answers: list[ast.Return], own: list[ast.AST]) -> str | None:
    """Return the text of the one literal that every path returns (`answers`); None if they can differ."""
    if not all(
        answer.value is None or isinstance(answer.value, ast.Name) or literal(answer.value)[0] for answer in answers
    ):
        return None  # the common case: something is computed
    values = [_literal_text(answer.value, statements, own) for answer in answers]
    if not always_leaves(statements):
        values.append("None")
    if any(value is None for value in values) or len(set(values)) != 1 or has_effects(statements):
        return None
    return values[0]


def _literal_text(value: ast.expr | None, statements: list[ast.stmt], own: list[ast.AST]) -> str | None:
    """Return the text of a literal, or of a local that is only ever set to one."""
    if isinstance(value, ast.Name):
        value = _only_value(value.id, statements, own)
        if value is None:
            return None
    is_literal, literal_value = literal(value)
    return repr(literal_value) if is_literal else None


def _only_value(name: str, statements: list[ast.stmt], own: list[ast.AST]) -> ast.expr | None:
    """Return the one literal that a name is bound to, if the body never does anything else with it."""
    bindings = [
        node
        for node in statements
        if isinstance(node, ast.Assign) and [getattr(target, "id", None) for target in node.targets] == [name]
    ]
    if len(bindings) != 1:
        return None
    uses = [node for node in own if isinstance(node, ast.Name) and node.id == name]
    in_returns = sum(isinstance(answer.value, ast.Name) and answer.value.id == name for answer in returned(statements))
    return bindings[0].value if len(bindings) == 1 and len(uses) == 1 + in_returns else None


def always_leaves(statements: list[ast.stmt]) -> bool:
    """Check whether no path through these statements reaches their end."""
    if not statements:
        return False
    match reachable(statements)[-1]:
        case ast.Return() | ast.Raise():
            return True
        case ast.While(test=ast.Constant(value=test), body=block) if test:
            return not any(isinstance(node, ast.Break) for node in own_nodes(block))
        case ast.If() | ast.With() | ast.AsyncWith() | ast.Try() | ast.Match() as last:
            return _branches_leave(last)
        case _:
            return False


def _branches_leave(node: ast.If | ast.With | ast.AsyncWith | ast.Try | ast.Match) -> bool:
    match node:
        case ast.If(body=then, orelse=orelse):
            branches = [then, orelse]
        case ast.Try(finalbody=final) if always_leaves(final):
            return True
        case ast.Try(body=block, handlers=handlers, orelse=orelse):
            branches = [orelse or block, *(handler.body for handler in handlers)]
        case ast.Match(cases=cases):
            is_total = any(isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None for case in cases)
            branches = [*(case.body for case in cases), *([] if is_total else [[]])]
        case ast.With(body=block) | ast.AsyncWith(body=block):
            branches = [block]
    return all(always_leaves(branch) for branch in branches)


def echoed_parameter(node: FunctionNode, statements: list[ast.stmt], answers: list[ast.Return]) -> str | None:
    """Return the parameter that every path through a body returns unchanged."""
    names = {answer.value.id if isinstance(answer.value, ast.Name) else "" for answer in answers}
    name = names.pop() if len(names) == 1 else ""
    if name not in {parameter.arg for parameter in parameters(node)}:
        return None
    if has_effects(statements) or not always_leaves(statements):
        return None
    return None if any(_touches(child, name) for child in own_nodes(statements)) else name


def _touches(node: ast.AST, name: str) -> bool:
    """Check whether a node rebinds a name or could change the object behind it."""
    match node:
        case ast.Name(id=bound_name, ctx=ast.Store() | ast.Del()):
            return bound_name == name
        case ast.Expr(value=ast.Call(func=function)):
            return not _is_harmless(function)  # called for what it does, which may be the point
        case ast.Call(args=arguments, func=function):
            handed = any(_names(argument, name) for argument in arguments) and not _is_harmless(function)
            return handed or (isinstance(function, ast.Attribute) and _names(function.value, name))
        case ast.Subscript(value=inner, ctx=ctx) | ast.Attribute(value=inner, ctx=ctx):
            return not isinstance(ctx, ast.Load) and _names(inner, name)
        case ast.For(iter=inner) | ast.Assign(value=inner) | ast.NamedExpr(value=inner):
            computed = isinstance(inner, ast.Call | ast.BinOp | ast.Compare | ast.JoinedStr)
            return not computed and _names(inner, name)
        case _:
            return False


def _is_harmless(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id in _HARMLESS


def _names(node: ast.AST, name: str) -> bool:
    return any(isinstance(child, ast.Name) and child.id == name for child in ast.walk(node))


def only_prints(statements: list[ast.stmt]) -> bool:
    """Check whether the body only prints or takes notes, sets literals and returns one."""
    printed = [statement for statement in statements if _is_print(statement)]
    others = [statement for statement in statements if not _is_print(statement)]
    return bool(printed) and all(_is_inert(statement) for statement in others)


def _is_print(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id="self"), attr="progress"),
                args=[ast.Constant(value=0)],
                keywords=[ast.keyword(arg="note")],
            )
        ):
            return True  # a note, and no progress
        case _:
            return False


def _is_inert(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Return(value=value) | ast.Assign(value=ast.expr() as value):
            return literal(value)[0]
        case _:
            return False
