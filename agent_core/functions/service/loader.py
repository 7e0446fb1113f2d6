"""Loads the folder into the registry: files are read, judged if new, taken or rejected, and reviewed in the background.

A bad file never replaces a good function: the last good version stays in force, and the problems say why. Texts that
were judged before are known by their hash and are neither judged nor parsed again.

A text that defines a name which another file has, or which is built in, is rejected like any other bad file. It is
judged again at each change, so it is taken when the name is free.

The review after a save runs the stages that the save does not wait for, one function at a time. Saves take precedence,
and a newer version of a function replaces an older one in the queue. Findings are stored and reported. Functions that
wait for a package are judged again when the user grants it.
"""

import ast
import asyncio
import os
from collections import deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from agent_core.base.errors import KnapperError, WorkspaceError
from agent_core.base.events import FunctionsChanged
from agent_core.base.late import LateModule
from agent_core.base.offload import aside, results_of
from agent_core.base.problem import Place, Problem, ProblemsByLine, first_problems
from agent_core.base.records import asdict, dataclass, field, replace
from agent_core.registry.depends import modules_of, packages_around
from agent_core.registry.folder_access import is_below, is_there, scan
from agent_core.registry.function import Function, ModuleReading, attempt_mark
from agent_core.registry.module_edits import remove, save
from agent_core.registry.registry import Registry, RegistryChange, Snapshot, difference
from agent_core.registry.schema import read_module
from agent_core.registry.source import (
    FOLDER,
    UNREADABLE_FOLDER,
    ModuleSource,
    folder_problem,
    module_of,
    parse_accepted,
    read_file,
    shown_folder,
    shown_path,
)
from agent_core.registry.tree import may_import_neighbors
from agent_core.storage import (
    STATE,
    BeginState,
    DropReading,
    EndWrite,
    FunctionStore,
    ManifestConflict,
    OpenWrite,
    ReadingRow,
    SaveVerdict,
    SaveVersion,
    SetManifest,
    Write,
    only_writer,
)
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import DEEPEST_ROW, LOOSE, read_json

from . import change_texts, history
from .change_executor import FolderCopy, Pulled
from .history import REMOVED, SAVED
from .judgment import judgment_on, marked_as_broken
from .plan import USER, entered, saved_reading

if TYPE_CHECKING:
    from ..gate import Disagreement, Gate, ModuleVerdict, capability
    from ..gate.trial import Granted
    from . import example_regression
    from .grant_service import PackageGrants
else:
    capability = LateModule("agent_core.functions.gate.capability")
    example_regression = LateModule("agent_core.functions.service.example_regression")


_LATE: Final = ("import-fails", "name-clash", "reserved-name")
"""Codes of problems that a change of another file may resolve."""
_WHY_DRAFT = {
    True: "draft: its examples need what is not granted yet; its first call asks for it",
    False: "draft: it has no examples",
}


@dataclass(frozen=True, slots=True)
class GoodVersions:
    """The baseline of a refresh.

    It has the good version of each module and the stored readings by path. Earlier versions of this program took a
    text without those of its functions whose name another file had: they are `kept_out`, by module. With `tries_all`,
    files whose import did not end are tried again, although nothing changed.
    """

    manifest: Mapping[str, str]
    readings: Mapping[str, ReadingRow]
    kept_out: Mapping[str, frozenset[str]] = field(default_factory=dict)
    tries_all: bool = False

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
    problems: tuple[Problem, ...] = ()
    writes: tuple[Write, ...] = ()
    is_removed: bool = False
    verdict: "ModuleVerdict | None" = None
    previous: ModuleReading | None = None
    rejected_version: str = ""  # the version of a rejected text

    @property
    def lacks_import(self) -> bool:
        """True if the file could not be imported. The missing module may still arrive."""
        return _lacks_import(self.problems)

    def imports_any(self, modules: Collection[str | None]) -> bool:
        """Check whether a text that is to be taken imports one of these modules."""
        return self.verdict is not None and not {*modules}.isdisjoint(self.verdict.reading.imports)

    def mistook_neighbor(self, others: Mapping[str, "LoadedFile"]) -> bool:
        """Check whether the file imports a module of the same save that was mistaken for a missing package."""
        if self.verdict is None or all(
            problem.code != "needs-packages" for problem in self.verdict.problems
        ):
            return False
        packages = capability.imported_at_the_top(self.verdict.reading.source.text, ())
        return bool(packages & {other.module for other in others.values()})


def _unfit(results: Mapping[str, LoadedFile]) -> set[str]:
    refused = {result.module for result in results.values() if result.problems}
    return {
        path
        for path, result in results.items()
        if result.lacks_import or result.mistook_neighbor(results) or result.imports_any(refused)
    }


def _lacks_import(problems: Iterable[Problem]) -> bool:
    return any(problem.code == "import-fails" for problem in problems)


@dataclass(frozen=True, slots=True)
class ImportLayer:
    """Files that are judged at once. `circle` are the new readings of files that import each other, if they do."""

    paths: tuple[str, ...]
    circle: tuple[ModuleReading, ...] = ()


def import_layers(sources: Mapping[str, object], snapshot: Snapshot) -> list[ImportLayer]:
    """Return the paths in layers: a changed file comes after the changed files that it imports.

    Files without changes do not affect the order.
    """
    changed = {
        source.module: (path, source)
        for path, source in sources.items()
        if isinstance(source, ModuleSource) and snapshot.modules.get(source.module) != source
    }
    if len(changed) < 2:
        return [ImportLayer(tuple(sources))]
    readings: dict[str, ModuleReading] = {}
    imports: dict[str, set[str]] = {path: set() for path in sources}
    for module, (path, source) in changed.items():
        needed = {*packages_around(module)}
        if may_import_neighbors(source.text):
            readings[path] = read_module(source)
            needed.update(readings[path].imports)
        imports[path] = {changed[other][0] for other in needed if other in changed} - {path}
    layers = list[ImportLayer]()
    while imports:
        layer = {path for path, needed in imports.items() if not needed & imports.keys()}
        circle: tuple[ModuleReading, ...] = ()
        if not layer:
            layer = _circle(imports)
            circle = tuple(
                readings[path] for path in sorted(layer & readings.keys()) if readings[path].parsed
            )
        layers.append(ImportLayer(tuple(layer), circle))
        imports = {path: needed for path, needed in imports.items() if path not in layer}
    return layers


def _circle(imports: Mapping[str, set[str]]) -> set[str]:
    """Return paths that import each other and no others of these, each of which imports at least one."""
    users: dict[str, set[str]] = {path: set() for path in imports}
    for path, needed in imports.items():
        for other in needed & imports.keys():
            users[other].add(path)
    start = next(iter(imports))
    while True:
        below = _reached(start, imports)
        circle = {*_reached(start, users)} & {*below}
        if len(circle) == len(below):
            return circle
        start = next(path for path in reversed(below) if path not in circle)  # it is farther down


def _reached(start: str, edges: Mapping[str, set[str]]) -> list[str]:
    """Return what can be reached from a path, itself first and the farthest last."""
    reached = {start: None}
    waiting = deque(reached)
    while waiting:
        fresh = [path for path in edges[waiting.popleft()] if path in edges and path not in reached]
        reached |= dict.fromkeys(fresh)
        waiting += fresh
    return [*reached]


def unchanged(
    path: str, source: ModuleSource, good: GoodVersions, snapshot: Snapshot
) -> ModuleReading | None:
    """Return the reading of a text that was judged before, from the registry or the store; None if it is new."""
    if source.version != good.manifest.get(source.module) or source.module in good.kept_out:
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
        return LoadedFile(
            path, is_removed=True, writes=(DropReading(path),)
        )  # the module is in another file now
    version = good.manifest.get(module)
    forget = (SetManifest(module, version, None, reason=REMOVED),) if version else ()
    return LoadedFile(path, module, is_removed=True, writes=(*forget, DropReading(path)))


def module_at(path: str) -> str:
    """Return the module of a path as shown in sources, or an empty text if it is not a module."""
    module = module_of(Path(path).relative_to("functions"))
    return module if isinstance(module, str) else ""


def admission(
    loaded: LoadedFile,
    good: GoodVersions,
    confirmed: Mapping[str, Sequence[str]],
) -> tuple[Write, ...]:
    """Return the writes that admit a good saved file, with the user as author.

    `confirmed` are the confirmed calls, by function.
    """
    verdict, reading = loaded.verdict, loaded.reading
    assert verdict is not None
    assert reading is not None
    source, expected = reading.source, good.manifest.get(reading.source.module)
    writes: tuple[Write, ...] = (saved_reading(reading),)
    if expected != source.version:
        writes = entered(reading, expected, USER, SAVED)
    elif source.module in good.kept_out:
        freed = SaveVersion(
            source.module, source.version, source.text, reason="its names became free"
        )
        writes = (freed, *writes)
    functions = {function.name: function for function in verdict.reading.functions}
    shared = SharedVerdict(verdict)
    verdicts: list[SaveVerdict] = []
    for name, standing in verdict.standings:
        own = {"standing": standing, "confirmed": [*confirmed.get(name, ())]}
        verdicts.append(
            SaveVerdict(functions[name].body_hash, name, shared.on(functions[name]) | own)
        )
    return (*writes, *verdicts)


class SharedVerdict:
    """The verdict on a file as the verdicts on its functions, which have the same but for their own problems."""

    def __init__(self, verdict: "ModuleVerdict") -> None:
        self._whole = {**replace(verdict, problems=(), standings=()).to_json(), "by": "human"}
        self._problems = ProblemsByLine(verdict.problems)

    def on(self, function: Function) -> dict[str, Any]:  # Any: JSON
        """Return the part for one function. `line` is its line at that time."""
        own = (
            *self._problems.between(0, 0),
            *self._problems.between(function.line, function.end_line),
        )
        problems = [problem.to_json() for problem in first_problems(own)]
        return {**self._whole, "name": function.name, "problems": problems, "line": function.line}


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
                standings[name] = (
                    "trial: its examples agree"
                    if standing == "trial"
                    else _WHY_DRAFT[name in having]
                )
        dropped = ProblemsByLine(
            problem for problem in verdict.problems if problem.code == "example-dropped"
        )
        notes = [
            (function.name, problem.message)
            for function in verdict.reading.functions
            for problem in dropped.between(function.line, function.end_line)
        ]
        sentences: dict[str, list[str]] = {}
        for name, sentence in (*notes, *map(change_texts.breakage, verdict.breakages)):
            sentences.setdefault(name or verdict.reading.source.module, []).append(sentence)
        noted |= {name: "\n".join(dict.fromkeys(rows)) for name, rows in sentences.items()}
    return RegistryChange(standings=standings, disagreeing=disagreeing, noted=noted)


def heard(change: RegistryChange, root: Path) -> FunctionsChanged:
    """Return a change of the registry as an event, with the line of each problem that rejects a file."""
    lines: dict[str, str] = {}
    rows_of: dict[
        str, list[str]
    ] = {}  # each file is read once: all of its functions may be rejected
    for problem in change.rejected:
        place = problem.where
        if not place.line:
            continue
        if place.path not in rows_of:
            source = read_file(root / FOLDER, Path(place.path).relative_to(FOLDER))
            text = source.text if isinstance(source, ModuleSource) else ""
            rows_of[place.path] = bare_lines(text)
        rows = rows_of[place.path]
        if place.line <= len(rows):
            lines[str(problem)] = rows[place.line - 1].rstrip()[:400]
    return FunctionsChanged(
        turn="",
        loaded=change.loaded,
        changed=change.changed,
        removed=change.removed,
        rejected=tuple(str(problem) for problem in change.rejected),
        by=change.by,
        fixed=change.fixed,
        standings=dict(change.standings),
        disagreeing=dict(change.disagreeing),
        noted=dict(change.noted),
        lines={problem: text for problem, text in lines.items() if text},
    )


def since(
    good: GoodVersions,
    results: Collection[LoadedFile],
    snapshot: Snapshot,
    finished: frozenset[str],
) -> RegistryChange:
    """Return what others changed in the files while no program ran; empty on the first load, when all is new."""
    before = after = Snapshot.empty()
    reported = (
        [result for result in results if result.path not in finished] if good.manifest else []
    )
    for file_result in reported:
        had = file_result.previous or (
            known_of(file_result.path, good) if file_result.is_removed else None
        )
        before = before.with_module(had) if had else before
        if file_result.problems:
            after = after.with_rejection(file_result.path, file_result.problems)
        elif file_result.verdict is not None:
            after = after.with_module(file_result.verdict.reading)
            after = after.with_rejection(
                file_result.path, snapshot.rejections.get(file_result.path, ())
            )
    return difference(before, after, change=said_of(reported))


def known_of(path: str, good: GoodVersions) -> ModuleReading | None:
    """Return the stored functions that were in force in a file that is now deleted."""
    row = good.readings.get(path)
    return (
        good.in_force(stored(row, ModuleSource(module_at(path), path, "", row.version)))
        if row
        else None
    )


def without(reading: ModuleReading, names: frozenset[str]) -> ModuleReading:
    """Return a reading without these functions."""
    return replace(
        reading,
        functions=tuple(function for function in reading.functions if function.name not in names),
    )


def all_placed(
    old_snapshot: Snapshot, results: Collection[LoadedFile], good: GoodVersions
) -> Snapshot:
    """Return the snapshot with the results of all files."""
    snapshot = _placed(old_snapshot.draft(), results, good)
    if snapshot.has_clash:  # a name that a file gave up is free for those placed before it
        snapshot = _placed(snapshot, results, good)
    return snapshot.finished() if snapshot.number != old_snapshot.number else old_snapshot


def _placed(snapshot: Snapshot, results: Collection[LoadedFile], good: GoodVersions) -> Snapshot:
    for result in in_order(results, good):
        if result.is_removed:
            snapshot = snapshot.without_module(result.module or "").with_rejection(result.path, ())
            continue
        if (reading := result.reading) is not None:
            is_other = snapshot.readings.get(reading.source.module) is not reading
            if (
                is_other or result.path in snapshot.rejections
            ):  # it may resolve the problems of its file
                snapshot = snapshot.with_module(reading)
        if result.problems:
            snapshot = snapshot.with_rejection(result.path, result.problems)
    return snapshot


def without_clashes(
    old_snapshot: Snapshot, results: dict[str, LoadedFile], good: GoodVersions
) -> tuple[dict[str, LoadedFile], Snapshot]:
    """Refuse each new text that defines a name which another file has. Return the results and their snapshot.

    The file that had a name keeps it; of new ones, the first has it.
    """
    while True:
        snapshot = all_placed(old_snapshot, results.values(), good)
        taken = [result for result in results.values() if result.verdict is not None]
        refused = {result.path: _refused(result, snapshot) for result in taken}
        clashing = {path: result for path, result in refused.items() if result.problems}
        if not clashing:
            return results, snapshot
        results = results | clashing


def _refused(loaded: LoadedFile, snapshot: Snapshot) -> LoadedFile:
    """Return the result of a good text without it, if names in it are taken; else the result."""
    verdict = loaded.verdict
    assert verdict is not None
    problems = tuple(
        replace(problem, fix=f"{problem.fix}; until then, nothing of this text is taken")
        for problem in snapshot.clashes(verdict.reading)
    )
    if not problems:
        return loaded
    source = verdict.reading.source
    return LoadedFile(
        loaded.path, source.module, loaded.previous, problems, rejected_version=source.version
    )


def all_writes(
    results: Collection[LoadedFile],
    snapshot: Snapshot,
    good: GoodVersions,
    finished: frozenset[str],
) -> list[Write]:
    """Return the writes for the results of all files, as they were placed."""
    writes = list[Write]()
    moved = {result.module for result in results if result.reading is not None}
    for result in in_order(results, good):
        own: Iterable[Write] = result.writes
        holder = snapshot.modules.get(result.module or "")
        if result.is_removed and result.module in moved:
            own = [write for write in own if not isinstance(write, SetManifest)]
        elif holder is not None and holder.path != result.path:
            own = ()  # the row of a module belongs to the file that holds it: `web.py` or a package
        writes += map(by_agent, own) if result.path in finished else own
    return writes


def in_order(results: Iterable[LoadedFile], good: GoodVersions) -> list[LoadedFile]:
    """Return the results in the order of their places, of which the first wins a clash of names.

    Deleted files make room, good texts follow, also if they were moved, then other texts of known modules.
    """
    versions = {*good.manifest.values()}

    def place(loaded: LoadedFile) -> tuple[bool, bool, bool, str]:
        version = loaded.reading.source.version if loaded.reading else None
        is_new = version not in versions
        return not loaded.is_removed, is_new, loaded.module not in good.manifest, loaded.path

    return sorted(results, key=place)


_TRIES = 3
_OUT_OF_REACH: Final = "out of reach"
Found: TypeAlias = ModuleSource | Problem | Literal["out of reach"] | None
"""The content of a file, why it cannot be read, that its folder is out of reach, or None if it does not exist."""


class Loader:
    """The service that keeps the registry in step with the folder.

    `then` is called with the verdict on each file that was taken. If folders share the store, this folder is a `copy`
    of its content and is kept in step with it. `since` are the changes that others made before the loader was started.
    """

    def __init__(  # noqa: PLR0913 - the rooms that it joins
        self,
        root: Path,
        store: FunctionStore,
        registry: Registry,
        gate: "Callable[[], Gate]",
        packages: "Callable[[], PackageGrants]",
        *,
        limit_bytes: int,
        copy: FolderCopy | None = None,
        then: "Callable[[ModuleVerdict], None]" = lambda verdict: None,
    ) -> None:
        self._folder = root / "functions"
        self._state = root / STATE
        self._store = store
        self._registry = registry
        self._gate = gate
        self._packages = packages
        self._limit = limit_bytes
        self._copy = copy
        self._then = then
        self.since = RegistryChange()
        self._rejected: dict[str, str] = {}  # the version of each rejected file, by path

    async def start(self) -> None:
        """Settle writes that a crash interrupted, then load the whole folder."""
        async with only_writer(
            self._state
        ):  # a write that another process holds the lock for is not interrupted
            unfinished = await self._store.open_writes()
            for write in unfinished:
                if write.is_part:
                    await self._put_back(write)
            if not await self._store.manifest():
                with suppress(OSError):  # the refresh below reports it
                    self._folder.mkdir(exist_ok=True)
        done = [
            write
            for write in unfinished
            if not write.is_part
            and await asyncio.to_thread(self._is_done, write.path, write.version)
        ]
        await self.refresh(finished=frozenset(write.path for write in done))
        await self._store.apply([EndWrite(write.path, write.version) for write in unfinished])

    async def _put_back(self, write: OpenWrite) -> None:
        """Give a file of an interrupted change of more the text that it had, unless somebody has saved it since."""
        if not await asyncio.to_thread(self._is_done, write.path, write.version):
            return
        text = await self._store.text(write.expected) if write.expected else None
        with suppress(WorkspaceError):  # it is then taken as it is, as a save
            if text is not None:
                await asyncio.to_thread(save, self._folder, write.path, text, write.version)
            elif write.version and not write.expected:
                await asyncio.to_thread(remove, self._folder, write.path, write.version)

    def _is_done(self, path: str, version: str | None) -> bool:
        """Return whether the file of an interrupted write has the content that it should have been given."""
        inside = Path(path.removeprefix("functions/"))
        source = read_file(self._folder, inside, self._limit)
        if isinstance(source, ModuleSource):
            return source.version == version
        return not version and not is_there(self._folder / inside)

    async def refresh(
        self,
        paths: Iterable[Path] | None = None,
        *,
        finished: frozenset[str] = frozenset(),
        tries_all: bool = False,
    ) -> RegistryChange:
        """Take the files that changed; without `paths`, or if one is a folder, check all. Return the differences.

        `finished` are files that an agent wrote before a crash.
        """
        named = None if paths is None else list(paths)
        return await self._refresh_again(named, finished, stored=named is None, tries_all=tries_all)

    async def pull(self) -> RegistryChange:
        """Take changes made in other folders that share the store."""
        return await self._refresh_again([], stored=True)

    async def catch_up(self, path: str) -> None:
        """Take the current content and rows of one file: another process may have written both."""
        await self._refresh_again([self._whole(path)], stored=True)

    async def _refresh_again(
        self,
        named: list[Path] | None,
        finished: frozenset[str] = frozenset(),
        *,
        stored: bool,
        tries_all: bool = False,
    ) -> RegistryChange:
        if named is not None and not (self.is_whole and all(map(_is_file, named))):
            named, stored = None, True
        for attempt in range(_TRIES):
            try:
                baseline, sources = await self._look(named, stored=stored or attempt > 0)
                return await self._refresh(
                    sources, replace(baseline, tries_all=tries_all), finished
                )
            except ManifestConflict:
                # Another process took the same file at the same time: read the rows that it stored.
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _look(
        self, paths: list[Path] | None, *, stored: bool
    ) -> tuple[GoodVersions, dict[str, Found]]:
        """Return the known good state and the contents of the files, read while no other process is writing.

        The state is that of the registry, unless the stored one is requested or another process has taken a file.
        """
        now = self._registry.snapshot()
        baseline = GoodVersions({name: source.version for name, source in now.modules.items()}, {})
        async with only_writer(self._state):
            if not stored:
                sources = await asyncio.to_thread(self._read, paths, baseline)
                if not await self._has_others(sources.values(), baseline):
                    kept_out = await self._store.kept_out() if now.has_clash else {}
                    refused = self._copy.refused() if self._copy else {}
                    found = {path: refused.get(path, source) for path, source in sources.items()}
                    return replace(baseline, kept_out=kept_out), found
            if self._copy is not None and paths is not None:
                manifest = await self._store.manifest()
                pulled = await self._copy.pull(manifest)
                paths = [
                    *paths,
                    *map(self._whole, pulled.paths),
                ]  # and those that were changed in other folders
                names = [
                    *(shown_path(path.relative_to(self._folder)) for path in paths),
                    *pulled.problems,
                ]
                baseline = GoodVersions(
                    manifest, await self._store.readings(names), await self._store.kept_out()
                )
            else:
                readings = (
                    await self._store.readings()
                )  # before the manifest: later changes are then judged again
                baseline = GoodVersions(
                    await self._store.manifest(), readings, await self._store.kept_out()
                )
                pulled = await self._copy.pull(baseline.manifest) if self._copy else Pulled()
            return baseline, {
                **await asyncio.to_thread(self._read, paths, baseline),
                **pulled.problems,
            }

    def _whole(self, path: str) -> Path:
        return self._folder / path.removeprefix("functions/")

    async def _has_others(self, sources: Iterable[Found], good: GoodVersions) -> bool:
        """Check whether the text of a file is new to this process but in the store: then another process judged it."""
        for source in sources:
            if (
                not isinstance(source, ModuleSource)
                or good.manifest.get(source.module) == source.version
            ):
                continue
            if await self._store.text(source.version) is not None:
                return True
        return False

    async def _refresh(
        self, sources: dict[str, Found], good: GoodVersions, finished: frozenset[str]
    ) -> RegistryChange:
        before = self._registry.snapshot()
        late = {
            path
            for path, problems in before.rejections.items()
            if any(problem.code in _LATE for problem in problems)
        } - sources.keys()
        sources = {
            **sources,
            **{path: self._read_one(Path(path).relative_to("functions"), good) for path in late},
        }
        ground = before if before.readings else await self._last_known(sources, good, before)
        results: dict[str, LoadedFile] = {}
        snapshot, retried = ground, set(sources)
        while retried:
            for layer in await asyncio.to_thread(
                import_layers, {path: sources[path] for path in retried}, ground
            ):
                results |= await self._take_layer(layer, sources, good, snapshot)
                snapshot = all_placed(ground, results.values(), good)
            results, snapshot = without_clashes(ground, results, good)
            # A missing import may have been saved at the same time.
            unfit = await asyncio.to_thread(_unfit, results)
            retried = unfit if unfit < retried else set()
            results = {path: result for path, result in results.items() if path not in retried}
            snapshot = all_placed(ground, results.values(), good) if retried else snapshot
        renewed = await self._read_outdated(snapshot)
        if renewed:
            snapshot = all_placed(snapshot, renewed, good)
        taken = [await self._with_writes(result, good) for result in results.values()]
        if writes := all_writes([*taken, *renewed], snapshot, good, finished):
            async with only_writer(self._state):  # a process that just wrote a file also records it
                await self._store.apply(writes)
                if self._copy:
                    given = [write for write in writes if isinstance(write, SetManifest)]
                    await self._copy.note({write.module: write.version for write in given})
        if not before.readings:
            self.since = since(good, taken, snapshot, finished)
        again = self._rejected_again(results.values(), before, snapshot)
        change = self._registry.swap(snapshot, known_change=replace(said_of(taken), rejected=again))
        for file_result in taken:
            if file_result.verdict is not None:
                self._then(file_result.verdict)
        return change

    async def _last_known(
        self, sources: Mapping[str, Found], good: GoodVersions, empty_snapshot: Snapshot
    ) -> Snapshot:
        """Return the last known functions, the baseline against which changes are judged."""
        known: list[LoadedFile] = []
        for path, source in sources.items():
            if isinstance(source, ModuleSource):
                reading = unchanged(path, source, good, empty_snapshot) or await self._last_good(
                    path, good, empty_snapshot
                )
                known += [LoadedFile(path, source.module, reading)] if reading else []
        return all_placed(empty_snapshot, known, good)

    async def _read_outdated(self, snapshot: Snapshot) -> list[LoadedFile]:
        """Return the modules whose schemas depend on types of other modules that have changed."""
        outdated = [
            reading
            for reading in snapshot.readings.values()
            if reading.is_outdated(snapshot.modules)
        ]
        readings = await asyncio.gather(
            *(self._read_again(reading, snapshot) for reading in outdated)
        )
        kept = (
            snapshot.rejections
        )  # a rejected file stays so, although its last good version is read again
        return [
            LoadedFile(
                path, reading.source.module, reading, kept.get(path, ()), (saved_reading(reading),)
            )
            for reading in readings
            if reading is not None and (path := reading.source.path)
        ]

    async def _read_again(
        self, reading: ModuleReading, snapshot: Snapshot
    ) -> "ModuleReading | None":
        """Return a module's reading with its current schemas; None if it still waits for packages."""
        granted = await self._packages().of_text(reading.source.text)
        mark = attempt_mark(reading.source.module, granted.access.folders)
        others = replace(reading, leans=tuple(lean for lean in reading.leans if lean != mark))
        return (
            await self._gate().read_again(reading, snapshot, granted)
            if others.is_outdated(snapshot.modules)
            else None
        )

    def _rejected_again(
        self, results: Iterable[LoadedFile], old_snapshot: Snapshot, snapshot: Snapshot
    ) -> tuple[Problem, ...]:
        """Return the problems that remain in files that were saved again with another text."""
        again: list[Problem] = []
        for result in results:
            known_version = self._rejected.pop(result.path, "")
            if result.rejected_version:
                self._rejected[result.path] = result.rejected_version
            if result.verdict is not None or result.rejected_version not in ("", known_version):
                before = old_snapshot.rejections.get(result.path, ())
                again += [
                    problem
                    for problem in snapshot.rejections.get(result.path, ())
                    if problem in before
                ]
        return tuple(again)

    def _read(self, paths: list[Path] | None, good: GoodVersions) -> dict[str, Found]:
        scanned = scan(self._folder, {}) if paths is None else None
        files = list(scanned.stamps if scanned else paths or ())
        inside = [
            path.relative_to(self._folder) for path in files if not self._is_bare_marker(path)
        ]
        sources: dict[str, Found] = {
            shown_path(path): self._read_one(path, good) for path in inside
        }
        if scanned is None:
            return sources
        # What the scan of the whole folder missed: folders out of reach, the files in them, and deleted files.
        closed = dict(scanned.closed)
        if self._has_vanished(good):
            closed[self._folder] = "there is no such folder"
        snapshot = self._registry.snapshot()
        rejected = snapshot.rejections.keys() - sources.keys()
        gone = set(good.readings)
        for (
            source
        ) in snapshot.modules.values():  # another process may have recorded a deletion first
            gone.add(source.path)
        gone -= sources.keys()
        held = {*map(module_at, sources)} if self._copy is not None else set()
        for path in {path for path in gone if module_at(path) not in held} | rejected:
            sources[path] = _OUT_OF_REACH if is_below(self._whole(path), closed) else None
        for folder, why in closed.items():
            if not is_below(folder, closed):
                place = shown_folder(folder.relative_to(self._folder))
                sources[place] = folder_problem(place, why)
        return sources

    def _is_bare_marker(self, path: Path) -> bool:
        # `functions/__init__.py` is not a module; an empty one is common and harmless.
        if path != self._folder / "__init__.py":
            return False
        try:
            return path.is_file() and path.stat().st_size == 0
        except OSError:
            return False

    def _read_one(self, path: Path, good: GoodVersions) -> Found:
        if is_there(self._folder / path):
            return read_file(self._folder, path, self._limit)
        return _OUT_OF_REACH if self._has_vanished(good) else None

    def _has_vanished(self, good: GoodVersions) -> bool:
        """Check whether the folder itself is missing: its functions were not deleted one by one."""
        return bool(good.manifest) and not os.path.isdir(self._folder)  # noqa: PTH112 - false where it cannot be seen

    @property
    def is_whole(self) -> bool:
        """True if the folder exists and all of it could be read the last time."""
        rejected = self._registry.snapshot().rejected
        could_be = all(problem.code != UNREADABLE_FOLDER for problem in rejected)
        return could_be and os.path.isdir(self._folder)  # noqa: PTH112 - false where it cannot be seen

    async def _take_layer(
        self,
        layer: ImportLayer,
        sources: Mapping[str, Found],
        good: GoodVersions,
        snapshot: Snapshot,
    ) -> dict[str, LoadedFile]:
        """Return the results of a layer's files, by path.

        Files in a circle are judged with each other's new texts, as Python would import them. If one of them cannot be
        taken, each is judged alone, since its neighbors may fit the last good version.
        """
        trial_snapshot = snapshot.draft() if layer.circle else snapshot
        for reading in layer.circle:
            trial_snapshot = trial_snapshot.with_module(reading)
        trial_snapshot = trial_snapshot.finished()

        async def take_in(snapshot_around: Snapshot) -> list[LoadedFile]:
            async def take(path: str) -> LoadedFile:
                return await self._take(path, sources[path], good, snapshot, snapshot_around)

            return await results_of(take, layer.paths, _FILES_AT_ONCE)

        batch = await take_in(trial_snapshot)
        if layer.circle and any(result.problems for result in batch):
            pairs = zip(
                batch, await take_in(snapshot), strict=True
            )  # of two refusals, the first tells more
            batch = [
                together if together.problems and alone.problems else alone
                for together, alone in pairs
            ]
        return {result.path: result for result in batch}

    async def _take(
        self,
        path: str,
        source: Found,
        good: GoodVersions,
        snapshot: Snapshot,
        trial_snapshot: Snapshot,
    ) -> LoadedFile:
        """Return the result for one file, which is judged among the modules of `trial_snapshot`."""
        if source is None:
            return removed_file(path, good, snapshot)
        if source == _OUT_OF_REACH:
            return await self._keep_last_good(
                path, snapshot.rejections.get(path, ()), good, snapshot
            )
        if isinstance(source, Problem):
            return await self._keep_last_good(path, (source,), good, snapshot)
        same = unchanged(path, source, good, snapshot)
        if same is not None:
            return LoadedFile(path, source.module, same)
        return await self._judge_file(source, good, snapshot, trial_snapshot)

    async def _judge_file(
        self, source: ModuleSource, good: GoodVersions, snapshot: Snapshot, trial_snapshot: Snapshot
    ) -> LoadedFile:
        path = source.path
        previous = good.in_force(
            snapshot.readings.get(source.module) or await self._last_good(path, good, snapshot)
        )
        granted = replace(await self._packages().of_text(source.text), approval_mode="calling")
        if (
            hanging := None
            if good.tries_all
            else await self._known_to_hang(source, trial_snapshot, granted)
        ):
            kept = await self._keep_last_good(path, (hanging,), good, snapshot)
            return replace(kept, rejected_version=source.version)
        verdict = await self._gate().judge_module(
            source, trial_snapshot, "human", previous_reading=previous, granted=granted
        )
        if not verdict.admitted:
            kept = await self._keep_last_good(
                path, verdict.refusals or verdict.problems, good, snapshot
            )
            hangs = [problem for problem in verdict.problems if problem.code == "import-hangs"]
            terms = self._terms(verdict.reading, trial_snapshot, granted) if hangs else {}
            known = [
                SaveVerdict(source.version, path, {"terms": terms, "problem": each.to_json()})
                for each in hangs
            ]
            return replace(kept, rejected_version=source.version, writes=tuple(known))
        verdict = replace(
            verdict,
            problems=(*verdict.problems, *example_regression.of_save(previous, verdict.reading)),
        )
        return LoadedFile(path, source.module, verdict.reading, verdict=verdict, previous=previous)

    async def _known_to_hang(
        self, source: ModuleSource, trial_snapshot: Snapshot, granted: "Granted"
    ) -> Problem | None:
        """Return the problem of a text whose import did not end under the same terms; nobody waits for it again."""
        row = await self._store.verdict(source.version, source.path)
        if row is None or "problem" not in row:
            return None
        reading = await aside(len(source.text), read_module, source)
        if row.get("terms") != self._terms(reading, trial_snapshot, granted):
            return None
        problem = Problem.from_json(row["problem"])
        fix = f"{problem.fix}; this text is only tried again by: knapper functions reload"
        return replace(problem, fix=fix)

    def _terms(
        self, reading: ModuleReading, trial_snapshot: Snapshot, granted: "Granted"
    ) -> dict[str, Any]:  # Any: JSON
        """Return what an import depends on: the versions of the modules and packages, and the limits."""
        modules = modules_of(reading.source.module, trial_snapshot.with_module(reading))
        return {
            "modules": {name: source.version for name, source in modules.items()},
            "folders": [*granted.access.folders],
            "limits": asdict(self._gate().limits_of(granted)),
        }

    async def prove_again(self, function: Function, snapshot: Snapshot) -> None:
        """Run the examples of a draft of a saved file with the packages that are granted now; store its standing."""
        before = await judgment_on(self._store, function.body_hash, function.name)
        if (
            before is None
            or before.by != "human"
            or before.standing != "draft"
            or not function.examples
        ):
            return
        source = snapshot.modules[function.module]
        granted = replace(await self._packages().of_text(source.text), approval_mode="calling")
        verdict = await self._gate().judge_module(source, snapshot, "human", granted=granted)
        standing = dict(verdict.standings).get(function.name)
        if standing is None:
            return
        kept = {"confirmed": [*before.confirmed], "thumb": before.thumb, "note": before.note}
        judged = {**SharedVerdict(verdict).on(function), **kept, "standing": standing}
        await self._store.apply([SaveVerdict(function.body_hash, function.name, judged)])

    async def _with_writes(self, loaded: LoadedFile, good: GoodVersions) -> LoadedFile:
        """Return the result of a file, with its writes."""
        verdict = loaded.verdict
        if verdict is None:
            return loaded
        had = (
            {function.name: function for function in loaded.previous.functions}
            if loaded.previous
            else {}
        )
        standings = dict(verdict.standings)
        judged = [function for function in verdict.reading.functions if function.name in standings]
        confirmed = {  # the calls whose returned results were accepted before and still hold
            function.name: await example_regression.confirmed(
                self._store, (), had.get(function.name), function
            )
            for function in judged
        }
        size = len(verdict.reading.source.text)
        writes = [*await aside(size, admission, loaded, good, confirmed)]
        writes += [
            BeginState(each.name)
            for each in judged
            if each.name not in had and await self._is_another(each)
        ]
        writes += await marked_as_broken(self._store, verdict.breakages)
        return replace(loaded, writes=tuple(writes))

    async def _is_another(self, function: Function) -> bool:
        """Return whether a function has the name of a deleted one that left a state, and none of its texts."""
        if not await self._store.states(function.name):
            return False
        rows = await self._store.function_history(function.name)
        versions = await asyncio.to_thread(history.versions, rows, function.name)
        known = {version.hash for version in versions}
        return history.current(versions) is None and function.body_hash not in known

    async def _keep_last_good(
        self, path: str, problems: tuple[Problem, ...], versions: GoodVersions, snapshot: Snapshot
    ) -> LoadedFile:
        good = await self._last_good(path, versions, snapshot)
        return LoadedFile(path, good.source.module if good else None, good, problems)

    async def _last_good(
        self, path: str, good: GoodVersions, snapshot: Snapshot
    ) -> "ModuleReading | None":
        module = module_at(path)
        reading = snapshot.readings.get(module)
        if reading is not None and reading.source.path == path:
            is_behind = (
                self._copy is not None
                and good.manifest.get(reading.source.module) != reading.source.version
            )
            if not is_behind:  # no other folder has changed it since
                return reading
        row = good.readings.get(path)
        text = await self._store.text(row.version) if row is not None else None
        if row is None or text is None or good.manifest.get(module) != row.version:
            return None
        source = ModuleSource(module, path, text, row.version)
        tree = await aside(len(text), parse_accepted, source)
        if kept := good.in_force(stored(row, source)):
            return kept
        reading = read_module(source, tree=tree if isinstance(tree, ast.Module) else None)
        is_open = any(function.unresolved for function in reading.functions)
        leans = ((module, "unread"), *reading.leans) if is_open else reading.leans
        return good.in_force(replace(reading, leans=leans))


def _is_file(path: Path) -> bool:
    """Check whether a path is a single file or a link, which may be missing, rather than a folder."""
    return path.suffix == ".py" or os.path.islink(path)  # noqa: PTH114 - false where it cannot be seen


Tell = Callable[[str, Sequence[Problem]], None]
_QUIET_S = 0.2  # some editors save twice, the second time formatted
_FILES_AT_ONCE = 16
_MOST = 40  # functions in the queue: checking out a branch is not an edit


class BackgroundReview:
    """The queue of functions to review, and the task that reviews them."""

    def __init__(
        self,
        store: FunctionStore,
        registry: "Registry",
        gate: "Callable[[], Gate]",
        packages: "Callable[[], PackageGrants]",
        tell: Tell,
    ) -> None:
        self._store = store
        self._registry = registry
        self._gate = gate
        self._packages = packages
        self._tell = tell
        self._waiting: dict[str, ModuleVerdict] = {}
        self._told: dict[
            str, set[tuple[str, str]]
        ] = {}  # the last findings, not to be reported again
        self._left: dict[
            str, str
        ] = {}  # functions that did not fit into the queue, with their paths
        self._news = asyncio.Event()
        self._saves = 0
        self._looking: tuple[str, asyncio.Task[None]] | None = None
        self._is_open = False

    def ask(self, verdict: "ModuleVerdict") -> None:
        """Queue a review of the functions of a saved file that may return other results now."""
        for name, _ in verdict.standings if self._is_open else ():
            self._left.pop(name, None)
            if name not in self._waiting and len(self._waiting) >= _MOST:
                self._left[name] = verdict.reading.source.path
                continue
            self._waiting[name] = verdict
            if self._looking and self._looking[0] == name:
                self._looking[1].cancel()
        self._news.set()

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Postpone reviews while a save is processed."""
        self._saves += 1
        if self._looking:
            self._looking[1].cancel()
        try:
            yield
        finally:
            self._saves -= 1
            self._news.set()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Run requested reviews while the block runs; drop those that are left at the end."""
        self._is_open = True
        work = asyncio.create_task(self._work())
        try:
            yield
        finally:
            self._is_open = False
            work.cancel()
            (ended,) = await asyncio.gather(work, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                await self._news.wait()
                self._news.clear()
                await asyncio.sleep(_QUIET_S)
                if self._left:
                    (name, path), more = next(iter(self._left.items())), len(self._left) - 1
                    message = "not checked for copies, weak examples and breaking arguments, because many were saved"
                    fix = "knapper functions check functions"
                    problem = Problem(
                        "not-looked-at", f"{message} at once", Place(path), fix, "warns"
                    )
                    self._left.clear()
                    self._tell(f"{name} and {more} more" if more else name, [problem])
                while self._waiting and not self._saves and not self._news.is_set():
                    name, request = next(iter(self._waiting.items()))
                    self._looking = name, group.create_task(self._look(name, request))
                    await asyncio.wait([self._looking[1]])
                    self._looking = None

    async def _look(self, name: str, verdict: "ModuleVerdict") -> None:
        """Report the findings on one function if it still exists and is unchanged."""
        try:
            findings = await self._find_problems(name, verdict)
        except KnapperError as error:
            findings = [
                Problem(
                    "not-looked-at",
                    str(error),
                    Place(_function(verdict, name).path),
                    severity="warns",
                )
            ]
        if self._waiting.get(name) is verdict:
            del self._waiting[name]
            told = self._told.setdefault(name, set())
            news = [problem for problem in findings if _finding(problem) not in told]
            told.update(map(_finding, findings))
            if news:
                self._tell(name, news)

    async def _find_problems(self, name: str, module_verdict: "ModuleVerdict") -> Sequence[Problem]:
        snapshot = self._registry.snapshot()
        if not self._is_there(name, module_verdict):
            return ()
        verdict = replace(
            module_verdict, reading=snapshot.readings[snapshot.functions[name].module]
        )
        granted = await self._packages().of_text(verdict.reading.source.text)
        gate = self._gate()
        judged_file = await aside(
            len(verdict.reading.source.text), gate.judged_file, verdict, snapshot
        )
        look = await gate.look_closer(name, judged_file, granted)
        if not self._is_there(name, module_verdict):
            return ()
        problems = tuple(
            replace(problem, severity="warns") for problem in look.problems
        )  # it was accepted
        own = _function(module_verdict, name)
        known = await judgment_on(self._store, own.body_hash, name)
        if known is not None:
            names = {stage.stage for stage in look.stages}
            known = replace(
                known,
                problems=(
                    *(problem for problem in known.problems if problem not in problems),
                    *problems,
                ),
                stages=(
                    *(stage for stage in known.stages if stage.stage not in names),
                    *look.stages,
                ),
            )
            await self._store.apply([SaveVerdict(own.body_hash, name, known.to_json())])
        return problems

    def _is_there(self, name: str, verdict: "ModuleVerdict") -> bool:
        current, own = self._registry.snapshot().functions.get(name), _function(verdict, name)
        return current is not None and (current.module, current.body_hash) == (
            own.module,
            own.body_hash,
        )


def _finding(problem: Problem) -> tuple[str, str]:
    """Return the identity of a finding; weak examples are reported once, whichever change of the body they miss."""
    return problem.code, "" if problem.code == "weak-examples" else problem.message


def _function(verdict: "ModuleVerdict", name: str) -> Function:
    return next(function for function in verdict.reading.functions if function.name == name)
