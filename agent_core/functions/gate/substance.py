"""Stage 4, substance: checks that the function does something with its arguments.

Pure. Looks for bodies that are empty, answer the same whatever comes in, hand an
argument back, only print, or leave a parameter unused. What is said here is certain from the tree alone. Of what the
function calls in its own text, only what is not written yet refuses; what always answers the same is a doubt.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from sandbox.wire.lines import bare_lines

from .draft import Draft, Finding
from .tree import FunctionNode, body, calls_of, literal, nodes_of, own_nodes, parameters
from .uses import uses

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
    return bool(printed) and all(_is_idle(statement) for statement in others)


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


def _is_idle(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Return(value=value) | ast.Assign(value=ast.expr() as value):
            return literal(value)[0]
        case _:
            return False


STAGE = "substance"
_SCOPES = frozenset([ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef])
HOLLOW = ("placeholder", "not-implemented", "constant", "echo", "print-only")


def substance(draft: Draft) -> Draft:
    """Return the draft with every sign that the promised function is hollow."""
    if draft.function is None:
        return draft.skip("there is no function to look at")
    findings = check(draft.function, may_have_gaps=draft.policy == "import")
    if draft.policy == "import" and draft.tree and any(use.kind for use in uses(draft.tree, draft.rules.packages)):
        findings = [finding for finding in findings if finding.code != "constant"]  # it is called for what it reaches
    elif draft.policy != "import" and draft.tree and not findings:
        findings = [finding for helper in _helpers(draft.tree, draft.function) for finding in _unwritten(helper)]
    return draft.with_findings(STAGE, findings)


def check(node: FunctionNode, *, may_have_gaps: bool = False) -> list[Finding]:
    """Return every sign that a function is hollow. One that `may_have_gaps` does not support every argument."""
    every = nodes_of(node)[1:]
    own = list(every if _SCOPES.isdisjoint(map(type, every)) else own_nodes(body(node)))
    hollow = list(_hollow(node, own, may_have_gaps=may_have_gaps))
    unused = [] if hollow else list(_unused(node))
    return [*hollow, *unused]


def _helpers(tree: ast.Module, function: FunctionNode) -> Iterator[FunctionNode]:
    """Yield the inner and private functions, and the methods, that a function reaches by name and that take something.

    Of a class with a base, and of a method that is defined twice, others may ask for what does nothing.
    """
    defined = {node.name: node for node in tree.body if isinstance(node, FunctionNode | ast.ClassDef)}
    waiting: list[ast.AST] = [function]
    reached = {function.name}
    while waiting and len(reached) < len(defined):
        for name in calls_of(waiting.pop(), {*defined} - reached):
            reached.add(name)
            waiting.append(defined[name])
    parts = [defined[name] for name in reached if name != function.name]
    inner = [node for node in nodes_of(function)[1:] if isinstance(node, FunctionNode)]
    private = [node for node in parts if isinstance(node, FunctionNode) and node.name[:1] == "_"]
    yield from (node for node in (*inner, *private) if parameters(node))
    classes = [node for node in parts if isinstance(node, ast.ClassDef)]
    methods = [(node, child) for node in classes for child in node.body if isinstance(child, FunctionNode)]
    times = Counter(method.name for _class, method in methods)
    if not methods:
        return
    called = {node.attr for node in nodes_of(tree) if isinstance(node, ast.Attribute)} | {"__call__"}
    yield from (
        method for node, method in methods if not node.bases and times[method.name] == 1 and method.name in called
    )


def _unwritten(helper: FunctionNode) -> Iterator[Finding]:
    """Yield what is not written of a function that is called by the one that is judged."""
    own = list(own_nodes(body(helper)))
    gives = any(isinstance(node, ast.Return) and node.value for node in own)
    unfinished = _not_implemented(own)
    if unfinished and not gives:
        message = f"`{helper.name}` raises NotImplementedError, so a part of the work is not written"
        fix = "write that part; for input that is not supported raise ValueError with a reason"
        yield Finding("not-implemented", message, fix, unfinished.lineno)
    statements = [statement for statement in body(helper) if not _is_nothing(statement)]
    hollow = next(_same_answer(helper, statements, own), None) if statements else None
    if helper.decorator_list or (statements and not hollow):
        return
    told = hollow.message if hollow else f"`{helper.name}` has no body"
    message = f"{told}, and it is called as if it did some work"
    yield Finding("doubt-examples", message, "write it, or do without it", helper.lineno)


def _hollow(node: FunctionNode, own: list[ast.AST], *, may_have_gaps: bool) -> Iterator[Finding]:
    statements = body(node)
    line = statements[0].lineno if statements else node.lineno
    real = [statement for statement in statements if not _is_nothing(statement)]
    if not real:
        message = (
            f"`{node.name}` has no body yet"
            if not statements
            else f"the body of `{node.name}` is only `{_shown(statements[0])}`"
        )
        yield Finding("placeholder", message, "write the code that computes the result", line)
        return
    unfinished = _not_implemented(own)
    is_gap = unfinished not in statements and any(isinstance(child, ast.Return) and child.value for child in own)
    if unfinished and not (may_have_gaps and is_gap):
        message = f"`{node.name}` raises NotImplementedError, so a part of it is not written"
        fix = "write that part; for input that is not supported raise ValueError with a reason"
        yield Finding("not-implemented", message, fix, unfinished.lineno)
        return
    yield from _same_answer(node, real, own)


def _same_answer(node: FunctionNode, statements: list[ast.stmt], own: list[ast.AST]) -> Iterator[Finding]:
    live = reachable(statements)
    own = own if len(live) == len(statements) else list(own_nodes(live))
    names = ", ".join(f"`{parameter.arg}`" for parameter in parameters(node)) or "nothing"
    if only_prints(live):
        message = f"`{node.name}` only prints or takes notes: nothing is computed, and nobody reads that"
        yield Finding("print-only", message, "compute the result from the parameters and return it", live[0].lineno)
        return
    answers = list(returned(live))
    answer = constant_answer(live, answers, own)
    if answer == "None" and not any(statement.value for statement in answers):
        prints = any(isinstance(child, ast.Name) and child.id == "print" for child in own_nodes(live))
        fix = "return the result instead of printing it" if prints else "end with `return` and the result"
        yield Finding("constant", f"`{node.name}` returns nothing, so nobody gets its result", fix, live[-1].lineno)
        return
    if answer is not None:
        line = next((statement.lineno for statement in answers), live[0].lineno)
        message = f"`{node.name}` always returns {answer}, whatever it is given ({names})"
        yield Finding("constant", message, "compute the result from the parameters", line)
        return
    echoed = echoed_parameter(node, live, answers)
    if echoed:
        message = f"`{node.name}` returns its argument `{echoed}` as it came"
        yield Finding("echo", message, "return what was computed from it", live[0].lineno)


def _unused(node: FunctionNode) -> Iterator[Finding]:
    loaded = _read_names(node)
    if loaded & {"locals", "vars", "eval", "exec"}:
        return
    for parameter in parameters(node):
        if parameter.arg not in loaded and not parameter.arg.startswith("_"):
            message = f"the parameter `{parameter.arg}` of `{node.name}` is never used"
            fix = f"use `{parameter.arg}` in the body, or leave it out of the parameters and of `Args:`"
            yield Finding("dead-parameter", message, fix, parameter.lineno, parameter.col_offset + 1)
    yield from _unreachable(node)


def _read_names(node: FunctionNode) -> set[str]:
    """Return the names that are read: one that only goes into a name that nobody reads is not, nor is a bare one."""
    every = [child for child in nodes_of(node) if isinstance(child, ast.Name)]
    moved = [move for child in nodes_of(node) if (move := _moved(child))]
    passed_on = {id(part) for _target, parts in moved for part in parts}
    read = {name.id for name in every if not isinstance(name.ctx, ast.Store) and id(name) not in passed_on}
    kept = {name for child in nodes_of(node) if isinstance(child, ast.Global | ast.Nonlocal) for name in child.names}
    read |= kept
    for _ in moved:
        read |= {part.id for target, parts in moved if target in read for part in parts}
    return read


def _moved(node: ast.AST) -> tuple[str, list[ast.Name]] | None:
    """Return the name that a statement only puts other names into, and those; no name if it does nothing with them."""
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=value):
            pass
        case ast.Expr(value=ast.Name() as value):
            target = ""
        case ast.Delete(targets=[ast.Name() as value]):
            target = ""
        case _:
            return None
    parts = [*ast.walk(value)]
    return (target, [part for part in parts if isinstance(part, ast.Name)]) if all(map(_is_inert, parts)) else None


def _is_inert(node: ast.AST) -> bool:
    """Check for a part of an expression that can neither fail nor do anything."""
    return isinstance(node, ast.Name | ast.Constant | ast.JoinedStr | ast.FormattedValue | ast.Tuple | ast.expr_context)


def _unreachable(node: FunctionNode) -> Iterator[Finding]:
    statements = body(node)
    live = reachable(statements)
    if len(live) < len(statements) and not has_effects(live):
        message = f"nothing after line {live[-1].lineno} of `{node.name}` is ever reached"
        yield Finding(
            "unreachable-code", message, "remove the early `return`, or what follows it", statements[len(live)].lineno
        )


def _is_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case _:
            return False


def _shown(node: ast.stmt) -> str:
    return bare_lines(ast.unparse(node))[0][:60]


def _not_implemented(own: list[ast.AST]) -> ast.stmt | None:
    for node in own:
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
                return node
    return None
