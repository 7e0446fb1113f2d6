"""The exact code that a yes is for: the function's module and every module of the workspace that it imports.

A function with grants runs with these modules alone, so that nothing else, however it is imported, inherits them.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from agent_core.base.characters import Flaw, flaw_of, name_flaw_of
from agent_core.base.matching import diff_lines
from agent_core.base.problem import Place
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource, parse_accepted
from sandbox.wire.lines import bare_lines

_LONGEST_DIFF = 300_000


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
    versions = tuple(sorted((name, source.version) for name, source in modules_of(function.module, snapshot).items()))
    text = json.dumps([function.name, function.module, versions])
    return FunctionContent(hashlib.sha256(text.encode()).hexdigest(), versions)


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
