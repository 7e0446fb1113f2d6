"""Exactly which code a yes is for: the function's module and every module of the workspace that it imports.

A function with grants runs with these modules alone, so that nothing else, however it is imported, inherits them.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sandbox.lines import bare_lines

from ..characters import Flaw, flaw_of, name_flaw_of
from ..matching import diff_lines
from ..problem import Place
from ..registry.function import Function
from ..registry.snapshot import Snapshot
from ..registry.source import Source, parse_accepted

_LONGEST_DIFF = 300_000


@dataclass(frozen=True, slots=True)
class Content:
    """The modules by name, each with its version, and the digest of a function and all of them."""

    digest: str
    versions: tuple[tuple[str, str], ...]

    def to_text(self) -> str:
        """The versions as JSON."""
        return json.dumps(self.versions)


def content_of(function: Function, snapshot: Snapshot) -> Content:
    """What a yes to this function, as it is in this snapshot, is bound to."""
    versions = tuple(sorted((name, one.version) for name, one in modules_of(function.module, snapshot).items()))
    text = json.dumps([function.name, function.module, versions])
    return Content(hashlib.sha256(text.encode()).hexdigest(), versions)


def modules_of(module: str, snapshot: Snapshot) -> Mapping[str, Source]:
    """A module with the packages around it and what all of these import, down to the last."""
    found: dict[str, Source] = {}
    waiting = [module]
    while waiting:
        for name in _with_packages(waiting.pop()):
            source = snapshot.modules.get(name)
            if source is not None and name not in found:
                found[name] = source
                waiting += snapshot.readings[name].imports
    return found


def misleading(function: Function, snapshot: Snapshot) -> str:
    """Return why nothing can be granted: what of its code does not read as it runs, and where; "" where all does.

    An older release may have accepted such a text, and a yes to it.
    """
    for source in modules_of(function.module, snapshot).values():
        if flaw := _flaw_of(source.text):
            where = Place(source.path, flaw.line, flaw.column)
            what = f"{where} does not read as it runs: {flaw.what}"
            return f"{what}. Nothing is granted to it until that is fixed: {flaw.fix}."
    return ""


@lru_cache(maxsize=1024)
def _flaw_of(text: str) -> Flaw | None:
    tree = None if text.isascii() else parse_accepted(Source.of("", text))
    return flaw_of(text) or (name_flaw_of(text, tree) if isinstance(tree, ast.Module) else None)


def _with_packages(module: str) -> Iterator[str]:
    parts = module.split(".")
    yield from (".".join(parts[:size]) for size in range(1, len(parts) + 1))


def differences(before: Mapping[str, str], after: Iterable[Source]) -> str:
    """What became different from the texts before, by module, as one diff."""
    now = {source.module: source for source in after}
    lines: list[str] = []
    for name in sorted(before.keys() | now.keys()):
        path = now[name].path if name in now else name
        old, new = before.get(name, ""), now[name].text if name in now else ""
        lines += diff_lines(bare_lines(old), bare_lines(new), (f"{path} (agreed)", f"{path} (now)"))
    return "\n".join(lines)


def unshowable(diff: str) -> str:
    """Return why no human can be asked about what is different: it is more than anybody reads; "" where they can."""
    if len(diff) <= _LONGEST_DIFF:
        return ""
    what = f"What is different since the last yes is {len(diff):,} characters long, and at most {_LONGEST_DIFF:,} are"
    return f"{what} put before a human, so nothing is granted. Split the module, or change it in smaller steps."
