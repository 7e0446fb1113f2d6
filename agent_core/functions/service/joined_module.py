"""Composition of a module from its admitted functions: its text, and the plan that writes it.

The author's text is kept word for word where all of it is admitted, else what the admitted need of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..gate import Gate, Policy
from agent_core.base.problem import Problem
from agent_core.registry.function import ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from agent_core.registry.module_edits import place_function
from agent_core.storage import DropPending, SaveVerdict, Write
from .closure import only
from .judgment import Judgment
from .plan import Author, ChangeSummary, PlannedChange, planned
from .library_files import LibraryFile


@dataclass(frozen=True, slots=True)
class Joined:
    """A module to be written, with the verdicts on its new functions."""

    source: ModuleSource
    reading: ModuleReading
    verdicts: Mapping[str, Judgment]


async def joined(
    part: LibraryFile, verdicts: Mapping[str, Judgment], gate: Gate, snapshot: Snapshot, policy: Policy
) -> Joined | Problem:
    """Return the module with the admitted functions after it was imported as a whole, or the problem."""
    existing = snapshot.modules.get(part.module)
    path = existing.path if existing else part.path
    problem: Problem | None = None
    for text in _texts(part, verdicts, existing):
        if isinstance(text, Problem):
            problem = text
            continue
        source = ModuleSource.of(part.module, text, path)
        verdict = await gate.judge_module(source, snapshot, policy, previous=read_module(source))
        refused = [
            problem
            for problem in verdict.problems
            if problem.severity == "refuses" and problem.code.startswith("import")
        ]
        if not refused:
            return Joined(source, verdict.reading, verdicts)
        problem = refused[0]
    assert problem is not None
    return problem


def _texts(part: LibraryFile, verdicts: Mapping[str, Judgment], existing: ModuleSource | None) -> list[str | Problem]:
    """Return the texts to try: the author's whole, then only what is needed; or the existing one with new functions."""
    if existing is not None and existing.text.strip():
        return [_placed(existing.text, {name: row.source for name, row in verdicts.items()}, part.path)]
    fixed = {name: row.source for name, row in verdicts.items() if row.fixes}
    texts: list[str | Problem] = []
    for needed in (False, True):
        if needed or set(verdicts) == set(part.parts.public):
            text = only(part.text, set(verdicts), part.adapted.unused, is_bare=needed)
            texts.append(text if isinstance(text, Problem) else _placed(text, fixed, part.path))
    return texts


def _placed(text: str, sources: Mapping[str, str], path: str) -> str | Problem:
    for name, source in sources.items():
        placed = place_function(text, source, name, path=path)
        if isinstance(placed, Problem):
            return placed
        text = placed
    return text


def plan(joined_module: Joined, snapshot: Snapshot, author: Author, origin: str) -> PlannedChange:
    """Return the plan that writes the module: one transaction, with a verdict for each function."""
    existing = snapshot.modules.get(joined_module.source.module)
    before = existing or ModuleSource(joined_module.source.module, joined_module.source.path, "", "")
    names = ", ".join(joined_module.verdicts) or joined_module.source.module
    work = ChangeSummary("changed" if existing else "created", names, author, f"imported from {origin}")
    result = planned(f"{names} imported", Judgment.from_json({"name": names, "admitted": True}), before, joined_module.reading, work)
    hashes = {function.name: function.body_hash for function in joined_module.reading.functions}
    writes: list[Write] = []
    for name, row in joined_module.verdicts.items():
        if name in hashes:
            saved = replace(row, by=author.by).to_json()
            writes += [SaveVerdict(hashes[name], name, saved), DropPending(name)]
    return replace(result, writes=(*result.writes, *writes))
