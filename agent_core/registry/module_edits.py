"""Edits of modules that preserve the user's text: one function, the imports at the top, and a literal `__all__`.

`place_function` and `remove_function` are text → text; `save` (in `module_file`) writes one file.
"""

import ast
from collections.abc import Set
from dataclasses import dataclass

from agent_core.base import syntax
from agent_core.base.problem import Place, Problem
from sandbox.wire.lines import bare_lines, lines_of

from .module_file import save
from .source import (
    LineEdit,
    ModuleSource,
    ParsedText,
    applied,
    bound_names,
    column_of,
    is_bare_value,
    is_blank,
    last_line,
    parse,
    with_newline,
)
from .tree import Definition, survey

_Exported = ast.List | ast.Tuple


def adding(module_text: ParsedText, name: str) -> list[LineEdit]:
    """Return the edit that adds `name` to `__all__`, if there is an `__all__` without it."""
    exported = _exported_names(module_text)
    if exported is None or any(_holds(element, name) for element in exported.elts):
        return []
    lines = list(module_text.lines)
    if not exported.elts:
        row, column = exported.lineno - 1, column_of(lines[exported.lineno - 1], exported.col_offset) + 1
        comma = "," if isinstance(exported, ast.Tuple) else ""
        lines[row] = f'{lines[row][:column]}"{name}"{comma}{lines[row][column:]}'
        return [_edit(module_text, exported, lines)]
    last = exported.elts[-1]
    row, column = _end(lines, last)
    first = column_of(lines[last.lineno - 1], last.col_offset)
    quote = "'" if lines[last.lineno - 1][first] == "'" else '"'
    shown = f"{quote}{name}{quote}"
    if _last_row(exported) == row:
        lines[row] = f"{lines[row][:column]}, {shown}{lines[row][column:]}"
    else:
        has_comma = lines[row][column:].lstrip().startswith(",")
        if not has_comma:
            lines[row] = f"{lines[row][:column]},{lines[row][column:]}"
        before = lines[last.lineno - 1][:first]
        indent = before if is_blank(before) else "    "
        lines.insert(row + 1, f"{indent}{shown}{',' if has_comma else ''}{module_text.newline}")
    return [_edit(module_text, exported, lines)]


def dropping(module_text: ParsedText, name: str) -> list[LineEdit]:
    """Return the edit that removes `name` from `__all__`, if it is there."""
    exported = _exported_names(module_text)
    index = next((n for n, element in enumerate(exported.elts) if _holds(element, name)), None) if exported else None
    if exported is None or index is None:
        return []
    lines = list(module_text.lines)
    item = exported.elts[index]
    row, column = _end(lines, item)
    start = column_of(lines[item.lineno - 1], item.col_offset)
    before_row, before = _end(lines, exported.elts[index - 1]) if index else (-1, 0)
    tail = lines[row][column:]
    if item.lineno - 1 == row and is_blank(lines[row][:start]) and tail.strip() in ("", ","):
        del lines[row]
        if index and index == len(exported.elts) - 1 and not tail.strip():
            lines[before_row] = lines[before_row][:before] + lines[before_row][before:].replace(",", "", 1)
    elif before_row == row:
        lines[row] = lines[row][:before] + tail
    else:
        lines[row] = lines[row][:start] + tail.lstrip(" \t").removeprefix(",").lstrip(" \t")
    return [_edit(module_text, exported, lines)]


def _edit(module_text: ParsedText, exported: _Exported, lines: list[str]) -> LineEdit:
    start, end = exported.lineno - 1, _last_row(exported) + 1
    return LineEdit(start, end, tuple(lines[start : end + len(lines) - len(module_text.lines)]))


def _last_row(node: ast.expr) -> int:
    return (node.end_lineno or node.lineno) - 1


def _end(lines: list[str], node: ast.expr) -> tuple[int, int]:
    row = _last_row(node)
    return row, column_of(lines[row], node.end_col_offset or 0)


def _holds(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == name


def _exported_names(module_text: ParsedText) -> _Exported | None:
    for node in module_text.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List() | ast.Tuple() as value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.List() | ast.Tuple() as value)
            ):
                return value
    return None


__all__ = ["place_function", "remove_function", "save", "withhold"]

CANDIDATE = "candidate"


def place_function(
    module_text: str, candidate: str, name: str, *, path: str = "module", with_statements: bool = False
) -> str | Problem:
    """Return the module's text with the candidate's function in place of the old one, or at the end.

    Missing imports are added at the top of the module, and missing helpers before the function. A name with another
    meaning in the module is a problem. A module without statements becomes the candidate. `with_statements` also adds
    statements that run when the module is imported.
    """
    brought, module = _read(candidate, CANDIDATE), _read(module_text, path)
    if isinstance(brought, Problem):
        return brought
    if isinstance(module, Problem):
        return module
    function = _definition(brought, name, CANDIDATE)
    if function is None:
        message = f"the candidate does not define `{name}` at its top level"
        return Problem("name-missing", message, Place(CANDIDATE), f"write `def {name}(…):`")
    old = _definition(module, name, path)
    problem = next((item for item in (function, old) if isinstance(item, Problem)), None)
    loose = None if with_statements else next(filter(_is_loose, brought.body), None)
    if problem is None and loose is not None:
        message = f"`{bare_lines(ast.unparse(loose))[0][:60]}` would run whenever the module is imported"
        where = Place(CANDIDATE, loose.lineno)
        problem = Problem("loose-code", message, where, "leave only imports, helpers and the function")
    if problem is not None:
        return problem
    if not module_text.strip():
        return with_newline(f"{candidate.strip()}\n", brought.newline)
    assert not isinstance(function, Problem)
    assert not isinstance(old, Problem)
    return _place(module if old else module.ended(), brought, function, old, path)


def _place(
    module_text: ParsedText, brought_text: ParsedText, function: Definition, old: Definition | None, path: str
) -> str | Problem:
    added = brought_by(brought_text, module_text, path)
    helpers = _helpers(module_text, brought_text, function, path)
    if isinstance(added, Problem):
        return added
    if isinstance(helpers, Problem):
        return helpers
    # Statements after the function that run at import, unless the module has them.
    existing = {ast.dump(statement) for statement in module_text.body if _is_loose(statement)}
    behind = filter(_is_loose, brought_text.body[brought_text.body.index(function) + 1 :])
    after = [brought_text.segment(node) for node in behind if ast.dump(node) not in existing]
    block = [*helpers, brought_text.segment(function), *after]
    if old is None:
        lines: list[str] = []
        for text in block:
            above = [*module_text.lines[-2:], *lines][-2:]
            missing = 2 - next((n for n, line in enumerate(reversed(above)) if not is_blank(line)), len(above))
            lines += [module_text.newline] * missing + lines_of(with_newline(f"{text}\n", module_text.newline))
        edit = LineEdit(len(module_text.lines), len(module_text.lines), tuple(lines))
    else:
        start, end = module_text.span(old)
        last = module_text.lines[end - 1]
        text = with_newline("\n\n\n".join(block), module_text.newline) + last[len(last.rstrip("\r\n")) :]
        edit = LineEdit(start - 1, end, tuple(lines_of(text)))
    exported = adding(module_text, function.name) if not function.name.startswith("_") else []
    return applied(module_text.lines, [*import_edits(module_text, added), edit, *exported])


def remove_function(module_text: str, name: str) -> str | Problem:
    """Return the module's text without one function; its imports and helpers stay, because others may use them."""
    module = _read(module_text)
    if isinstance(module, Problem):
        return module
    old = _definition(module, name)
    if isinstance(old, Problem):
        return old
    if old is None:
        return Problem("name-missing", f"`{name}` is not defined in this module", Place("module"))
    start, end = module.span(old)
    start -= 1
    while end < len(module.lines) and is_blank(module.lines[end]):
        end += 1
    while end == len(module.lines) and start and is_blank(module.lines[start - 1]):
        start -= 1
    text = applied(module.lines, [LineEdit(start, end, ()), *dropping(module, name)])
    result = _read(text)  # a comment that moves to the top may declare an encoding
    return result if isinstance(result, Problem) else text


def withhold(module_text: str, names: Set[str]) -> str | Problem:
    """Return the module's text in which some functions are no longer offered: its `__all__` does not name them."""
    module = _read(module_text)
    if isinstance(module, Problem):
        return module
    offered = [node.name for node in survey(syntax.parse(module_text)).public() if node.name not in names]
    listings = sum("__all__" in bound_names(node) for node in module.body)
    if listings > 1 or (listings and _exported_names(module) is None):  # it is computed, so append another one
        return f"{module_text.rstrip()}\n\n__all__ = {offered!r}\n"
    if not listings:
        # What must come before all others: the docstring, and imports of `__future__`.
        heads: list[ast.stmt] = [
            node for node in module.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        ]
        heads = heads or [node for node in module.body[:1] if is_bare_value(node)]
        at = module.span(heads[-1])[1] if heads else 0
        line = f"__all__ = [{', '.join(map(repr, offered))}]".replace("'", '"')
        text = [module.newline, f"{line}{module.newline}"] if at else [f"{line}{module.newline}", module.newline]
        return applied(module.lines, [LineEdit(at, at, tuple(text))])
    return remove_from_all(module_text, names)


def remove_from_all(module_text: str, names: Set[str]) -> str:
    """Return the module's text with these names removed from `__all__`."""
    for name in sorted(names) if "__all__" in module_text else ():
        module = ParsedText.of(module_text, syntax.parse(module_text))
        module_text = applied(module.lines, dropping(module, name))
    return module_text


def _read(text: str, path: str = "module") -> ParsedText | Problem:
    tree = parse(ModuleSource(path, path, text, ""))
    return tree if isinstance(tree, Problem) else ParsedText.of(text, tree)


def _definition(text: ParsedText, name: str, path: str = "module") -> Definition | Problem | None:
    """Return the only definition of a function, None if the name is free, or why it cannot be edited."""
    holders = [node for node in text.body if name in bound_names(node)]
    if not holders:
        return None
    where = Place(path, holders[-1].lineno)
    if len(holders) > 1:
        message = f"`{name}` is bound {len(holders)} times in one module, so it is not clear which one is meant"
        return Problem("bound-twice", message, where, "leave one of them")
    holder = holders[0]
    if isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef):
        return holder
    message = f"`{name}` is not a plain function at the top level of its module (line {holder.lineno})"
    return Problem("not-a-plain-function", message, where, "choose another name, or edit the file manually")


def _is_loose(node: ast.stmt) -> bool:
    """Check whether a statement would run at import: it is no docstring, import, helper or function."""
    return not (is_bare_value(node) or is_import(node) or bound_names(node))


def _helpers(
    module_text: ParsedText, candidate_text: ParsedText, function: Definition, path: str
) -> list[str] | Problem:
    """Return the text of helpers that the module is missing, or the problem that one differs from the module's."""
    helpers, existing = [], {ast.dump(statement) for statement in module_text.body if _is_loose(statement)}
    before = candidate_text.body[: candidate_text.body.index(function)]
    for node in candidate_text.body:
        names = bound_names(node)
        if node in before and _is_loose(node) and ast.dump(node) not in existing:
            helpers.append(candidate_text.segment(node))
        if node is function or is_import(node) or not names:
            continue
        holders = [statement for statement in module_text.body if names & bound_names(statement)]
        if not holders:
            helpers.append(candidate_text.segment(node))
        elif not any(ast.dump(statement) == ast.dump(node) for statement in holders):
            name = sorted(names)[0]
            message = (
                f"the candidate's helper `{name}` differs from the `{name}` on line {holders[0].lineno} of the module"
            )
            where = Place(path, holders[0].lineno)
            return Problem("helper-clash", message, where, "use that one, or give the candidate's another name")
    return helpers


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
            start = "import" if isinstance(node, ast.Import) else f"from {missing[0][0]} import"
            names = [f"{name} as {local}" if local != name.split(".", 1)[0] else name for _, name, local in missing]
            is_whole = len(missing) == len(_keys(node))
            text = candidate_text.segment(node) if is_whole else f"{start} {', '.join(names)}"
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


def import_edits(module_text: ParsedText, brought: Brought) -> list[LineEdit]:
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
