"""What is told of a running turn, as it comes, for other processes of this user: a local socket beside the journal.

The process that runs a turn binds the socket in the user's run folder, which nobody else may enter, and writes one JSON
object per line: who it is, then each event with its number in the journal. Whoever connects in mid-turn is sent the
pieces of the running step first. A reader may ask it to end the turn. Where there is no socket (another user, a
container, another machine), the journal tells the same, a step at a time.
"""

import asyncio
import hashlib
import json
import os
import stat
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, get_args

from agent_core import __version__
from agent_core.base import machine
from agent_core.base.events import Event
from agent_core.base.records import dataclass, field, from_json, to_json
from sandbox.wire.strict_json import DEEPEST_ROW, LOOSE, read_json

PROTOCOL: Final = 1
_NAME_CHARS: Final = 32
_PATH_BYTES: Final = 100  # Linux allows 107, macOS 103
_LINE_BYTES: Final = 16 << 20
_BEHIND_BYTES: Final = 4 << 20  # unread by a follower, which then reads the journal instead
_FOLLOWERS: Final = 200
_HELLO_S: Final = 2.0  # a stopped process accepts and says nothing
_ROUNDS: Final = (
    3  # of the loop, until all are accepted that have connected: asyncio would lose the others
)
_KINDS: Final[Mapping[str, type[Event]]] = {kind.type: kind for kind in get_args(Event)}
_END: Final = b'{"do": "end"}\n'


def feed_paths(store: str, line: str) -> list[Path]:
    """Return where the socket for a conversation at a store may be: in folders that only this user may enter."""
    digest = hashlib.sha256(f"{store}\n{line}".encode("utf-8", "replace")).hexdigest()
    paths = [folder / f"{digest[:_NAME_CHARS]}.sock" for folder in machine.run_folders()]
    return [
        path for path in paths if len(os.fsencode(path)) <= _PATH_BYTES and _is_private(path.parent)
    ]


def _is_private(folder: Path) -> bool:
    """Return whether only this user may enter a folder, which is created if missing."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == machine.user_id()
    return is_own and not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


@dataclass(slots=True)
class LiveFeed:
    """The writing end: the socket of a turn that runs here. `end` is called if a follower wants the turn to end."""

    turn: str
    end: Callable[[], None]
    _path: Path | None = None
    _bound: os.stat_result | None = None  # another process that took over may have bound its own
    _server: asyncio.AbstractServer | None = None
    writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _pieces: list[Event] = field(default_factory=list)  # since the last event of the journal

    async def serve(self, store: str, line: str) -> None:
        """Bind the socket of a conversation at a store. Without one, followers read the journal."""
        for path in feed_paths(store, line)[:1]:
            try:
                # One that a killed process left, or a file: the folder is ours, and so is the conversation.
                path.unlink(missing_ok=True)
                self._path = path
                self._server = await machine.serve_locally(self._accept, path)
                self._bound = path.stat()
            except OSError:
                await self.aclose()

    def tell(self, event: Event) -> None:
        """Send an event to the followers."""
        if self._server is None:
            return
        if event.seq:
            self._pieces.clear()
        else:
            self._pieces.append(event)
        if not self.writers:
            return
        data = _line(event)
        for writer in [*self.writers]:
            if writer.transport.get_write_buffer_size() > _BEHIND_BYTES:
                self._drop(writer)
            else:
                writer.write(data)

    async def aclose(self) -> None:
        """Remove the socket; followers get what was sent before."""
        if self._path is not None:
            with suppress(OSError):
                if self._bound is None or os.path.samestat(self._bound, self._path.lstat()):
                    self._path.unlink(missing_ok=True)
            self._path = None
        if self._server is not None:
            server = self._server
            self._server = None
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)
            server.close()
            for writer in [*self.writers]:
                self._drop(writer)
            await asyncio.sleep(0)  # until those are closed that have read all

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self.writers.discard(writer)
        writer.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_over = self._server is None  # the turn ended between the connection and this
        if is_over or len(self.writers) >= _FOLLOWERS or not machine.is_own_peer(writer):
            writer.close()
            return
        hello = {"knapper": PROTOCOL, "version": __version__, "process": os.getpid()}
        writer.write(json.dumps({**hello, "turn": self.turn}).encode() + b"\n")
        for piece in self._pieces:
            writer.write(_line(piece))
        self.writers.add(writer)
        try:
            while request := await reader.readline():
                if request == _END:
                    self.end()
        except (OSError, ValueError):  # it is gone, or sends no lines
            pass
        finally:
            self._drop(writer)


def _line(event: Event) -> bytes:
    return json.dumps({"seq": event.seq, "event": to_json(event)}, default=str).encode() + b"\n"


@dataclass(slots=True)
class LiveReader:
    """The reading end. `comes` is set when there is something to read, and when the feed `is_over`."""

    turn: str
    comes: asyncio.Event
    warning: str = ""  # why nothing can be read
    is_over: bool = False
    _events: deque[Event] = field(default_factory=deque)
    _writer: asyncio.StreamWriter | None = None
    _reading: asyncio.Task[None] | None = None

    @classmethod
    async def connect(
        cls, store: str, line: str, comes: asyncio.Event, within_s: float = _HELLO_S
    ) -> "LiveReader | None":
        """Return the end of the feed of a running turn; None if there is no socket that can be trusted.

        A process that says nothing is left `within_s` seconds.
        """
        for path in feed_paths(store, line):
            try:
                reader, writer = await machine.connect_locally(path, _LINE_BYTES)
            except OSError:  # there is none, or a killed process left it
                continue
            hello: Mapping[str, Any] | None = None  # Any: JSON
            try:
                if machine.is_own_peer(writer):
                    hello = await _hello_of(reader, within_s)
            finally:
                if hello is None:
                    writer.close()
            if hello is not None:
                return cls._begun(hello, comes, reader, writer)
        return None

    @classmethod
    def _begun(
        cls,
        hello: Mapping[str, Any],  # Any: JSON
        comes: asyncio.Event,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> "LiveReader":
        made = cls(str(hello.get("turn")), comes, _writer=writer)
        if hello.get("knapper") == PROTOCOL:
            made._reading = asyncio.create_task(made._read(reader))
            return made
        other = f"process {hello.get('process')} (Knapper {hello.get('version')})"
        made.warning = (
            f"This turn runs in {other}, another version than {__version__} here, so it is shown"
            " a step at a time. Restart the older of the two."
        )
        made.close()
        return made

    def taken(self) -> list[Event]:
        """Return the events that came since the last call."""
        told = [*self._events]
        self._events.clear()
        return told

    def end_turn(self) -> None:
        """Ask the process to end its turn."""
        if self._writer is not None and not self.is_over:
            self._writer.write(_END)

    def close(self) -> None:
        """Stop reading."""
        self.is_over = True
        if self._reading is not None:
            self._reading.cancel()  # without effect at its own end
        if self._writer is not None:
            self._writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.readline():
                if (event := _event_of(data)) is not None:
                    self._events.append(event)
                    self.comes.set()
        except (OSError, ValueError):  # it is gone, or the line is too long: the journal has it
            pass
        finally:
            self.close()
            self.comes.set()


async def _hello_of(
    reader: asyncio.StreamReader, within_s: float
) -> Mapping[str, Any] | None:  # Any: JSON
    """Return the first line of a feed; None if it is none, or does not come."""
    try:
        async with asyncio.timeout(within_s):
            hello = read_json(await reader.readline())
    except (OSError, ValueError, TimeoutError):
        return None
    return hello if isinstance(hello, dict) else None


def _event_of(data: bytes) -> Event | None:
    """Return the event in a line; None if this version does not know it."""
    try:
        told = read_json(data, LOOSE, deepest=DEEPEST_ROW)
        kind = _KINDS[told["event"]["type"]]
        event: Event = from_json(kind, {**told["event"], "seq": int(told["seq"])})
    except (KeyError, TypeError, ValueError):
        return None
    return event
