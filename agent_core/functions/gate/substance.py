"""The stage "substance": checks that the function does something with its arguments.

Pure. It detects bodies that are empty, always return the same, return an argument unchanged, only print, or leave a
parameter unused. Its findings are certain from the tree alone; everything else is left to examples and runs.
"""

import ast
from collections.abc import Iterator, Sequence

from sandbox.wire.lines import bare_lines

from .draft import Draft, Finding
from .tree import (
    FunctionNode,
    body,
    expression,
    is_bare_call,
    literal,
    nodes_of,
    own_nodes,
    parameters,
)
from .uses import gives_text_to_packages, uses

STAGE = "substance"
HOLLOW = ("placeholder", "not-implemented", "constant", "echo", "print-only")
_LEAVES = (ast.Return, ast.Raise)
_MAY_ACT = (ast.Call, ast.NamedExpr, ast.Subscript, ast.Attribute, ast.BinOp, ast.Await)
_EFFECTS = (ast.Yield, ast.YieldFrom, ast.Raise, ast.Assert)


def substance(draft: Draft) -> Draft:
    """Return the draft with findings that the promised function is hollow."""
    if draft.function is None:
        return draft.skip("there is no function to look at")
    examples = [(example.call, example.expected) for example in draft.examples]
    findings = check(draft.function, examples, may_have_gaps=draft.policy == "import")
    if any(finding.code == "constant" for finding in findings) and _acts(draft):
        findings = [finding for finding in findings if finding.code != "constant"]
    return draft.with_findings(STAGE, findings)


def _acts(draft: Draft) -> bool:
    """Check whether what a function does outside may be its purpose, whatever it returns."""
    packages = draft.rules.packages
    kinds = {use.kind for use in uses(draft.tree, packages)} if draft.tree else set()
    if draft.policy == "import":
        return any(kinds)
    gives_text = (
        draft.tree is not None
        and "packages" in kinds
        and gives_text_to_packages(draft.tree, packages)
    )
    return gives_text or bool(kinds & {"write", "network", "memory"})


def check(
    node: FunctionNode, examples: Sequence[tuple[str, str]], *, may_have_gaps: bool = False
) -> list[Finding]:
    """Return findings that a function is hollow. With `may_have_gaps`, it need not support every argument.

    `examples` are its calls with their results: without parameters, it may return a constant that one of them shows.
    """
    if findings := list(_hollow(node, examples, may_have_gaps=may_have_gaps)):
        return findings
    every = [
        child for child in nodes_of(node) if isinstance(child, ast.Name | ast.Global | ast.Nonlocal)
    ]
    idle = _idle_names(node)
    read = {
        child.id
        for child in every
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load) and id(child) not in idle
    }
    read |= {name for child in every if not isinstance(child, ast.Name) for name in child.names}
    for parameter in parameters(node):
        is_dead = not read & {parameter.arg, "locals", "vars", "eval", "exec"}
        if is_dead and not parameter.arg.startswith("_"):
            message = f"the parameter `{parameter.arg}` of `{node.name}` is never used"
            fix = f"use `{parameter.arg}` in the body, or leave it out of the parameters and of `Args:`"
            findings.append(
                Finding("dead-parameter", message, fix, parameter.lineno, parameter.col_offset + 1)
            )
    statements = body(node)
    live = _live(statements)
    if len(live) < len(statements) and not _has_effects(live):
        message = f"nothing after line {live[-1].lineno} of `{node.name}` is ever reached"
        fix = "remove the early `return`, or what follows it"
        findings.append(Finding("unreachable-code", message, fix, statements[len(live)].lineno))
    return findings


def _idle_names(node: FunctionNode) -> set[int]:
    """Return the IDs of the names that only a test reads whose answer changes nothing: both ways do the same."""
    idle = set[int]()
    for child in nodes_of(node):
        test = _idle_test(child)
        if test is None:
            continue
        parts = [*ast.walk(test)]
        if not any(isinstance(part, _MAY_ACT) for part in parts):
            idle.update(map(id, parts))
    return idle


def _idle_test(node: ast.AST) -> ast.expr | None:
    """Return the test of a choice if both of its ways do the same."""
    match node:
        case ast.IfExp() if _is_same([node.body], [node.orelse]):
            return node.test
        case ast.If() if node.orelse and _is_same(node.body, node.orelse):
            return node.test
        case _:
            return None


def _is_same(first: Sequence[ast.AST], second: Sequence[ast.AST]) -> bool:
    return [*map(ast.dump, first)] == [*map(ast.dump, second)]


def _hollow(
    node: FunctionNode, examples: Sequence[tuple[str, str]], *, may_have_gaps: bool
) -> Iterator[Finding]:
    statements = body(node)
    real = [statement for statement in statements if not _is_nothing(statement)]
    if not real:
        message, line = f"`{node.name}` has no body yet", node.lineno
        if statements:
            message = f"the body of `{node.name}` is only `{bare_lines(ast.unparse(statements[0]))[0][:60]}`"
            line = statements[0].lineno
        yield Finding("placeholder", message, "write the code that computes the result", line)
        return
    raises = [
        (node, ast.unparse(node.exc or node))
        for node in own_nodes(statements)
        if isinstance(node, ast.Raise)
    ]
    unfinished = next(
        (node for node, error in raises if error.partition("(")[0] == "NotImplementedError"), None
    )
    is_gap = unfinished not in statements and any(answer.value for answer in _answers(statements))
    if unfinished is not None and not (may_have_gaps and is_gap):
        message = f"`{node.name}` raises NotImplementedError, so a part of it is not written"
        fix = "write that part; for input that is not supported raise ValueError with a reason"
        yield Finding("not-implemented", message, fix, unfinished.lineno)
        return
    live = _live(real)
    names = ", ".join(f"`{parameter.arg}`" for parameter in parameters(node)) or "nothing"
    literals = {
        each
        for each in live
        if isinstance(each, ast.Return | ast.Assign) and literal(each.value)[0]
    }
    if any(map(_is_print, live)) and all(
        each in literals or _is_print(each) or _is_nothing(each) for each in live
    ):
        message = (
            f"`{node.name}` only prints or takes notes: nothing is computed, and nobody reads that"
        )
        yield Finding(
            "print-only",
            message,
            "compute the result from the parameters and return it",
            live[0].lineno,
        )
        return
    answers, every = (
        _answers(live),
        [child for child in own_nodes(live) if isinstance(child, ast.Name)],
    )
    line = answers[0].lineno if answers else live[-1].lineno
    texts = {_literal_text(answer.value, live, every) for answer in answers} | (
        set() if _leaves(live) else {"None"}
    )
    has_effects = _has_effects(live)
    answer = next(iter(texts)) if len(texts) == 1 and not has_effects else None  # of every path
    if answer == "None" and not any(statement.value for statement in answers):
        prints = any(name.id == "print" for name in every)
        fix = (
            "return the result instead of printing it"
            if prints
            else "end with `return` and the result"
        )
        yield Finding(
            "constant",
            f"`{node.name}` returns nothing, so nobody gets its result",
            fix,
            live[-1].lineno,
        )
    elif answer and parameters(node):
        message = f"`{node.name}` always returns {answer}, whatever it is given ({names})"
        yield Finding("constant", message, "compute the result from the parameters", line)
    elif answer and not any(
        _is_shown(node.name, call, result, answer) for call, result in examples
    ):
        message = f"`{node.name}` always returns {answer}, and no example of it shows that"
        fix = f"if that is its result, show it in the docstring: a line `>>> {node.name}()`, and the result below it"
        yield Finding("constant", message, fix, line)
    elif _leaves(live) and not has_effects:
        returned = {
            answer.value.id if isinstance(answer.value, ast.Name) else "" for answer in answers
        }
        for name in (parameter.arg for parameter in parameters(node)):
            # Every path returns it, and nothing else uses it.
            if returned == {name} and len(answers) == sum(other.id == name for other in every):
                message = f"`{node.name}` returns its argument `{name}` as it came"
                yield Finding("echo", message, "return what was computed from it", live[0].lineno)


def _is_shown(name: str, call: str, result: str, answer: str) -> bool:
    """Check whether an example shows that a function without parameters returns this literal."""
    (is_literal, value), (_, answered) = literal(expression(result)), literal(expression(answer))
    return (
        is_literal
        and type(value) is type(answered)
        and value == answered
        and is_bare_call(call, name)
    )


def _live(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements up to the first one, at this level, that always leaves."""
    ends = (at for at, statement in enumerate(statements, 1) if isinstance(statement, _LEAVES))
    return statements[: next(ends, len(statements))]


def _answers(statements: list[ast.stmt]) -> list[ast.Return]:
    return [node for node in own_nodes(statements) if isinstance(node, ast.Return)]


def _literal_text(
    value: ast.expr | None, statements: list[ast.stmt], names: list[ast.Name]
) -> str | None:
    """Return the text of a literal, or of a local variable that is only assigned a literal and returned."""
    if isinstance(value, ast.Name):
        assigned = [node for node in statements if isinstance(node, ast.Assign)]
        bindings = [
            node.value for node in assigned if [*map(ast.unparse, node.targets)] == [value.id]
        ]
        if (
            len(bindings) != 1 or sum(name.id == value.id for name in names) != 2
        ):  # assigned once and returned once
            return None
        value = bindings[0]
    is_literal, literal_value = literal(value)
    return repr(literal_value) if is_literal else None


def _leaves(statements: list[ast.stmt]) -> bool:
    """Check whether the last statement, or every branch of it, returns or raises."""
    last = statements[-1] if statements else None
    return isinstance(last, _LEAVES) or (
        isinstance(last, ast.If) and _leaves(last.body) and _leaves(last.orelse)
    )


def _has_effects(statements: list[ast.stmt]) -> bool:
    """Check whether the body has effects besides its result: it yields, raises, asserts or uses `self`."""
    nodes = own_nodes(statements)
    return any(
        isinstance(node, _EFFECTS) or (isinstance(node, ast.Name) and node.id == "self")
        for node in nodes
    )


def _is_print(node: ast.stmt) -> bool:
    """Check for a statement that prints or only reports a note of progress."""
    called = node.value if isinstance(node, ast.Expr) else None
    match called:
        case (
            ast.Call(func=ast.Name(id="print"))
            | ast.Call(func=ast.Attribute(attr="progress"), args=[ast.Constant(value=0)])
        ):
            return True
    return False


def _is_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )
