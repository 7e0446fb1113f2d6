"""The folder of functions as a copy of the manifest, for folders on several machines that share one store.

The manifest's versions are written to the files. A file that someone has saved here meanwhile is not overwritten, and
goes through the gate like any save. If its module was also changed elsewhere, the save is rejected: the other text is
in force, and is written next to the file for merging.

A file in the state folder records the version at which each module was the same in both. Without an entry, a text is
compared with the history: a text that was in force once is only outdated.
"""

import asyncio
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agent_core.base.errors import WorkspaceError
from agent_core.base.plain_files import read_plain
from agent_core.base.problem import Place, Problem
from agent_core.registry.folder_access import is_there
from agent_core.registry.module_edits import remove, remove_text, save, save_text
from agent_core.registry.source import FOLDER, MODULE_LIMIT, ModuleSource, hash_of, path_of, read_file
from agent_core.storage import STATE, FunctionStore
from sandbox.wire.strict_json import read_json

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
            return Pulled()  # the folder vanished: with a new one, all other files would appear deleted
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
                problems[path] = Problem(error.code, error.message.rstrip("."), Place(path), error.fix)
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
        is_ours = here not in (None, there, same.versions.get(module)) and not await self._was_taken(module, here, same)
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
        taken, last = [row.version for row in await self._store.module_history(module)], same.versions.get(module)
        return version in (taken[len(taken) - taken[::-1].index(last) :] if last in taken else taken)

    def _here(self, module: str, path: str) -> str | None:
        """Return the version of a file, or None if it does not exist."""
        inside = Path(path).relative_to(FOLDER)
        if not is_there(self._folder / inside):
            return None
        source = read_file(self._folder, inside, self._limit)
        if not isinstance(source, ModuleSource):
            raise WorkspaceError(f"`{module}` was changed elsewhere: {source.message}.", fix=source.fix or "")
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
        is_package = (self._root / package).is_file() or (has_parts and not (self._root / whole).is_file())
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
            data: Any = read_json(read_plain(self._root / _PLACE, _MOST_BYTES).decode("utf-8"))  # Any: JSON
            return _Same(dict(data["versions"]), dict(data["refused"]))
        except (OSError, ValueError, TypeError, KeyError):  # invalid JSON is a ValueError
            return _Same()

    def _write(self, same: _Same) -> None:
        try:
            expected = hash_of(read_plain(self._root / _PLACE, _MOST_BYTES).decode("utf-8"))
        except FileNotFoundError:
            expected = None
        save_text(self._root, _PLACE, json.dumps({"versions": same.versions, "refused": same.refused}), expected)
