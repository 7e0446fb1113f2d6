"""Stage 4, substance: checks that the function does something with its arguments.

Pure. Looks for bodies that are empty, answer the same whatever comes in, hand an
argument back, only print, or leave a parameter unused. What is said here is certain from the tree alone. Of what the
function calls in its own text, only what is not written yet refuses; what always answers the same is a doubt.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from sandbox.wire.lines import bare_lines

from .draft import Draft, Finding
from .returns import constant_answer, echoed_parameter, has_effects, only_prints, reachable, returned
from .tree import FunctionNode, body, calls_of, nodes_of, own_nodes, parameters
from .uses import uses

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
