"""Stage 6, capability: what a function would need a human's grant for, inferred from its tree.

Pure. This is advice for a human's decision and a clear word to the model; what holds is the sandbox.
What lies below `self.scratch` needs no grant.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from .draft import Draft, Finding
from .tree import bound_names, functions, own_nodes

STAGE = "capability"

# Module, or module.name, by the grant that it needs. A longer entry wins over a shorter one.
GRANTS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        [
            "socket",
            "ssl",
            "socketserver",
            "urllib.request",
            "http.client",
            "http.server",
            "ftplib",
            "smtplib",
            "poplib",
            "imaplib",
            "telnetlib",
            "nntplib",
            "xmlrpc",
            "webbrowser",
            "asyncio.open_connection",
            "asyncio.start_server",
            "requests",
            "httpx",
            "aiohttp",
            "urllib3",
            "websockets",
        ],
        "network",
    )
    | dict.fromkeys(
        [
            "shutil",
            "glob",
            "fileinput",
            "dbm",
            "shelve",
            "sqlite3",
            "tempfile",
            "linecache",
            "io.open",
            "io.FileIO",
            "os.open",
            "os.remove",
            "os.unlink",
            "os.rename",
            "os.replace",
            "os.mkdir",
            "os.makedirs",
            "os.rmdir",
            "os.removedirs",
            "os.listdir",
            "os.scandir",
            "os.walk",
            "os.stat",
            "os.chmod",
            "os.chown",
            "os.link",
            "os.symlink",
            "os.truncate",
            "os.utime",
            "os.path.exists",
            "os.path.getsize",
            "os.path.isfile",
            "os.path.isdir",
        ],
        "files",
    )
    | dict.fromkeys(
        [
            "subprocess",
            "multiprocessing",
            "pty",
            "signal",
            "os.system",
            "os.popen",
            "os.fork",
            "os.forkpty",
            "os.kill",
            "os.killpg",
            "os.execv",
            "os.execve",
            "os.execl",
            "os.execlp",
            "os.execvp",
            "os.spawnl",
            "os.spawnv",
            "os.posix_spawn",
            "asyncio.create_subprocess_exec",
            "asyncio.create_subprocess_shell",
            "concurrent.futures.ProcessPoolExecutor",
        ],
        "processes",
    )
    | dict.fromkeys(["os.environ", "os.environb", "os.getenv", "getpass", "keyring"], "secrets")
)
_WITHOUT_GRANT = frozenset(
    {"tempfile.SpooledTemporaryFile", "shutil.get_terminal_size", "glob.escape", "glob.translate", "signal.Signals"}
)
_ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "network": "take the text as a parameter instead of fetching it",
        "files": "take the content as a parameter, or keep files below `self.scratch`",
        "processes": "do the work in Python itself",
        "secrets": "take the value as a parameter",
        "packages": "use the standard library",
    }
)
_PATH_METHODS = frozenset(["read_text", "write_text", "read_bytes", "write_bytes"])
_FILE_METHODS = _PATH_METHODS | frozenset(
    [
        "open",
        "unlink",
        "mkdir",
        "rmdir",
        "touch",
        "iterdir",
        "glob",
        "rglob",
        "exists",
        "is_file",
        "is_dir",
        "stat",
        "rename",
    ]
)
_CONTEXT_GRANTS: Mapping[str, str] = MappingProxyType({"fetch": "network", "secret": "secrets", "memory": "memory"})
EFFECTS = frozenset({"call", "fetch", "secret", "memory"})


def capability(draft: Draft) -> Draft:
    """The draft with every use that needs a grant."""
    if draft.tree is None:
        return draft.skip("the code could not be read")
    return draft.with_findings(STAGE, check(draft.tree, draft.rules.packages))


def check(tree: ast.Module, packages: tuple[str, ...]) -> list[Finding]:
    """Every use in a module that needs a grant or cannot be foreseen, one a line and kind."""
    found: dict[tuple[int, str], Finding] = {}
    for finding in (*_imports(tree, packages), *_attributes(tree), *_calls(tree), *_context(tree)):
        found.setdefault((finding.line, finding.code), finding)
    return sorted(found.values(), key=lambda one: (one.line, one.column))


def uses_context(tree: ast.AST) -> frozenset[str]:
    """The parts of the call's context that a function reaches: `call`, `progress`, `scratch`, …"""
    return frozenset(
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    )


def _needs(grant: str, shown: str, node: ast.AST) -> Finding:
    what = f"`{shown}` needs the grant `{grant}`, which this function does not have"
    mend = f"{_ADVICE.get(grant, 'do without it')}; a grant is a human's decision"
    return Finding(f"needs-{grant}", what, mend, getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1)


def _grant(name: str) -> str | None:
    """The grant that a dotted name needs: of the name itself, or of the modules that it lies in."""
    if name in _WITHOUT_GRANT:
        return None
    parts = name.split(".")
    return next((GRANTS[head] for size in range(len(parts), 0, -1) if (head := ".".join(parts[:size])) in GRANTS), None)


def _imports(tree: ast.Module, packages: tuple[str, ...]) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield from _imported(name, node, packages)


def _imported(name: str, node: ast.Import | ast.ImportFrom, packages: tuple[str, ...]) -> Iterator[Finding]:
    top = name.partition(".")[0]
    grant = _grant(name)
    if grant and not (isinstance(node, ast.Import) and name in ("os", "asyncio", "concurrent.futures")):
        yield _needs(grant, ast.unparse(node), node)
    elif top in ("ctypes", "cffi", "_ctypes"):
        what = f"`{ast.unparse(node)}` reaches below Python, which the sandbox does not allow"
        yield Finding("native-code", what, "do the work in Python itself", node.lineno, node.col_offset + 1)
    elif top not in sys.stdlib_module_names and top not in (*packages, "functions", "__future__"):
        yield _needs("packages", ast.unparse(node), node)


def _attributes(tree: ast.Module) -> Iterator[Finding]:
    modules = _module_aliases(tree)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or id(node) in inner:
            continue
        dotted = _dotted(node, modules)
        grant = _grant(dotted) if dotted else None
        # What its import already says is not said again at each use.
        if grant and dotted and dotted.partition(".")[0] in ("os", "io", "asyncio", "concurrent"):
            yield _needs(grant, dotted, node)


def _module_aliases(tree: ast.Module) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                aliases[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            aliases.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return aliases


def _dotted(node: ast.expr, modules: dict[str, str]) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in modules:
        return None
    return ".".join([modules[node.id], *reversed(parts)])


def _calls(tree: ast.Module) -> Iterator[Finding]:
    defined = bound_names(tree)
    for function in functions(tree):
        scratch = _below_scratch(function)
        paths = _paths(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                yield from _call(node, defined | _locals(function), scratch, paths)


def _call(node: ast.Call, defined: set[str], scratch: set[str], paths: set[str]) -> Iterator[Finding]:
    match node.func:
        case ast.Name(id=name) if name not in defined:
            yield from _builtin(name, node, scratch)
        case ast.Attribute(attr=method, value=target) if method in _FILE_METHODS:
            is_path = method in _PATH_METHODS or _mentions(target, paths | {"Path"})
            if is_path and not _mentions(target, scratch):
                yield _needs("files", ast.unparse(node.func), node)
        case ast.Attribute(attr="import_module"):
            yield _dynamic(ast.unparse(node.func), node)


def _builtin(name: str, node: ast.Call, scratch: set[str]) -> Iterator[Finding]:
    if name == "open" and not any(_mentions(argument, scratch) for argument in node.args):
        yield _needs("files", "open()", node)
    elif name in ("eval", "exec", "compile", "__import__"):
        yield _dynamic(f"{name}()", node)
    elif name in ("input", "breakpoint") and name == "input":
        what = "`input()` would wait for a terminal, and there is none"
        yield Finding(
            "needs-terminal", what, "take what it would ask for as a parameter", node.lineno, node.col_offset + 1
        )


def _dynamic(shown: str, node: ast.Call) -> Finding:
    what = f"`{shown}` runs code that nobody has read"
    mend = "for literals use `ast.literal_eval`, for arithmetic walk `ast.parse(text, mode='eval')`"
    return Finding("dynamic-code", what, mend, node.lineno, node.col_offset + 1)


def _context(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=part, value=ast.Name(id="self")) if part in _CONTEXT_GRANTS:
                yield _needs(_CONTEXT_GRANTS[part], f"self.{part}", node)


def _locals(function: ast.AST) -> set[str]:
    """Every name that a function binds somewhere, parameters included."""
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def _below_scratch(function: ast.AST) -> set[str]:
    """The names whose values come from `self.scratch`, and `self.scratch` itself."""
    return _derived(function, {"self.scratch"})


def _paths(function: ast.AST) -> set[str]:
    """The names that hold a path: declared so, or made by `Path`."""
    declared = {
        node.arg
        for node in ast.walk(function)
        if isinstance(node, ast.arg) and node.annotation is not None and _mentions(node.annotation, {"Path"})
    }
    return _derived(function, {"Path", *declared}) - {"Path"}


def _derived(function: ast.AST, sources: set[str]) -> set[str]:
    """The sources, and the names that are assigned from them, in the order of the text."""
    names = set(sources)
    for node in own_nodes(list(ast.iter_child_nodes(function))):  # type: ignore[arg-type] # any child will do
        match node:
            case ast.Assign(targets=targets, value=value) if _mentions(value, names):
                names |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
            case ast.With(items=items):
                for item in items:
                    if isinstance(item.optional_vars, ast.Name) and _mentions(item.context_expr, names):
                        names.add(item.optional_vars.id)
            case ast.For(target=ast.Name(id=name), iter=value) if _mentions(value, names):
                names.add(name)
    return names


def _mentions(node: ast.AST, names: set[str]) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id in names:
            return True
        if isinstance(one, ast.Attribute) and one.attr == "scratch" and "self.scratch" in names:
            return True
    return False
