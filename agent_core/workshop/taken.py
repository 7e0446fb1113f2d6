"""What came of one file: what is good of it, what keeps its newest text out, and what is written down.

Values and pure functions of the loader: how a file's outcome is placed in a snapshot and in rows.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox.foreign import DEEPEST_ROW, LOOSE, read_json

from ..gate import Disagreement, ModuleVerdict
from ..problem import Problem
from ..registry.function import Function, Reading
from ..registry.registry import Change, difference
from ..registry.snapshot import Snapshot
from ..registry.source import Source, module_of
from ..storage import DropReading, ReadingRow, SaveReading, SaveVerdict, SaveVersion, SetManifest, Write
from . import telling

_NO_STAMP = (0, 0, 0)
_WHY_DRAFT = {True: "draft: its examples need what is not granted yet", False: "draft: it has no examples"}


@dataclass(frozen=True, slots=True)
class Known:
    """What is good at the moment of a refresh: the version of each module, and what storage has read by path."""

    manifest: Mapping[str, str]
    readings: Mapping[str, ReadingRow]


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of one file: a reading that is good, problems that keep its newest text out, and the writes.

    `standings` says of each function that was judged how it stands, `disagreeing` of one whose examples do not hold how
    they differ, `noted` of one that promises less what; `verdict` is the one on a text that is taken, `previous` what
    there was before.
    """

    path: str
    module: str | None = None
    reading: Reading | None = None
    problems: tuple[Problem, ...] = ()
    writes: tuple[Write, ...] = ()
    gone: bool = False
    standings: tuple[tuple[str, str], ...] = ()
    disagreeing: tuple[tuple[str, str], ...] = ()
    noted: tuple[tuple[str, str], ...] = ()
    verdict: ModuleVerdict | None = None
    previous: Reading | None = None

    @property
    def lacks_import(self) -> bool:
        """Whether it could not be imported: what it imports may yet come."""
        return _lacks_import(self.problems)


def _lacks_import(problems: Iterable[Problem]) -> bool:
    return any(problem.code == "import-fails" for problem in problems)


def waiting(snapshot: Snapshot) -> set[str]:
    """The files that stand rejected because they could not be imported."""
    return {path for path, problems in snapshot.rejections.items() if _lacks_import(problems)}


def all_placed(
    before: Snapshot, taken: Collection[Taken], known: Known, finished: frozenset[str]
) -> tuple[Snapshot, list[Write]]:
    """The snapshot with what came of every file, and what is written down of it."""
    snapshot, writes = before, list[Write]()
    moved = {each.module for each in taken if each.reading is not None}
    for each in sorted(taken, key=lambda one: precedence(one, known)):
        snapshot = placed(snapshot, each)
        found = kept_writes(each, snapshot, moved)
        writes += map(by_agent, found) if each.path in finished else found
    return snapshot, writes


def unchanged(path: str, found: Source, known: Known, before: Snapshot) -> Reading | None:
    """The reading of a text that was judged before, in the registry or in storage."""
    if found.version != known.manifest.get(found.module):
        return None
    held = before.readings.get(found.module)
    if held is not None and held.source == found:
        return held
    row = known.readings.get(path)
    return stored(row, found) if row and row.version == found.version else None


def stored(row: ReadingRow, source: Source) -> Reading | None:
    """The reading that storage keeps of exactly this text."""
    try:
        return Reading.from_json(read_json(row.reading, LOOSE, deepest=DEEPEST_ROW), source)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # not what this program wrote: it is read anew


def precedence(taken: Taken, known: Known) -> tuple[bool, bool, bool, str]:
    """What goes makes room first; then comes what the manifest knows: on a clash of names it stays."""
    version = taken.reading.source.version if taken.reading else None
    return (
        not taken.gone,
        taken.module not in known.manifest,
        version != known.manifest.get(taken.module or ""),
        taken.path,
    )


def kept_writes(taken: Taken, snapshot: Snapshot, moved: set[str | None]) -> Iterable[Write]:
    """A module has one row: it belongs to the file that holds the module, be it `web.py` or `web/__init__.py`."""
    if taken.gone and taken.module in moved:
        return [write for write in taken.writes if not isinstance(write, SetManifest)]
    holder = snapshot.modules.get(taken.module or "")
    return taken.writes if holder is None or holder.path == taken.path else ()


def placed(snapshot: Snapshot, taken: Taken) -> Snapshot:
    """The snapshot with what came of one file."""
    if taken.gone:
        return snapshot.without_module(taken.module or "").with_rejection(taken.path, ())
    if taken.reading is not None and _is_news(snapshot, taken.path, taken.reading):
        snapshot = snapshot.with_module(taken.reading)
    if taken.problems:
        return snapshot.with_rejection(taken.path, taken.problems)
    return snapshot


def _is_news(snapshot: Snapshot, path: str, reading: Reading) -> bool:
    """Whether the reading is another than the one in place, or what was said against its file may be settled by it."""
    return snapshot.readings.get(reading.source.module) is not reading or path in snapshot.rejections


def gone(path: str, known: Known, before: Snapshot) -> Taken:
    """What comes of a file that is not there any more."""
    holders = [module for module, source in before.modules.items() if source.path == path]
    module = holders[0] if holders else module_at(path)
    if module in before.modules and not holders:
        return Taken(path, gone=True, writes=(DropReading(path),))  # another file holds the module
    version = known.manifest.get(module)
    forget = (SetManifest(module, version, None, reason="the file was removed"),) if version else ()
    return Taken(path, module, gone=True, writes=(*forget, DropReading(path)))


def module_at(path: str) -> str:
    """The module of a path as sources show it; an empty text if it can be none."""
    module = module_of(Path(path).relative_to("functions"))
    return module if isinstance(module, str) else ""


def admission(
    path: str, source: Source, verdict: ModuleVerdict, known: Known, confirmed: Mapping[str, Sequence[str]]
) -> tuple[Write, ...]:
    """What is written down of a saved file that is good, as a human's; `confirmed` are calls by function."""
    expected = known.manifest.get(source.module)
    entered: tuple[Write, ...] = ()
    if expected != source.version:
        entered = (
            SaveVersion(source.module, source.version, source.text, reason="saved"),
            SetManifest(source.module, expected, source.version, reason="saved"),
        )
    functions = {function.name: function for function in verdict.reading.functions}
    verdicts = [
        SaveVerdict(
            functions[name].body_hash,
            name,
            {**_verdict_on(functions[name], verdict), "standing": standing, "confirmed": [*confirmed.get(name, ())]},
        )
        for name, standing in verdict.standings
    ]
    reading = SaveReading(path, _NO_STAMP, source.version, json.dumps(verdict.reading.to_json()))
    return (*entered, *verdicts, reading)


def _verdict_on(function: Function, verdict: ModuleVerdict) -> dict[str, Any]:  # Any: JSON
    """What of a file's verdict is about one of its functions; `line` is where it stood then."""
    own = [
        one for one in verdict.problems if not one.where.line or function.line <= one.where.line <= function.end_line
    ]
    problems = [problem.to_json() for problem in own]
    return {**verdict.to_json(), "by": "human", "name": function.name, "problems": problems, "line": function.line}


def by_agent(write: Write) -> Write:
    """The same of a file that an agent had written before a crash: it stays the agent's."""
    match write:
        case SaveVersion() | SetManifest():
            return replace(write, by="agent", reason="finished after an interruption")
        case SaveVerdict():
            return replace(write, verdict={**write.verdict, "by": "agent"})
        case _:
            return write


def said_of(taken: Collection[Taken]) -> Change:
    """What is to be said of functions after a save, beside that they changed."""
    return Change(
        standings=dict(pair for each in taken for pair in each.standings),
        disagreeing=dict(pair for each in taken for pair in each.disagreeing),
        noted=dict(pair for each in taken for pair in each.noted),
    )


def since(known: Known, taken: Collection[Taken], finished: frozenset[str]) -> Change:
    """What other hands made of the files while no program looked; nothing the first time, when all is new."""
    before = after = Snapshot.empty()
    told = [each for each in taken if each.path not in finished] if known.manifest else []
    for each in told:
        had = each.previous or (_known_of(each.path, known) if each.gone else None)
        before = before.with_module(had) if had else before
        if each.problems:
            after = after.with_rejection(each.path, each.problems)
        elif each.verdict is not None:
            after = after.with_module(each.verdict.reading)
    return difference(before, after, said=said_of(told))


def _known_of(path: str, known: Known) -> Reading | None:
    row = known.readings.get(path)
    return stored(row, Source(module_at(path), path, "", row.version)) if row else None


def standings(verdict: ModuleVerdict) -> tuple[tuple[str, str], ...]:
    """How each function that was judged with a saved file stands, and why; not those whose examples differ."""
    differing = {name for name, _ in verdict.disagreements}
    having = {function.name for function in verdict.reading.functions if function.examples}
    return tuple(
        (name, "trial: its examples agree" if standing == "trial" else _WHY_DRAFT[name in having])
        for name, standing in verdict.standings
        if name not in differing
    )


def disagreeing(verdict: ModuleVerdict) -> tuple[tuple[str, str], ...]:
    """A sentence for each function of a saved file whose examples do not hold."""
    found: dict[str, list[Disagreement]] = {}
    for name, one in verdict.disagreements:
        found.setdefault(name, []).append(one)
    return tuple((name, telling.difference(ones)) for name, ones in found.items())


def noted(verdict: ModuleVerdict) -> tuple[tuple[str, str], ...]:
    """A sentence for each function of a saved file that promises less than it did, or breaks another that uses it."""
    dropped = [problem for problem in verdict.problems if problem.code == "example-dropped"]
    found = [
        (function.name, problem.what)
        for function in verdict.reading.functions
        for problem in dropped
        if function.line <= problem.where.line <= function.end_line
    ]
    said: dict[str, list[str]] = {}
    for name, what in (*found, *map(telling.breakage, verdict.breakages)):
        said.setdefault(name or verdict.reading.source.module, []).append(what)
    return tuple((name, "\n".join(dict.fromkeys(whats))) for name, whats in said.items())
