"""The result of loading one file, and its place among the others: what is in force, stored and reported.

Values and pure functions of the loader. A function is kept out if another function has its name or it is built in; then
no version or verdict is stored for it, and only its rejection is reported. The function that had a name keeps it, even
after a restart or a move.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.registry import RegistryChange, Snapshot, difference
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource, module_of
from agent_core.storage import DropReading, ReadingRow, SaveVerdict, SaveVersion, SetManifest, Write
from sandbox.wire.strict_json import DEEPEST_ROW, LOOSE, read_json

from . import change_texts
from .history import REMOVED, SAVED
from .plan import Author, entered, saved_reading

if TYPE_CHECKING:
    from agent_core.base.problem import Problem

    from ..gate import Disagreement, ModuleVerdict

_WHY_DRAFT = {
    True: "draft: its examples need what is not granted yet; its first call asks for it",
    False: "draft: it has no examples",
}


@dataclass(frozen=True, slots=True)
class GoodVersions:
    """The baseline of a refresh.

    It has the good version of each module, the stored readings by path, and the functions of each module that are kept
    out.
    """

    manifest: Mapping[str, str]
    readings: Mapping[str, ReadingRow]
    kept_out: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def in_force(self, reading: ModuleReading | None) -> ModuleReading | None:
        """Return a reading without the functions that are kept out."""
        out = self.kept_out.get(reading.source.module) if reading else None
        return without(reading, out) if reading and out else reading


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """The result for one file: a good reading, the problems that reject its newest text, and the writes.

    `verdict` is that on a text that was taken, `previous` the reading before it.
    """

    path: str
    module: str | None = None
    reading: ModuleReading | None = None
    problems: tuple["Problem", ...] = ()
    writes: tuple[Write, ...] = ()
    is_removed: bool = False
    verdict: "ModuleVerdict | None" = None
    previous: ModuleReading | None = None
    rejected_version: str = ""  # the version of a rejected text

    @property
    def lacks_import(self) -> bool:
        """True if the file could not be imported. The missing module may still arrive."""
        return _lacks_import(self.problems)


def _lacks_import(problems: Iterable["Problem"]) -> bool:
    return any(problem.code == "import-fails" for problem in problems)


def waiting(snapshot: Snapshot) -> set[str]:
    """Return the files that were rejected because they could not be imported."""
    return {path for path, problems in snapshot.rejections.items() if _lacks_import(problems)}


def import_layers(sources: Mapping[str, object], snapshot: Snapshot) -> list[set[str]]:
    """Return the paths in layers: a changed file comes after the changed files that it imports.

    Files without changes do not affect the order.
    """
    changed = {
        source.module: path
        for path, source in sources.items()
        if isinstance(source, ModuleSource) and snapshot.modules.get(source.module, source) != source
    }
    if len(changed) < 2:
        return [set(sources)]
    imports: dict[str, set[str]] = {path: set() for path in sources}
    for path, source in sources.items():
        if isinstance(source, ModuleSource) and source.module in changed:
            imports[path] = {changed[module] for module in read_module(source).imports if module in changed} - {path}
    layers = list[set[str]]()
    while imports:
        layer = {path for path, needed in imports.items() if not needed & imports.keys()}
        layers.append(layer or set(imports))  # a cycle of imports is one layer
        imports = {path: needed for path, needed in imports.items() if path not in layers[-1]}
    return layers


def unchanged(path: str, source: ModuleSource, good: GoodVersions, snapshot: Snapshot) -> ModuleReading | None:
    """Return the reading of a text that was judged before, from the registry or the store; None if it is new."""
    if source.version != good.manifest.get(source.module):
        return None
    reading = snapshot.readings.get(source.module)
    if reading is not None and reading.source == source:
        return reading
    row = good.readings.get(path)
    return stored(row, source) if row and row.version == source.version else None


def stored(row: ReadingRow, source: ModuleSource) -> ModuleReading | None:
    """Return the stored reading of this text; None if it is damaged."""
    try:
        return ModuleReading.from_json(read_json(row.reading, LOOSE, deepest=DEEPEST_ROW), source)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # not written by this program: the text is read again


def removed_file(path: str, good: GoodVersions, snapshot: Snapshot) -> LoadedFile:
    """Return the result for a deleted file."""
    holders = [module for module, source in snapshot.modules.items() if source.path == path]
    module = holders[0] if holders else module_at(path)
    if module in snapshot.modules and not holders:
        return LoadedFile(path, is_removed=True, writes=(DropReading(path),))  # the module is in another file now
    version = good.manifest.get(module)
    forget = (SetManifest(module, version, None, reason=REMOVED),) if version else ()
    return LoadedFile(path, module, is_removed=True, writes=(*forget, DropReading(path)))


def module_at(path: str) -> str:
    """Return the module of a path as shown in sources, or an empty text if it is not a module."""
    module = module_of(Path(path).relative_to("functions"))
    return module if isinstance(module, str) else ""


def admission(
    loaded: LoadedFile, snapshot: Snapshot, good: GoodVersions, confirmed: Mapping[str, Sequence[str]]
) -> tuple[Write, ...]:
    """Return the writes that admit a good saved file, as it is placed, with the user as author.

    `confirmed` are the confirmed calls, by function.
    """
    verdict, reading = loaded.verdict, loaded.reading
    assert verdict is not None
    assert reading is not None
    source, expected = reading.source, good.manifest.get(reading.source.module)
    writes: tuple[Write, ...] = (saved_reading(reading),)
    if expected != source.version:
        writes = entered(reading, expected, Author(), SAVED)
    elif source.module in good.kept_out:
        freed = SaveVersion(source.module, source.version, source.text, reason="its name became free")
        writes = (freed, *writes)
    functions = {function.name: function for function in verdict.reading.functions}
    verdicts: list[SaveVerdict] = []
    for name, standing in verdict.standings:
        own = {"standing": standing, "confirmed": [*confirmed.get(name, ())]}
        verdicts.append(SaveVerdict(functions[name].body_hash, name, verdict_on(functions[name], verdict) | own))
    return (*(with_kept_out(write, reading, snapshot) for write in writes), *verdicts)


def verdict_on(function: Function, verdict: "ModuleVerdict") -> dict[str, Any]:  # Any: JSON
    """Return the part of a file's verdict for one of its functions. `line` is its line at that time."""
    lines = (0, *range(function.line, function.end_line + 1))
    problems = [problem.to_json() for problem in verdict.problems if problem.where.line in lines]
    return {**verdict.to_json(), "by": "human", "name": function.name, "problems": problems, "line": function.line}


def by_agent(write: Write) -> Write:
    """Return the write with the agent as author, for a file that an agent had written before a crash."""
    match write:
        case SaveVersion() | SetManifest():
            return replace(write, by="agent", reason="finished after an interruption")
        case SaveVerdict():
            return replace(write, verdict={**write.verdict, "by": "agent"})
        case _:
            return write


def said_of(results: Iterable[LoadedFile]) -> RegistryChange:
    """Return the news about the functions of saved files, apart from the fact that they changed.

    These are their standings, differences from their examples, dropped examples, and functions that they break.
    """
    standings, disagreeing, noted = dict[str, str](), dict[str, str](), dict[str, str]()
    for verdict in [result.verdict for result in results if result.verdict is not None]:
        differing: dict[str, list[Disagreement]] = {}
        for name, disagreement in verdict.disagreements:
            differing.setdefault(name, []).append(disagreement)
        disagreeing |= {name: change_texts.difference(rows) for name, rows in differing.items()}
        having = {function.name for function in verdict.reading.functions if function.examples}
        for name, standing in verdict.standings:
            if name not in differing:
                standings[name] = "trial: its examples agree" if standing == "trial" else _WHY_DRAFT[name in having]
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
        noted |= {name: "\n".join(dict.fromkeys(rows)) for name, rows in sentences.items()}
    return RegistryChange(standings=standings, disagreeing=disagreeing, noted=noted)


def since(
    good: GoodVersions, results: Collection[LoadedFile], snapshot: Snapshot, finished: frozenset[str]
) -> RegistryChange:
    """Return what others changed in the files while no program ran; empty on the first load, when all is new."""
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
    """Return the stored functions that were in force in a file that is now deleted."""
    row = good.readings.get(path)
    return good.in_force(stored(row, ModuleSource(module_at(path), path, "", row.version))) if row else None


def without(reading: ModuleReading, names: frozenset[str]) -> ModuleReading:
    """Return a reading without these functions."""
    return replace(reading, functions=tuple(function for function in reading.functions if function.name not in names))


def all_placed(old_snapshot: Snapshot, results: Collection[LoadedFile], good: GoodVersions) -> Snapshot:
    """Return the snapshot with the results of all files."""
    snapshot = old_snapshot.draft()
    for result in sorted(results, key=lambda result: precedence(result, good)):
        snapshot = placed(snapshot, result)
    if snapshot.waiting:  # a name that several files define belongs to the module that had it
        removed = [known_of(result.path, good) for result in results if result.is_removed]
        had = {function.name: function for reading in removed if reading for function in reading.functions}
        for name in snapshot.waiting:
            heir = _heir(name, had.get(name) or old_snapshot.functions.get(name), snapshot, good)
            snapshot = snapshot.given_to(name, heir) if heir else snapshot
    return snapshot.finished() if snapshot.number != old_snapshot.number else old_snapshot


def all_writes(
    results: Collection[LoadedFile], snapshot: Snapshot, good: GoodVersions, finished: frozenset[str]
) -> list[Write]:
    """Return the writes for the results of all files, as they were placed."""
    writes = list[Write]()
    moved = {result.module for result in results if result.reading is not None}
    for result in sorted(results, key=lambda result: precedence(result, good)):
        own: Iterable[Write] = result.writes
        holder = snapshot.modules.get(result.module or "")
        if result.is_removed and result.module in moved:
            own = [write for write in own if not isinstance(write, SetManifest)]
        elif holder is not None and holder.path != result.path:
            own = ()  # the row of a module belongs to the file that holds it: `web.py` or a package
        writes += map(by_agent, own) if result.path in finished else own
    return writes


def precedence(loaded: LoadedFile, good: GoodVersions) -> tuple[bool, bool, bool, str]:
    """Return the sort key: deleted files first to make room, then those in the manifest, which win a clash of names."""
    version = loaded.reading.source.version if loaded.reading else None
    return (
        not loaded.is_removed,
        loaded.module not in good.manifest,
        version != good.manifest.get(loaded.module or ""),
        loaded.path,
    )


def placed(snapshot: Snapshot, loaded: LoadedFile) -> Snapshot:
    """Return the snapshot with the result of one file."""
    if loaded.is_removed:
        return snapshot.without_module(loaded.module or "").with_rejection(loaded.path, ())
    reading = loaded.reading
    if reading is not None:
        is_other = snapshot.readings.get(reading.source.module) is not reading
        if is_other or loaded.path in snapshot.rejections:  # it may resolve the problems of its file
            snapshot = snapshot.with_module(reading)
    if loaded.problems:
        return snapshot.with_rejection(loaded.path, loaded.problems)
    return snapshot


def _heir(name: str, was: Function | None, snapshot: Snapshot, good: GoodVersions) -> str:
    """Return the module that should have a name instead of its holder; empty if the holder is right.

    It is the module to which the function moved, or the one that had the name in the manifest.
    """
    holder, waiting = snapshot.functions[name], snapshot.waiting.get(name, ())
    if was is not None and was.module not in (holder.module, *waiting) and holder.body_hash != was.body_hash:
        for module in waiting:
            offered = snapshot.readings[module].function(name)
            if offered is not None and offered.body_hash == was.body_hash:
                return module
    if name not in good.kept_out.get(holder.module, ()):
        return ""
    known = (module for module in waiting if module in good.manifest)
    return next((module for module in known if name not in good.kept_out.get(module, ())), "")


def as_placed(loaded: LoadedFile, snapshot: Snapshot) -> LoadedFile:
    """Return the result of a judged file with its verdict reduced to the functions that are not kept out."""
    verdict, out = loaded.verdict, snapshot.kept_out(loaded.verdict.reading) if loaded.verdict else frozenset[str]()
    if verdict is None or not out:
        return loaded
    verdict = replace(
        verdict,
        reading=without(verdict.reading, out),
        standings=tuple(pair for pair in verdict.standings if pair[0] not in out),
        disagreements=tuple(pair for pair in verdict.disagreements if pair[0] not in out),
        breakages=tuple(replace(broken, name="") if broken.name in out else broken for broken in verdict.breakages),
    )
    return replace(loaded, verdict=verdict)


def modules_with_free_names(
    snapshot: Snapshot, good: GoodVersions, results: Iterable[LoadedFile]
) -> list[ModuleSource]:
    """Return the files, not judged yet, with functions that were kept out and are in force now."""
    judged = {result.module for result in results if result.verdict is not None}
    sources: list[ModuleSource] = []
    for module, names in good.kept_out.items():
        held = (snapshot.functions.get(name) for name in names)
        is_in_force = any(function is not None and function.module == module for function in held)
        if is_in_force and module in snapshot.modules and module not in judged:
            sources.append(snapshot.modules[module])
    return sources


def with_kept_out(write: Write, reading: ModuleReading | None, snapshot: Snapshot) -> Write:
    """Return the write of a changed file with the names of its functions that are kept out."""
    if isinstance(write, SaveVersion) and reading is not None and write.module == reading.source.module:
        return replace(write, kept_out=tuple(sorted(snapshot.kept_out(reading))))
    return write
