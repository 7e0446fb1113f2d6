"""The place of files among the others: which of two functions has a name, and what is written and told of a file then.

Pure. Of a function that is kept out, as another has its name or it is built in, nothing is written down as its version
or verdict, and nothing is told but that it is rejected. What had a name keeps it, after a restart and a move, too.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_core.storage import SaveVerdict, SaveVersion, SetManifest, Write

from .loaded_files import GoodVersions, LoadedFile, by_agent, disagreeing, known_of, noted, standings, without

if TYPE_CHECKING:
    from agent_core.base.problem import Problem
    from agent_core.registry.function import Function, ModuleReading
    from agent_core.registry.snapshot import Snapshot
    from agent_core.registry.source import ModuleSource


def all_placed(old_snapshot: "Snapshot", results: Collection[LoadedFile], good: GoodVersions) -> "Snapshot":
    """Return the snapshot with the results of all files."""
    snapshot = old_snapshot.draft()
    for result in sorted(results, key=lambda result: precedence(result, good)):
        snapshot = placed(snapshot, result)
    if snapshot.waiting:
        snapshot = _settled(snapshot, old_snapshot, results, good)
    return snapshot.finished() if snapshot.number != old_snapshot.number else old_snapshot


def all_writes(
    results: Collection[LoadedFile], snapshot: "Snapshot", good: GoodVersions, finished: frozenset[str]
) -> list[Write]:
    """Return the writes for the results of all files, as they were placed."""
    writes = list[Write]()
    moved = {result.module for result in results if result.reading is not None}
    for result in sorted(results, key=lambda result: precedence(result, good)):
        own = kept_writes(result, snapshot, moved)
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


def kept_writes(loaded: LoadedFile, snapshot: "Snapshot", moved: set[str | None]) -> Iterable[Write]:
    """Return the writes to keep. The row of a module belongs to the file that holds it: `web.py` or a package."""
    if loaded.is_removed and loaded.module in moved:
        return [write for write in loaded.writes if not isinstance(write, SetManifest)]
    holder = snapshot.modules.get(loaded.module or "")
    return loaded.writes if holder is None or holder.path == loaded.path else ()


def placed(snapshot: "Snapshot", loaded: LoadedFile) -> "Snapshot":
    """Return the snapshot with the result of one file."""
    if loaded.is_removed:
        return snapshot.without_module(loaded.module or "").with_rejection(loaded.path, ())
    if loaded.reading is not None and _is_news(snapshot, loaded.path, loaded.reading):
        snapshot = snapshot.with_module(loaded.reading)
    if loaded.problems:
        return snapshot.with_rejection(loaded.path, loaded.problems)
    return snapshot


def _is_news(snapshot: "Snapshot", path: str, reading: "ModuleReading") -> bool:
    """Return whether the reading differs from the one in place, or may settle the problems of its file."""
    return snapshot.readings.get(reading.source.module) is not reading or path in snapshot.rejections


def _settled(
    snapshot: "Snapshot", old_snapshot: "Snapshot", results: Collection[LoadedFile], good: GoodVersions
) -> "Snapshot":
    """Return the snapshot with each name that several files offer at the one that had it."""
    removed = [known_of(result.path, good) for result in results if result.is_removed]
    had = {function.name: function for reading in removed if reading for function in reading.functions}
    for name in snapshot.waiting:
        heir = _heir(name, had.get(name) or old_snapshot.functions.get(name), snapshot, good)
        snapshot = snapshot.given_to(name, heir) if heir else snapshot
    return snapshot


def _heir(name: str, was: "Function | None", snapshot: "Snapshot", good: GoodVersions) -> str:
    """Return the module that is to have a name in place of its holder: the one to which the function moved, or that
    had it when this was written down. It is empty if the holder is the right one.
    """
    holder, waiting = snapshot.functions[name], snapshot.waiting.get(name, ())
    if was is not None and was.module not in (holder.module, *waiting) and holder.body_hash != was.body_hash:
        moved = [module for module in waiting if _hash_of(name, snapshot.readings[module]) == was.body_hash]
        if moved:
            return moved[0]
    if name not in good.kept_out.get(holder.module, ()):
        return ""
    known = (module for module in waiting if module in good.manifest)
    return next((module for module in known if name not in good.kept_out.get(module, ())), "")


def _hash_of(name: str, reading: "ModuleReading") -> str:
    return next((function.body_hash for function in reading.functions if function.name == name), "")


def as_placed(loaded: LoadedFile, snapshot: "Snapshot") -> LoadedFile:
    """Return the result of a judged file without what would be written and told of functions that are kept out."""
    out = snapshot.kept_out(loaded.verdict.reading) if loaded.verdict else frozenset[str]()
    if loaded.verdict is None or not out:
        return loaded
    reading, breakages = loaded.verdict.reading, loaded.verdict.breakages
    own = {(function.body_hash, function.name) for function in reading.functions if function.name in out}
    verdict = replace(
        loaded.verdict,
        reading=without(reading, out),
        standings=tuple(pair for pair in loaded.verdict.standings if pair[0] not in out),
        disagreements=tuple(pair for pair in loaded.verdict.disagreements if pair[0] not in out),
        breakages=tuple(replace(broken, name="") if broken.name in out else broken for broken in breakages),
    )
    return replace(
        loaded,
        writes=tuple(
            with_kept_out(write, reading, snapshot) for write in loaded.writes if not _is_verdict_on(write, own)
        ),
        verdict=verdict,
        standings=standings(verdict),
        disagreeing=disagreeing(verdict),
        noted=noted(verdict),
    )


def _is_verdict_on(write: Write, functions: Collection[tuple[str, str]]) -> bool:
    return isinstance(write, SaveVerdict) and (write.version, write.function) in functions


def modules_with_free_names(
    snapshot: "Snapshot", good: GoodVersions, results: Iterable[LoadedFile]
) -> list["ModuleSource"]:
    """Return the files, not judged yet, with functions that were kept out and are in force now."""
    judged = {result.module for result in results if result.verdict is not None}
    return [
        snapshot.modules[module]
        for module, names in good.kept_out.items()
        if module in snapshot.modules and module not in judged and _has_any(snapshot, module, names)
    ]


def _has_any(snapshot: "Snapshot", module: str, names: Collection[str]) -> bool:
    held = (snapshot.functions.get(name) for name in names)
    return any(function is not None and function.module == module for function in held)


def with_kept_out(write: Write, reading: "ModuleReading | None", snapshot: "Snapshot") -> Write:
    """Return the write for a file that was changed, with the functions that are kept out of it."""
    if isinstance(write, SaveVersion) and reading is not None and write.module == reading.source.module:
        return replace(write, kept_out=tuple(sorted(snapshot.kept_out(reading))))
    return write


def rejected_again(results: Iterable[LoadedFile], old_snapshot: "Snapshot", snapshot: "Snapshot") -> list["Problem"]:
    """Return the problems that files with a new text still have."""
    paths = [result.path for result in results if result.verdict is not None]
    return [
        problem
        for path in paths
        for problem in snapshot.rejections.get(path, ())
        if problem in old_snapshot.rejections.get(path, ())
    ]
