"""A module's text and hash: reading a file in `functions/`, parsing under a size limit, and its lines and spans.

`root` is always the folder `functions/` itself; `ModuleSource.path` is the path in messages ("functions/web/pages.py").
Nothing is imported or run; any failure is a `Problem`.

Some names cannot be in the folder, because a built-in function has them, or tools such as pytest would load the module
or call the function, outside of the sandbox and as the user. Names of the standard library are allowed: workers import
a module as `functions.NAME`, and the folder is never on an import path, so that `functions/json.py` hides nothing.

Edits leave everything outside of their span unchanged. Line numbers count from 1; a span's end is its last line.
"""

import ast
import hashlib
import keyword
import os
import re
import stat
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Final

from agent_core.base import syntax
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass
from agent_core.base.syntax import Flaw, flaw_of, name_flaw_of, name_shown, odd_in_name
from sandbox.wire.lines import lines_of, place_of

from .folder_access import folder, read_only

_MODULES: Final = {
    "conftest": "pytest",
    "sitecustomize": "Python",
    "usercustomize": "Python",
    "__main__": "`python functions`",
    "setup": "pip",
    "noxfile": "nox",
}
OF_THE_PROGRAM: Final = frozenset(
    [
        "add_example",
        "add_function",
        "archival_memory_delete",
        "archival_memory_insert",
        "archival_memory_search",
        "ask_agent",
        "ask_agents",
        "call_function",
        "clear_debugger",
        "confirm_function",
        "conversation_search",
        "conversation_search_date",
        "core_memory_append",
        "core_memory_remove",
        "core_memory_replace",
        "core_memory_rewrite",
        "create_function",
        "create_helper",
        "debugger",
        "delete_function",
        "delete_helper",
        "edit_function",
        "edit_helper",
        "expect_reach",
        "function_history",
        "hand_off",
        "introspect_function",
        "list_agents",
        "list_functions",
        "message_agent",
        "message_llm",
        "pause_heartbeats",
        "read_on",
        "reload_functions",
        "remove_function",
        "replace_function",
        "rollback_function",
        "run_program",
        "send_message",
        "test_function",
        "trace_function",
    ]
)
"""The functions that run in the host. They are listed here, because reading a folder must not import them."""
_OF_TESTS: Final = re.compile(r"test_.*|.*_test|tests?")
_FUNCTIONS: Final = {
    "load_tests": "unittest",
    "setUpModule": "unittest",
    "tearDownModule": "unittest",
    "setup_module": "pytest",
    "teardown_module": "pytest",
}


def loader_of(module: str) -> str:
    """Return the tool that loads a module because of a part of its dotted name, or an empty text."""
    *folders, last = module.casefold().split(".")
    if _OF_TESTS.fullmatch(last):
        return "pytest or unittest"
    return next((_MODULES[part] for part in (*folders, last) if part in _MODULES), "")


def caller_of(function: str) -> str:
    """Return the tool that calls a function because of its name, or an empty text."""
    return "pytest" if function.startswith("pytest_") else _FUNCTIONS.get(function, "")


def proposed(module: str) -> str:
    """Return a similar dotted name that no tool loads."""
    *folders, last = [
        f"{part.strip('_')}_functions" if part.casefold() in _MODULES else part
        for part in module.split(".")
    ]
    bare = re.sub(r"(?i)^test_|_test$|^tests?$", "", last).strip("_")
    return ".".join([*folders, last if bare == last else f"{bare}_checks".lstrip("_")])


FOLDER = "functions"
MODULE_LIMIT = 256 * 1024
UNREADABLE_FOLDER = "unreadable-folder"
MAX_MODULE_BYTES = 256 << 10
"""The code of the problem that a folder cannot be read."""
_LONGEST_NAME = 200
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """One module's text as it is on disk; `version` identifies this exact text."""

    module: str
    path: str
    text: str
    version: str

    @classmethod
    def of(cls, module: str, text: str, path: str = "") -> "ModuleSource":
        """Return a source with its version; the path is the module's usual one unless another is given."""
        return cls(module, path or path_of(module), text, hash_of(text))


def hash_of(text: str) -> str:
    """Return the SHA-256 hash of a text's UTF-8 bytes, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def path_of(module: str) -> str:
    """Return the path at which a new module would be written."""
    return f"{FOLDER}/{module.replace('.', '/')}.py"


def shown_path(path: PurePath) -> str:
    """Return a path below `functions/` in the form used by messages and sources."""
    return f"{FOLDER}/{name_shown(path.as_posix())}"


def shown_folder(path: PurePath) -> str:
    """Return a folder below `functions/`, or that folder itself, in the form used by messages and problems."""
    return f"{shown_path(path)}/" if path.parts else f"{FOLDER}/"


def folder_problem(place: str, reason: str) -> Problem:
    """Return the problem that a folder cannot be read, so that its content is unknown."""
    fix = "make it readable again (or make it again, empty, if its functions are to go)"
    message = f"the folder `{place}` cannot be read: {reason}; its functions stay what they were"
    return Problem(UNREADABLE_FOLDER, message, Place(place), fix)


def is_helper(module: str) -> bool:
    """Check whether a module is private to its neighbors: a part of its name begins with an underscore."""
    return any(part.startswith("_") for part in module.split("."))


def module_of(path: PurePath) -> str | Problem:
    """Return the dotted module of a file path below `functions/`, or why it cannot be a module."""
    where = Place(shown_path(path))
    if path.is_absolute() or ".." in path.parts:
        return Problem(
            "leaves-folder",
            f"`{path}` leaves the folder `{FOLDER}/`",
            where,
            "name a file inside it",
        )
    if path.suffix != ".py":
        return Problem(
            "not-python",
            f"`{name_shown(path.name)}` is not a Python file",
            where,
            "give its name the ending `.py`",
        )
    parts = [*path.parts[:-1], path.stem]
    if parts[-1] == "__init__":
        parts.pop()
    if not parts:
        message = f"`{FOLDER}/__init__.py` belongs to no module, so nothing in it is offered"
        return Problem(
            "no-module", message, where, "move its functions into a module, say `functions/text.py`"
        )
    return _unusable(parts, where) or ".".join(parts)


def check_module_name(module: str) -> Problem | None:
    """Return why a dotted name, for example from a model, cannot name a module; None if it can."""
    where = Place(f"{FOLDER}/")
    if "/" in module or "\\" in module or module.startswith("."):
        message = f"`{name_shown(module)}` is a path, not the name of a module in `{FOLDER}/`"
        return Problem(
            "module-name", message, where, "use a dotted name, say `text` or `web.pages`"
        )
    if unusable := _unusable(module.split("."), where):
        return unusable
    if is_helper(module):
        message = f"`{name_shown(module)}` begins with an underscore, which keeps a module's functions private"
        return Problem(
            "module-name", message, where, "use a name without it, say `text` or `web.pages`"
        )
    if len(module) > _LONGEST_NAME:
        message = f"the name has {len(module):,} characters, and at most {_LONGEST_NAME} are taken"
        return Problem("module-name", message, where, "use a short name, say `text` or `web.pages`")
    return None


def _unusable(parts: list[str], place: Place) -> Problem | None:
    for part in parts:
        if odd := odd_in_name(part):
            message = f"`{name_shown(part)}` holds {odd}, so the module cannot be imported"
            return Problem("module-name", message, place, "rename it without that character")
        read = unicodedata.normalize("NFKC", part)  # as Python's `import` reads it
        if part.isidentifier() and read != part:
            message = f"`{part}` (spelled {part!a}) is {read!a} to Python, so no import would find the module"
            return Problem(
                "module-name", message, place, f"rename it to `{read}`, spelled {read!a}"
            )
        if not part.isidentifier() or keyword.iskeyword(part):
            why = "is a Python keyword" if keyword.iskeyword(part) else "is not a Python identifier"
            fix = "rename it: letters, digits and underscores, not beginning with a digit"
            return Problem(
                "module-name", f"`{part}` {why}, so the module cannot be imported", place, fix
            )
    module = ".".join(parts)
    if loader := loader_of(module):
        what = f"{loader} loads a module called `{module}` by itself, so its code would run outside of the sandbox"
        return Problem("module-name", what, place, f"choose another name, say `{proposed(module)}`")
    return None


def read_file(root: Path, path: Path, limit: int = MODULE_LIMIT) -> ModuleSource | Problem:
    """Return the source in a file of `functions/`, or why it cannot be read; at most `limit` bytes are read."""
    try:
        relative: PurePath = path.relative_to(root) if path.is_absolute() else path
    except ValueError:  # outside of `root`
        relative = path
    module = module_of(relative)
    if isinstance(module, Problem):
        if not (os.path.islink(root / relative) and os.path.isdir(root / relative)):  # noqa: PTH112, PTH114 - of a name that is too long, too
            return module
        message = f"`{relative}` is a link to a folder, and links to folders are not followed"
        return Problem(
            "symlink", message, Place(shown_path(relative)), "put the folder itself here"
        )
    where = Place(shown_path(relative))
    content = _read_bytes(root, relative, limit, where)
    if isinstance(content, Problem):
        return content
    text = _decode(content, where)
    if isinstance(text, Problem):
        return text
    source = ModuleSource(module, where.path, text, hash_of(text))
    tree = None if source.text.isascii() else parse_accepted(source)
    flaw = name_flaw_of(source.text, tree) if isinstance(tree, ast.Module) else None
    return (None if flaw is None else _problem(flaw, source.path)) or source


def _read_bytes(root: Path, relative: PurePath, limit: int, place: Place) -> bytes | Problem:
    try:
        path: PurePath | None = relative
        # Resolving takes as long again, so that it is only done for links.
        if any(os.path.islink(root / inner) for inner in (relative, *relative.parents[:-1])):  # noqa: PTH114 - half the time
            real, base = (root / relative).resolve(strict=True), root.resolve()
            path = real.relative_to(base) if real.is_relative_to(base) else None
        if path is None:
            message = f"`{place.path}` is a link that leaves the folder `{FOLDER}/`"
            return Problem("symlink", message, place, "put the file itself here")
        with folder(root, path.parts[:-1]) as folder_fd:
            descriptor = read_only(path.name, folder_fd)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return Problem(
                    "not-a-file", f"`{place.path}` is not a regular file", place, "remove it"
                )
            content = b"" if status.st_size > limit else os.read(descriptor, status.st_size + 1)
            if len(content) > status.st_size:  # it has grown meanwhile
                content += os.read(descriptor, limit + 1)
        finally:
            os.close(descriptor)
        return too_large(place, limit) if max(status.st_size, len(content)) > limit else content
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Problem(
            "unreadable",
            f"`{place.path}` cannot be read: {reason}",
            place,
            "check the file and its rights",
        )


def too_large(place: Place, limit: int) -> Problem:
    """Return the problem of a source beyond its size limit."""
    message = f"`{place.path}` is larger than {limit // 1024} KiB, so it was not read"
    return Problem("too-large", message, place, "split it, or keep data out of code")


def _decode(content: bytes, known_place: Place) -> str | Problem:
    content = content.removeprefix(_BOM)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        readable = content[: error.start].decode("utf-8")
        declared, place = flaw_of(readable), place_of(readable, len(readable))
        if declared is not None and declared.code == "encoding":
            return _problem(declared, known_place.path)
        message = f"byte 0x{content[error.start]:02x} is not UTF-8"
        return Problem(
            "encoding", message, Place(known_place.path, *place), "save the file as UTF-8"
        )
    flaw = flaw_of(text)
    return text if flaw is None else _problem(flaw, known_place.path)


def _problem(flaw: Flaw, path: str) -> Problem:
    where, fix = Place(path, flaw.line, flaw.column), flaw.fix
    return Problem(
        flaw.code,
        flaw.description,
        where,
        f"{fix}; the last good version stays in use" if flaw.code == "syntax" else fix,
    )


def parse(source: ModuleSource, limit: int = MODULE_LIMIT) -> ast.Module | Problem:
    """Return the syntax tree of a source, or why it is not read; a text beyond `limit` bytes is not parsed."""
    tree = syntax.read(source.text, limit)
    return _problem(tree, source.path) if isinstance(tree, Flaw) else tree


def parse_accepted(source: ModuleSource) -> ast.Module | Problem:
    """Return the tree of a text that was accepted before, perhaps by an older release, without character checks."""
    try:
        return syntax.tree_of(source.text)
    except SyntaxError as error:
        return _problem(syntax.flaw_of_error(error), source.path)


_HEADER = re.compile(r"^#!|^[ \t\f]*#.*?coding[:=]")


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A parsed text: its lines with their line ends, and its top-level statements."""

    lines: tuple[str, ...]
    body: tuple[ast.stmt, ...]

    @classmethod
    def of(cls, text: str, tree: ast.Module) -> "ParsedText":
        """Return the parsed text for a text and its tree."""
        return cls(tuple(lines_of(text)), tuple(tree.body))

    @property
    def newline(self) -> str:
        """The line ending of the first line; the others are assumed to be the same."""
        first = self.lines[0] if self.lines else ""
        return first[len(first.rstrip("\r\n")) :] or "\n"

    def ended(self) -> "ParsedText":
        """Return the same text with a line ending on its last line."""
        if not self.lines or self.lines[-1].endswith(("\n", "\r")):
            return self
        return ParsedText((*self.lines[:-1], self.lines[-1] + self.newline), self.body)

    def span(self, node: ast.stmt) -> tuple[int, int]:
        """Return the lines of a statement: with decorators, comments right above, and indented comments at its end."""
        end = last_line(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for number, line in enumerate(self.lines[end:], end + 1):
                if line.strip() and not (line[0] in " \t" and line.lstrip().startswith("#")):
                    break
                if line.strip():
                    end = number
        return self.with_comments(first_line(node)), end

    def with_comments(self, start: int) -> int:
        """Return the first line of a statement that starts on this line, including comments right above it."""
        while start > 1 and self.lines[start - 2].startswith("#"):
            if start <= 3 and _HEADER.match(self.lines[start - 2]):
                break
            start -= 1
        return start

    def shares_a_line(self, node: ast.stmt) -> bool:
        """Check whether another statement shares a line with this one, after a semicolon."""
        start, end = node.lineno, last_line(node)
        at = bisect_right(self.body, start, key=lambda statement: statement.lineno)
        return any(  # statements are in order, so only a neighbor can share a line
            statement is not node and statement.lineno <= end and last_line(statement) >= start
            for statement in self.body[max(at - 2, 0) : at + 1]
        )

    def segment(self, node: ast.stmt) -> str:
        """Return a statement's own lines with its comments, without the final line end."""
        if self.shares_a_line(node):
            return ast.unparse(node)
        start, end = self.span(node)
        return "".join(self.lines[start - 1 : end]).rstrip("\r\n")


@dataclass(frozen=True, slots=True)
class LineEdit:
    """New lines for `lines[start:end]`, counted from 0; an insertion if both are equal."""

    start: int
    end: int
    lines: tuple[str, ...]


def applied(lines: Iterable[str], edits: Iterable[LineEdit]) -> str:
    """Return the text with non-overlapping edits applied; insertions at the same position keep their order."""
    original, result, at = list(lines), [], 0
    for edit in sorted(edits, key=lambda item: item.start):
        result += [*original[at : edit.start], *edit.lines]
        at = edit.end
    return "".join([*result, *original[at:]])


def first_line(node: ast.stmt) -> int:
    """Return the first line of a statement, including its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def last_line(node: ast.stmt) -> int:
    """Return the last line of a statement."""
    return node.end_lineno or node.lineno


def written(node: ast.stmt, lines: Sequence[str]) -> str:
    """Return a statement's text without what else is on its lines; `lines` have no line ends."""
    start, end = first_line(node) - 1, last_line(node)
    first = start == node.lineno - 1  # without decorators
    texts = [*lines[start:end]]
    texts[-1] = texts[-1][: column_of(texts[-1], node.end_col_offset or 0)]
    texts[0] = texts[0][column_of(texts[0], node.col_offset) if first else 0 :]
    return "\n".join(texts)


def column_of(line: str, byte_offset: int) -> int:
    """Return the index of a character for the UTF-8 byte offset of a syntax tree."""
    return (
        byte_offset if line.isascii() else len(line.encode("utf-8")[:byte_offset].decode("utf-8"))
    )


def is_blank(line: str) -> bool:
    """Check whether a line is empty or whitespace."""
    return not line.strip()


def with_newline(text: str, newline: str) -> str:
    """Return a text with uniform line endings."""
    return re.sub(r"\r\n|\r|\n", lambda _: newline, text)


def bound_names(node: ast.stmt) -> set[str]:
    """Return the names that a top-level statement binds, including in its blocks, but not in functions and classes.

    The signature of an `@overload` binds nothing.
    """
    marks = getattr(node, "decorator_list", ())
    if any((getattr(mark, "attr", "") or getattr(mark, "id", "")) == "overload" for mark in marks):
        return set()
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".", 1)[0] for alias in node.names}
    if type(node).__name__ == "TypeAlias":  # Python 3.12's `type X = …`
        return {
            part.id
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
    outer = [
        child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr | ast.withitem)
    ]
    inner_names = (
        part for child in outer for part in ast.walk(child) if isinstance(part, ast.Name)
    )
    names = {name.id for name in inner_names if isinstance(name.ctx, ast.Store)}
    return names.union(*(bound_names(inner) for inner in blocks(node)))


def blocks(node: ast.stmt) -> list[ast.stmt]:
    """Return the statements in the blocks of a statement."""
    handlers = [inner for handler in getattr(node, "handlers", ()) for inner in handler.body]
    return [
        *getattr(node, "body", ()),
        *handlers,
        *getattr(node, "orelse", ()),
        *getattr(node, "finalbody", ()),
    ]


def is_bare_value(node: ast.stmt) -> bool:
    """Check whether a statement is a value by itself, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def callee(node: ast.expr) -> ast.expr:
    """Return the function of a call, and any other expression as it is: what a decorator names."""
    return node.func if isinstance(node, ast.Call) else node


def is_literal(node: ast.expr) -> bool:
    """Check whether an expression is a literal, including containers of literals."""
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
