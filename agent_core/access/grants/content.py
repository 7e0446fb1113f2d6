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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.base import syntax
from agent_core.base.characters import Flaw, flaw_of, name_flaw_of
from agent_core.base.matching import diff_lines
from agent_core.base.problem import Place
from agent_core.registry.source import ModuleSource, parse_accepted
from sandbox.wire.lines import bare_lines

from .definitions import is_inert, known_names, names_bound

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.snapshot import Snapshot

Part: TypeAlias = tuple[str, str]  # module and name; an empty name is what runs at the module's import
_ITS_IMPORT: Final = "."  # a name that nothing binds: of a package around a module, only what runs at its import
_LONGEST_DIFF: Final = 300_000
_ROOT: Final = "functions"
_PLAIN_DUNDERS: Final = (
    "init|post_init|name|main|future|all|doc|enter|exit|iter|next|len|repr|str|eq|hash|call|slots|contains|getitem"
)
# Words by which a text may reach what it does not name.
_REACHING: Final = re.compile(
    rf"\b(globals|vars|eval|exec|(?<!\bre\.)compile|getattr|setattr|attrgetter|methodcaller|sys|inspect|importlib|gc|types|pickle"
    rf"|marshal|builtins|runpy|pkgutil|pydoc|unittest|mock|doctest|traceback|tb_frame|\w+_frame|_getframe|f_globals|f_back"
    rf"|__(?!(?:{_PLAIN_DUNDERS})__)\w+__)\b"
)
# Words by which a text may also see where its lines are, or read them.
_SEEING: Final = re.compile(
    rf"{_REACHING.pattern}|\b(warnings|logging|linecache|tokenize|lineno|f?trace|profile|cProfile|tracemalloc|\w*format_map"
    r"|Formatter|help|locals|dir|ast|dis|code|symtable|faulthandler)\b"
)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement at the top of a module: the names it binds, and whether only their use makes it matter.

    Its code is empty where it may see its layout.
    """

    text: str
    code: str  # its text without layout, unless something in it may see the layout
    binds: frozenset[str]
    names: frozenset[str]
    imports: tuple[Part, ...]  # of the workspace: module, and name in it, or "" for all of it
    is_inert: bool


Statements: TypeAlias = dict[_Statement, None]  # in their order, each once


@dataclass(frozen=True, slots=True)
class FunctionContent:
    """The modules by name, each with its version, and one digest of a function and all of them."""

    digest: str
    versions: tuple[tuple[str, str], ...]

    def to_text(self) -> str:
        """Return the versions as JSON."""
        return json.dumps(self.versions)


def content_of(function: "Function", snapshot: "Snapshot") -> FunctionContent:
    """Return the content that a yes to this function, in the version in this snapshot, is bound to."""
    modules = modules_of(function.module, snapshot)
    versions = tuple(sorted((name, source.version) for name, source in modules.items()))
    parts = parts_of((function.module, function.name), {name: source.text for name, source in modules.items()})
    text = json.dumps([function.name, function.module, sorted(parts.items())])
    return FunctionContent(hashlib.sha256(text.encode()).hexdigest(), versions)


def since(function: "Function", snapshot: "Snapshot", texts: Mapping[str, str]) -> tuple[str, str]:
    """Return what became different since a function was agreed to with these modules: as a sentence, and as a diff.

    The sentence is empty if it is only the layout, or nothing. Docstrings are no layout: a function can read them, and
    their examples run with the files that it was granted.
    """
    own, modules = (function.module, function.name), modules_of(function.module, snapshot)
    former = _former_module(own, texts)
    before = {
        (function.module if module == former else module, name): statements
        for (module, name), statements in _reached((former, function.name), texts).items()
    }
    now = _reached(own, {name: source.text for name, source in modules.items()})
    is_seen = _may_see_layout(before) or _may_see_layout(now)
    codes, new_codes = (_joined_each(found, is_text=is_seen) for found in (before, now))
    differing = sorted(part for part in codes.keys() | new_codes.keys() if codes.get(part) != new_codes.get(part))
    known = {module for module, _ in before}
    old = {module: _joined(module, differing, before) for module, _ in differing if module in known}
    new = [replace(source, text=_joined(name, differing, now)) for name, source in modules.items()]
    moved = f"it moved from {former} to {function.module}" if former != function.module else ""
    return changes(own, codes, new_codes, moved), differences(
        old, (source for source in new if source.text or source.module in old)
    )


def _former_module(part: Part, texts: Mapping[str, str]) -> str:
    """Return the module in which a function was agreed to: another one, if its own is not among these texts."""
    module, name = part
    binding = (other for other, text in texts.items() if any(name in each.binds for each in _statements(text, other)))
    return module if module in texts else next(binding, module)


def _joined(module: str, differing: Iterable[Part], parts: Mapping[Part, Statements]) -> str:
    texts = _joined_each(parts, is_text=True)
    return "\n\n".join(texts[part] for part in differing if part[0] == module and part in texts)


def _joined_each(parts: Mapping[Part, Statements], *, is_text: bool) -> Mapping[Part, str]:
    return {
        part: "\n".join(dict.fromkeys(each.text if is_text else each.code for each in statements))
        for part, statements in parts.items()
    }


def _may_see_layout(parts: Mapping[Part, Statements]) -> bool:
    return any(not each.code for statements in parts.values() for each in statements)


def modules_of(module: str, snapshot: "Snapshot") -> Mapping[str, ModuleSource]:
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


def misleading(function: "Function", snapshot: "Snapshot") -> str:
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


def parts_of(part: Part, texts: Mapping[str, str]) -> Mapping[Part, str]:
    """Return the text of every part that a function's behavior depends on, of these modules."""
    parts: dict[Part, str] = {}
    for key, statements in _reached(part, texts).items():
        for statement in statements:
            if statement.text not in parts.get(key, ""):
                parts[key] = f"{parts[key]}\n{statement.text}" if key in parts else statement.text
    return parts


def _reached(part: Part, texts: Mapping[str, str]) -> Mapping[Part, Statements]:
    """Return the statements of every part that a function's behavior depends on, of these modules."""
    parts: dict[Part, Statements] = {}
    waiting: list[Part] = [part, *((package, _ITS_IMPORT) for package in _packages(part[0]))]
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
            parts.setdefault(key, {})[statement] = None
            waiting += [(module, used) for used in statement.names]
            waiting += [target for imported in statement.imports for target in _targets(*imported, texts)]
    return parts


def _targets(module: str, name: str, texts: Mapping[str, str]) -> Iterator[Part]:
    """Yield what an import brings in, and the packages that it runs."""
    inner = f"{module}.{name}".strip(".")
    target = (inner, "") if inner in texts else (module, name)
    yield from ((package, _ITS_IMPORT) for package in _packages(target[0]))
    yield target


def _packages(module: str) -> Iterator[str]:
    pieces = module.split(".")
    yield from (".".join(pieces[:size]) for size in range(1, len(pieces)))


@lru_cache(maxsize=512)
def _statements(text: str, module: str) -> tuple[_Statement, ...]:
    try:
        body = syntax.parse(text).body
        known = known_names(body)
        statements = tuple(_statement(node, bare_lines(text), module, known) for node in body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (_Statement(text, "", frozenset(), frozenset(), (), is_inert=False),)
    return statements


def _statement(node: ast.stmt, lines: list[str], module: str, known: Mapping[str, str]) -> _Statement:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
    text = "\n".join(lines[first - 1 : node.end_lineno])
    imports = tuple(target for child in ast.walk(node) for target in _imported(child, module))
    names = frozenset(child.id for child in ast.walk(node) if isinstance(child, ast.Name))
    binds = names_bound(node)
    if _REACHING.search(text):  # every name of its own module, then
        imports = (*imports, (module, ""))
    code = "" if _SEEING.search(f"{text}\n{ast.unparse(node)}") else ast.dump(node)
    return _Statement(text, code, binds, names, imports, is_inert=bool(binds) and is_inert(node, known))


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


def changes(function_part: Part, before: Mapping[Part, str], now: Mapping[Part, str], moved: str = "") -> str:
    """Return what became different since the parts were agreed to, as a sentence without its end."""
    differing = sorted(part for part in before.keys() | now.keys() if before.get(part) != now.get(part))
    others = [_words(part, before, now) for part in differing if part != function_part]
    whole = [
        f"`{function_part[1]}` itself is {'changed' if function_part in differing else 'unchanged'}",
        moved,
        *others,
    ]
    return "; ".join(filter(None, whole)) if differing or moved else ""


def _words(part: Part, before: Mapping[Part, str], now: Mapping[Part, str]) -> str:
    module, name = part
    how = "changed" if part in before and part in now else "is new" if part in now else "is gone"
    return f"`{name}` of {module} {how}" if name else f"what {module} does when it is imported {how}"
