"""Code that only tries a candidate out: calls, prints, asserts, `if __name__` blocks, `main()` and its own tests.

It is taken off; what asserts say (`assert f(1) == 2`) goes into the docstring as examples. Pure text to text.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent_core.base import syntax
from sandbox.wire.lines import bare_lines, lines_of

from .fixes.prose import prose
from .fixes.view import offset
from .tree import FunctionNode, find, first_line, literal, nodes_of, parse

_DRIVERS = frozenset(["print", "main", "unittest.main", "doctest.testmod", "pytest.main"])
_TEST = re.compile(r"^(main|check|demo|tests?|run_tests?|test_\w+|_?tests?_\w+|example_usage|\w+_test)$")
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_MOST = 20  # examples that are written
_HEADING = re.compile(r"^\s*(Examples?|Doctests?):{1,2}\s*$")


@dataclass(frozen=True, slots=True)
class Asserted:
    """One call with the literal that is asserted of it, both as text."""

    call: str
    expected: str


def strip_tryouts(text: str, name: str) -> str:
    """Return the code without what only tries the function out; unchanged if the function might depend on that."""
    tree = parse(text)
    node = find(tree, name) if isinstance(tree, ast.Module) and len(tree.body) > 1 else None
    if not isinstance(tree, ast.Module) or node is None:
        return text
    off = _tryouts(tree, node)
    lines = lines_of(text)
    removed_lines = {
        line for statement in off for line in range(_top(statement, lines), (statement.end_lineno or 0) + 1)
    }
    stays = set(map(id, tree.body)) - set(map(id, off))
    if not off or any(
        statement.end_lineno in removed_lines or first_line(statement) in removed_lines
        for statement in tree.body
        if id(statement) in stays
    ):
        return text  # nothing to take off, or two statements on one line
    remaining = "".join(line for number, line in enumerate(lines, 1) if number not in removed_lines).rstrip("\n") + "\n"
    return strip_tryouts(remaining, name)  # what only they needed can go now, too


def write_asserts(text: str, name: str) -> str:
    """Return the text with its asserts about the function as examples in the docstring."""
    tree = parse(text) if "assert" in text else None
    node = find(tree, name) if isinstance(tree, ast.Module) else None
    if not isinstance(tree, ast.Module) or node is None:
        return text
    written = {_normal(line) for line in bare_lines(ast.get_docstring(node, clean=False) or "") if ">>>" in line}
    assertions: dict[str, Asserted] = {}
    for statement in _tryouts(tree, node):
        for assertion in _asserted(statement, name):
            if _normal(assertion.call) not in written:
                assertions.setdefault(assertion.call, assertion)
    return _with_examples(text, node, list(assertions.values())[:_MOST]) if assertions else text


def _top(node: ast.stmt, lines: list[str]) -> int:
    """Return the first line of a statement, with the comments right above it."""
    top = first_line(node)
    while top > 1 and lines[top - 2].startswith("#"):
        top -= 1
    return top


def _normal(call: str) -> str:
    """Return a call in its compared form, whatever its quotes and spaces."""
    bare = call.strip().removeprefix(">>>").strip()
    try:
        return ast.unparse(syntax.parse(bare, mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return bare


def _tryouts(tree: ast.Module, node: FunctionNode) -> list[ast.stmt]:
    """Return the statements that only try the function out, in order."""
    others = [
        statement
        for statement in tree.body
        if statement is not node and not isinstance(statement, ast.Import | ast.ImportFrom)
    ]
    if not others:
        return []
    needed = _reached(tree, node)
    used = {name for statement in needed.values() for name in _global_reads(statement)}
    state = {
        name for statement in tree.body if isinstance(statement, _ASSIGNMENTS) for name in _stored(statement)
    } & used
    tryouts: list[ast.stmt] = []
    is_last = True
    for statement in reversed(others):
        is_after = (
            statement.lineno > node.lineno
            and id(statement) not in needed
            and _tries_out(statement, node.name, is_last=is_last)
        )
        if _is_guard(statement) or (is_after and not _touches(statement, state, used)):
            tryouts.append(statement)
        else:
            is_last = False
    return _not_missed(list(reversed(tryouts)), tree)


def _not_missed(tryouts: list[ast.stmt], tree: ast.Module) -> list[ast.stmt]:
    """Return the statements with no names that the remaining code needs."""
    removed_ids = set(map(id, tryouts))
    needed = {name for statement in tree.body if id(statement) not in removed_ids for name in _global_reads(statement)}
    remaining = [
        statement for statement in tryouts if not needed & {*_stored(statement), getattr(statement, "name", "")}
    ]
    return remaining if len(remaining) == len(tryouts) else _not_missed(remaining, tree)


def _reached(tree: ast.Module, node: FunctionNode) -> dict[int, ast.stmt]:
    """Return the function, and the functions and classes that it reaches."""
    named: dict[str, ast.stmt] = {
        statement.name: statement for statement in tree.body if isinstance(statement, FunctionNode | ast.ClassDef)
    }
    reached: dict[int, ast.stmt] = {id(node): node}
    front: list[ast.stmt] = [node]
    while front:
        for name in _loaded(front.pop()) & named.keys():
            if id(named[name]) not in reached:
                reached[id(named[name])] = named[name]
                front.append(named[name])
    return reached


def _global_reads(node: ast.stmt) -> set[str]:
    """Return the names that a statement reads from its module, as far as its own do not hide them."""
    if not isinstance(node, FunctionNode):
        return _loaded(node)
    declared = {name for child in nodes_of(node) if isinstance(child, ast.Global) for name in child.names}
    own = _stored(node) | {child.arg for child in nodes_of(node) if isinstance(child, ast.arg)}
    return (_loaded(node) - own) | declared


def _loaded(node: ast.AST) -> set[str]:
    return {child.id for child in nodes_of(node) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load)}


def _stored(node: ast.AST) -> set[str]:
    return {child.id for child in nodes_of(node) if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load)}


def _tries_out(node: ast.stmt, name: str, *, is_last: bool) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=func)):
            driver = ast.unparse(func)
            return driver in _DRIVERS or bool(_TEST.match(driver)) or name in _loaded(node)
        case ast.Expr(value=ast.Await()) | ast.Assert():
            return is_last or name in _loaded(node)
        case ast.Assign() | ast.AnnAssign() | ast.For() | ast.With() | ast.Try():
            return name in _loaded(node)
        case ast.FunctionDef(name=function_name) | ast.AsyncFunctionDef(name=function_name):
            return bool(_TEST.match(function_name)) and function_name != name
        case ast.ClassDef(bases=bases):
            return any(ast.unparse(base).endswith("TestCase") for base in bases)
        case _:
            return _is_guard(node)


def _is_guard(node: ast.stmt) -> bool:
    match node:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), orelse=[]):
            return True
        case _:
            return False


def _touches(node: ast.stmt, state: set[str], used: set[str]) -> bool:
    """Check whether the statement may change what the function reads: by binding such a name, or by exposing its
    value.
    """
    if _is_guard(node) or isinstance(node, FunctionNode | ast.ClassDef):
        return False  # nothing of it runs with the module
    if _stored(node) & used:
        return True
    return not isinstance(node, ast.Assert) and bool(_loaded(node) & state)


def _asserted(node: ast.stmt, name: str) -> Iterator[Asserted]:
    """Yield what a statement asserts of the function; in a `check(candidate)`, of its parameter."""
    names = {name}
    if isinstance(node, FunctionNode) and len(node.args.args) == 1:
        names.add(node.args.args[0].arg)
    for child in nodes_of(node):
        match child:
            case ast.Assert(test=test):
                yield from _of_test(test, names, name)
            case ast.Call(func=ast.Attribute(attr="assertEqual"), args=[ast.Call() as call, expected, *_]):
                yield from _example(call, expected, names, name)


def _of_test(test: ast.expr, names: set[str], name: str) -> Iterator[Asserted]:
    match test:
        case ast.Compare(left=left_operand, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            yield from _example(left_operand, right, names, name)
            yield from _example(right, left_operand, names, name)
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _of_test(value, names, name)


def _example(call: ast.expr, expected: ast.expr, names: set[str], name: str) -> Iterator[Asserted]:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in names:
        return
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    is_literal, value = literal(expected)
    if is_literal and value is not None and all(literal(argument)[0] for argument in arguments):
        shown = ast.unparse(ast.Call(ast.Name(name), call.args, call.keywords))
        if "\n" not in shown + repr(value):
            yield Asserted(shown, repr(value))


def _with_examples(text: str, node: FunctionNode, assertions: list[Asserted]) -> str:
    new = [
        line.replace("\\", "\\\\")
        for assertion in assertions
        for line in (f"    >>> {assertion.call}", f"    {assertion.expected}")
    ]
    if any('"""' in line for line in new):
        return text
    written = prose(text, node)
    if written is not None and "r" in written.prefix.lower():
        new = [line.replace("\\\\", "\\") for line in new]
    if written is None:
        return text if ast.get_docstring(node) is not None else _docstring_of(text, node, new)
    lines = list(written.lines)
    while lines and not lines[-1].strip():
        lines.pop()
    heading = next((at for at, line in enumerate(lines) if _HEADING.match(line)), None)
    if heading is None:
        return written.rewritten(text, [*lines, "", "Examples:", *new])
    following = range(heading + 1, len(lines))
    end = next((at for at in following if lines[at].strip() and not lines[at].startswith(" ")), len(lines))
    return written.rewritten(text, [*lines[:end], *new, *(["", *lines[end:]] if end < len(lines) else [])])


def _docstring_of(text: str, node: FunctionNode, new: list[str]) -> str:
    """Return the text with a docstring of examples alone, for a function that has none."""
    start = offset(text, first_line(node.body[0]), node.body[0].col_offset)
    margin = text[:start].rpartition("\n")[2]
    if margin.strip():
        return text
    body = "\n".join(f"{margin}{line}" for line in new)
    return f'{text[:start]}"""\n{margin}Examples:\n{body}\n{margin}"""\n{margin}{text[start:]}'
