"""Execution of a plan, in this order: the intent, the file, the record, the snapshot.

A crash in between leaves an intent row, which the next start completes or discards. What a human or another process
saved meanwhile is never overwritten: the change is planned again on top of it.

Folders on several machines that share one store are copies of its manifest, whose versions are written to the files. A
file that someone has saved here meanwhile is not overwritten, and goes through the gate like any save. If its module
was also changed elsewhere, the save is rejected: the other text is in force, and is written next to the file for
merging. A file in the state folder records the version at which each module was the same in both. Without an entry, a
text is compared with the history: a text that was in force once is only outdated.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.clock import Clock
from agent_core.base.errors import KnapperError, LostLease, StaleFile, StorageError, WorkspaceError
from agent_core.base.plain_files import read_plain
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, field, replace, to_json
from agent_core.registry.folder_access import is_there
from agent_core.registry.module_edits import remove, remove_text, save, save_text
from agent_core.registry.source import (
    FOLDER,
    MODULE_LIMIT,
    ModuleSource,
    folder_problem,
    hash_of,
    path_of,
    read_file,
)
from agent_core.storage import (
    STATE,
    BeginWrite,
    EndWrite,
    FunctionStore,
    SaveTended,
    UndoTended,
    commit,
    only_writer,
)
from sandbox.wire.strict_json import read_json

from .judgment import Judgment
from .pins import HAS_OWN_TOKEN, Pins
from .plan import FileChange, PlannedChange

if TYPE_CHECKING:
    from agent_core.access.grants import GrantStore
    from agent_core.base.policy import Growth
    from agent_core.registry.registry import Registry, Snapshot


Record = Callable[[PlannedChange], Awaitable[object]]
_TRIES = 20  # each runs the gate again


class NotAgreed(WorkspaceError):
    """A change by an agent to which no person said yes, where functions do not grow by themselves."""

    code = "not-agreed"

    def __init__(self) -> None:
        super().__init__("The user joins each change here, and did not say yes to this one.")


class ChangeExecutor:
    """The executor of changes, one at a time per process."""

    def __init__(
        self,
        root: Path,
        store: FunctionStore,
        registry: "Registry",
        grant_store: "GrantStore",
        pins: Pins,
        copy: "FolderCopy | None" = None,
    ) -> None:
        """Create the executor; `copy` records what a folder with a shared store has contributed."""
        self.one_at_a_time = asyncio.Lock()
        self._folder = root / "functions"
        self._state = root / STATE
        self._store = store
        self._registry = registry
        self._grant_store = grant_store
        self._pins = pins
        self._copy = copy
        self._random = Clock().random

    async def carry_out(
        self, plan: PlannedChange, record: Record, by: str, growth: "Growth" = "on"
    ) -> PlannedChange:
        """Carry out the planned change and record it. Return the resulting plan, which may be a refusal.

        Unless functions grow by themselves, a change by an agent needs a person's yes to it.
        """
        work = partial(self._commit, record=record, by=by, growth=growth)
        plan = await commit(plan, work, self._random, _refusal, tries=_TRIES)
        # Now the user's decisions about the plan come into force.
        if plan.new_grant is not None:
            self._grant_store.forget()
        if plan.one_call_grant is not None:
            self._grant_store.allow_once(plan.one_call_grant)
        if plan.revoked and plan.revoked in await self._grant_store.entries():
            with suppress(WorkspaceError):  # the file is invalid, but the approval itself is gone
                await self._grant_store.revoke(plan.revoked)
        return plan

    async def _commit(self, plan: PlannedChange, record: Record, by: str, growth: "Growth") -> None:
        if plan.change is None and plan.new_grant is None:
            await record(plan)
            return
        if plan.changes and by == "agent" and growth != "on" and not plan.was_agreed:
            raise NotAgreed
        async with self.one_at_a_time, only_writer(self._state):
            if (
                plan.new_grant is not None
            ):  # entry before row: an entry without its row grants nothing
                plan = replace(
                    plan, writes=(*plan.writes, *await self._grant_store.put(plan.new_grant))
                )
            if plan.change is None:
                await record(plan)
            else:
                await self._change(plan, record, by)

    async def _change(self, plan: PlannedChange, record: Record, by: str) -> None:
        """Write the files of a plan and record it. If one of them cannot be written or recorded, none is changed."""
        snapshot, changes = self._registry.snapshot(), plan.changes
        self._check(changes, snapshot)
        if by == "agent" or HAS_OWN_TOKEN.get():
            await self._pins.require_free(changes, snapshot)
        ends = [EndWrite(change.path, change.version) for change in changes]
        tended = any(isinstance(write, (SaveTended, UndoTended)) for write in plan.writes)
        is_part = tended or bool(plan.also)
        intents = [
            BeginWrite(change.path, change.version, change.text, change.expected, is_part)
            for change in changes
        ]
        await self._store.apply(intents)
        written = list[FileChange]()
        try:
            for change in changes:
                await asyncio.to_thread(self._write, change)
                written.append(change)
        except WorkspaceError:
            await self._put_back(written, snapshot)
            await self._store.apply(ends)
            raise
        try:
            await record(replace(plan, writes=(*plan.writes, *ends)))
        except (StorageError, LostLease):
            await self._put_back(written, snapshot)
            with suppress(StorageError):  # the next start will find nothing left to do
                await self._store.apply(ends)
            raise
        if self._copy:
            await self._copy.note({change.module: change.version for change in changes})
        after = reduce(_after, changes, self._registry.snapshot())
        self._registry.swap(after, by="agent" if by == "agent" else "user")

    def _check(self, changes: Sequence[FileChange], snapshot: "Snapshot") -> None:
        """Check that each file can be changed, in this order.

        Raises:
            WorkspaceError: a file is not what was read, or a name is taken.
        """
        if (
            snapshot.modules and not self._folder.is_dir()
        ):  # a new folder would make all other functions appear deleted
            problem = folder_problem("functions/", "there is no such folder")
            raise WorkspaceError(f"{problem.message}.", fix=problem.fix or "")
        for change in changes:
            before = snapshot.modules.get(change.module)
            if change.expected != (before.version if before else None):
                raise StaleFile(
                    f"`{change.path}` was changed since it was read.", fix="Read it again."
                )
            clashes = snapshot.clashes(change.reading) if change.reading else ()
            if clashes:
                raise WorkspaceError(
                    f"{clashes[0].where}: {clashes[0].message}.", fix=clashes[0].fix or ""
                )
            snapshot = _after(snapshot, change)

    async def _put_back(self, written: Sequence[FileChange], snapshot: "Snapshot") -> None:
        """Give files the texts that they had in a snapshot."""
        for change in reversed(written):
            before = snapshot.modules.get(change.module)
            undo = replace(change, expected=change.version, text=before.text if before else None)
            with suppress(StaleFile):  # someone else has saved it meanwhile: keep theirs
                await asyncio.to_thread(self._write, undo)

    def _write(self, change: FileChange) -> None:
        if change.text is None:
            assert change.expected is not None
            remove(self._folder, change.path, change.expected)
        else:
            save(self._folder, change.path, change.text, change.expected)


def _refusal(plan: PlannedChange, error: KnapperError) -> PlannedChange:
    """Return the answer that a plan was not carried out."""
    name = plan.detail.name if plan.detail else plan.change.module if plan.change else ""
    note = "Nothing was changed. " + (
        "Read it again with introspect_function. " if isinstance(error, StaleFile) else ""
    )
    text = f"`{name}` was not written: {error.message} {note}{error.fix}".rstrip()
    detail = {**(to_json(plan.detail) or {}), "admitted": False, "error": str(error)}
    if "problems" in detail:
        place = Place(plan.change.path if plan.change else "")
        problem = Problem(error.code, error.message.rstrip(), place, error.fix)
        detail |= {"standing": "", "problems": [*detail["problems"], problem.to_json()]}
    return PlannedChange(text, "refused", Judgment.from_json(detail))


def _after(snapshot: "Snapshot", change: FileChange) -> "Snapshot":
    if change.reading is None:
        return snapshot.without_module(change.module)
    return snapshot.with_module(change.reading)


_PLACE: Final = f"{STATE}/functions.json"
_MOST_BYTES: Final = 64 << 20
_BESIDE: Final = ".theirs"


@dataclass(slots=True)
class _Same:
    """The last versions that were the same here and in the manifest, and the versions of rejected saves, by module."""

    versions: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pulled:
    """The result of a pull: the files to read again, and the problems that reject files, by path."""

    paths: frozenset[str] = frozenset()
    problems: Mapping[str, Problem] = field(default_factory=dict)


class FolderCopy:
    """The synchronization of a folder with the manifest. Callers must hold the lock of the folder."""

    def __init__(self, root: Path, store: FunctionStore, limit_bytes: int = MODULE_LIMIT) -> None:
        self._folder = root / FOLDER
        self._root = root
        self._store = store
        self._limit = limit_bytes

    async def pull(self, manifest: Mapping[str, str]) -> Pulled:
        """Bring the files up to date with the manifest."""
        same = await asyncio.to_thread(self._read)
        if same.versions and not self._folder.is_dir():
            return (
                Pulled()
            )  # the folder vanished: with a new one, all other files would appear deleted
        paths: set[str] = set()
        problems: dict[str, Problem] = {}
        for module in sorted(manifest.keys() | same.versions.keys()):
            there = manifest.get(module)
            if there == same.versions.get(module):
                continue
            path = self._path(module, manifest)
            paths.add(path)
            try:
                await self._take(module, path, there, same)
            except WorkspaceError as error:
                problems[path] = Problem(
                    error.code, error.message.rstrip("."), Place(path), error.fix
                )
        if paths:
            await asyncio.to_thread(self._write, same)
        return Pulled(frozenset(paths), {**self._refusals(same), **problems})

    async def note(self, versions: Mapping[str, str | None]) -> None:
        """Record what this folder has just added to the manifest."""
        if versions:
            await asyncio.to_thread(self._note, versions)

    def _note(self, versions: Mapping[str, str | None]) -> None:
        same = self._read()
        for module, version in versions.items():
            same.refused.pop(module, None)
            same.versions.pop(module, None)
            if version is not None:
                same.versions[module] = version
        self._write(same)

    def overrule(self, manifest: Mapping[str, str]) -> None:
        """Let this folder take precedence: differences from the manifest count as saved here."""
        self._write(_Same(dict(manifest)))

    def refused(self) -> Mapping[str, Problem]:
        """Return the problems of files that were saved here while their modules were changed elsewhere."""
        return self._refusals(self._read())

    async def _take(self, module: str, path: str, there: str | None, same: _Same) -> None:
        """Bring one module in line with the manifest, or record that something else was saved here."""
        here = await asyncio.to_thread(self._here, module, path)
        is_ours = here not in (
            None,
            there,
            same.versions.get(module),
        ) and not await self._was_taken(module, here, same)
        if is_ours and there is None:  # removed elsewhere and changed here: the module is new
            del same.versions[module]
            return
        text = None if there is None else await self._store.text(there)
        if there is not None and text is None:
            raise WorkspaceError(f"The store does not have the text of version {there[:12]}.")
        if is_ours:
            assert here is not None
            assert text is not None
            await asyncio.to_thread(self._put_beside, path, text)
            same.refused[module] = here
        else:
            same.refused.pop(module, None)
            await asyncio.to_thread(self._put, path, text, here)
        same.versions.pop(module, None)
        if there is not None:
            same.versions[module] = there

    async def _was_taken(self, module: str, version: str | None, same: _Same) -> bool:
        """Check whether a text was in force after the folder's last known version: then it is only outdated.

        A text that was in force before that is a revert by the user.
        """
        taken, last = (
            [row.version for row in await self._store.module_history(module)],
            same.versions.get(module),
        )
        return version in (
            taken[len(taken) - taken[::-1].index(last) :] if last in taken else taken
        )

    def _here(self, module: str, path: str) -> str | None:
        """Return the version of a file, or None if it does not exist."""
        inside = Path(path).relative_to(FOLDER)
        if not is_there(self._folder / inside):
            return None
        source = read_file(self._folder, inside, self._limit)
        if not isinstance(source, ModuleSource):
            raise WorkspaceError(
                f"`{module}` was changed elsewhere: {source.message}.", fix=source.fix or ""
            )
        return source.version

    def _put(self, path: str, text: str | None, here: str | None) -> None:
        if text is not None and hash_of(text) != here:
            save(self._folder, path, text, here)
        elif text is None and here is not None:
            remove(self._folder, path, here)
        self._clear_beside(path)

    def _put_beside(self, path: str, text: str) -> None:
        self._clear_beside(path)
        save_text(self._root, f"{path}{_BESIDE}", text, None)

    def _clear_beside(self, path: str) -> None:
        copy = f"{path}{_BESIDE}"
        with suppress(OSError, ValueError):
            text = read_plain(self._root / copy, self._limit).decode("utf-8")
            remove_text(self._root, copy, hash_of(text))

    def _path(self, module: str, manifest: Collection[str] = ()) -> str:
        """Return the file of a module: a package if the manifest has parts of it, unless a plain file exists here."""
        package, whole = path_of(f"{module}.__init__"), path_of(module)
        has_parts = any(name.startswith(f"{module}.") for name in manifest)
        is_package = (self._root / package).is_file() or (
            has_parts and not (self._root / whole).is_file()
        )
        return package if is_package else whole

    def _refusals(self, same: _Same) -> dict[str, Problem]:
        problems = {}
        for module, version in same.refused.items():
            path = self._path(module)
            with suppress(WorkspaceError):
                if self._here(module, path) == version:
                    message = f"`{path}` was saved here while the module was changed elsewhere, so it is not taken"
                    fix = f"merge it with `{path}{_BESIDE}`, which is in force, and save it"
                    problems[path] = Problem("changed-elsewhere", message, Place(path), fix)
        return problems

    def _read(self) -> _Same:
        try:
            data: Any = read_json(
                read_plain(self._root / _PLACE, _MOST_BYTES).decode("utf-8")
            )  # Any: JSON
            return _Same(dict(data["versions"]), dict(data["refused"]))
        except (OSError, ValueError, TypeError, KeyError):  # invalid JSON is a ValueError
            return _Same()

    def _write(self, same: _Same) -> None:
        try:
            expected = hash_of(read_plain(self._root / _PLACE, _MOST_BYTES).decode("utf-8"))
        except FileNotFoundError:
            expected = None
        save_text(
            self._root,
            _PLACE,
            json.dumps({"versions": same.versions, "refused": same.refused}),
            expected,
        )
