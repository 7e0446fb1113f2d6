"""What a module becomes of which some functions were admitted: its text, and the plan that writes it.

The author's text is kept word for word where all of it is admitted, else what the admitted need of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..gate import Gate, Policy
from ..problem import Problem
from ..registry.function import Reading
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source
from ..registry.writing import place_function
from ..storage import DropPending, SaveVerdict, Write
from .closure import only
from .job import Row
from .plan import Author, Plan, Work, planned
from .taking import Part


@dataclass(frozen=True, slots=True)
class Joined:
    """A module as it is to be written, with the verdicts of what is new in it."""

    source: Source
    reading: Reading
    verdicts: Mapping[str, Row]


async def joined(
    part: Part, verdicts: Mapping[str, Row], gate: Gate, snapshot: Snapshot, policy: Policy
) -> Joined | Problem:
    """The module with the admitted functions, once it has been imported as a whole; or why it cannot be."""
    held = snapshot.modules.get(part.module)
    path = held.path if held else part.path
    problem: Problem | None = None
    for text in _texts(part, verdicts, held):
        if isinstance(text, Problem):
            problem = text
            continue
        source = Source.of(part.module, text, path)
        verdict = await gate.judge_module(source, snapshot, policy, previous=read_module(source))
        refused = [one for one in verdict.problems if one.severity == "refuses" and one.code.startswith("import")]
        if not refused:
            return Joined(source, verdict.reading, verdicts)
        problem = refused[0]
    assert problem is not None
    return problem


def _texts(part: Part, verdicts: Mapping[str, Row], held: Source | None) -> list[str | Problem]:
    """The texts to try: all of the author's, then only what is needed; or what is there with the new functions."""
    if held is not None and held.text.strip():
        return [_placed(held.text, {name: row["source"] for name, row in verdicts.items()}, part.path)]
    mended = {name: row["source"] for name, row in verdicts.items() if row["mends"]}
    texts: list[str | Problem] = []
    for needed in (False, True):
        if needed or set(verdicts) == set(part.parts.public):
            text = only(part.text, set(verdicts), part.adapted.unused, is_bare=needed)
            texts.append(text if isinstance(text, Problem) else _placed(text, mended, part.path))
    return texts


def _placed(text: str, sources: Mapping[str, str], path: str) -> str | Problem:
    for name, source in sources.items():
        placed = place_function(text, source, name, path=path)
        if isinstance(placed, Problem):
            return placed
        text = placed
    return text


def plan(found: Joined, snapshot: Snapshot, author: Author, origin: str) -> Plan:
    """The plan that writes the module: one transaction, with a verdict for each function."""
    held = snapshot.modules.get(found.source.module)
    before = held or Source(found.source.module, found.source.path, "", "")
    names = ", ".join(found.verdicts) or found.source.module
    work = Work("changed" if held else "created", names, author, f"imported from {origin}")
    made = planned(f"{names} imported", {"name": names, "admitted": True}, before, found.reading, work)
    hashes = {function.name: function.body_hash for function in found.reading.functions}
    writes: list[Write] = []
    for name, row in found.verdicts.items():
        if name in hashes:
            said: dict[str, Any] = {**row, "by": author.by}  # Any: JSON
            writes += [SaveVerdict(hashes[name], name, said), DropPending(name)]
    return replace(made, writes=(*made.writes, *writes))
