"""`__all__` of a module: adding and taking away a name, by text, where the list is written out."""

import ast

from .spans import Edit, Text, column_of, is_blank

_Exported = ast.List | ast.Tuple


def adding(module: Text, name: str) -> list[Edit]:
    """The edit that puts `name` into `__all__`, where there is one that does not hold it yet."""
    found = _exported(module)
    if found is None or any(_holds(one, name) for one in found.elts):
        return []
    lines = list(module.lines)
    if found.elts:
        _add_after(lines, found, name, module.newline)
    else:
        row, column = found.lineno - 1, column_of(lines[found.lineno - 1], found.col_offset) + 1
        comma = "," if isinstance(found, ast.Tuple) else ""
        lines[row] = f'{lines[row][:column]}"{name}"{comma}{lines[row][column:]}'
    return [_edit(module, found, lines)]


def dropping(module: Text, name: str) -> list[Edit]:
    """The edit that takes `name` out of `__all__`, where there is one that holds it."""
    found = _exported(module)
    index = next((n for n, one in enumerate(found.elts) if _holds(one, name)), None) if found else None
    if found is None or index is None:
        return []
    lines = list(module.lines)
    _drop(lines, found, index)
    return [_edit(module, found, lines)]


def _edit(module: Text, found: _Exported, lines: list[str]) -> Edit:
    start, end = found.lineno - 1, _last_row(found) + 1
    return Edit(start, end, tuple(lines[start : end + len(lines) - len(module.lines)]))


def _add_after(lines: list[str], found: _Exported, name: str, newline: str) -> None:
    last = found.elts[-1]
    row, column = _end(lines, last)
    first = column_of(lines[last.lineno - 1], last.col_offset)
    quote = "'" if lines[last.lineno - 1][first] == "'" else '"'
    shown = f"{quote}{name}{quote}"
    if _last_row(found) == row:
        lines[row] = f"{lines[row][:column]}, {shown}{lines[row][column:]}"
        return
    has_comma = lines[row][column:].lstrip().startswith(",")
    if not has_comma:
        lines[row] = f"{lines[row][:column]},{lines[row][column:]}"
    before = lines[last.lineno - 1][:first]
    indent = before if is_blank(before) else "    "
    lines.insert(row + 1, f"{indent}{shown}{',' if has_comma else ''}{newline}")


def _drop(lines: list[str], found: _Exported, index: int) -> None:
    item = found.elts[index]
    row, column = _end(lines, item)
    start = column_of(lines[item.lineno - 1], item.col_offset)
    rest = lines[row][column:]
    if item.lineno - 1 == row and is_blank(lines[row][:start]) and rest.strip() in ("", ","):
        del lines[row]
        if index and index == len(found.elts) - 1 and not rest.strip():
            _drop_comma(lines, found.elts[index - 1])
        return
    before_row, before = _end(lines, found.elts[index - 1]) if index else (-1, 0)
    if before_row == row:
        lines[row] = lines[row][:before] + rest
    else:
        lines[row] = lines[row][:start] + rest.lstrip(" \t").removeprefix(",").lstrip(" \t")


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


def _exported(module: Text) -> _Exported | None:
    for node in module.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List() | ast.Tuple() as value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.List() | ast.Tuple() as value)
            ):
                return value
    return None
