"""The folder → the registry: what is on disk is read, judged where it is new, and taken or rejected.

A bad file never takes a good function away: the last good version goes on, and the problems say why.
What was judged before is known by its hash and is not judged, nor parsed, again.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ..gate import Gate, ModuleVerdict
from ..problem import Problem
from ..registry.function import Reading
from ..registry.registry import Change, Registry
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source, module_of, read_file, shown_path
from ..registry.watch import scan
from ..storage import (
    STATE,
    DropReading,
    EndWrite,
    ManifestConflict,
    ReadingRow,
    SaveReading,
    SaveVerdict,
    SaveVersion,
    SetManifest,
    Store,
    Write,
)
from .one_writer import only_writer

_NO_STAMP = (0, 0, 0)
_TRIES = 3
Found: TypeAlias = Source | Problem | None
"""What a file holds, why it cannot be read, or None where there is none."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is good at the moment of a refresh: the version of each module, and what storage has read by path."""

    manifest: Mapping[str, str]
    readings: Mapping[str, ReadingRow]


@dataclass(frozen=True, slots=True)
class _Taken:
    """What came of one file: a reading that is good, problems that keep its newest text out, and the writes."""

    path: str
    module: str | None = None
    reading: Reading | None = None
    problems: tuple[Problem, ...] = ()
    writes: tuple[Write, ...] = ()
    gone: bool = False


class Loader:
    """Keeps the registry in step with the folder."""

    def __init__(self, root: Path, store: Store, registry: Registry, gate: Gate, limit_bytes: int) -> None:
        self._folder = root / "functions"
        self._state = root / STATE
        self._store = store
        self._registry = registry
        self._gate = gate
        self._limit = limit_bytes

    async def start(self) -> None:
        """Settle writes that a crash cut off, then take the whole folder."""
        async with only_writer(self._state):  # what another process is writing now was not cut off
            unfinished = await self._store.open_writes()
        finished: dict[str, str] = {}
        for write in unfinished:
            path = Path(write.path.removeprefix("functions/"))
            source = await asyncio.to_thread(read_file, self._folder, path, self._limit)
            if isinstance(source, Source) and source.version == write.version:
                finished[write.path] = source.version
        await self.refresh(finished=finished)
        await self._store.apply([EndWrite(write.path, write.version) for write in unfinished])

    async def refresh(self, paths: Iterable[Path] | None = None, *, finished: dict[str, str] | None = None) -> Change:
        """Take the files that changed (all, if none are named); what became different.

        `finished` names files, with their versions, that an agent wrote before a crash.
        """
        named = None if paths is None else list(paths)
        return await self._refresh_again(named, finished or {}, stored=named is None)

    async def catch_up(self, path: str) -> None:
        """Take one file as it and its rows are now: another process may have written both."""
        await self._refresh_again([self._folder / path.removeprefix("functions/")], {}, stored=True)

    async def _refresh_again(self, named: list[Path] | None, finished: dict[str, str], *, stored: bool) -> Change:
        for attempt in range(_TRIES):
            try:
                known, sources = await self._look(named, stored=stored or attempt > 0)
                return await self._refresh(sources, known, finished)
            except ManifestConflict:
                # Another process took the same file in the same moment: what it wrote down is read anew.
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _look(self, paths: list[Path] | None, *, stored: bool) -> tuple[_Known, dict[str, Found]]:
        """What is good and what the files hold: both as storage has it, while nobody is between a file and its rows;
        or as the registry has it, which is as good until another process takes a file.
        """
        if stored:
            async with only_writer(self._state):
                known = _Known(await self._store.manifest(), await self._store.readings())
                return known, await asyncio.to_thread(self._read, paths, known)
        known = _Known({name: source.version for name, source in self._registry.snapshot().modules.items()}, {})
        return known, await asyncio.to_thread(self._read, paths, known)

    async def _refresh(self, sources: dict[str, Found], known: _Known, finished: dict[str, str]) -> Change:
        before = self._registry.snapshot()
        taken = await asyncio.gather(*(self._take(path, found, known, before) for path, found in sources.items()))
        snapshot = before
        writes: list[Write] = []
        moved = {each.module for each in taken if each.reading is not None}
        for each in sorted(taken, key=lambda one: _precedence(one, known)):
            snapshot = _placed(snapshot, each)
            writes += _kept_writes(each, snapshot, moved)
        if writes:
            async with only_writer(self._state):  # a file that another process just wrote is its to write down
                await self._store.apply([_by_agent(write, finished) for write in writes])
        return self._registry.swap(snapshot)

    def _read(self, paths: list[Path] | None, known: _Known) -> dict[str, Found]:
        found = list(scan(self._folder, {}).stamps) if paths is None else paths
        files = [path for path in found if path.suffix == ".py" or path.is_symlink()]
        inside = [path.relative_to(self._folder) for path in files if not self._is_bare_marker(path)]
        sources: dict[str, Found] = {shown_path(path): self._read_one(path) for path in inside}
        if paths is None:
            sources.update(dict.fromkeys(known.readings.keys() - sources.keys()))
        return sources

    def _is_bare_marker(self, path: Path) -> bool:
        # `functions/__init__.py` belongs to no module; an empty one is a habit, and nothing to complain of.
        return path == self._folder / "__init__.py" and path.is_file() and path.stat().st_size == 0

    def _read_one(self, path: Path) -> Found:
        whole = self._folder / path
        return read_file(self._folder, path, self._limit) if whole.is_symlink() or whole.exists() else None

    async def _take(self, path: str, found: Found, known: _Known, before: Snapshot) -> _Taken:
        if found is None:
            return _gone(path, known, before)
        if isinstance(found, Problem):
            return await self._keep_last_good(path, (found,), known, before)
        unchanged = _unchanged(path, found, known, before)
        if unchanged is not None:
            return _Taken(path, found.module, unchanged)
        previous = before.readings.get(found.module)
        verdict = await self._gate.judge_module(found, before, "human", previous=previous)
        if not verdict.admitted:
            return await self._keep_last_good(path, verdict.problems, known, before)
        return _Taken(path, found.module, verdict.reading, writes=_admission(path, found, verdict, known))

    async def _keep_last_good(
        self, path: str, problems: tuple[Problem, ...], known: _Known, before: Snapshot
    ) -> _Taken:
        held = before.readings.get(_module(path))
        if held is not None and held.source.path == path:
            return _Taken(path, held.source.module, held, problems)
        row = known.readings.get(path)
        text = await self._store.text(row.version) if row is not None else None
        if row is None or text is None:
            return _Taken(path, problems=problems)
        module = _module(path)
        if known.manifest.get(module) != row.version:
            return _Taken(path, problems=problems)
        source = Source(module, path, text, row.version)
        reading = _stored(row, source) or read_module(source)
        return _Taken(path, module, reading, problems)


def _unchanged(path: str, found: Source, known: _Known, before: Snapshot) -> Reading | None:
    """The reading of a text that was judged before, in the registry or in storage."""
    if found.version != known.manifest.get(found.module):
        return None
    held = before.readings.get(found.module)
    if held is not None and held.source == found:
        return held
    row = known.readings.get(path)
    return _stored(row, found) if row and row.version == found.version else None


def _stored(row: ReadingRow, source: Source) -> Reading | None:
    try:
        return Reading.from_json(json.loads(row.reading), source)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # not what this program wrote: it is read anew


def _precedence(taken: _Taken, known: _Known) -> tuple[bool, bool, bool, str]:
    """What goes makes room first; then comes what the manifest knows: on a clash of names it stays."""
    version = taken.reading.source.version if taken.reading else None
    return (
        not taken.gone,
        taken.module not in known.manifest,
        version != known.manifest.get(taken.module or ""),
        taken.path,
    )


def _kept_writes(taken: _Taken, snapshot: Snapshot, moved: set[str | None]) -> Iterable[Write]:
    """A module has one row: it belongs to the file that holds the module, be it `web.py` or `web/__init__.py`."""
    if taken.gone and taken.module in moved:
        return [write for write in taken.writes if not isinstance(write, SetManifest)]
    holder = snapshot.modules.get(taken.module or "")
    return taken.writes if holder is None or holder.path == taken.path else ()


def _placed(snapshot: Snapshot, taken: _Taken) -> Snapshot:
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


def _gone(path: str, known: _Known, before: Snapshot) -> _Taken:
    holders = [module for module, source in before.modules.items() if source.path == path]
    module = holders[0] if holders else _module(path)
    if module in before.modules and not holders:
        return _Taken(path, gone=True, writes=(DropReading(path),))  # another file holds the module
    version = known.manifest.get(module)
    forget = (SetManifest(module, version, None, reason="the file was removed"),) if version else ()
    return _Taken(path, module, gone=True, writes=(*forget, DropReading(path)))


def _module(path: str) -> str:
    module = module_of(Path(path).relative_to("functions"))
    return module if isinstance(module, str) else ""


def _admission(path: str, source: Source, verdict: ModuleVerdict, known: _Known) -> tuple[Write, ...]:
    expected = known.manifest.get(source.module)
    entered: tuple[Write, ...] = ()
    if expected != source.version:
        entered = (
            SaveVersion(source.module, source.version, source.text, reason="saved"),
            SetManifest(source.module, expected, source.version, reason="saved"),
        )
    hashes = {function.name: function.body_hash for function in verdict.reading.functions}
    verdicts = [
        SaveVerdict(hashes[name], name, {**verdict.to_json(), "name": name, "standing": standing, "by": "human"})
        for name, standing in verdict.standings
    ]
    reading = SaveReading(path, _NO_STAMP, source.version, json.dumps(verdict.reading.to_json()))
    return (*entered, *verdicts, reading)


def _by_agent(write: Write, finished: dict[str, str]) -> Write:
    """A version that an agent had written before a crash stays its version."""
    if isinstance(write, SaveVersion) and write.version in finished.values():
        return SaveVersion(write.module, write.version, write.text, "agent", reason="finished after an interruption")
    return write
