"""Edits of modules that preserve the user's text: one function, the imports at the top, and a literal `__all__`.

`place_function` and `remove_function` are text → text. `save` writes a module's file, only if it is still what the
writer read, through a temporary file and a rename; `root` is the folder `functions/`, and a path has the form of
`ModuleSource.path` ("functions/web/pages.py").
"""

import ast
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

from agent_core.base import folders, machine, syntax
from agent_core.base.errors import StaleFile, WorkspaceError
from agent_core.base.matching import diff_lines
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass
from sandbox.wire.lines import bare_lines, lines_of

from . import folder_access
from .source import (
    FOLDER,
    LineEdit,
    ModuleSource,
    ParsedText,
    applied,
    bound_names,
    column_of,
    hash_of,
    is_bare_value,
    is_blank,
    last_line,
    module_of,
    parse,
    with_newline,
)
from .tree import Definition, survey

CANDIDATE = "candidate"
_BOM = b"\xef\xbb\xbf"
_CANNOT_LINK = (
    errno.EPERM,
    errno.ENOTSUP,
    errno.EMLINK,
    errno.ENOSYS,
)  # file systems without hard links
_LONGEST_DIFF = 4_000
_Exported = ast.List | ast.Tuple
_Key = tuple[str, str, str]  # module with leading dots, name, local name


def adding(module_text: ParsedText, name: str) -> list[LineEdit]:
    """Return the edit that adds `name` to `__all__`, if there is an `__all__` without it."""
    exported = _exported_names(module_text)
    if exported is None or any(_holds(element, name) for element in exported.elts):
        return []
    lines = list(module_text.lines)
    if not exported.elts:
        row, column = (
            exported.lineno - 1,
            column_of(lines[exported.lineno - 1], exported.col_offset) + 1,
        )
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
    index = (
        next((n for n, element in enumerate(exported.elts) if _holds(element, name)), None)
        if exported
        else None
    )
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
            lines[before_row] = lines[before_row][:before] + lines[before_row][before:].replace(
                ",", "", 1
            )
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
                ast.Assign(
                    targets=[ast.Name(id="__all__")], value=ast.List() | ast.Tuple() as value
                )
                | ast.AnnAssign(
                    target=ast.Name(id="__all__"), value=ast.List() | ast.Tuple() as value
                )
            ):
                return value
    return None


def place_function(
    module_text: str,
    candidate: str,
    name: str,
    *,
    path: str = "module",
    with_statements: bool = False,
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
        message = (
            f"`{bare_lines(ast.unparse(loose))[0][:60]}` would run whenever the module is imported"
        )
        where = Place(CANDIDATE, loose.lineno)
        problem = Problem(
            "loose-code", message, where, "leave only imports, helpers and the function"
        )
    if problem is not None:
        return problem
    if not module_text.strip():
        return with_newline(f"{candidate.strip()}\n", brought.newline)
    assert not isinstance(function, Problem)
    assert not isinstance(old, Problem)
    return _place(module if old else module.ended(), brought, function, old, path)


def _place(
    module_text: ParsedText,
    brought_text: ParsedText,
    function: Definition,
    old: Definition | None,
    path: str,
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
            above = [*module_text.lines[-2:], *lines[-2:]][-2:]
            missing = 2 - next(
                (n for n, line in enumerate(reversed(above)) if not is_blank(line)), len(above)
            )
            lines += [module_text.newline] * missing + lines_of(
                with_newline(f"{text}\n", module_text.newline)
            )
        edit = LineEdit(len(module_text.lines), len(module_text.lines), tuple(lines))
    else:
        start, end = module_text.span(old)
        last = module_text.lines[end - 1]
        text = (
            with_newline("\n\n\n".join(block), module_text.newline)
            + last[len(last.rstrip("\r\n")) :]
        )
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
    offered = [
        node.name for node in survey(syntax.parse(module_text)).public() if node.name not in names
    ]
    listings = sum("__all__" in bound_names(node) for node in module.body)
    if listings > 1 or (
        listings and _exported_names(module) is None
    ):  # it is computed, so append another one
        return f"{module_text.rstrip()}\n\n__all__ = {offered!r}\n"
    if not listings:
        # What must come before all others: the docstring, and imports of `__future__`.
        heads: list[ast.stmt] = [
            node
            for node in module.body
            if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        ]
        heads = heads or [node for node in module.body[:1] if is_bare_value(node)]
        at = module.span(heads[-1])[1] if heads else 0
        line = f"__all__ = [{', '.join(map(repr, offered))}]".replace("'", '"')
        text = (
            [module.newline, f"{line}{module.newline}"]
            if at
            else [f"{line}{module.newline}", module.newline]
        )
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
    message = (
        f"`{name}` is not a plain function at the top level of its module (line {holder.lineno})"
    )
    return Problem(
        "not-a-plain-function", message, where, "choose another name, or edit the file manually"
    )


def _is_loose(node: ast.stmt) -> bool:
    """Check whether a statement would run at import: it is no docstring, import, helper or function."""
    return not (is_bare_value(node) or is_import(node) or bound_names(node))


def _helpers(
    module_text: ParsedText, candidate_text: ParsedText, function: Definition, path: str
) -> list[str] | Problem:
    """Return the text of helpers that the module is missing, or the problem that one differs from the module's."""
    helpers, existing = (
        [],
        {ast.dump(statement) for statement in module_text.body if _is_loose(statement)},
    )
    own = [(statement, bound_names(statement)) for statement in module_text.body]
    at_function = candidate_text.body.index(function)
    for at, node in enumerate(candidate_text.body):
        names = bound_names(node)
        if at < at_function and _is_loose(node) and ast.dump(node) not in existing:
            helpers.append(candidate_text.segment(node))
        if node is function or is_import(node) or not names:
            continue
        holders = [statement for statement, bound in own if not names.isdisjoint(bound)]
        if not holders:
            helpers.append(candidate_text.segment(node))
        elif not any(ast.dump(statement) == ast.dump(node) for statement in holders):
            name = sorted(names)[0]
            message = (
                f"the candidate's helper `{name}` differs from the `{name}` on line "
                f"{holders[0].lineno} of the module"
            )
            where = Place(path, holders[0].lineno)
            return Problem(
                "helper-clash", message, where, "use that one, or give the candidate's another name"
            )
    return helpers


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
        return _names_type_checking(node.test) and all(
            is_import(inner) for inner in [*node.body, *node.orelse]
        )
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
            return Problem(
                "import-clash",
                message,
                Place(path, line),
                f"import it under another name: `… as {name}_`; or give the function a file of its own",
            )
        if missing:
            start = "import" if isinstance(node, ast.Import) else f"from {missing[0][0]} import"
            names = [
                f"{name} as {local}" if local != name.split(".", 1)[0] else name
                for _, name, local in missing
            ]
            is_whole = len(missing) == len(_keys(node))
            text = candidate_text.segment(node) if is_whole else f"{start} {', '.join(names)}"
            (future if _is_future(node) else plain).append(text)
            present.update(missing)
    return Brought(tuple(future), tuple(plain))


def _keys(node: ast.stmt) -> list[_Key]:
    if isinstance(node, ast.Import):
        return [
            ("", alias.name, alias.asname or alias.name.split(".", 1)[0]) for alias in node.names
        ]
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
            key_parts[0] == "" and key_parts[1].split(".", 1)[0] == local == key_parts[2]
            for key_parts in _keys(holder)
        )
    )


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def import_edits(module_text: ParsedText, brought: Brought) -> list[LineEdit]:
    """Return the edits that add the imports to the module."""
    line_edits = []
    if brought.future:
        futures = [node for node in module_text.body if _is_future(node)]
        line_edits.append(_insertion(module_text, futures[-1] if futures else None, brought.future))
    if brought.plain:
        last = None  # of the imports at the top
        for node in module_text.body:
            if is_import(node):
                last = node
            elif not _is_docstring(node, module_text):
                break
        line_edits.append(_insertion(module_text, last, brought.plain))
    return line_edits


def _insertion(
    module_text: ParsedText, last_import: ast.stmt | None, statements: tuple[str, ...]
) -> LineEdit:
    """Return the edit that adds import statements after the last import, or else at the top."""
    newline, follows_import = module_text.newline, last_import is not None
    body = module_text.body
    if last_import:
        position = _end_of(module_text, last_import)
    elif body and _is_docstring(body[0], module_text):
        position = _end_of(module_text, body[0])
    else:  # after a heading comment
        position = module_text.span(body[0])[0] - 1 if body else len(module_text.lines)
    added = [with_newline(f"{text}\n", newline) for text in statements]
    above, below = module_text.lines[:position][-1:], module_text.lines[position:][:1]
    if above and not follows_import and not is_blank(above[0]):
        added.insert(0, newline)
    if below and not follows_import and not is_blank(below[0]):
        added += [newline] if below[0].startswith(("import ", "from ")) else [newline, newline]
    return LineEdit(position, position, tuple(added))


def _end_of(module_text: ParsedText, node: ast.stmt) -> int:
    """Return the number of lines above what follows a statement."""
    end = last_line(node)
    for statement in module_text.body:
        if statement.lineno <= end < last_line(statement):
            end = last_line(statement)
    return end


def _is_docstring(node: ast.stmt, module_text: ParsedText) -> bool:
    return node is module_text.body[0] and is_bare_value(node)


def save(root: Path, path: str, text: str, expected_version: str | None) -> None:
    """Write a module's file; `expected_version` is the hash of the text that the writer read, None for a new file.

    Raises:
        StaleFile: the file differs from what the writer read; the message shows the difference.
        WorkspaceError: the path leaves the folder, goes through a link, or cannot be written.
    """
    _save(root, path, _parts(root, path), text, expected_version)


def save_text(root: Path, path: str, text: str, expected_version: str | None) -> None:
    """Write a text that is not a module, such as `helpers/NAME.toml` below the workspace `root`, in the same way.

    Raises:
        StaleFile: the file differs from what the writer read; the message shows the difference.
        WorkspaceError: the path goes through a link, or cannot be written.
    """
    _save(root, path, PurePosixPath(path).parts, text, expected_version)


def _save(
    root: Path, path: str, parts: Sequence[str], text: str, expected_version: str | None
) -> None:
    with explained(path), _folder_of(root, path, parts, expected_version) as folder_fd:
        target = _File(folder_fd, parts[-1], path)
        before = target.check(text, expected_version)
        content = (_BOM if before.startswith(_BOM) else b"") + text.encode("utf-8")
        temporary = target.write_beside(content, exists=expected_version is not None)
        try:
            # Check again as late as possible, to keep what someone else saved meanwhile.
            target.check(text, expected_version)
            target.put(temporary, is_new=expected_version is None)
        except FileExistsError:
            target.check(text, expected_version)
            raise
        finally:
            with suppress(FileNotFoundError):
                folders.remove(temporary, folder_fd)
        folders.save(folder_fd)


def remove(root: Path, path: str, expected_version: str) -> None:
    """Delete a module's file if it is still what the caller read.

    Raises:
        StaleFile: the file has changed.
        WorkspaceError: the path leaves the folder, goes through a link, or cannot be removed.
    """
    _remove(root, path, _parts(root, path), expected_version)


def remove_text(root: Path, path: str, expected_version: str) -> None:
    """Delete a text that is not a module if it is still what the caller read.

    Raises:
        StaleFile: the file has changed.
        WorkspaceError: the path goes through a link, or cannot be removed.
    """
    _remove(root, path, PurePosixPath(path).parts, expected_version)


def _remove(root: Path, path: str, parts: Sequence[str], expected_version: str) -> None:
    with explained(path), _folder_of(root, path, parts, expected_version) as folder_fd:
        _File(folder_fd, parts[-1], path).check("", expected_version)
        folders.remove(parts[-1], folder_fd)
        folders.save(folder_fd)


@contextmanager
def _folder_of(
    root: Path, path: str, parts: Sequence[str], expected_version: str | None
) -> Iterator[int]:
    """Yield the descriptor of the file's folder, which is created for a new file."""
    with ExitStack() as stack:
        try:
            folder_fd = stack.enter_context(
                folder_access.folder(root, parts[:-1], make=expected_version is None)
            )
        except FileNotFoundError:
            raise _file_gone(path) from None
        yield folder_fd


def _parts(root: Path, path: str) -> tuple[str, ...]:
    pure_path = PurePosixPath(path)
    inside = PurePosixPath(*pure_path.parts[1:])
    module = module_of(inside) if pure_path.parts[:1] == (FOLDER,) and inside.parts else None
    if module is None or isinstance(module, Problem):
        reason = module.message if module else f"`{path}` is not below `{FOLDER}/`"
        raise WorkspaceError(
            f"{reason}, so it is not written.", fix="Name a module in that folder."
        )
    target = root / inside
    for part in (target, *target.parents[: len(inside.parts) - 1]):
        if os.path.islink(part):  # noqa: PTH114 - where it cannot be seen, the write says so
            shown = f"{FOLDER}/{part.relative_to(root).as_posix()}"
            raise WorkspaceError(
                f"`{shown}` is a link, so it is not written.", fix="Put the file itself there."
            )
    return inside.parts


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Convert system errors to a WorkspaceError that says which file, why, and what to check."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        fix = "Check the folder's rights and the free space; nothing was changed."
        raise WorkspaceError(f"`{path}` cannot be written: {reason}.", fix=fix) from error
    except UnicodeEncodeError as error:
        message = f"`{path}` cannot be written: character {error.start} is half of a pair and has no UTF-8 form."
        raise WorkspaceError(message, fix="Write that character whole, or as an escape.") from error


def _file_gone(path: str) -> StaleFile:
    return StaleFile(f"`{path}` is gone since it was read.", fix="Read the folder again.")


@dataclass(frozen=True, slots=True)
class _File:
    """A file identified by the descriptor of its folder, so that the checked file is the one that is written."""

    folder_fd: int
    name: str
    path: str

    def check(self, text: str, expected_version: str | None) -> bytes:
        """Return the content of the file if it is still what the writer read.

        Raises:
            StaleFile: it has changed, is gone, or already exists.
        """
        try:
            with os.fdopen(folder_access.read_only(self.name, self.folder_fd), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise OSError(errno.EEXIST, "something that is not a regular file has its name")
                content = file.read()
        except FileNotFoundError:
            if expected_version is None:
                return b""
            raise _file_gone(self.path) from None
        now = content.removeprefix(_BOM).decode("utf-8", "replace")
        if expected_version is not None and hash_of(now) == expected_version:
            return content
        reason = (
            "exists already"
            if expected_version is None
            else "was changed by somebody since it was read"
        )
        lines = diff_lines(
            lines_of(now), lines_of(text), (f"{self.path} (now)", f"{self.path} (not written)")
        )
        diff = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        shown = diff if len(diff) <= _LONGEST_DIFF else f"{diff[:_LONGEST_DIFF]}…\n"
        raise StaleFile(
            f"`{self.path}` {reason}, so it was not overwritten:\n{shown}",
            fix="Read it again, then make the change.",
        )

    def write_beside(self, content: bytes, *, exists: bool) -> str:
        """Write the content to a hidden file in the same folder, with the permissions of the file that it replaces.

        The content is flushed to disk.
        """
        name = f".{self.name}.{secrets.token_hex(6)}.tmp"
        mode = folders.mode_of(self.name, self.folder_fd) if exists else 0o644
        descriptor = folders.open_in(name, self.folder_fd, machine.MAKING, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                machine.change_mode(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            folders.remove(name, self.folder_fd)
            raise
        return name

    def put(self, temporary: str, *, is_new: bool) -> None:
        """Rename the written file to its final name."""
        if is_new:
            try:  # unlike a rename, a link fails if the file exists
                folders.link(temporary, self.name, self.folder_fd)
            except OSError as error:
                if error.errno not in _CANNOT_LINK:
                    raise
            else:
                # Watchers react when a file is closed, but a hard link only creates a name, as for a file that someone
                # is still writing. So close it again.
                with suppress(OSError):  # it is already gone, so there is nothing to report
                    flags = os.O_WRONLY | machine.NOFOLLOW | machine.CLOEXEC
                    os.close(folders.open_in(self.name, self.folder_fd, flags))
                return
        folders.replace(temporary, self.name, self.folder_fd)
