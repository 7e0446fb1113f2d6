"""The engines of this program: one per set of weights, shared by the models that use it, restarted if it dies.

An engine begins to load when it is made, and who asks it something waits for that. Its state for the fixed part of a
prompt is kept on disk between runs. A file's name holds what it is the state of, and the hash of its own bytes: the
engine trusts such a file (a shortened one ends it), so it is read only after its hash was compared. Few are kept: each
is about 30 MB.
"""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from agent_core.base import machine
from agent_core.base.errors import ModelError
from agent_core.base.user_folders import NoHome, cache_folder

from ..request import Tell
from .child import Child, EnginePlan
from .weights import Weights, sha256_of

KEPT: Final = 3
"""Files of states; the ones that were not used for longest go first."""

_SUFFIX: Final = ".state"
_FORGOTTEN_S: Final = 3600.0

Entries: TypeAlias = Sequence[Mapping[str, str]]
T = TypeVar("T")


@dataclass(slots=True)
class _Reading:
    task: asyncio.Task[None]
    listeners: list[Tell]


class Engine:
    """An engine for weights in a process of its own; `aclose` releases it, and the last user's call ends it."""

    def __init__(self, weights: Weights, plan: EnginePlan) -> None:
        self.weights = weights
        self.plan = plan
        self.loop = asyncio.get_running_loop()
        self.users = 0
        self._starting = self._start()

    @property
    def is_loaded(self) -> bool:
        """True if the process is ready."""
        return _succeeded(self._starting)

    async def child(self) -> Child:
        """Return the loaded process; one that failed or died is started again.

        Raises:
            ModelError: it could not be loaded.
        """
        if _failed(self._starting) or (self.is_loaded and self._starting.result().has_ended):
            await self._end()
            self._starting = self._start()
        return await asyncio.shield(self._starting)

    async def read(self, entries: Entries, tell: Tell = lambda *_: None) -> Child:
        """Return the process with the fixed part of a prompt restored, or read and saved; `tell` receives token counts.

        It goes on being read when the caller gives up, for whoever comes next needs it too.

        Raises:
            ContextOverflow: it is longer than the window.
            ModelError: the engine failed.
        """
        child = await self.child()
        name = state_key(self.weights, child.version, entries)
        reading = self._readings.get(name)
        if reading is None or _failed(reading.task):
            listeners: list[Tell] = []
            reading = self._readings[name] = _Reading(_quiet(self._read(child, name, entries, listeners)), listeners)
        reading.listeners.append(tell)
        await asyncio.shield(reading.task)
        return child

    async def aclose(self) -> None:
        """Release the engine; its memory is freed when nobody else uses it."""
        self.users -= 1
        if self.users == 0:
            _engines.remove(self)
            await self._end()

    def _start(self) -> asyncio.Task[Child]:
        self._readings: dict[str, _Reading] = {}
        return _quiet(Child.start(self.plan))

    async def _end(self) -> None:
        tasks = [self._starting, *(reading.task for reading in self._readings.values())]
        if self.is_loaded:
            await self._starting.result().aclose()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, child: Child, name: str, entries: Entries, listeners: Sequence[Tell]) -> None:
        where = Path(self.plan.states) if self.plan.states else None
        if where is not None and await self._restored(child, where, name):
            return
        body = {"messages": [*entries], "max_tokens": 0, "stream": True, "return_progress": True}
        async with aclosing(child.complete(body)) as chunks:
            async for chunk in chunks:
                if progress := chunk.get("prompt_progress"):
                    for tell in listeners:
                        tell(progress["processed"], progress["total"])
        saved = _fresh_name(name)
        if where is not None and await child.act("save", saved):
            await asyncio.to_thread(keep_state, where, name, saved)

    async def _restored(self, child: Child, where: Path, name: str) -> bool:
        file_name = await asyncio.to_thread(_intact_state, where, name)
        if file_name is None:
            return False
        try:
            return await child.act("restore", file_name)
        except ModelError:
            (where / file_name).unlink(missing_ok=True)  # the next engine must not die of it
            raise


_engines: list[Engine] = []


def engine(weights: Weights, plan: Callable[[], EnginePlan], same: Callable[[EnginePlan], bool]) -> Engine:
    """Return the engine of this loop for which `same` holds, or a new one from this plan."""
    loop = asyncio.get_running_loop()
    _engines[:] = [entry for entry in _engines if not entry.loop.is_closed()]
    match = next((entry for entry in _engines if entry.loop is loop and same(entry.plan)), None)
    if match is None:
        match = Engine(weights, plan())
        _engines.append(match)
    match.users += 1
    return match


def running() -> Sequence[Engine]:
    """Return the engines that are in use."""
    return tuple(_engines)


def _quiet(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Return a task with a failure that is never logged: whoever needs the result starts it again."""
    task = asyncio.create_task(work)
    task.add_done_callback(_failed)
    return task


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _succeeded(task: asyncio.Task[Any]) -> bool:
    return task.done() and not _failed(task)


def states_folder() -> Path:
    """Return the folder for this user's states; it need not exist."""
    return cache_folder() / "prefixes"


def prepared_folder() -> Path | None:
    """Return the folder, created so that nobody else can read it; None if that is impossible."""
    try:
        where = states_folder()
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        if where.stat().st_uid != machine.user_id():
            return None
        where.chmod(0o700)
    except (OSError, NoHome):
        return None
    return where


def state_key(weights: Weights, engine: str, entries: Sequence[Mapping[str, str]]) -> str:
    """Return the key of a state: it depends on the weights, the engine and the text, but not on the window size."""
    text = json.dumps([weights.sha256, engine, entries], sort_keys=True)
    return f"{weights.name}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _intact_state(where: Path, name: str) -> str | None:
    """Return the intact file for this key; delete the others of the key."""
    for file in where.glob(f"{name}.*{_SUFFIX}"):
        with suppress(OSError):
            if file.is_file() and not file.is_symlink() and sha256_of(file) == file.name.split(".")[-2]:
                file.touch()
                return file.name
            file.unlink()
    return None


def _fresh_name(name: str) -> str:
    """Return a name to save under before the hash is known."""
    return f"{name}.{os.getpid()}-{time.time_ns()}.new"


def keep_state(where: Path, name: str, saved: str) -> None:
    """Move a saved state into place, and delete the oldest beyond the number that is kept."""
    with suppress(OSError):
        file, before = where / saved, [*where.glob(f"{name}.*{_SUFFIX}")]
        file.chmod(0o600)
        for state_file in before:
            state_file.unlink()
        file.replace(where / f"{name}.{sha256_of(file)}{_SUFFIX}")
    with suppress(OSError):
        for old in sorted(where.glob(f"*{_SUFFIX}"), key=_used, reverse=True)[KEPT:]:
            old.unlink()
        for leftover in where.glob("*.new"):
            if time.time() - _used(leftover) > _FORGOTTEN_S:
                leftover.unlink()


def remove_states(weights: Weights) -> dict[Path, int]:
    """Delete what is kept for these weights; return the deleted files with their sizes in bytes."""
    removed: dict[Path, int] = {}
    for file in states_folder().glob(f"{weights.name}-*"):
        with suppress(OSError):
            size = file.stat().st_size
            file.unlink()
            removed[file] = size
    return removed


def _used(file: Path) -> float:
    return file.stat().st_mtime
