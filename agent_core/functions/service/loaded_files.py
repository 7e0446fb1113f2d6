"""The result of taking one file: its good reading, the problems that reject its newest text, and the writes.

Values and pure functions of the loader: what a file's outcome writes and tells, apart from its place among the others.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.registry import RegistryChange, difference
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource, module_of
from agent_core.storage import DropReading, ReadingRow, SaveReading, SaveVerdict, SaveVersion, SetManifest, Write
from sandbox.wire.foreign import DEEPEST_ROW, LOOSE, read_json

from . import change_texts
from .history import REMOVED, SAVED

if TYPE_CHECKING:
    from agent_core.base.problem import Problem

    from ..gate import Disagreement, ModuleVerdict

_NO_STAMP = (0, 0, 0)
_WHY_DRAFT = {
    True: "draft: its examples need what is not granted yet; its first call asks for it",
    False: "draft: it has no examples",
}


@dataclass(frozen=True, slots=True)
class GoodVersions:
    """The baseline of a refresh: the good version of each module, the stored readings by path, and what each module has
    that is kept out of force.
    """

    manifest: Mapping[str, str]
    readings: Mapping[str, ReadingRow]
    kept_out: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def in_force(self, reading: ModuleReading | None) -> ModuleReading | None:
        """Return a reading without what was kept out of it."""
        out = self.kept_out.get(reading.source.module) if reading else None
        return without(reading, out) if reading and out else reading


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """The result for one file: a good reading, the problems that reject its newest text, and the writes.

    `standings` says of each function that was judged how it stands, `disagreeing` of one with failing examples how
    they differ, `noted` of one that promises less what; `verdict` is the one on a text that is taken, `previous` what
    there was before.
    """

    path: str
    module: str | None = None
    reading: ModuleReading | None = None
    problems: tuple["Problem", ...] = ()
    writes: tuple[Write, ...] = ()
    is_removed: bool = False
    standings: tuple[tuple[str, str], ...] = ()
    disagreeing: tuple[tuple[str, str], ...] = ()
    noted: tuple[tuple[str, str], ...] = ()
    verdict: "ModuleVerdict | None" = None
    previous: ModuleReading | None = None
    rejected_version: str = ""  # of a text that is rejected

    @property
    def lacks_import(self) -> bool:
        """True if the file could not be imported. Its missing import may still arrive."""
        return _lacks_import(self.problems)


def _lacks_import(problems: Iterable["Problem"]) -> bool:
    return any(problem.code == "import-fails" for problem in problems)


def waiting(snapshot: Snapshot) -> set[str]:
    """Return the files that are rejected because they could not be imported."""
    return {path for path, problems in snapshot.rejections.items() if _lacks_import(problems)}


def import_layers(sources: Mapping[str, object], snapshot: Snapshot) -> list[set[str]]:
    """Return the paths in the order of taking them: a file comes after those that changed too and that it imports.

    What is new keeps no file waiting.
    """
    changed = {
        source.module: path
        for path, source in sources.items()
        if isinstance(source, ModuleSource) and snapshot.modules.get(source.module, source) != source
    }
    if len(changed) < 2:
        return [set(sources)]
    imports = {path: _imported(source, changed) - {path} for path, source in sources.items()}
    layers = list[set[str]]()
    while imports:
        layer = {path for path, needed in imports.items() if not needed & imports.keys()}
        layers.append(layer or set(imports))  # what imports each other is taken at once
        imports = {path: needed for path, needed in imports.items() if path not in layers[-1]}
    return layers


def _imported(source: object, changed: Mapping[str, str]) -> set[str]:
    """Return the paths of the changed modules that a changed file imports."""
    if not isinstance(source, ModuleSource) or source.module not in changed:
        return set()
    return {changed[module] for module in read_module(source).imports if module in changed}


def unchanged(path: str, source: ModuleSource, good: GoodVersions, snapshot: Snapshot) -> ModuleReading | None:
    """Return the reading of a text that was judged before, in the registry or in storage."""
    if source.version != good.manifest.get(source.module):
        return None
    reading = snapshot.readings.get(source.module)
    if reading is not None and reading.source == source:
        return reading
    row = good.readings.get(path)
    return stored(row, source) if row and row.version == source.version else None


def stored(row: ReadingRow, source: ModuleSource) -> ModuleReading | None:
    """Return the stored reading of exactly this text."""
    try:
        return ModuleReading.from_json(read_json(row.reading, LOOSE, deepest=DEEPEST_ROW), source)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # not what this program wrote: it is read anew


def removed_file(path: str, good: GoodVersions, snapshot: Snapshot) -> LoadedFile:
    """Return the result for a file that no longer exists."""
    holders = [module for module, source in snapshot.modules.items() if source.path == path]
    module = holders[0] if holders else module_at(path)
    if module in snapshot.modules and not holders:
        return LoadedFile(path, is_removed=True, writes=(DropReading(path),))  # another file holds the module
    version = good.manifest.get(module)
    forget = (SetManifest(module, version, None, reason=REMOVED),) if version else ()
    return LoadedFile(path, module, is_removed=True, writes=(*forget, DropReading(path)))


def module_at(path: str) -> str:
    """Return the module of a path as shown in sources, or an empty text if it is none."""
    module = module_of(Path(path).relative_to("functions"))
    return module if isinstance(module, str) else ""


def admission(
    path: str,
    source: ModuleSource,
    verdict: "ModuleVerdict",
    good: GoodVersions,
    confirmed: Mapping[str, Sequence[str]],
) -> tuple[Write, ...]:
    """Return the writes for a good saved file, as the user's. `confirmed` are calls by function."""
    expected = good.manifest.get(source.module)
    entered: tuple[Write, ...] = ()
    if expected != source.version:
        entered = (
            SaveVersion(source.module, source.version, source.text, reason=SAVED),
            SetManifest(source.module, expected, source.version, reason=SAVED),
        )
    elif source.module in good.kept_out:
        entered = (SaveVersion(source.module, source.version, source.text, reason="its name became free"),)
    functions = {function.name: function for function in verdict.reading.functions}
    verdicts = [
        SaveVerdict(
            functions[name].body_hash,
            name,
            {**verdict_on(functions[name], verdict), "standing": standing, "confirmed": [*confirmed.get(name, ())]},
        )
        for name, standing in verdict.standings
    ]
    return (*entered, *verdicts, saved_reading(verdict.reading))


def saved_reading(reading: ModuleReading) -> SaveReading:
    """Return the write that keeps a reading for the next start."""
    return SaveReading(reading.source.path, _NO_STAMP, reading.source.version, json.dumps(reading.to_json()))


def verdict_on(function: Function, verdict: "ModuleVerdict") -> dict[str, Any]:  # Any: JSON
    """Return the part of a file's verdict on one of its functions. `line` is its line at that time."""
    own = [
        problem
        for problem in verdict.problems
        if not problem.where.line or function.line <= problem.where.line <= function.end_line
    ]
    problems = [problem.to_json() for problem in own]
    return {**verdict.to_json(), "by": "human", "name": function.name, "problems": problems, "line": function.line}


def by_agent(write: Write) -> Write:
    """Return the same write with the agent as author, for a file that an agent had written before a crash."""
    match write:
        case SaveVersion() | SetManifest():
            return replace(write, by="agent", reason="finished after an interruption")
        case SaveVerdict():
            return replace(write, verdict={**write.verdict, "by": "agent"})
        case _:
            return write


def said_of(results: Collection[LoadedFile]) -> RegistryChange:
    """Return the news on functions after a save, apart from the fact that they changed."""
    return RegistryChange(
        standings=dict(pair for result in results for pair in result.standings),
        disagreeing=dict(pair for result in results for pair in result.disagreeing),
        noted=dict(pair for result in results for pair in result.noted),
    )


def since(
    good: GoodVersions, results: Collection[LoadedFile], snapshot: Snapshot, finished: frozenset[str]
) -> RegistryChange:
    """Return what others changed in the files while no program ran. The first time, it is empty because all is new."""
    before = after = Snapshot.empty()
    reported = [result for result in results if result.path not in finished] if good.manifest else []
    for file_result in reported:
        had = file_result.previous or (known_of(file_result.path, good) if file_result.is_removed else None)
        before = before.with_module(had) if had else before
        if file_result.problems:
            after = after.with_rejection(file_result.path, file_result.problems)
        elif file_result.verdict is not None:
            after = after.with_module(file_result.verdict.reading)
            after = after.with_rejection(file_result.path, snapshot.rejections.get(file_result.path, ()))
    return difference(before, after, change=said_of(reported))


def known_of(path: str, good: GoodVersions) -> ModuleReading | None:
    """Return what was in force of a file that is removed, as far as it is stored."""
    row = good.readings.get(path)
    return good.in_force(stored(row, ModuleSource(module_at(path), path, "", row.version))) if row else None


def without(reading: ModuleReading, names: frozenset[str]) -> ModuleReading:
    """Return a reading without these functions."""
    return replace(reading, functions=tuple(function for function in reading.functions if function.name not in names))


def standings(verdict: "ModuleVerdict") -> tuple[tuple[str, str], ...]:
    """Return the standing of each judged function of a saved file and the reason, except for failing examples."""
    differing = {name for name, _ in verdict.disagreements}
    having = {function.name for function in verdict.reading.functions if function.examples}
    return tuple(
        (name, "trial: its examples agree" if standing == "trial" else _WHY_DRAFT[name in having])
        for name, standing in verdict.standings
        if name not in differing
    )


def disagreeing(verdict: "ModuleVerdict") -> tuple[tuple[str, str], ...]:
    """Return a sentence for each function of a saved file with failing examples."""
    grouped: dict[str, list[Disagreement]] = {}
    for name, disagreement in verdict.disagreements:
        grouped.setdefault(name, []).append(disagreement)
    return tuple((name, change_texts.difference(ones)) for name, ones in grouped.items())


def noted(verdict: "ModuleVerdict") -> tuple[tuple[str, str], ...]:
    """Return a sentence for each function of a saved file that promises less than before, or breaks another."""
    dropped = [problem for problem in verdict.problems if problem.code == "example-dropped"]
    notes = [
        (function.name, problem.message)
        for function in verdict.reading.functions
        for problem in dropped
        if function.line <= problem.where.line <= function.end_line
    ]
    sentences: dict[str, list[str]] = {}
    for name, sentence in (*notes, *map(change_texts.breakage, verdict.breakages)):
        sentences.setdefault(name or verdict.reading.source.module, []).append(sentence)
    return tuple((name, "\n".join(dict.fromkeys(whats))) for name, whats in sentences.items())
