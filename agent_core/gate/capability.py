"""Stage 6, capability: what a function would need a human's grant for, inferred from its tree.

Pure. This is advice for a human's decision and a clear word to the model; what holds is the sandbox.
What lies below `self.scratch` needs no grant.
"""

import ast
import sys
from collections.abc import Iterator

from .draft import Draft, Finding
from .flow import below_scratch, local_names, mentions, paths
from .grants import ADVICE, CONTEXT, grant_of
from .tree import bound_names, nodes_of

STAGE = "capability"
EFFECTS = frozenset({"call", "fetch", "secret", "memory"})
_PATH_METHODS = frozenset({"read_text", "write_text", "read_bytes", "write_bytes"})
_FILE_METHODS = _PATH_METHODS | frozenset(
    {"open", "unlink", "mkdir", "rmdir", "touch", "iterdir", "glob", "rglob", "exists"}
    | {"is_file", "is_dir", "stat", "rename"}
)
_BUILTINS = frozenset({"open", "eval", "exec", "compile", "__import__", "input"})


def capability(draft: Draft) -> Draft:
    """The draft with every use that needs a grant."""
    if draft.tree is None:
        return draft.skip("the code could not be read")
    return draft.with_findings(STAGE, check(draft.tree, draft.rules.packages))


def check(tree: ast.Module, packages: tuple[str, ...]) -> list[Finding]:
    """Every use in a module that needs a grant or cannot be foreseen, one a line and kind."""
    nodes = nodes_of(tree)
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    findings = [
        *(finding for node in imports for finding in _imports(node, packages)),
        *_attributes(attributes, _aliases(imports)),
        *_context(attributes),
        *(_calls(tree) if any(isinstance(node, ast.Call) and _is_suspect(node) for node in nodes) else ()),
    ]
    found: dict[tuple[int, str], Finding] = {}
    for finding in findings:
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
    mend = f"{ADVICE.get(grant, 'do without it')}; a grant is a human's decision"
    return Finding(f"needs-{grant}", what, mend, getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1)


def _imports(node: ast.Import | ast.ImportFrom, packages: tuple[str, ...]) -> Iterator[Finding]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        names = [f"{node.module}.{alias.name}" for alias in node.names if node.level == 0 and node.module]
    for name in names:
        yield from _imported(name, node, packages)


def _imported(name: str, node: ast.Import | ast.ImportFrom, packages: tuple[str, ...]) -> Iterator[Finding]:
    top = name.partition(".")[0]
    grant = grant_of(name)
    if grant and not (isinstance(node, ast.Import) and name in ("os", "asyncio", "concurrent.futures")):
        yield _needs(grant, ast.unparse(node), node)
    elif top in ("ctypes", "cffi", "_ctypes"):
        what = f"`{ast.unparse(node)}` reaches below Python, which the sandbox does not allow"
        yield Finding("native-code", what, "do the work in Python itself", node.lineno, node.col_offset + 1)
    elif top not in sys.stdlib_module_names and top not in (*packages, "functions", "__future__"):
        yield _needs("packages", ast.unparse(node), node)


def _attributes(attributes: list[ast.Attribute], modules: dict[str, str]) -> Iterator[Finding]:
    inner = {id(node.value) for node in attributes}
    for node in attributes:
        dotted = _dotted(node, modules) if id(node) not in inner else None
        grant = grant_of(dotted) if dotted else None
        # What its import already says is not said again at each use.
        if grant and dotted and dotted.partition(".")[0] in ("os", "io", "asyncio", "concurrent"):
            yield _needs(grant, dotted, node)


def _aliases(imports: list[ast.Import | ast.ImportFrom]) -> dict[str, str]:
    """What the imported names stand for."""
    aliases: dict[str, str] = {}
    for node in imports:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if isinstance(node, ast.Import):
                aliases[alias.asname or top] = alias.name if alias.asname else top
            elif node.module and node.level == 0:
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return aliases


def _dotted(node: ast.expr, modules: dict[str, str]) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in modules:
        return None
    return ".".join([modules[node.id], *reversed(parts)])


def _is_suspect(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _BUILTINS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _FILE_METHODS or name == "import_module"
        case _:
            return False


def _calls(tree: ast.Module) -> Iterator[Finding]:
    defined = bound_names(tree)
    for scope in tree.body:
        names, scratch, held = defined | local_names(scope), below_scratch(scope), paths(scope)
        for node in ast.walk(scope):
            if isinstance(node, ast.Call):
                yield from _call(node, names, scratch, held)


def _call(node: ast.Call, defined: set[str] | frozenset[str], scratch: set[str], held: set[str]) -> Iterator[Finding]:
    match node.func:
        case ast.Name(id=name) if name not in defined:
            yield from _builtin(name, node, scratch)
        case ast.Attribute(attr=method, value=target) if method in _FILE_METHODS:
            is_path = method in _PATH_METHODS or mentions(target, held | {"Path"})
            if is_path and not mentions(target, scratch):
                yield _needs("files", ast.unparse(node.func), node)
        case ast.Attribute(attr="import_module"):
            yield _dynamic(ast.unparse(node.func), node)


def _builtin(name: str, node: ast.Call, scratch: set[str]) -> Iterator[Finding]:
    if name == "open" and not any(mentions(argument, scratch) for argument in node.args):
        yield _needs("files", "open()", node)
    elif name == "input":
        what = "`input()` would wait for a terminal, and there is none"
        mend = "take what it would ask for as a parameter"
        yield Finding("needs-terminal", what, mend, node.lineno, node.col_offset + 1)
    elif name in _BUILTINS - {"open"}:
        yield _dynamic(f"{name}()", node)


def _dynamic(shown: str, node: ast.Call) -> Finding:
    what = f"`{shown}` runs code that nobody has read"
    mend = "for literals use `ast.literal_eval`, for arithmetic walk `ast.parse(text, mode='eval')`"
    return Finding("dynamic-code", what, mend, node.lineno, node.col_offset + 1)


def _context(attributes: list[ast.Attribute]) -> Iterator[Finding]:
    for node in attributes:
        match node:
            case ast.Attribute(attr=part, value=ast.Name(id="self")) if part in CONTEXT:
                yield _needs(CONTEXT[part], f"self.{part}", node)
