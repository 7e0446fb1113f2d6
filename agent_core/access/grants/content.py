"""The exact code that a yes is for: the function and what it calls and imports within the workspace.

A function with grants runs with the modules of these alone: nothing else, however it is imported, inherits them.
The parts of these modules decide what it does: itself, what it names, and what runs at an import. A neighbor that it
does not name is no part, if defining it runs nothing. Where a text could reach a neighbor without naming it
(`globals()`, `getattr`, frames, …), every part counts.
"""

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

from agent_core.base import syntax
from agent_core.base.characters import Flaw, flaw_of, name_flaw_of
from agent_core.base.matching import diff_lines
from agent_core.base.problem import Place
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource, parse_accepted
from sandbox.wire.lines import bare_lines

Part: TypeAlias = tuple[str, str]  # module and name; an empty name is what runs at the module's import
_LONGEST_DIFF: Final = 300_000
_ROOT: Final = "functions"
_PLAIN_DUNDERS: Final = (
    "init|post_init|name|main|future|all|doc|enter|exit|iter|next|len|repr|str|eq|hash|call|slots|contains|getitem"
)
# Words by which a text may reach what it does not name.
_REACHING: Final = re.compile(
    rf"\b(globals|vars|eval|exec|compile|getattr|setattr|attrgetter|methodcaller|sys|inspect|importlib|gc|types|pickle"
    rf"|marshal|builtins|runpy|pkgutil|pydoc|unittest|mock|doctest|traceback|tb_frame|\w+_frame|_getframe|f_globals|f_back"
    rf"|__(?!(?:{_PLAIN_DUNDERS})__)\w+__)\b"
)
_INERT_TYPES: Final = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.BinOp, ast.BitOr)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement at the top of a module: the names it binds, and whether only their use makes it matter."""

    text: str
    binds: frozenset[str]
    names: frozenset[str]
    imports: tuple[Part, ...]  # of the workspace: module, and name in it, or "" for all of it
    is_inert: bool


@dataclass(frozen=True, slots=True)
class FunctionContent:
    """The modules by name, each with its version, and one digest of a function and all of them."""

    digest: str
    versions: tuple[tuple[str, str], ...]

    def to_text(self) -> str:
        """Return the versions as JSON."""
        return json.dumps(self.versions)


def content_of(function: Function, snapshot: Snapshot) -> FunctionContent:
    """Return the content that a yes to this function, in the version in this snapshot, is bound to."""
    modules = modules_of(function.module, snapshot)
    versions = tuple(sorted((name, source.version) for name, source in modules.items()))
    parts = parts_of((function.module, function.name), {name: source.text for name, source in modules.items()})
    text = json.dumps([function.name, function.module, sorted(parts.items())])
    return FunctionContent(hashlib.sha256(text.encode()).hexdigest(), versions)


def since(function: Function, snapshot: Snapshot, texts: Mapping[str, str]) -> tuple[str, str]:
    """Return what became different since a function was agreed to with these modules: as a sentence, and as a diff."""
    own, modules = (function.module, function.name), modules_of(function.module, snapshot)
    before, now = parts_of(own, texts), parts_of(own, {name: source.text for name, source in modules.items()})
    differing = sorted(part for part in before.keys() | now.keys() if before.get(part) != now.get(part))
    old = {module: _joined(module, differing, before) for module, _ in differing if module in texts}
    new = [replace(source, text=_joined(name, differing, now)) for name, source in modules.items()]
    return changes(own, before, now), differences(
        old, (source for source in new if source.text or source.module in old)
    )


def _joined(module: str, differing: Iterable[Part], parts: Mapping[Part, str]) -> str:
    return "\n\n".join(parts[part] for part in differing if part[0] == module and part in parts)


def modules_of(module: str, snapshot: Snapshot) -> Mapping[str, ModuleSource]:
    """Return a module with the packages around it and all its imports, recursively."""
    modules: dict[str, ModuleSource] = {}
    waiting = [module]
    while waiting:
        for name in _with_packages(waiting.pop()):
            source = snapshot.modules.get(name)
            if source is not None and name not in modules:
                modules[name] = source
                waiting += snapshot.readings[name].imports
    return modules


def misleading(function: Function, snapshot: Snapshot) -> str:
    """Return why nothing can be granted: which code does not read as it runs, and where. Return "" if all of it does.

    An older release may have accepted such a text, and a yes to it.
    """
    for source in modules_of(function.module, snapshot).values():
        if flaw := _flaw_of(source.text):
            where = Place(source.path, flaw.line, flaw.column)
            message = f"{where} does not read as it runs: {flaw.description}"
            return f"{message}. Nothing is granted to it until that is fixed: {flaw.fix}."
    return ""


@lru_cache(maxsize=1024)
def _flaw_of(text: str) -> Flaw | None:
    tree = None if text.isascii() else parse_accepted(ModuleSource.of("", text))
    return flaw_of(text) or (name_flaw_of(text, tree) if isinstance(tree, ast.Module) else None)


def _with_packages(module: str) -> Iterator[str]:
    parts = module.split(".")
    yield from (".".join(parts[:size]) for size in range(1, len(parts) + 1))


def differences(before: Mapping[str, str], after: Iterable[ModuleSource]) -> str:
    """Return what differs from the texts before, by module, as one diff."""
    now = {source.module: source for source in after}
    lines: list[str] = []
    for name in sorted(before.keys() | now.keys()):
        path = now[name].path if name in now else name
        old, new = before.get(name, ""), now[name].text if name in now else ""
        lines += diff_lines(bare_lines(old), bare_lines(new), (f"{path} (agreed)", f"{path} (now)"))
    return "\n".join(lines)


def unshowable(diff: str) -> str:
    """Return why the user cannot be asked about a diff: it is too long to read. Return "" if they can."""
    if len(diff) <= _LONGEST_DIFF:
        return ""
    message = (
        f"What is different since the last yes is {len(diff):,} characters long, and at most {_LONGEST_DIFF:,} are"
    )
    return f"{message} put before a human, so nothing is granted. Split the module, or change it in smaller steps."


def parts_of(function: Part, texts: Mapping[str, str]) -> Mapping[Part, str]:
    """Return the text of every part that a function's behavior depends on, of these modules."""
    parts: dict[Part, str] = {}
    waiting: list[Part] = [function]
    seen: set[Part] = set()
    while waiting:
        module, name = waiting.pop()
        if (module, name) in seen or (text := texts.get(module)) is None:
            continue
        seen.add((module, name))
        for statement in _statements(text, module):
            if name and statement.is_inert and name not in statement.binds:
                continue
            key = (module, "" if not statement.is_inert else min(statement.binds))
            if statement.text not in parts.get(key, ""):
                parts[key] = f"{parts[key]}\n{statement.text}" if key in parts else statement.text
            waiting += [(module, used) for used in statement.names]
            waiting += [target for imported in statement.imports for target in _targets(*imported, texts)]
    return parts


def _targets(module: str, name: str, texts: Mapping[str, str]) -> Iterator[Part]:
    """Yield what an import brings in, and the packages that it runs."""
    inner = f"{module}.{name}".strip(".")
    target = (inner, "") if inner in texts else (module, name)
    yield from ((package, "") for package in _packages(target[0]))
    yield target


def _packages(module: str) -> Iterator[str]:
    pieces = module.split(".")
    yield from (".".join(pieces[:size]) for size in range(1, len(pieces)))


@lru_cache(maxsize=512)
def _statements(text: str, module: str) -> tuple[_Statement, ...]:
    try:
        body = syntax.parse(text).body
        statements = tuple(_statement(node, bare_lines(text), module) for node in body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (_Statement(text, frozenset(), frozenset(), (), is_inert=False),)
    return statements


def _statement(node: ast.stmt, lines: list[str], module: str) -> _Statement:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
    text = "\n".join(lines[first - 1 : node.end_lineno])
    imports = tuple(target for child in ast.walk(node) for target in _imported(child, module))
    names = frozenset(child.id for child in ast.walk(node) if isinstance(child, ast.Name))
    binds = _bound(node)
    if _REACHING.search(text):  # every name of its own module, then
        imports = (*imports, (module, ""))
    return _Statement(text, binds, names, imports, is_inert=bool(binds) and _is_inert(node))


def _imported(node: ast.AST, module: str) -> Iterator[Part]:
    """Yield what of the workspace an import names."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name == _ROOT or alias.name.startswith(f"{_ROOT}."):
                yield alias.name.removeprefix(_ROOT).lstrip("."), ""
    elif isinstance(node, ast.ImportFrom) and (base := _base(node, module)) is not None:
        for alias in node.names:
            yield base, "" if alias.name == "*" else alias.name


def _base(node: ast.ImportFrom, module: str) -> str | None:
    """Return the module of the workspace that an import is from, without the root; None for another's."""
    name = node.module or ""
    if node.level:
        above = [_ROOT, *module.split(".")][: -node.level]
        name = ".".join([*above, *([name] if name else [])])
    return name.removeprefix(_ROOT).lstrip(".") if name == _ROOT or name.startswith(f"{_ROOT}.") else None


def _bound(node: ast.stmt) -> frozenset[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return frozenset({name})
        case ast.Assign(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
            return frozenset(target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            return frozenset({name})
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return frozenset(alias.asname or alias.name.partition(".")[0] for alias in names)
        case _:
            return frozenset()


def _is_inert(node: ast.stmt) -> bool:
    """Check whether a statement does no more than to bind its names."""
    match node:
        case (
            ast.FunctionDef(decorator_list=[], args=args, returns=returns)
            | ast.AsyncFunctionDef(decorator_list=[], args=args, returns=returns)
        ):
            every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            hints = [*(argument.annotation for argument in every if argument is not None), returns]
            defaults = [*args.defaults, *args.kw_defaults]
            return all(hint is None or _is_plain_hint(hint) for hint in hints) and all(map(_is_literal, defaults))
        case ast.Assign(value=value):
            return _is_literal(value)
        case ast.AnnAssign(value=value, annotation=hint):
            return _is_literal(value) and _is_plain_hint(hint)
        case ast.Import(names=names):
            return all(alias.name.partition(".")[0] in sys.stdlib_module_names for alias in names)
        case ast.ImportFrom(module=str(module), level=0, names=names):
            is_own = module.partition(".")[0] in sys.stdlib_module_names or module == "__future__"
            return is_own and module != "__future__" and all(alias.name != "*" for alias in names)
        case _:
            return False


def changes(function: Part, before: Mapping[Part, str], now: Mapping[Part, str]) -> str:
    """Return what became different since the parts were agreed to, as a sentence without its end."""
    differing = sorted(part for part in before.keys() | now.keys() if before.get(part) != now.get(part))
    others = [_words(part, before, now) for part in differing if part != function]
    whole = [f"`{function[1]}` itself is {'changed' if function in differing else 'unchanged'}", *others]
    return "; ".join(whole) if differing else ""


def _words(part: Part, before: Mapping[Part, str], now: Mapping[Part, str]) -> str:
    module, name = part
    how = "changed" if part in before and part in now else "is new" if part in now else "is gone"
    return f"`{name}` of {module} {how}" if name else f"what {module} does when it is imported {how}"


def _is_plain_hint(node: ast.expr) -> bool:
    return all(isinstance(child, (*_INERT_TYPES, ast.expr_context)) for child in ast.walk(node))


def _is_literal(node: ast.expr | None) -> bool:
    if node is None:
        return True
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
