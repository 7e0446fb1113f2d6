"""Watches a folder: kernel events are reported immediately, and scans of times and sizes find what they missed.

A change counts when a file is closed, moved, linked or deleted, so a slow writer is never seen half-way. A scan finds
within seconds what the kernel drops under load, and what a network folder never reports.
"""

import asyncio
import logging
import os
import sys
import warnings
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from watchdog import events
from watchdog.observers import Observer

from .folder_access import SUFFIX, Stamp, folders_of, scan

_RESCAN_S = 5.0
_RESCAN_BLIND_S = 1.0
# The kernel queues 16,384 events; after a batch of this size, some may have been dropped.
_FLOOD = 2_000
_DEEPEST = 200
_WANTED: list[type[events.FileSystemEvent]] = [
    events.FileClosedEvent,
    events.FileMovedEvent,
    events.FileDeletedEvent,
    events.FileCreatedEvent,
    events.DirMovedEvent,
    events.DirDeletedEvent,
    events.DirCreatedEvent,
    *(
        [] if sys.platform == "linux" else [events.FileModifiedEvent]
    ),  # only Linux reports that a file was closed
]


class _Handler(events.FileSystemEventHandler):
    """The handler in watchdog's thread, which passes the paths of an event to the event loop."""

    def __init__(self, watcher: "Watcher", loop: asyncio.AbstractEventLoop) -> None:
        self._watcher, self._loop = watcher, loop

    def on_any_event(self, event: events.FileSystemEvent) -> None:
        paths = [Path(os.fsdecode(path)) for path in (event.src_path, event.dest_path) if path]
        if event.is_directory:
            if (
                isinstance(event, events.DirDeletedEvent | events.DirMovedEvent)
                and paths[0] == self._watcher.root
            ):
                self._watcher.forget_watch()
            self._tell(())  # a scan finds the files in it
        elif (
            not isinstance(event, events.FileCreatedEvent)
            or sys.platform != "linux"
            or _is_linked(paths[0])
        ):
            self._tell(paths)

    def _tell(self, paths: Iterable[Path]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._watcher.note, tuple(paths))


def _is_linked(path: Path) -> bool:
    """Check whether a new file is complete because it is a link to an existing one; any other will still be closed."""
    try:
        return path.is_symlink() or path.stat().st_nlink > 1
    except OSError:
        return False


class Watcher:
    """A watcher of a folder while its block runs; iteration yields batches of changed paths.

    A path in a batch was written, moved in, moved away or deleted; read it to find out. A folder in a batch became
    readable or unreadable. `is_live` is false if the system refused to watch (its limit is reached), so that only scans
    find changes.
    """

    def __init__(self, root: Path, *, suffix: str = SUFFIX, rescan_s: float = _RESCAN_S) -> None:
        """Create the watcher of files with this suffix. The folder need not exist yet."""
        self.root = root
        self._suffix = suffix
        self._watched: tuple[Path, int] | None = None
        self._watch: Any = None  # Any: like the observer
        self._handler: _Handler | None = None
        self.is_live = False
        self._rescan_s = rescan_s
        self._known: dict[Path, Stamp] = {}
        self._closed: frozenset[Path] = frozenset()
        self._pending: set[Path] = set()
        self._must_scan = False
        self._is_open = False
        self._news = asyncio.Event()
        # Any: a class that watchdog chooses by platform; created on entering, because it starts a thread
        self._observer: Any = None

    async def __aenter__(self) -> "Watcher":
        # watchdog warns in its own thread when nested folders appear faster than it can watch them. The watch works
        # nevertheless, and the warning would go to the terminal.
        warnings.filterwarnings("ignore", message="Callback with id", category=RuntimeWarning)
        logging.getLogger("watchdog.observers").setLevel(
            logging.CRITICAL
        )  # it logs being stopped as an error
        scanned = await asyncio.to_thread(scan, self.root, {}, self._suffix)
        self._known, self._closed = dict(scanned.stamps), frozenset(scanned.closed)
        self._is_open = True
        self._observer = Observer(
            **({"generate_full_events": True} if sys.platform == "linux" else {})
        )
        self._handler = _Handler(self, asyncio.get_running_loop())
        self.is_live = await asyncio.to_thread(self._start)
        if not self.is_live:
            self._rescan_s = min(self._rescan_s, _RESCAN_BLIND_S)
        return self

    def _start(self) -> bool:
        if any(
            len(folder.parts) - len(self.root.parts) > _DEEPEST
            for folder, _ in folders_of(self.root, {})
        ):
            return False  # watchdog walks recursively
        try:
            self._follow()
            self._observer.start()
        except (OSError, RecursionError):
            return False
        return True

    def _follow(self) -> None:
        """Watch the folder or, until it exists, its parent."""
        while (
            now := self._place()
        ) != self._watched:  # repeat, as it may have appeared or gone meanwhile
            if self._watch is not None:
                self._observer.unschedule(self._watch)
            self._watched = self._watch = None
            place, is_deep = now[0], now[0] == self.root
            watch = self._observer.schedule(
                self._handler, str(place), recursive=is_deep, event_filter=_WANTED
            )
            self._watched, self._watch = now, watch

    def _place(self) -> tuple[Path, int]:
        place = self.root if self.root.is_dir() else self.root.parent
        return place, place.stat().st_ino

    def forget_watch(self) -> None:
        """Watch the folder again at the next scan: it was deleted, and a new one may have the same inode number."""
        self._watched = None

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_open = False
        self._news.set()
        self._observer.stop()
        if self.is_live:
            await asyncio.to_thread(self._observer.join)

    def _is_source(self, path: Path) -> bool:
        """Check whether a path may be a source: below the folder, with its suffix, in no hidden or cache folder."""
        if path.suffix != self._suffix or not path.is_relative_to(self.root):
            return False
        parts = path.relative_to(self.root).parts
        return not any(part.startswith(".") or part == "__pycache__" for part in parts)

    def note(self, paths: tuple[Path, ...]) -> None:
        """Add the paths of an event; without paths, request a scan. Call it only in the loop's thread."""
        self._pending |= {path for path in paths if self._is_source(path)}
        self._must_scan |= not paths or len(self._pending) > _FLOOD
        if self._pending or self._must_scan:
            self._news.set()

    def __aiter__(self) -> AsyncIterator[frozenset[Path]]:
        return self

    async def __anext__(self) -> frozenset[Path]:
        while self._is_open:
            try:
                async with asyncio.timeout(self._rescan_s):
                    await self._news.wait()
            except TimeoutError:
                self._must_scan = True
            batch = await self._batch()
            if batch:
                return batch
        raise StopAsyncIteration

    async def _batch(self) -> frozenset[Path]:
        """Return all pending changes without waiting."""
        paths, self._pending = frozenset(self._pending), set()
        must_scan, self._must_scan = self._must_scan, False
        if self._is_open:
            self._news.clear()
        for path in paths:
            try:
                status = path.stat()
            except OSError:
                self._known.pop(path, None)
            else:
                self._known[path] = Stamp(status.st_mtime_ns, status.st_size, status.st_ino)
        if must_scan:
            if self.is_live:
                with suppress(OSError, RecursionError):  # then only scans find changes
                    await asyncio.to_thread(self._follow)
            scanned = await asyncio.to_thread(scan, self.root, dict(self._known), self._suffix)
            closed = frozenset(scanned.closed)
            paths |= scanned.changed | scanned.removed | (closed ^ self._closed)
            self._known, self._closed = dict(scanned.stamps), closed
        return paths
