"""Composition of a module from its admitted functions: its text, and the plan that writes it.

The author's text is kept word for word where all of it is admitted, else what the admitted need of it.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from ..gate import Gate, Policy
from agent_core.base.problem import Problem
from agent_core.registry.function import ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from agent_core.registry.module_edits import place_function, withhold
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


@dataclass(frozen=True, slots=True)
class PrivateNames:
    """What stays in a module and is not offered: functions that are withheld, and other names that modules import."""

    functions: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


async def joined(  # noqa: PLR0913 - the library's part, and what judges it
    part: LibraryFile,
    verdicts: Mapping[str, Judgment],
    private: PrivateNames,
    gate: Gate,
    snapshot: Snapshot,
    policy: Policy,
) -> Joined | Problem:
    """Return the module with the admitted functions after it was imported as a whole, or the problem.

    What is `private` is there, for them,, but is not offered.
    """
    existing = snapshot.modules.get(part.module)
    path = existing.path if existing else part.path
    problem: Problem | None = None
    for text in _texts(part, verdicts, private, existing):
        if isinstance(text, Problem):
            problem = text
            continue
        source = ModuleSource.of(part.module, text, path)
        if not verdicts:  # whether it can be imported shows with what imports it
            return Joined(source, read_module(source), verdicts)
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


def _texts(
    part: LibraryFile, verdicts: Mapping[str, Judgment], private: PrivateNames, existing: ModuleSource | None
) -> list[str | Problem]:
    """Return the texts to try: the author's whole, then only what is needed; or the existing one with new functions."""
    if existing is not None and existing.text.strip():
        stop = set(part.parts.public)
        own = {name: part.parts.candidate(part.parts.needed([name], stop - {name}))[0] for name in private.functions}
        brought = own | {name: row.source for name, row in verdicts.items()}
        return [_unoffered(_placed(existing.text, brought, part.path), private.functions)]
    if not part.parts.public:
        return [only(part.text, {name for names in part.parts.binds for name in names}, part.adapted.unused, is_bare=False)]
    fixed = {name: row.source for name, row in verdicts.items() if row.fixes}
    texts: list[str | Problem] = []
    for needed in (False, True):
        if needed or {*verdicts, *private.functions} == set(part.parts.public):
            text = only(part.text, {*verdicts, *private.functions, *private.names}, part.adapted.unused, is_bare=needed)
            placed = text if isinstance(text, Problem) else _placed(text, fixed, part.path)
            texts.append(_unoffered(placed, private.functions))
    return texts


def _unoffered(text: str | Problem, names: Set[str]) -> str | Problem:
    return withhold(text, names) if isinstance(text, str) and names else text


def _placed(text: str, sources: Mapping[str, str], path: str) -> str | Problem:
    for name, source in sources.items():
        placed = place_function(text, source, name, path=path, with_statements=True)
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
