"""Finds every use in a module that needs a grant, or that no grant allows, in the module's syntax tree.

Pure. Modules and names are listed by the grant that they need. Names that are bound once are followed to their host or
path; if that is not possible, the item stays unnamed. Files below `self.scratch` need no grant. The result informs the
human's decision and gives the model a clear message; the sandbox is what enforces grants.
"""

import ast
import posixpath
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from agent_core.access.grants import Grants
from agent_core.access.grants.value import LATER, UNSAID, joined, written
from agent_core.access.packages.projects import project_of
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.registry.depends import is_program
from agent_core.registry.source import FOLDER
from agent_core.registry.tree import Scope, survey

from .draft import Finding
from .tree import bound_names, context_nodes, defaults, nodes_of, parse

if TYPE_CHECKING:
    from .draft import Way

_BY_GRANT = {
    "network": "socket ssl socketserver urllib.request http.client http.server ftplib smtplib poplib imaplib"
    " telnetlib nntplib xmlrpc webbrowser asyncio.open_connection asyncio.start_server requests httpx"
    " aiohttp urllib3 websockets functions._requests",
    "files": "shutil glob fileinput dbm shelve sqlite3 tempfile linecache io.open io.FileIO os.open os.remove"
    " os.unlink os.rename os.replace os.mkdir os.makedirs os.rmdir os.removedirs os.listdir os.scandir"
    " os.walk os.stat os.chmod os.chown os.link os.symlink os.truncate os.utime os.path.exists"
    " os.path.getsize os.path.isfile os.path.isdir",
    "processes": "subprocess multiprocessing pty signal os.system os.popen os.fork os.forkpty os.kill os.killpg"
    " os.execv os.execve os.execl os.execlp os.execvp os.spawnl os.spawnv os.posix_spawn"
    " asyncio.create_subprocess_exec asyncio.create_subprocess_shell"
    " concurrent.futures.ProcessPoolExecutor",
    "secrets": "os.environ os.environb os.getenv getpass keyring",
}
# A longer entry takes precedence over a shorter one.
GRANTS: Mapping[str, str] = {
    name: grant for grant, names in _BY_GRANT.items() for name in names.split()
}
WITHOUT_GRANT = frozenset(
    {
        "tempfile.SpooledTemporaryFile",
        "shutil.get_terminal_size",
        "glob.escape",
        "glob.translate",
        "signal.Signals",
    }
)
ADVICE: Mapping[str, str] = {
    "network": "take the text as a parameter instead of fetching it",
    "files": "take the content as a parameter, or keep files below `self.scratch`",
    "processes": "do the work in Python itself",
    "secrets": "take the value as a parameter",
    "packages": "use the standard library",
}
FIXES: Mapping["Way", str] = {
    "absent": "{}, or leave it: it is asked for once the function is made or called",
    "none": "{}, or grant it at a terminal: knapper functions grant NAME",
    "joining": "leave it if the task needs it, the user is asked before it joins; else {}",
    "calling": "it is asked for before the call; or grant it now: knapper functions grant NAME",
    "importing": "leave it: it is asked for at the first call; else {}",
    "file": "leave it if the task needs it, and grant it: knapper functions grant NAME; else {}",
}
CONTEXT: Mapping[str, str] = {"fetch": "network", "secret": "secrets", "memory": "memory"}

# The broker carries these out of the sandbox; any other way to the network stays closed, whatever is granted.
BROKERED = frozenset(
    {"urllib.request", "http.client", "requests", "httpx", "urllib3", "functions._requests"}
)
# Modules and functions that only read file metadata or content.
READING = frozenset(
    {"glob", "linecache", "os.listdir", "os.scandir", "os.walk", "os.stat"}
    | {"os.path.exists", "os.path.getsize", "os.path.isfile", "os.path.isdir"}
)
# Functions that open the file that their first argument names, for reading unless a mode says otherwise. The rest of
# their modules only computes.
OPENING = frozenset(
    {
        "zipfile.ZipFile",
        "tarfile.open",
        "gzip.open",
        "bz2.open",
        "lzma.open",
        "wave.open",
        "codecs.open",
    }
)
PARSING = frozenset(
    {"xml.etree.ElementTree.parse", "xml.etree.ElementTree.iterparse", "xml.dom.minidom.parse"}
)
_OPENING_MODULES = frozenset(
    {"configparser", "mailbox", "netrc"}
)  # whose objects have methods that open files
_STREAMS = frozenset({"io", "BytesIO", "StringIO"})
# What no human can grant, with an alternative.
INSTEAD: Mapping[str, str] = {
    "network": "use `self.fetch(url)`, the only way out",
    "files": "keep files below `self.scratch`",
    "secrets": "use `self.secret(name)`",
    "processes": "do the work in Python itself",
}


def grant_of(name: str) -> str | None:
    """Return the grant that a dotted name needs, by the name itself or by a module that contains it."""
    if name in WITHOUT_GRANT:
        return None
    return next((GRANTS[head] for head in heads(name) if head in GRANTS), None)


def is_in(name: str, names: frozenset[str]) -> bool:
    """Check whether a dotted name, or a module that contains it, is one of these."""
    return any(head in names for head in heads(name))


def heads(name: str) -> list[str]:
    """Return a dotted name and its prefixes, the longest first."""
    parts = name.split(".")
    return [".".join(parts[:size]) for size in range(len(parts), 0, -1)]


Held = Mapping[str, Sequence[ast.expr]]
"""The values that a text binds to each name; part of a value is marked as starred."""
_DEPTH = 12
_ADDRESS = re.compile(r"(https?)://([^/?#\s]+)([/?#]|$)")
_WILD = re.compile(r"[*?\[]")
_SAME = frozenset({"str", "Path", "PurePath", "Request", "fspath"})
_SAME_ITEMS = frozenset({"sorted", "list", "tuple", "set", "frozenset", "iter", "reversed"})
_ONE_ITEM = frozenset({"next", "max", "min"})
_SAME_PLACE = frozenset({"resolve", "absolute", "as_posix", "rstrip", "strip", "lstrip"})


def values_of(tree: ast.AST) -> Held:
    """Return the names that a text binds, each with its values.

    For a parameter, the value is its default if that is a non-empty constant, otherwise its type. The value of a loop's
    variable is an item of what the loop goes through.
    """
    held: dict[str, list[ast.expr]] = {}
    for node in nodes_of(tree):
        for name, value in _bindings(node):
            held.setdefault(name, []).append(value)
    return held


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            | ast.NamedExpr(target=ast.Name(id=name), value=value)
            | ast.withitem(context_expr=value, optional_vars=ast.Name(id=name))
        ):
            yield name, value
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield from _items(target, value)
        case ast.comprehension(target=target, iter=value):
            yield from _items(target, value)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _parts(target, value)
        case ast.AugAssign(target=target, value=value):
            yield from _parts(target, value)
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield from _parts(target, value)
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            yield name, ast.Starred(ast.Constant(None))
        case ast.arguments():
            by_name = defaults(node)
            for parameter in [*node.posonlyargs, *node.args, *node.kwonlyargs]:
                default = by_name.get(parameter.arg)
                if (
                    isinstance(default, ast.Constant) and default.value
                ):  # something that the user can be asked about
                    yield parameter.arg, default
                else:
                    yield parameter.arg, ast.Starred(parameter.annotation or ast.Constant(None))


def _items(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of a loop's target, each with an item of what the loop goes through."""
    match target, value:
        case ast.Name(id=name), _:
            yield name, ast.Subscript(value, ast.Constant(0))
        case ast.Tuple(elts=[count, item]), ast.Call(
            func=ast.Name(id="enumerate"), args=[inner, *_]
        ):
            yield from _parts(count, value)
            yield from _items(item, inner)
        case _:
            yield from _parts(target, value)


def _parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of a target that are bound to parts of a value, or to what is made from it."""
    for node in nodes_of(target):
        if isinstance(node, ast.Name):
            yield node.id, ast.Starred(value)


def reads(node: ast.AST, words: frozenset[str], held: Held) -> bool:
    """Check whether an expression reads one of these names, directly or through the values of its names.

    `self.scratch` may be one of the names.
    """
    waiting, seen = [node], set[str]()
    while waiting:
        for child in ast.walk(waiting.pop()):
            if (
                isinstance(child, ast.Attribute)
                and child.attr == "scratch"
                and "self.scratch" in words
            ):
                return True
            if isinstance(child, ast.Name) and child.id in words:
                return True
            if isinstance(child, ast.Name) and child.id not in seen:
                seen.add(child.id)
                waiting += held.get(child.id, ())
    return False


def names_read(node: ast.AST, held: Held) -> set[str]:
    """Return all names that an expression reads, directly or through the values of its names."""
    waiting = [node]
    seen = set[str]()
    while waiting:
        for child in ast.walk(waiting.pop()):
            if isinstance(child, ast.Name) and child.id not in seen:
                seen.add(child.id)
                waiting += held.get(child.id, ())
    return seen


def text_prefix(node: ast.expr | None, held: Held, depth: int = _DEPTH) -> tuple[str, bool]:
    """Return the known beginning of an expression's text, and whether that is the whole text."""
    parts, is_path = list[ast.expr](), False
    match node:
        case ast.Constant(value=str(text)):
            return text, True
        case ast.Call(func=func, args=arguments):
            return _prefix_of_call(func, arguments, held, depth)
        case ast.BinOp(left=left_operand, op=ast.Mod()):
            return _join_prefixes([left_operand], held, depth)[0].partition("%")[0], False
        case ast.BinOp(left=left_operand, op=ast.Add() | ast.Div() as op, right=right):
            parts, is_path = [left_operand, right], isinstance(op, ast.Div)
        case ast.JoinedStr(values=values):
            parts = values
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            parts = [value]
        case ast.Name(id=name) if len(held.get(name, ())) == 1:
            parts = [*held[name]]
        case ast.Subscript(value=listing):
            return _folder_of_items(listing, held, depth), False
    return _join_prefixes(parts, held, depth, is_path=is_path) if parts else ("", False)


def _prefix_of_call(
    func: ast.expr, arguments: list[ast.expr], held: Held, depth: int
) -> tuple[str, bool]:
    """Return the known beginning of the text or path that a call returns."""
    parts = list[ast.expr]()
    match func:
        case ast.Attribute(attr="join", value=ast.Attribute(attr="path") | ast.Name(id="path")):
            parts = arguments
        case ast.Attribute(attr="joinpath", value=value):
            parts = [value, *arguments]
        case ast.Attribute(attr=name) if name in _SAME and arguments:  # `pathlib.Path(…)`
            parts = arguments
        case ast.Attribute(attr="format", value=value):
            return _join_prefixes([value], held, depth)[0].partition("{")[0], False
        case ast.Attribute(attr=name, value=value) if name in _SAME_PLACE and not arguments:
            return _join_prefixes([value], held, depth)
        case ast.Name(id=name) if name in _ONE_ITEM and len(arguments) == 1:
            return _folder_of_items(arguments[0], held, depth), False
        case ast.Name(id=name) if name in _SAME:
            parts = arguments[: None if name in ("Path", "PurePath") else 1]
    return _join_prefixes(parts, held, depth, is_path=True)


def _folder_of_items(node: ast.expr, held: Held, depth: int) -> str:
    """Return the folder that all paths of a listing lie in; empty if the text does not show it."""
    match node if depth else None:
        case ast.Name(id=name) if len(held.get(name, ())) == 1:
            return _folder_of_items(held[name][0], held, depth - 1)
        case ast.Call(func=ast.Name(id=name), args=[listing, *_]) if name in _SAME_ITEMS:
            return _folder_of_items(listing, held, depth - 1)
        case ast.Call(
            func=ast.Attribute(attr="glob" | "iglob", value=ast.Name(id="glob")),
            args=[pattern],
            keywords=[],
        ):
            return _folder(text_prefix(pattern, held, depth - 1)[0])
        case (
            ast.Call(func=ast.Attribute(attr="scandir", value=ast.Name(id="os")), args=[folder])
            | ast.Call(func=ast.Attribute(attr="iterdir" | "glob" | "rglob", value=folder))
        ):
            text, is_all = text_prefix(folder, held, depth - 1)
            return _folder(f"{text.rstrip('/')}/" if text and is_all else text)
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item) | ast.SetComp(elt=item):
            return _folder(text_prefix(item, held, depth - 1)[0])
    return ""


def _join_prefixes(
    parts: list[ast.expr], held: Held, depth: int, *, is_path: bool = False
) -> tuple[str, bool]:
    """Return the known beginning of the joined texts of expressions, or of the path that they are parts of."""
    text = ""
    for part in parts if depth else ():
        more, is_all = text_prefix(part, held, depth - 1)
        if is_path and text and not is_all and not isinstance(part, ast.JoinedStr | ast.BinOp):
            return f"{text}/", False
        is_next = is_path and text and not more.startswith("/")
        text = f"{text.rstrip('/')}/{more}" if is_next else more if is_path else text + more
        if not is_all:
            return text, False
    return text, depth > 0 and (bool(text) or not is_path)


def _folder(text: str) -> str:
    head, slash, _ = _WILD.split(text)[0].rpartition("/")
    return head + slash


def host_of(node: ast.expr | None, held: Held) -> str | None:
    """Return the host of an address; None if it cannot be granted."""
    text, is_all = text_prefix(node, held)
    match = _ADDRESS.match(text)
    if match is None or not (match[3] or is_all):
        return UNSAID
    port = {"http": ":80", "https": ":443"}[match[1]]
    return written("network", match[2].removesuffix(port))


def _host_of_connection(node: ast.AST, held: Held) -> str | None:
    """Return the host of `http.client.HTTPSConnection("example.org", 8443)`, which is not written as an address."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="HTTPConnection" | "HTTPSConnection")
            | ast.Name(id="HTTPConnection" | "HTTPSConnection"),
            args=[first, *others],
        ):
            text, is_all = text_prefix(first, held)
            port = (
                f":{ast.unparse(others[0])}"
                if others and isinstance(others[0], ast.Constant)
                else ""
            )
            return written("network", f"{text}{port}") if is_all else None
        case _:
            return None


def path_of(node: ast.expr | None, held: Held) -> str | None:
    """Return the file or folder that an expression names; None if it cannot be granted.

    A folder that is only the beginning of a path counts if it is in the workspace: any other may be one that nobody can
    grant, such as `/` or a home folder, and a call asks for what lies in it.
    """
    text, is_all = text_prefix(node, held)
    if not is_all or _WILD.search(text):
        text = _folder(text)
    is_open = text.startswith("/") and not is_all
    if is_open or posixpath.normpath(text) == "." or ".." in text.split("/"):
        return UNSAID
    return written("read", text)


_SCRATCH = frozenset({"self.scratch"})
_PATHS = frozenset({"Path", "pathlib"})


def local_names(function: ast.AST) -> set[str]:
    """Return every name that a function binds, including parameters."""
    nodes = nodes_of(function)
    stored = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}


_PATH_METHODS = frozenset({"read_text", "write_text", "read_bytes", "write_bytes"})
_WRITING = frozenset({"write_text", "write_bytes", "unlink", "mkdir", "rmdir", "touch", "rename"})
_FILE_METHODS = (
    _PATH_METHODS
    | _WRITING
    | {"open", "iterdir", "glob", "rglob", "exists", "is_file", "is_dir", "stat"}
)
_BUILTINS = frozenset({"open", "eval", "exec", "compile", "__import__", "input"})
_SUSPECTS = _BUILTINS | _FILE_METHODS | {"import_module"}
_MAX_SHOWN = 160  # characters of an import that is shown
_MOST_SHOWN = 10  # names of it in a fix
_IN_MEMORY = ":memory:"  # a database without a file
_ELSEWHERE = re.compile(
    r"version|PY_?\d|platform|TYPE_CHECKING|os\.name"
)  # tests that are false in the sandbox
_ABSENCE = re.compile(
    r"ImportError|ModuleNotFoundError|Exception"
)  # what is caught where a package may be missing
_WORD = re.compile(r"\w+")
_TEXTS = frozenset({"str", "Path", "PurePath", "PathLike"})
_TABLES = frozenset({"dict", "Mapping", "Dict"})
_PLAIN = ("os", "asyncio", "concurrent.futures")  # importing these alone reaches nothing
_OF_NAMES = "join split splitext splitdrive basename dirname normpath normcase isabs commonpath commonprefix sep"
_COMPUTED = frozenset(
    f"{top}.{name}" for top in ("os.path", "posixpath", "ntpath") for name in _OF_NAMES.split()
)
_OF_PATHS = _COMPUTED | {"os.fspath", "os.sep", "os.linesep", "os.extsep", "os.pathsep"}
"""What only computes on the names of files, in modules that also open them."""
_TO_DISK = frozenset(dir(Path)) - frozenset(dir(PurePath))
"""The methods of a path that look at the disk."""


@dataclass(frozen=True, slots=True)
class Use:
    """One use: the kind of grant (empty if no grant allows it), the item, and the gate's finding.

    The fix of the finding says how to avoid the use.
    """

    kind: str
    item: str
    finding: Finding

    @property
    def is_asked_later(self) -> bool:
        """True for a host or file that the text does not name: the call asks for it when it is known."""
        return self.kind in LATER and self.item == UNSAID


@dataclass(frozen=True)
class _Text:
    """A module prepared for finding uses."""

    tree: ast.Module
    packages: tuple[str, ...]
    guarded: frozenset[str]
    own: frozenset[str]

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the text."""
        return nodes_of(self.tree)

    @cached_property
    def calls(self) -> dict[int, ast.Call]:
        """The calls, by the ID of the called node."""
        return {id(node.func): node for node in self.nodes if isinstance(node, ast.Call)}

    @cached_property
    def imports(self) -> list[ast.Import | ast.ImportFrom]:
        """All imports, at any level."""
        return [node for node in self.nodes if isinstance(node, ast.Import | ast.ImportFrom)]

    @cached_property
    def scope(self) -> Scope:
        """The meanings of imported names, such as `os.path.join`."""
        return survey(ast.Module([*self.imports], []))

    @cached_property
    def names(self) -> Held:
        """The names with the values that are bound to them."""
        return values_of(self.tree)

    @cached_property
    def optional(self) -> frozenset[int]:
        """The imports, by ID, that are optional: in a `try`, or for another Python version or system."""
        tries = [
            node
            for node in self.nodes
            if isinstance(node, ast.Try)
            and any(
                not each.type or _ABSENCE.search(ast.unparse(each.type)) for each in node.handlers
            )
        ]
        tests = [node for node in self.nodes if isinstance(node, ast.If)]
        tests = [
            node for node in tests if _ELSEWHERE.search(ast.unparse(node.test)) or is_program(node)
        ]
        bodies = [node.body for node in tries] + [node.body for node in tests]
        return frozenset(
            id(node) for body in bodies for statement in body for node in nodes_of(statement)
        )

    @cached_property
    def words(self) -> frozenset[str]:
        """All names in the text that are no names of attributes."""
        return frozenset(node.id for node in self.nodes if isinstance(node, ast.Name))

    @cached_property
    def hosts(self) -> list[str]:
        """The hosts that the text names, or that nothing names one."""
        texts = [
            other
            for other in self.nodes
            if isinstance(other, ast.Constant | ast.JoinedStr | ast.BinOp)
        ]
        hosts = {host_of(other, self.names) for other in texts}
        hosts |= {_host_of_connection(other, self.names) for other in self.nodes}
        return sorted(host for host in hosts if host not in (None, UNSAID)) or [UNSAID]

    @cached_property
    def likely_hosts(self) -> list[str]:
        """The hosts with which addresses in the text begin, also those that the text does not show whole.

        A name without a dot or a port may be half of one, as in `f"http://node{number}.example.org"`.
        """
        texts = [node for node in self.nodes if isinstance(node, ast.JoinedStr)]
        beginnings = [
            ast.JoinedStr(node.values[:size])
            for node in texts
            for size in range(1, len(node.values))
        ]
        hosts = {*self.hosts, *(host_of(beginning, self.names) for beginning in beginnings)}
        return sorted(host for host in hosts if host and (host == "localhost" or {*".:"} & {*host}))

    @cached_property
    def has_secret(self) -> bool:
        """Whether the text asks for a secret."""
        return any(
            isinstance(node, ast.Attribute) and node.attr == "secret"
            for node in context_nodes(self.tree)
        )

    @cached_property
    def opened(self) -> list[tuple[str, ast.Call]]:
        """The calls with positional arguments, with the dotted names that they call."""
        return [(self.scope.origin(call.func), call) for call in self.calls.values() if call.args]

    @cached_property
    def databases(self) -> tuple[bool, bool]:
        """Whether the text opens databases, and whether each is one without a file, which is gone after the call."""
        opened = [call for name, call in self.opened if name == "sqlite3.connect"]
        in_memory = (text_prefix(call.args[0], self.names) for call in opened)
        return bool(opened), all(prefix == (_IN_MEMORY, True) for prefix in in_memory)

    @cached_property
    def on_disk(self) -> frozenset[str]:
        """The attributes in the text that may be methods of a path which look at the disk."""
        return _TO_DISK & {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}

    def uses_of_import(
        self, name: str, node: ast.Import | ast.ImportFrom, shown: str, *, is_read: bool
    ) -> Iterator[Use]:
        """Yield the uses of one imported module or name."""
        top = name.partition(".")[0]
        grant = grant_of(name)
        is_package = top not in sys.stdlib_module_names and top not in (
            *self.packages,
            "functions",
            "__future__",
        )
        is_package = is_package and id(node) not in self.optional
        if is_package and top in self.own:
            inner = ", ".join(ast.unparse(alias) for alias in node.names[:_MOST_SHOWN])
            source = f"functions.{node.module}" if isinstance(node, ast.ImportFrom) else "functions"
            message = (
                f"`{shown}` does not find the module of this workspace, which lies in `functions`"
            )
            yield Use(
                "",
                "",
                _finding(
                    "workspace-import", message, f"write `from {source} import {inner}`", node
                ),
            )
            return
        if is_package and (grant is None or is_in(name, BROKERED)):
            yield use_of("packages", written("packages", project_of(name)), shown, node)
        if top in ("ctypes", "cffi", "_ctypes"):
            message = f"`{shown}` reaches below Python, which the sandbox does not allow"
            yield Use(
                "", "", _finding("native-code", message, "do the work in Python itself", node)
            )
        elif grant and not (isinstance(node, ast.Import) and name in _PLAIN):
            yield from self._uses_of_grant(grant, name, shown, node, is_read=is_read)

    def _uses_of_grant(
        self, grant: str, name: str, shown: str, node: ast.Import | ast.ImportFrom, *, is_read: bool
    ) -> Iterator[Use]:
        """Yield the uses of a module or name that needs a grant."""
        is_brokered = grant == "network" and is_in(name, BROKERED)
        is_of_files = grant == "files" and not is_in(name, frozenset({"tempfile"}))
        if (is_brokered or is_of_files) and not is_read:
            return  # the import alone reaches nothing
        if is_brokered:
            for host in self.hosts:
                yield use_of("network", host, shown, node)
        elif is_of_files:
            kind, paths = "read" if is_in(name, READING) else "write", set[str | None]()
            for dotted, call in self.opened:
                if dotted == name or dotted.startswith(f"{name}."):
                    is_memory = text_prefix(call.args[0], self.names) == (_IN_MEMORY, True)
                    paths.add(_IN_MEMORY if is_memory else path_of(call.args[0], self.names))
            if not is_in(name, frozenset({"sqlite3"})) or paths != {_IN_MEMORY}:
                for path in sorted(paths, key=str) or [UNSAID]:
                    yield use_of(kind, path, shown, node)
        else:
            yield _never(grant, shown, node)

    def uses_of_attributes(self) -> Iterator[Use]:
        """Yield the uses by a dotted name of a module, such as `os.remove`."""
        attributes = [node for node in self.nodes if isinstance(node, ast.Attribute)]
        inner = {id(node.value) for node in attributes}
        members = {
            id(member) for node in self.nodes if isinstance(node, ast.Set) for member in node.elts
        }
        for node in attributes:
            if id(node) in members:
                continue  # members of a set are usually names to block, such as `os.system`
            dotted = self.scope.origin(node) if id(node) not in inner else ""
            grant = grant_of(dotted)
            # Other modules are reported once, at their import.
            if not grant or dotted.partition(".")[0] not in ("os", "io", "asyncio", "concurrent"):
                continue
            if grant != "files":
                yield _never(grant, dotted, node)
                continue
            call = self.calls.get(id(node))
            first = call.args[0] if call and call.args else None
            kind = (
                "read"
                if is_in(dotted, READING) or (dotted == "io.open" and call and not _writes(call))
                else "write"
            )
            yield use_of(kind, path_of(first, self.names), dotted, node)

    def uses_of_openers(self) -> Iterator[Use]:
        """Yield the uses by functions that open what they are given, unless that is a stream in memory."""
        for dotted, call in self.opened:
            if dotted in OPENING | PARSING and not reads(call.args[0], _STREAMS, self.names):
                kind = "write" if dotted in OPENING and _writes(call) else "read"
                yield use_of(kind, path_of(call.args[0], self.names), dotted, call)

    def uses_of_context(self) -> Iterator[Use]:
        """Yield the uses of `self`, the context of a call."""
        for node in context_nodes(self.tree):
            match node:
                case ast.Attribute(attr=part, value=ast.Name(id="self")) if part in CONTEXT:
                    item = self._requested_item(part, node)
                    yield use_of(CONTEXT[part], item, f"self.{part}", node)
                    # One question is about a secret and where it goes; a call asks for any other host.
                    if (part, item) == ("fetch", UNSAID) and self.has_secret:
                        yield from (
                            use_of("network", host, "self.fetch", node)
                            for host in self.likely_hosts
                        )
                case ast.Call(
                    func=ast.Attribute(attr="call", value=ast.Name(id="self")), args=[first, *_]
                ):
                    name, is_all = text_prefix(first, self.names)
                    if is_all and name in self.guarded:
                        yield use_of("functions", name, f"self.call({name!r})", node)

    def _requested_item(self, part: str, node: ast.Attribute) -> str | None:
        """Return the item that `self` is asked for: a host, the name of a secret, or the label of a block."""
        call = self.calls.get(id(node))
        if part == "memory":  # `self.memory.read("human")`
            call = next(
                (
                    candidate
                    for candidate in self.calls.values()
                    if getattr(candidate.func, "value", None) is node
                ),
                None,
            )
        first = call.args[0] if call and call.args else None
        if part == "fetch":
            return host_of(first, self.names)
        name, is_all = text_prefix(first, self.names)
        return name if is_all and name else UNSAID

    def uses_of_calls(self) -> Iterator[Use]:
        """Yield the uses by calls of builtins and of the methods of files and paths."""
        for scope in self.tree.body:
            calls = [node for node in nodes_of(scope) if isinstance(node, ast.Call)]
            calls = [
                node
                for node in calls
                if {getattr(node.func, part, "") for part in ("id", "attr")} & _SUSPECTS
            ]
            if calls:
                names, own = bound_names(self.tree) | local_names(scope), values_of(scope)
                shared = {
                    name
                    for node in nodes_of(scope)
                    if isinstance(node, ast.Global)
                    for name in node.names
                }
                held = {
                    **self.names,
                    **{name: values for name, values in own.items() if name not in shared},
                }
                yield from (use for node in calls for use in _call(node, names, held))


def uses(
    tree: ast.Module,
    packages: tuple[str, ...],
    guarded: frozenset[str] = frozenset(),
    own: frozenset[str] = frozenset(),
) -> list[Use]:
    """Return every use in a module, in text order.

    Calls of `guarded` functions need a grant; `own` are the modules of the workspace.
    """
    text = _Text(tree, packages, guarded, own)
    all_uses: list[Use] = []
    for node in text.imports:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            names = [
                f"{node.module}.{alias.name}"
                for alias in node.names
                if node.level == 0 and node.module
            ]
        bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        shown, is_read = (
            one_line(ast.unparse(node), _MAX_SHOWN),
            "*" in bound or not bound.isdisjoint(text.words),
        )
        for name in names:
            all_uses += text.uses_of_import(name, node, shown, is_read=is_read)
    all_uses += [*text.uses_of_attributes(), *text.uses_of_openers()]
    all_uses += [*text.uses_of_context(), *text.uses_of_calls()]
    return sorted(dict.fromkeys(all_uses), key=lambda use: (use.finding.line, use.finding.column))


def gives_text_to_packages(tree: ast.Module, packages: tuple[str, ...]) -> bool:
    """Check whether a module hands a text to a package, which may open the file or the address that it names.

    `packages` are those that all functions see. A few modules of the standard library open files in the same way.
    """
    return gives_text(
        tree, frozenset({*sys.stdlib_module_names - _OPENING_MODULES, *packages, FOLDER, ""})
    )


def gives_text(tree: ast.Module, known_modules: frozenset[str]) -> bool:
    """Check whether a module hands a text to anything that it imports from other than these modules."""
    text = _Text(tree, (), frozenset(), frozenset())
    known_modules |= frozenset() if text.on_disk else {"pathlib"}
    if text.databases == (True, True):
        known_modules |= {"sqlite3"}
    imported = text.scope.imports.items()
    names = frozenset(name for name, origin in imported if not is_in(origin or ".", known_modules))
    return any(True for _ in _receivers(text, names))


def _receivers(text: _Text, names: frozenset[str]) -> Iterator[str]:
    """Yield those of these names of imports that a call with a text goes to."""
    texts = frozenset(
        node.arg
        for node in text.nodes
        if isinstance(node, ast.arg) and _may_be_text(node.annotation)
    )
    for call in text.calls.values() if names else ():
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        has_text = any(_has_text(value) or reads(value, texts, text.names) for value in given)
        is_known = is_in(text.scope.origin(call.func) or ".", _OF_PATHS)
        if has_text and not is_known:
            yield from names & names_read(call.func, text.names)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a text uses, and all that decides together with other texts what both use."""

    uses: frozenset[tuple[str, str]]
    hosts: frozenset[str]
    has_secret: bool
    on_disk: frozenset[str]
    databases: tuple[bool, bool]
    receivers: frozenset[str]


def shown_by(tree: ast.Module) -> Shown:
    """Return what a text shows of what it uses."""
    text = _Text(tree, (), frozenset(), frozenset())
    imports = text.scope.imports
    return Shown(
        uses=frozenset((use.kind, use.item) for use in uses(tree, ())),
        hosts=frozenset((*text.hosts, *text.likely_hosts)),
        has_secret=text.has_secret,
        on_disk=text.on_disk,
        databases=text.databases,
        receivers=frozenset(imports[name] or "." for name in _receivers(text, frozenset(imports))),
    )


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A value that a function opens as the name of a file, or perhaps opens: a package's call takes it, and may."""

    writes: bool
    is_sure: bool = True


def files_of_parameters(tree: ast.Module, name: str) -> dict[str, NamedFile]:
    """Return the parameters that a function opens as the names of files, as they are given.

    What may not run counts for nothing. A package's call for whose result nobody asks, such as `picture.save(path)`, is
    made for its effect, so it writes, if it opens a file: `axes.set_title(title)` looks the same.
    """
    text = _Text(tree, (), frozenset(), frozenset())
    known = frozenset({*sys.stdlib_module_names, FOLDER, ""})
    packages = frozenset(
        local for local, origin in text.scope.imports.items() if not is_in(origin or ".", known)
    )
    found = dict[str, NamedFile]()
    for function in (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name
    ):
        held = values_of(function)
        arguments = function.args
        parameters = frozenset(
            each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        )
        as_given = frozenset(name for name in parameters if _is_as_given(name, held))
        of_packages = _names_from(packages, held)
        running = [*_running_always(function.body)]
        effects = {id(node.value) for node in running if isinstance(node, ast.Expr)}
        for call in (node for node in running if isinstance(node, ast.Call)):
            for value, file in _opened_by(call, of_packages, is_effect=id(call) in effects):
                if parameter := _parameter_of(value, as_given, held):
                    other = found.get(parameter, file)
                    found[parameter] = NamedFile(
                        other.writes or file.writes, other.is_sure or file.is_sure
                    )
    return found


def opened_paths(arguments: object, name: str, source: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths among a call's arguments that the function's text opens as they are; True if to be written.

    A text that it only perhaps opens, and that names no folder, is none: it may as well be a title.
    """
    if not isinstance(arguments, Mapping) or not isinstance(tree := parse(source), ast.Module):
        return
    for parameter, file in files_of_parameters(tree, name).items():
        path = arguments.get(parameter)
        if isinstance(path, str | PurePath) and (
            file.is_sure or not file.writes or PurePath(path).parent.name
        ):
            yield str(path), file.writes


def _running_always(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of statements that run unless an earlier one ends the function."""
    waiting = [*body]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.Match(subject=test):
                waiting.append(test)
            case (
                ast.Lambda()
                | ast.FunctionDef()
                | ast.AsyncFunctionDef()
                | ast.ClassDef()
                | ast.ExceptHandler()
            ):
                pass
            case _:
                waiting += ast.iter_child_nodes(node)


def _opened_by(
    call: ast.Call, of_packages: frozenset[str], *, is_effect: bool
) -> Iterator[tuple[ast.expr, NamedFile]]:
    """Yield the values that a call opens, or perhaps opens, as the names of files."""
    match call.func:
        case ast.Name(id="open") if call.args:
            yield call.args[0], NamedFile(_writes(call))
        case ast.Attribute(value=path, attr="open"):
            yield path, NamedFile(_writes(call, at=0))
        case ast.Attribute(value=path, attr=attr) if attr in _PATH_METHODS:
            yield path, NamedFile(attr in _WRITING)
    if _head(call.func) in of_packages:
        perhaps = NamedFile(is_effect, is_sure=False)
        yield from (
            (value, perhaps) for value in (*call.args, *(each.value for each in call.keywords))
        )


def _head(node: ast.expr) -> str:
    """Return the name at which a chain of attributes, calls and items begins, or ""."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _names_from(names: frozenset[str], held: Held) -> frozenset[str]:
    """Return these names and those whose values come from them. Each value is looked through once."""
    users: dict[str, set[str]] = {}
    for name, values in held.items():
        for inner in (child for value in values for child in ast.walk(value)):
            if isinstance(inner, ast.Name):
                users.setdefault(inner.id, set()).add(name)
    found, waiting = set(names), [*names]
    while waiting:
        new = users.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return frozenset(found)


def _is_as_given(parameter: str, held: Held) -> bool:
    """Check whether a parameter keeps its value; it may become a path of the same."""
    bound = (
        value
        for value in held.get(parameter, ())
        if not isinstance(value, ast.Starred | ast.Constant)
    )
    return all(_parameter_of(value, (parameter,), {}, depth=1) == parameter for value in bound)


def _parameter_of(
    node: ast.expr, parameters: Collection[str], held: Held, depth: int = _DEPTH
) -> str:
    """Return the parameter whose value an expression has, perhaps as a path; "" if it has another one."""
    match node:
        case ast.Call(
            func=ast.Name(id=function) | ast.Attribute(attr=function), args=[same], keywords=[]
        ) if depth:
            return _parameter_of(same, parameters, held, depth - 1) if function in _SAME else ""
        case ast.Name(id=name) if name in parameters:
            return name
        case ast.Name(id=name) if depth and len(held.get(name, ())) == 1:
            return _parameter_of(held[name][0], parameters, held, depth - 1)
        case _:
            return ""


def _has_text(node: ast.expr) -> bool:
    return any(
        isinstance(getattr(inner, "value", None), str)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant)
    )


def _may_be_text(hint: ast.expr | None) -> bool:
    """Check whether a hint is that of a text or a path, of several, or missing."""
    words = {*_WORD.findall(ast.unparse(hint))} if hint else _TEXTS
    return bool(words & _TEXTS) and not words & _TABLES


def needs_of(all_uses: Iterable[Use]) -> Grants:
    """Return the combined grants that these uses need."""
    items: dict[str, dict[str, None]] = {}
    for use in all_uses:
        if use.kind:
            items.setdefault(use.kind, {})[use.item] = None
    return joined(Grants.from_json({kind: [*named]}) for kind, named in items.items())


def use_of(kind: str, item: str | None, shown: str, node: ast.AST) -> Use:
    """Return a use that needs a grant. If `item` is None, no grant allows it."""
    grant = "files" if kind in ("read", "write") else kind
    if item is None:
        return _never(grant, shown, node)
    named = "" if item == UNSAID else f" ({'to write ' if kind == 'write' else ''}{item})"
    message = f"`{shown}` needs the grant `{grant}`{named}, which this function does not have"
    return Use(
        kind, item, _finding(f"needs-{grant}", message, ADVICE.get(grant, "do without it"), node)
    )


def _never(grant: str, shown: str, node: ast.AST) -> Use:
    if grant == "secrets":
        message = (
            f"`{shown}` shows only the sandbox's own environment, which holds nothing of the user's"
        )
    else:
        message = f"`{shown}` needs the grant `{grant}`, which cannot be granted for this"
    return Use(
        "", "", _finding(f"needs-{grant}", message, INSTEAD.get(grant, "do without it"), node)
    )


def _finding(code: str, message: str, fix: str, node: ast.AST) -> Finding:
    return Finding(
        code, message, fix, getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1
    )


def _call(node: ast.Call, defined: frozenset[str], held: Held) -> Iterator[Use]:
    match node.func:
        case ast.Name(id=name) if name in defined:
            pass
        case ast.Name(id="open"):
            if not any(reads(argument, _SCRATCH, held) for argument in node.args):
                path = path_of(node.args[0] if node.args else None, held)
                yield use_of("write" if _writes(node) else "read", path, "open()", node)
        case ast.Name(id="input"):
            message = "`input()` would wait for a terminal, and there is none"
            fix = "take what it would ask for as a parameter"
            yield Use("", "", _finding("needs-terminal", message, fix, node))
        case ast.Name(id=name) if name in _BUILTINS:
            yield _dynamic(f"{name}()", node)
        case ast.Attribute(attr=method, value=target) if method in _FILE_METHODS:
            is_path = method in _PATH_METHODS or reads(target, _PATHS, held)
            if is_path and not reads(target, _SCRATCH, held):
                writes = _writes(node, 0) if method == "open" else method in _WRITING
                yield use_of(
                    "write" if writes else "read",
                    path_of(target, held),
                    ast.unparse(node.func),
                    node,
                )
        case ast.Attribute(attr="import_module"):
            yield _dynamic(ast.unparse(node.func), node)


def _writes(node: ast.Call, at: int = 1) -> bool:
    """Check whether a call of `open` is for writing. A mode that is not a literal counts as writing."""
    mode = next(
        (keyword.value for keyword in node.keywords if keyword.arg == "mode"),
        node.args[at] if len(node.args) > at else None,
    )
    if mode is None:
        return False
    return not (isinstance(mode, ast.Constant) and isinstance(mode.value, str)) or bool(
        set(mode.value) & set("wax+")
    )


def _dynamic(shown: str, node: ast.Call) -> Use:
    message = f"`{shown}` runs code that nobody has read"
    fix = "for literals use `ast.literal_eval`, for arithmetic walk `ast.parse(text, mode='eval')`"
    return Use("", "", _finding("dynamic-code", message, fix, node))
