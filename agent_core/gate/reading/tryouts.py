"""What only tries a candidate out: calls, prints, asserts, `if __name__` blocks, `main()` and tests of its own.

It is taken off; what asserts say (`assert f(1) == 2`) goes into the docstring as examples. Pure text to text.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.lines import bare_lines, lines_of

from ..mends.prose import prose
from ..mends.signature import offset
from ..tree import FunctionNode, find, first_line, literal, nodes_of, parse

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
    """The code without what only tries the function out; as it is where the function might depend on that."""
    tree = parse(text)
    node = find(tree, name) if isinstance(tree, ast.Module) and len(tree.body) > 1 else None
    if not isinstance(tree, ast.Module) or node is None:
        return text
    off = _tryouts(tree, node)
    lines = lines_of(text)
    gone = {line for one in off for line in range(_top(one, lines), (one.end_lineno or 0) + 1)}
    stays = set(map(id, tree.body)) - set(map(id, off))
    if not off or any(one.end_lineno in gone or first_line(one) in gone for one in tree.body if id(one) in stays):
        return text  # nothing to take off, or two statements on one line
    left = "".join(line for number, line in enumerate(lines, 1) if number not in gone).rstrip("\n") + "\n"
    return strip_tryouts(left, name)  # what only they needed can go now, too


def write_asserts(text: str, name: str) -> str:
    """The text with what its asserts say of the function as examples in the docstring."""
    tree = parse(text) if "assert" in text else None
    node = find(tree, name) if isinstance(tree, ast.Module) else None
    if not isinstance(tree, ast.Module) or node is None:
        return text
    written = {_normal(line) for line in bare_lines(ast.get_docstring(node, clean=False) or "") if ">>>" in line}
    found: dict[str, Asserted] = {}
    for statement in _tryouts(tree, node):
        for one in _asserted(statement, name):
            if _normal(one.call) not in written:
                found.setdefault(one.call, one)
    return _with_examples(text, node, list(found.values())[:_MOST]) if found else text


def _top(node: ast.stmt, lines: list[str]) -> int:
    """The first line of a statement, with the comments right above it."""
    top = first_line(node)
    while top > 1 and lines[top - 2].startswith("#"):
        top -= 1
    return top


def _normal(call: str) -> str:
    """A call as it is compared, whatever its quotes and spaces."""
    bare = call.strip().removeprefix(">>>").strip()
    try:
        return ast.unparse(ast.parse(bare, mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return bare


def _tryouts(tree: ast.Module, node: FunctionNode) -> list[ast.stmt]:
    """The statements that only try the function out, in order."""
    others = [one for one in tree.body if one is not node and not isinstance(one, ast.Import | ast.ImportFrom)]
    if not others:
        return []
    needed = _reached(tree, node)
    used = {name for one in needed.values() for name in _global_reads(one)}
    state = {name for one in tree.body if isinstance(one, _ASSIGNMENTS) for name in _stored(one)} & used
    found: list[ast.stmt] = []
    is_last = True
    for one in reversed(others):
        is_after = one.lineno > node.lineno and id(one) not in needed and _tries_out(one, node.name, is_last=is_last)
        if _is_guard(one) or (is_after and not _touches(one, state, used)):
            found.append(one)
        else:
            is_last = False
    return _not_missed(list(reversed(found)), tree)


def _not_missed(found: list[ast.stmt], tree: ast.Module) -> list[ast.stmt]:
    """Those of them that nothing which stays needs a name of."""
    gone = set(map(id, found))
    needed = {name for one in tree.body if id(one) not in gone for name in _global_reads(one)}
    kept = [one for one in found if not needed & {*_stored(one), getattr(one, "name", "")}]
    return kept if len(kept) == len(found) else _not_missed(kept, tree)


def _reached(tree: ast.Module, node: FunctionNode) -> dict[int, ast.stmt]:
    """The function, and the functions and classes that it reaches."""
    named: dict[str, ast.stmt] = {one.name: one for one in tree.body if isinstance(one, FunctionNode | ast.ClassDef)}
    reached: dict[int, ast.stmt] = {id(node): node}
    front: list[ast.stmt] = [node]
    while front:
        for name in _loaded(front.pop()) & named.keys():
            if id(named[name]) not in reached:
                reached[id(named[name])] = named[name]
                front.append(named[name])
    return reached


def _global_reads(node: ast.stmt) -> set[str]:
    """The names that a statement reads of its module, as far as its own do not hide them."""
    if not isinstance(node, FunctionNode):
        return _loaded(node)
    declared = {name for one in nodes_of(node) if isinstance(one, ast.Global) for name in one.names}
    own = _stored(node) | {one.arg for one in nodes_of(node) if isinstance(one, ast.arg)}
    return (_loaded(node) - own) | declared


def _loaded(node: ast.AST) -> set[str]:
    return {one.id for one in nodes_of(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _stored(node: ast.AST) -> set[str]:
    return {one.id for one in nodes_of(node) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}


def _tries_out(node: ast.stmt, name: str, *, is_last: bool) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=func)):
            driver = ast.unparse(func)
            return driver in _DRIVERS or bool(_TEST.match(driver)) or name in _loaded(node)
        case ast.Expr(value=ast.Await()) | ast.Assert():
            return is_last or name in _loaded(node)
        case ast.Assign() | ast.AnnAssign() | ast.For() | ast.With() | ast.Try():
            return name in _loaded(node)
        case ast.FunctionDef(name=other) | ast.AsyncFunctionDef(name=other):
            return bool(_TEST.match(other)) and other != name
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
    """The statement may change what the function reads: it binds such a name, or hands one out to be changed."""
    if _is_guard(node) or isinstance(node, FunctionNode | ast.ClassDef):
        return False  # nothing of it runs with the module
    if _stored(node) & used:
        return True
    return not isinstance(node, ast.Assert) and bool(_loaded(node) & state)


def _asserted(node: ast.stmt, name: str) -> Iterator[Asserted]:
    """What a statement asserts of the function; in a `check(candidate)`, of its parameter."""
    names = {name}
    if isinstance(node, FunctionNode) and len(node.args.args) == 1:
        names.add(node.args.args[0].arg)
    for one in nodes_of(node):
        match one:
            case ast.Assert(test=test):
                yield from _of_test(test, names, name)
            case ast.Call(func=ast.Attribute(attr="assertEqual"), args=[ast.Call() as call, wanted, *_]):
                yield from _example(call, wanted, names, name)


def _of_test(test: ast.expr, names: set[str], name: str) -> Iterator[Asserted]:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            yield from _example(left, right, names, name)
            yield from _example(right, left, names, name)
        case ast.BoolOp(op=ast.And(), values=values):
            for one in values:
                yield from _of_test(one, names, name)


def _example(call: ast.expr, wanted: ast.expr, names: set[str], name: str) -> Iterator[Asserted]:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in names:
        return
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    is_literal, value = literal(wanted)
    if is_literal and value is not None and all(literal(one)[0] for one in arguments):
        shown = ast.unparse(ast.Call(ast.Name(name), call.args, call.keywords))
        if "\n" not in shown + repr(value):
            yield Asserted(shown, repr(value))


def _with_examples(text: str, node: FunctionNode, found: list[Asserted]) -> str:
    new = [line.replace("\\", "\\\\") for one in found for line in (f"    >>> {one.call}", f"    {one.expected}")]
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
    """A docstring of examples alone, for a function that has none."""
    start = offset(text, first_line(node.body[0]), node.body[0].col_offset)
    margin = text[:start].rpartition("\n")[2]
    if margin.strip():
        return text
    body = "\n".join(f"{margin}{line}" for line in new)
    return f'{text[:start]}"""\n{margin}Examples:\n{body}\n{margin}"""\n{margin}{text[start:]}'
