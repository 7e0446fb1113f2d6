"""Merges a candidate's imports into a module: at its top, without duplicates."""

import ast
from dataclasses import dataclass

from agent_core.base.problem import Place, Problem

from .source_lines import LineEdit, ParsedText, bound_names, is_bare_value, is_blank, last_line, with_newline

_Key = tuple[str, str, str]  # module with leading dots, name, local name


@dataclass(frozen=True, slots=True)
class Brought:
    """The import statements that a candidate adds; those of `__future__` are separate."""

    future: tuple[str, ...]
    plain: tuple[str, ...]


def is_import(node: ast.stmt) -> bool:
    """Check whether a statement only imports, possibly under `TYPE_CHECKING` or with an alternative."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.If):
        return _names_type_checking(node.test) and all(is_import(inner) for inner in [*node.body, *node.orelse])
    # `TYPE_CHECKING = False` replaces its import, and must be above its uses.
    return (
        isinstance(node, ast.Assign)
        and all(map(_names_type_checking, node.targets))
        and (isinstance(node.value, ast.Constant) and node.value.value is False)
    )


def _names_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def brought_by(candidate_text: ParsedText, module_text: ParsedText, path: str) -> Brought | Problem:
    """Return the candidate's imports that the module is missing, or the problem that one of their names is taken."""
    present = {key for node in module_text.body for key in _keys(node)}
    dumps = {ast.dump(node) for node in module_text.body if is_import(node)}
    bound = {name: node for node in module_text.body for name in bound_names(node)}
    future: list[str] = []
    plain: list[str] = []
    for node in candidate_text.body:
        if not is_import(node) or ast.dump(node) in dumps:
            continue
        if isinstance(node, ast.If | ast.Assign):
            plain.append(candidate_text.segment(node))
            continue
        missing = [key for key in _keys(node) if key not in present]
        clash = next((key for key in missing if _clashes(key, bound)), None)
        if clash is not None:
            name, line = clash[2], bound[clash[2]].lineno
            message = f"the candidate imports `{name}`, which means something else in the module (line {line})"
            return Problem("import-clash", message, Place(path, line), f"import it under another name: `… as {name}_`")
        if missing:
            text = candidate_text.segment(node) if len(missing) == len(_keys(node)) else _statement(node, missing)
            (future if _is_future(node) else plain).append(text)
            present.update(missing)
    return Brought(tuple(future), tuple(plain))


def _keys(node: ast.stmt) -> list[_Key]:
    if isinstance(node, ast.Import):
        return [("", alias.name, alias.asname or alias.name.split(".", 1)[0]) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = "." * node.level + (node.module or "")
        return [(base, alias.name, alias.asname or alias.name) for alias in node.names]
    return []


def _clashes(key: _Key, bound: dict[str, ast.stmt]) -> bool:
    """Check whether the local name already has another meaning; `import a.b` and `import a.c` both bind `a`."""
    module, name, local = key
    holder = bound.get(local)
    if holder is None or name == "*":
        return False
    is_plain = not module and local == name.split(".", 1)[0]
    return not (
        is_plain
        and any(
            key_parts[0] == "" and key_parts[1].split(".", 1)[0] == local == key_parts[2] for key_parts in _keys(holder)
        )
    )


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def _statement(node: ast.stmt, keys: list[_Key]) -> str:
    names = [f"{name} as {local}" if local != name.split(".", 1)[0] else name for _, name, local in keys]
    if isinstance(node, ast.Import):
        return f"import {', '.join(names)}"
    return f"from {keys[0][0]} import {', '.join(names)}"


def edits(module_text: ParsedText, brought: Brought) -> list[LineEdit]:
    """Return the edits that add the imports to the module."""
    line_edits = []
    if brought.future:
        futures = [node for node in module_text.body if _is_future(node)]
        place = _after(module_text, futures[-1]) if futures else (_top(module_text), False)
        line_edits.append(_insertion(module_text, *place, brought.future))
    if brought.plain:
        last = None  # of the imports at the top
        for node in module_text.body:
            if is_import(node):
                last = node
            elif not _is_docstring(node, module_text):
                break
        place = _after(module_text, last) if last is not None else (_top(module_text), False)
        line_edits.append(_insertion(module_text, *place, brought.plain))
    return line_edits


def _insertion(module_text: ParsedText, position: int, follows_import: bool, statements: tuple[str, ...]) -> LineEdit:  # noqa: FBT001
    newline = module_text.newline
    added = [with_newline(f"{text}\n", newline) for text in statements]
    above, below = module_text.lines[:position][-1:], module_text.lines[position:][:1]
    if above and not follows_import and not is_blank(above[0]):
        added.insert(0, newline)
    if below and not follows_import and not is_blank(below[0]):
        added += [newline] if below[0].startswith(("import ", "from ")) else [newline, newline]
    return LineEdit(position, position, tuple(added))


def _after(module_text: ParsedText, node: ast.stmt) -> tuple[int, bool]:
    """Return the number of lines above what follows a statement, and that an import may follow it directly."""
    end = last_line(node)
    for statement in module_text.body:
        if statement.lineno <= end < last_line(statement):
            end = last_line(statement)
    return end, True


def _top(module_text: ParsedText) -> int:
    """Return the number of lines that the docstring or a heading comment takes."""
    if module_text.body and _is_docstring(module_text.body[0], module_text):
        return _after(module_text, module_text.body[0])[0]
    return module_text.span(module_text.body[0])[0] - 1 if module_text.body else len(module_text.lines)


def _is_docstring(node: ast.stmt, module_text: ParsedText) -> bool:
    return node is module_text.body[0] and is_bare_value(node)
