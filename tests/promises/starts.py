"""Finds every place in a source that can start a program, under whatever name it is imported."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_SPAWNS = "spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe posix_spawn posix_spawnp"
_EXECS = "execl execle execlp execlpe execv execve execvp execvpe"
_STARTS = {
    "os": f"system popen startfile fork forkpty {_SPAWNS} {_EXECS}",
    "posix": f"system fork forkpty {_SPAWNS} {_EXECS}",
    "pty": "spawn fork",
    "subprocess": "run call check_call check_output getoutput getstatusoutput Popen",
    "_posixsubprocess": "fork_exec",
    "asyncio": "create_subprocess_exec create_subprocess_shell",
    "asyncio.subprocess": "create_subprocess_exec create_subprocess_shell",
    "multiprocessing": "Process Pool Manager get_context",
    "multiprocessing.context": "Process ForkProcess SpawnProcess ForkServerProcess",
    "multiprocessing.util": "spawnv_passfds",
    "concurrent.futures": "ProcessPoolExecutor",
    "concurrent.futures.process": "ProcessPoolExecutor",
    "ctypes.util": "find_library",
    "platform": "platform processor architecture uname",
    "uuid": "uuid1 getnode",
    "webbrowser": "open open_new open_new_tab get",
    "click": "edit launch echo_via_pager",
    "pydoc": "pager",
    "sys": "executable",
}
STARTS = frozenset(
    f"{module}.{name}" for module, names in _STARTS.items() for name in names.split()
)
# On any object: an event loop, or a module that was passed around.
_METHODS = frozenset({"subprocess_exec", "subprocess_shell", "posix_spawn", "posix_spawnp"})
_MENTIONS = re.compile(
    rf"\b(?:{'|'.join({name.partition('.')[0] for name in _STARTS})})\b|{'|'.join(_METHODS)}"
)
_IMPORTERS = frozenset({"importlib.import_module", "__import__"})


@dataclass(frozen=True, slots=True)
class Start:
    """One place: what starts, where, and the keywords of the call."""

    name: str
    line: int
    keywords: frozenset[str] = frozenset()


def starts(source: str) -> list[Start]:
    """Return every mention of what starts a program, called or not."""
    if not _MENTIONS.search(source):
        return []
    nodes = [*ast.walk(ast.parse(source))]
    names = dict(_imported(nodes))
    calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    found = []
    for node in nodes:
        name = _start(node, names)
        if name:
            call = calls.get(id(node))
            keywords = (
                frozenset(each.arg for each in call.keywords if each.arg)
                if call
                else frozenset[str]()
            )
            found.append(Start(name, getattr(node, "lineno", 0), keywords))
    return found


def _imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield each imported name in the source with its full name."""
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                yield from (
                    (one.asname or _top(one.name), one.name if one.asname else _top(one.name))
                    for one in aliases
                )
            case ast.ImportFrom(module=str(module), level=0, names=aliases):
                yield from ((one.asname or one.name, f"{module}.{one.name}") for one in aliases)
            case ast.Assign(value=value, targets=targets):
                own = [target.id for target in targets if isinstance(target, ast.Name)]
                yield from ((name, module) for name in own for module in _modules(value))


def _modules(value: ast.expr) -> Iterator[str]:
    """Yield the module to which an assignment gives a second name."""
    if isinstance(value, ast.Name) and value.id in _STARTS:
        yield value.id
    if isinstance(value, ast.Call) and value.args and isinstance(value.args[0], ast.Constant):
        called = ast.unparse(value.func).rpartition(".")[2]
        if called in ("import_module", "__import__") and value.args[0].value in _STARTS:
            yield str(value.args[0].value)


def _top(name: str) -> str:
    return name.partition(".")[0]


def _start(node: ast.AST, names: dict[str, str]) -> str:
    """Return what this node starts a program with, or an empty string."""
    name = ""
    match node:
        case ast.ImportFrom(module=str(module), level=0, names=aliases):
            imported = [f"{module}.{alias.name}" for alias in aliases]
            name = next(
                (
                    one
                    for one in imported
                    if one in STARTS or (one.endswith(".*") and module in _STARTS)
                ),
                "",
            )
        case ast.Call(func=ast.Name(id="getattr"), args=[base, attribute, *_]) if (
            _dotted(base, names) in _STARTS
        ):
            module, is_said = _dotted(base, names), isinstance(attribute, ast.Constant)
            known = (
                f"{module}.{attribute.value!s}"
                if isinstance(attribute, ast.Constant)
                else f"{module}.?"
            )
            name = known if known in STARTS or not (is_said or module == "sys") else ""
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key))) if key in _STARTS:
            name = f"sys.modules[{key}]" if _dotted(value, names) == "sys.modules" else ""
        case ast.Attribute(attr=attribute):
            dotted = _dotted(node, names)
            name = dotted if dotted in STARTS else f"?.{attribute}" if attribute in _METHODS else ""
        case ast.Name(id=own) if names.get(own, "") in STARTS:
            name = names[own]
    return name


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return names.get(name, name)
        case ast.Attribute(value=value, attr=attribute):
            return f"{_dotted(value, names)}.{attribute}"
        case ast.Call(args=[ast.Constant(value=str(module)), *_], func=func):
            called = _dotted(func, names)
            return module if called in _IMPORTERS or called.endswith("import_module") else "?"
    return "?"
