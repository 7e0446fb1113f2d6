"""Stage 4, substance: the function does something with what it is given.

Pure. Looks for bodies that are empty, announce work to come, answer the same whatever comes in, hand an
argument back, only print, or leave a parameter unused. What is said here is certain from the tree alone.
"""

import ast
import re
import tokenize
from collections.abc import Iterator

from sandbox.lines import bare_lines, lines_of, reader_of

from .draft import Draft, Finding
from .returns import constant_answer, echoed_parameter, has_effects, only_prints, reachable, returned
from .tree import FunctionNode, body, nodes_of, own_nodes, parameters

STAGE = "substance"
_WORK_TO_COME = re.compile(
    r"\b(?:TODO|FIXME)\b|(?i:\byour (?:code|logic|implementation)\b|\b(?:implementation|code|logic) goes here\b"
    r"|\bimplement (?:this|me|later|the (?:logic|function))\b"
    r"|^#?\s*(?:placeholder|stub|not (?:yet )?implemented|to be implemented)\b)"
)
_SCOPES = frozenset([ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef])
_SAYING = (ast.Return, ast.Expr, ast.Raise)
HOLLOW = ("placeholder", "not-implemented", "constant", "echo", "print-only")


def substance(draft: Draft) -> Draft:
    """The draft with every sign that the promised function is hollow."""
    if draft.function is None:
        return draft.skip("there is no function to look at")
    return draft.with_findings(STAGE, check(draft.function, draft.text))


def check(node: FunctionNode, text: str) -> list[Finding]:
    """Every sign that a function is hollow."""
    every = nodes_of(node)[1:]
    own = list(every if _SCOPES.isdisjoint(map(type, every)) else own_nodes(body(node)))
    hollow = list(_hollow(node, own))
    unused = [] if hollow else list(_unused(node))
    return [*hollow, *unused, *_announced(node, own, text)]


def _hollow(node: FunctionNode, own: list[ast.AST]) -> Iterator[Finding]:
    statements = body(node)
    line = statements[0].lineno if statements else node.lineno
    real = [statement for statement in statements if not _is_nothing(statement)]
    if not real:
        what = (
            f"`{node.name}` has no body yet"
            if not statements
            else f"the body of `{node.name}` is only `{_shown(statements[0])}`"
        )
        yield Finding("placeholder", what, "write the code that computes the result", line)
        return
    unfinished = _not_implemented(own)
    if unfinished:
        what = f"`{node.name}` raises NotImplementedError, so a part of it is not written"
        mend = "write that part; for input that is not supported raise ValueError with a reason"
        yield Finding("not-implemented", what, mend, unfinished.lineno)
        return
    yield from _same_answer(node, real, own)


def _same_answer(node: FunctionNode, statements: list[ast.stmt], own: list[ast.AST]) -> Iterator[Finding]:
    live = reachable(statements)
    own = own if len(live) == len(statements) else list(own_nodes(live))
    names = ", ".join(f"`{parameter.arg}`" for parameter in parameters(node)) or "nothing"
    if only_prints(live):
        what = f"`{node.name}` only prints or takes notes: nothing is computed, and nobody reads that"
        yield Finding("print-only", what, "compute the result from the parameters and return it", live[0].lineno)
        return
    answers = list(returned(live))
    answer = constant_answer(live, answers, own)
    if answer == "None" and not any(one.value for one in answers):
        prints = any(isinstance(one, ast.Name) and one.id == "print" for one in own_nodes(live))
        mend = "return the result instead of printing it" if prints else "end with `return` and the result"
        yield Finding("constant", f"`{node.name}` returns nothing, so nobody gets its result", mend, live[-1].lineno)
        return
    if answer is not None:
        line = next((one.lineno for one in answers), live[0].lineno)
        what = f"`{node.name}` always returns {answer}, whatever it is given ({names})"
        yield Finding("constant", what, "compute the result from the parameters", line)
        return
    echoed = echoed_parameter(node, live, answers)
    if echoed:
        what = f"`{node.name}` returns its argument `{echoed}` as it came"
        yield Finding("echo", what, "return what was computed from it", live[0].lineno)


def _unused(node: FunctionNode) -> Iterator[Finding]:
    loaded = {one.id for one in nodes_of(node) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store)}
    if loaded & {"locals", "vars", "eval", "exec"}:
        return
    for parameter in parameters(node):
        if parameter.arg not in loaded and not parameter.arg.startswith("_"):
            what = f"the parameter `{parameter.arg}` of `{node.name}` is never used"
            mend = f"use `{parameter.arg}` in the body, or leave it out of the parameters and of `Args:`"
            yield Finding("dead-parameter", what, mend, parameter.lineno, parameter.col_offset + 1)
    yield from _unreachable(node)


def _unreachable(node: FunctionNode) -> Iterator[Finding]:
    statements = body(node)
    live = reachable(statements)
    if len(live) < len(statements) and not has_effects(live):
        what = f"nothing after line {live[-1].lineno} of `{node.name}` is ever reached"
        yield Finding(
            "unreachable-code", what, "remove the early `return`, or what follows it", statements[len(live)].lineno
        )


def _announced(node: FunctionNode, own: list[ast.AST], text: str) -> Iterator[Finding]:
    written = "".join(lines_of(text)[node.lineno - 1 : node.end_lineno]) if "#" in text else ""
    for line, comment in _comments(written):
        if _WORK_TO_COME.search(comment):
            what = f"a comment announces work to come: `{comment.strip('# ')[:80]}`"
            yield Finding("todo", what, "do that work now, then remove the comment", node.lineno + line - 1)
    for one in own:
        said = _said(one) if isinstance(one, _SAYING) else ""
        if said and _WORK_TO_COME.match(said.strip()):
            what = f"the text `{said.strip()[:80]}` stands where a result should be"
            yield Finding(
                "todo", what, "return the computed result", one.lineno if isinstance(one, ast.stmt) else node.lineno
            )


def _said(node: ast.AST) -> str:
    """The text that a statement returns, raises or prints, if that is all it says."""
    match node:
        case ast.Return(value=ast.Constant(value=str(said))):
            return said
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[ast.Constant(value=str(said))])):
            return said
        case ast.Raise(exc=ast.Call(args=[ast.Constant(value=str(said))])):
            return said
        case _:
            return ""


def _comments(text: str) -> Iterator[tuple[int, str]]:
    if "#" not in text:
        return
    try:
        for token in tokenize.generate_tokens(reader_of(text)):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    except (tokenize.TokenError, SyntaxError):
        return


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
