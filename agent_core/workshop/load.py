"""The folder → the registry: what is on disk is read, judged where it is new, and taken or rejected.

A bad file never takes a good function away: the last good version goes on, and the problems say why.
What was judged before is known by its hash and is not judged, nor parsed, again.
"""

import ast
import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ..aside import aside
from ..gate import Gate, ModuleVerdict
from ..problem import Problem
from ..registry.function import Reading
from ..registry.registry import Change, Registry
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source, parse_accepted, read_file, shown_path
from ..registry.watch import scan
from ..storage import STATE, EndWrite, ManifestConflict, SaveVerdict, Store, Write
from . import ratchet
from .judging import confirmed
from .one_writer import only_writer
from .packing import Packing
from .taken import (
    Known,
    Taken,
    admission,
    all_placed,
    disagreeing,
    gone,
    module_at,
    noted,
    said_of,
    since,
    standings,
    stored,
    unchanged,
    waiting,
)

_TRIES = 3
Found: TypeAlias = Source | Problem | None
"""What a file holds, why it cannot be read, or None where there is none."""


class Loader:
    """Keeps the registry in step with the folder; `then` hears of each file that was judged and taken.

    `since` is what other hands changed before it was started.
    """

    def __init__(  # noqa: PLR0913 - the rooms that it joins
        self,
        root: Path,
        store: Store,
        registry: Registry,
        gate: Gate,
        packing: Packing,
        *,
        limit_bytes: int,
        then: Callable[[ModuleVerdict, Reading | None], None] = lambda verdict, previous: None,
    ) -> None:
        self._folder = root / "functions"
        self._state = root / STATE
        self._store = store
        self._registry = registry
        self._gate = gate
        self._packing = packing
        self._limit = limit_bytes
        self._then = then
        self.since = Change()

    async def start(self) -> None:
        """Settle writes that a crash cut off, then take the whole folder."""
        async with only_writer(self._state):  # what another process is writing now was not cut off
            unfinished = await self._store.open_writes()
        finished = frozenset(
            [write.path for write in unfinished if await asyncio.to_thread(self._is_done, write.path, write.version)]
        )
        await self.refresh(finished=finished)
        await self._store.apply([EndWrite(write.path, write.version) for write in unfinished])

    def _is_done(self, path: str, version: str | None) -> bool:
        """Whether the file of a write that was cut off is as that write would have made it."""
        inside = Path(path.removeprefix("functions/"))
        found = read_file(self._folder, inside, self._limit)
        return found.version == version if isinstance(found, Source) else not version and not self._is_there(inside)

    async def refresh(self, paths: Iterable[Path] | None = None, *, finished: frozenset[str] = frozenset()) -> Change:
        """Take the files that changed (all, if none are named); what became different.

        `finished` names files that an agent wrote before a crash.
        """
        named = None if paths is None else list(paths)
        return await self._refresh_again(named, finished, stored=named is None)

    async def catch_up(self, path: str) -> None:
        """Take one file as it and its rows are now: another process may have written both."""
        await self._refresh_again([self._folder / path.removeprefix("functions/")], stored=True)

    async def _refresh_again(
        self, named: list[Path] | None, finished: frozenset[str] = frozenset(), *, stored: bool
    ) -> Change:
        for attempt in range(_TRIES):
            try:
                known, sources = await self._look(named, stored=stored or attempt > 0)
                return await self._refresh(sources, known, finished)
            except ManifestConflict:
                # Another process took the same file in the same moment: what it wrote down is read anew.
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _look(self, paths: list[Path] | None, *, stored: bool) -> tuple[Known, dict[str, Found]]:
        """What is good and what the files hold: both as storage has it, while nobody is between a file and its rows;
        or as the registry has it, which is as good until another process takes a file.
        """
        if stored:
            async with only_writer(self._state):
                known = Known(await self._store.manifest(), await self._store.readings())
                return known, await asyncio.to_thread(self._read, paths, known)
        known = Known({name: source.version for name, source in self._registry.snapshot().modules.items()}, {})
        return known, await asyncio.to_thread(self._read, paths, known)

    async def _refresh(self, sources: dict[str, Found], known: Known, finished: frozenset[str]) -> Change:
        before = self._registry.snapshot()
        late = {path: self._read_one(Path(path).relative_to("functions")) for path in waiting(before) - sources.keys()}
        sources = {**sources, **late}
        taken: dict[str, Taken] = {}
        snapshot, writes, retried = before, list[Write](), set(sources)
        while retried:
            found = await asyncio.gather(*(self._take(path, sources[path], known, snapshot) for path in retried))
            taken.update({each.path: each for each in found})
            snapshot, writes = all_placed(before, taken.values(), known, finished)
            # What it imports may have come in the same moment.
            unfit = {path for path, each in taken.items() if each.lacks_import}
            retried = unfit if unfit < retried else set()
        if writes:
            async with only_writer(self._state):  # a file that another process just wrote is its to write down
                await self._store.apply(writes)
        if not before.readings:
            self.since = since(known, taken.values(), finished)
        change = self._registry.swap(snapshot, said=said_of(taken.values()))
        for each in taken.values():
            if each.verdict is not None:
                self._then(each.verdict, each.previous)
        return change

    def _read(self, paths: list[Path] | None, known: Known) -> dict[str, Found]:
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
        return read_file(self._folder, path, self._limit) if self._is_there(path) else None

    def _is_there(self, path: Path) -> bool:
        whole = self._folder / path
        return whole.is_symlink() or whole.exists()

    async def _take(self, path: str, found: Found, known: Known, before: Snapshot) -> Taken:
        if found is None:
            return gone(path, known, before)
        if isinstance(found, Problem):
            return await self._keep_last_good(path, (found,), known, before)
        same = unchanged(path, found, known, before)
        if same is not None:
            return Taken(path, found.module, same)
        previous = before.readings.get(found.module) or await self._last_good(path, known, before)
        granted = await self._packing.of_text(found.text)
        verdict = await self._gate.judge_module(found, before, "human", previous=previous, granted=granted)
        if not verdict.admitted:
            return await self._keep_last_good(path, verdict.problems, known, before)
        verdict = replace(verdict, problems=(*verdict.problems, *ratchet.of_save(previous, verdict.reading)))
        writes = admission(path, found, verdict, known, await self._confirmed(previous, verdict))
        writes = (*writes, *(await self._unfit(verdict)))
        known_of = Taken(path, found.module, verdict.reading, writes=writes, verdict=verdict, previous=previous)
        return replace(known_of, standings=standings(verdict), disagreeing=disagreeing(verdict), noted=noted(verdict))

    async def _confirmed(self, previous: Reading | None, verdict: ModuleVerdict) -> dict[str, Sequence[str]]:
        """The calls, by function, whose results were once taken as they came back, and still stand so."""
        had = {each.name: each for each in previous.functions} if previous else {}
        judged = [each for each in verdict.reading.functions if each.name in dict(verdict.standings)]
        return {each.name: await confirmed(self._store, (), had.get(each.name), each) for each in judged}

    async def _unfit(self, verdict: ModuleVerdict) -> list[Write]:
        """Of the functions of other files that a save breaks, with which code they do not do what they promise."""
        broken = {one.user.name: one for one in verdict.breakages}
        held = [(one, await self._store.verdict(one.user.body_hash, name)) for name, one in broken.items()]
        return [
            SaveVerdict(one.user.body_hash, one.user.name, {**said, "unfit_with": one.code})
            for one, said in held
            if said is not None
        ]

    async def _keep_last_good(self, path: str, problems: tuple[Problem, ...], known: Known, before: Snapshot) -> Taken:
        good = await self._last_good(path, known, before)
        return Taken(path, good.source.module if good else None, good, problems)

    async def _last_good(self, path: str, known: Known, before: Snapshot) -> Reading | None:
        module = module_at(path)
        held = before.readings.get(module)
        if held is not None and held.source.path == path:
            return held
        row = known.readings.get(path)
        text = await self._store.text(row.version) if row is not None else None
        if row is None or text is None or known.manifest.get(module) != row.version:
            return None
        source = Source(module, path, text, row.version)
        tree = await aside(len(text), parse_accepted, source)
        return stored(row, source) or read_module(source, tree=tree if isinstance(tree, ast.Module) else None)
