"""The exact code that an approval is for: the function and what it calls and imports within the workspace.

A function with grants runs only with these modules: no other code, however it is imported, gets its access. The parts
of these modules that determine its behavior count: the function, the names it uses, and code that runs at import. A
neighbor that it does not name is not a part, if defining it runs nothing. If a text could reach a neighbor without
naming it (`globals()`, `getattr`, frames, …), every part counts.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_core.base.matching import diff_lines
from agent_core.base.problem import Place
from agent_core.base.records import dataclass, replace
from agent_core.base.syntax import Flaw, flaw_of, name_flaw_of
from agent_core.registry.depends import (
    ApprovedStatement,
    Part,
    approved_parts,
    approved_statements,
    modules_of,
    parts_of,
)
from agent_core.registry.source import ModuleSource, parse_accepted
from sandbox.wire.lines import bare_lines

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

_LONGEST_DIFF: Final = 300_000


@dataclass(frozen=True, slots=True)
class FunctionContent:
    """The modules by name, each with its version, and one digest of a function and all of them."""

    digest: str
    versions: tuple[tuple[str, str], ...]

    def to_text(self) -> str:
        """Return the versions as JSON."""
        return json.dumps(self.versions)


def content_of(function: "Function", snapshot: "Snapshot") -> FunctionContent:
    """Return the content to which an approval of this function, in the version in this snapshot, is bound."""
    modules = modules_of(function.module, snapshot)
    versions = tuple(sorted((name, source.version) for name, source in modules.items()))
    parts = parts_of((function.module, function.name), {name: source.text for name, source in modules.items()})
    text = json.dumps([function.name, function.module, sorted(parts.items())])
    return FunctionContent(hashlib.sha256(text.encode()).hexdigest(), versions)


def since(function: "Function", snapshot: "Snapshot", texts: Mapping[str, str]) -> tuple[str, str]:
    """Return the changes since a function was approved with these modules: as a sentence, and as a diff.

    The sentence is empty if only the layout changed, or nothing. Docstrings are not layout: a function can read them,
    and their examples run with the files that it was granted.
    """
    own, modules = (function.module, function.name), modules_of(function.module, snapshot)
    former = function.module  # a different one, if its own is not among these texts
    if former not in texts:
        statements = ((other, approved_statements(text, other)) for other, text in texts.items())
        binding = (other for other, found in statements if any(function.name in each.binds for each in found))
        former = next(binding, former)
    before = {
        (function.module if module == former else module, name): statements
        for (module, name), statements in approved_parts((former, function.name), texts).items()
    }
    now = approved_parts(own, {name: source.text for name, source in modules.items()})
    is_seen = _may_see_layout(before) or _may_see_layout(now)
    codes, new_codes = (_joined_each(found, is_text=is_seen) for found in (before, now))
    differing = sorted(part for part in codes.keys() | new_codes.keys() if codes.get(part) != new_codes.get(part))
    known = {module for module, _ in before}
    old = {module: _join_parts(module, differing, before) for module, _ in differing if module in known}
    new = [replace(source, text=_join_parts(name, differing, now)) for name, source in modules.items()]
    moved = f"it moved from {former} to {function.module}" if former != function.module else ""
    return changes(own, codes, new_codes, moved), differences(
        old, (source for source in new if source.text or source.module in old)
    )


def _join_parts(module: str, differing: Iterable[Part], parts: Mapping[Part, Iterable[ApprovedStatement]]) -> str:
    texts = _joined_each(parts, is_text=True)
    return "\n\n".join(texts[part] for part in differing if part[0] == module and part in texts)


def _joined_each(parts: Mapping[Part, Iterable[ApprovedStatement]], *, is_text: bool) -> Mapping[Part, str]:
    return {
        part: "\n".join(dict.fromkeys(each.text if is_text else each.code for each in statements))
        for part, statements in parts.items()
    }


def _may_see_layout(parts: Mapping[Part, Iterable[ApprovedStatement]]) -> bool:
    return any(not each.code for statements in parts.values() for each in statements)


def misleading(function: "Function", snapshot: "Snapshot") -> str:
    """Return why nothing can be granted: the code that does not read as it runs, and its place; "" if there is none.

    An older release may have accepted such a text, and an approval for it.
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


def differences(before: Mapping[str, str], after: Iterable[ModuleSource]) -> str:
    """Return the differences from the earlier texts, by module, as one diff."""
    now = {source.module: source for source in after}
    lines: list[str] = []
    for name in sorted(before.keys() | now.keys()):
        path = now[name].path if name in now else name
        old, new = before.get(name, ""), now[name].text if name in now else ""
        lines += diff_lines(bare_lines(old), bare_lines(new), (f"{path} (agreed)", f"{path} (now)"))
    return "\n".join(lines)


def unshowable(diff: str) -> str:
    """Return why the user cannot be asked about a diff: it is too long to read; "" if it is not."""
    if len(diff) <= _LONGEST_DIFF:
        return ""
    message = (
        f"What is different since the last yes is {len(diff):,} characters long, and at most {_LONGEST_DIFF:,} are"
    )
    return f"{message} put before a human, so nothing is granted. Split the module, or change it in smaller steps."


def changes(function_part: Part, before: Mapping[Part, str], now: Mapping[Part, str], moved: str = "") -> str:
    """Return the changes since the parts were approved, as a sentence without its final period."""
    differing = sorted(part for part in before.keys() | now.keys() if before.get(part) != now.get(part))
    whole = [f"`{function_part[1]}` itself is {'changed' if function_part in differing else 'unchanged'}", moved]
    for part in differing:
        if part != function_part:
            module, name = part
            how = "changed" if part in before and part in now else "is new" if part in now else "is gone"
            whole.append(f"`{name}` of {module} {how}" if name else f"what {module} does when it is imported {how}")
    return "; ".join(filter(None, whole)) if differing or moved else ""
