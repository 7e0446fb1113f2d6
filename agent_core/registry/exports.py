"""Edits to a module's `__all__`: adding and removing a name, as text, if the list is a literal."""

import ast

from .spans import LineEdit, ParsedText, column_of, is_blank

_Exported = ast.List | ast.Tuple


def adding(module: ParsedText, name: str) -> list[LineEdit]:
    """Return the edit that adds `name` to `__all__`, if there is an `__all__` without it."""
    exported = _exported(module)
    if exported is None or any(_holds(element, name) for element in exported.elts):
        return []
    lines = list(module.lines)
    if exported.elts:
        _add_after(lines, exported, name, module.newline)
    else:
        row, column = exported.lineno - 1, column_of(lines[exported.lineno - 1], exported.col_offset) + 1
        comma = "," if isinstance(exported, ast.Tuple) else ""
        lines[row] = f'{lines[row][:column]}"{name}"{comma}{lines[row][column:]}'
    return [_edit(module, exported, lines)]


def dropping(module: ParsedText, name: str) -> list[LineEdit]:
    """Return the edit that removes `name` from `__all__`, if it is there."""
    exported = _exported(module)
    index = next((n for n, element in enumerate(exported.elts) if _holds(element, name)), None) if exported else None
    if exported is None or index is None:
        return []
    lines = list(module.lines)
    _drop(lines, exported, index)
    return [_edit(module, exported, lines)]


def _edit(module: ParsedText, exported: _Exported, lines: list[str]) -> LineEdit:
    start, end = exported.lineno - 1, _last_row(exported) + 1
    return LineEdit(start, end, tuple(lines[start : end + len(lines) - len(module.lines)]))


def _add_after(lines: list[str], exported: _Exported, name: str, newline: str) -> None:
    last = exported.elts[-1]
    row, column = _end(lines, last)
    first = column_of(lines[last.lineno - 1], last.col_offset)
    quote = "'" if lines[last.lineno - 1][first] == "'" else '"'
    shown = f"{quote}{name}{quote}"
    if _last_row(exported) == row:
        lines[row] = f"{lines[row][:column]}, {shown}{lines[row][column:]}"
        return
    has_comma = lines[row][column:].lstrip().startswith(",")
    if not has_comma:
        lines[row] = f"{lines[row][:column]},{lines[row][column:]}"
    before = lines[last.lineno - 1][:first]
    indent = before if is_blank(before) else "    "
    lines.insert(row + 1, f"{indent}{shown}{',' if has_comma else ''}{newline}")


def _drop(lines: list[str], exported: _Exported, index: int) -> None:
    item = exported.elts[index]
    row, column = _end(lines, item)
    start = column_of(lines[item.lineno - 1], item.col_offset)
    tail = lines[row][column:]
    if item.lineno - 1 == row and is_blank(lines[row][:start]) and tail.strip() in ("", ","):
        del lines[row]
        if index and index == len(exported.elts) - 1 and not tail.strip():
            _drop_comma(lines, exported.elts[index - 1])
        return
    before_row, before = _end(lines, exported.elts[index - 1]) if index else (-1, 0)
    if before_row == row:
        lines[row] = lines[row][:before] + tail
    else:
        lines[row] = lines[row][:start] + tail.lstrip(" \t").removeprefix(",").lstrip(" \t")


def _drop_comma(lines: list[str], item: ast.expr) -> None:
    row, column = _end(lines, item)
    lines[row] = lines[row][:column] + lines[row][column:].replace(",", "", 1)


def _last_row(node: ast.expr) -> int:
    return (node.end_lineno or node.lineno) - 1


def _end(lines: list[str], node: ast.expr) -> tuple[int, int]:
    row = _last_row(node)
    return row, column_of(lines[row], node.end_col_offset or 0)


def _holds(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == name


def _exported(module: ParsedText) -> _Exported | None:
    for node in module.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List() | ast.Tuple() as value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.List() | ast.Tuple() as value)
            ):
                return value
    return None
