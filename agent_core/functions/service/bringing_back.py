"""An earlier version of a function as a candidate: its text, and what it needs of its module at that time.

Pure text. Imports and private helpers come along as when a function is created. A helper that is another by now is
put back too where nothing else uses it; where something does, the gate says that the two clash.
"""

import ast
from collections.abc import Iterator

from sandbox.lines import lines_of

from agent_core.registry.imports import is_import
from agent_core.registry.source import ModuleSource, parse
from agent_core.registry.spans import LineEdit, ParsedText, applied, bound_names, with_newline


def candidate_of(module_text: str, name: str, source: str) -> str:
    """Return the function of an earlier module with the imports and helpers that it needs. `source` is its own text."""
    module = _read(module_text)
    node = _holder(module, name)
    if node is None:
        return source  # it stood under a condition: its own lines are all that can be taken
    needed = _needed(module, node)
    parts = [module.segment(statement) for statement in module.body if statement is node or statement in needed]
    return "\n\n\n".join(parts) + "\n"


def with_own_helpers(module_text: str, past_text: str, name: str) -> str:
    """Return the current module with those helpers restored that only this function uses and that changed since."""
    module, past = _read(module_text), _read(past_text)
    node = _holder(past, name)
    if node is None:
        return module_text
    edits = []
    for helper in _needed(past, node):
        old = _holder(module, *bound_names(helper)) if not is_import(helper) else None
        if old is None or ast.dump(old) == ast.dump(helper) or not _is_only_of(module, old, name):
            continue
        start, end = module.span(old)
        text = with_newline(f"{past.segment(helper)}\n", module.newline)
        edits.append(LineEdit(start - 1, end, tuple(lines_of(text))))
    return applied(module.lines, edits)


def _read(text: str) -> ParsedText:
    tree = parse(ModuleSource("module", "module", text, ""))
    return ParsedText.of(text, tree if isinstance(tree, ast.Module) else ast.Module([], []))


def _holder(module: ParsedText, *names: str) -> ast.stmt | None:
    """Return the one top-level statement that binds exactly these names."""
    holders = [node for node in module.body if bound_names(node) & {*names}]
    return holders[0] if len(holders) == 1 and bound_names(holders[0]) == {*names} else None


def _needed(module: ParsedText, node: ast.stmt) -> list[ast.stmt]:
    """Return the imports and private helpers that a function refers to, without its public neighbors."""
    statements: list[ast.stmt] = []
    waiting = [node]
    while waiting:
        words = set(_words(waiting.pop()))
        for statement in module.body:
            names = bound_names(statement)
            is_brought = is_import(statement) or not _is_public_function(statement)
            if (
                statement is not node
                and statement not in statements
                and is_brought
                and (names & words or _is_future(statement))
            ):
                statements.append(statement)
                waiting.append(statement)
    return statements


def _is_only_of(module: ParsedText, helper: ast.stmt, name: str) -> bool:
    """Return whether only the function, and helpers used by it alone, use a helper."""
    own = _holder(module, name)
    group = [own, *_needed(module, own)] if own else []
    others = [node for node in module.body if node not in group and not is_import(node)]
    return not any(helper in _needed(module, node) for node in others)


def _is_public_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _words(node: ast.stmt) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=word):
                yield word
            case ast.Constant(value=str(text)) if text.isidentifier():  # an annotation in quotes
                yield text
