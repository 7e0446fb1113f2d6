"""Reads untrusted data in a separate process: limited in memory and time, with no key and no file to write.

Both halves are here. The host sends an order, and data in pieces. The child answers with items, each a short line of
JSON. A long text precedes its item in pieces, so that no line blocks the event loop of the host.
"""

import asyncio
import json
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from sandbox.wire.strict_json import Strictness, read_json

from . import machine, programs
from .errors import KnapperError

Json = Any  # Any: JSON
Place = tuple[int | str, ...]

_PIECE: Final = 1 << 16
_SHORT: Final = 64  # maximum characters of a text that stays inside a long item
_LONGEST_LINE: Final = 1 << 20
_FILES: Final = 32
_TURN_S: Final = 0.005
_LINE: Final = Strictness(unique=False, whole=False)  # lone surrogates are handled where a text is stored
_FAILED: Final = {
    "memory": "Reading it takes more memory than is given.",
    "depth": "It cannot be read: it is nested too deep.",
}


class NotRead(KnapperError):
    """Reading took too long, was too large, or ended its process."""

    code = "not-read"


class ReaderProcess:
    """A process that runs a module with a `serve` loop; it is started when needed and ended with the block."""

    def __init__(self, module: str, within_s: float = 60.0) -> None:
        self._module = module
        self._within_s = within_s
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        """The id of the reading process; None if none runs."""
        return self._process.pid if self._process else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def read(self, order: Json, data: Iterable[bytes], take: Callable[[Json], None], most: int) -> None:
        """Send data to the process and pass each item of the answer to `take`; the answer has at most `most` bytes.

        Raises:
            NotRead: it took too long, was too large, or ended the process, or `take` rejected an item.
        """
        is_answered = False
        try:
            async with asyncio.timeout(self._within_s):
                if self._process is None:
                    self._process = await programs.start(
                        programs.python("-m", self._module),
                        stdin=PIPE,
                        stdout=PIPE,
                        stderr=DEVNULL,
                        env=programs.variables_for_python("HOME", "TMPDIR"),
                        cwd="/",
                        limit=_LONGEST_LINE,
                    )
                process = self._process
                await _send(process, order, data)
                await _receive(process, take, most)
            is_answered = True
        except TimeoutError as error:
            raise NotRead(f"It was not read within {self._within_s:g} s.") from error
        except (OSError, EOFError, ValueError, LookupError, TypeError, asyncio.LimitOverrunError) as error:
            raise NotRead("Reading it ended the process that read it.") from error
        finally:
            if not is_answered:
                await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            # Unwritten data would keep the pipe open, and cause a warning at garbage collection.
            getattr(process, "_transport").close()  # noqa: B009 - asyncio has no public API for it


def pieces(data: bytes) -> Iterator[bytes]:
    """Yield data in pieces for sending."""
    return (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))


def text_pieces(text: str) -> Iterator[bytes]:
    """Yield a text in pieces for sending; it may contain lone surrogates."""
    return (text[at : at + _PIECE].encode("utf-8", "surrogatepass") for at in range(0, len(text), _PIECE))


async def _send(process: Process, order: Json, data: Iterable[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(order).encode() + b"\n")
    for piece in data:
        process.stdin.write(b"%d\n" % len(piece) + piece)
        await process.stdin.drain()
        await asyncio.sleep(0)
    process.stdin.write(b"0\n")
    await process.stdin.drain()


async def _receive(process: Process, take: Callable[[Json], None], most: int) -> None:
    assert process.stdout is not None
    parts: list[str] = []
    texts: list[tuple[Place, str]] = []
    began = time.perf_counter()
    while True:
        raw = await process.stdout.readuntil(b"\n")
        most -= len(raw)
        if most < 0:
            raise NotRead("What it becomes is more than is kept of it.")
        match read_json(raw, _LINE):
            case {"item": item}:
                for (*way, last), text in texts:
                    holder = item
                    for step in way:
                        holder = holder[step]
                    holder[last] = text
                take(item)
                texts.clear()
            case {"piece": str(piece)}:
                parts.append(piece)
            case {"text": [*place]}:
                texts.append((tuple(place), "".join(parts)))
                parts.clear()
            case {"failed": str(reason)}:
                raise NotRead(_FAILED[reason])
            case _:
                return
        if time.perf_counter() - began > _TURN_S:
            await asyncio.sleep(0)
            began = time.perf_counter()


def serve(answer: Callable[[Json, bytes], Iterable[Json]], memory: int) -> None:
    """Answer orders with items until the input ends, within `memory` bytes. For the child."""
    sys.setrecursionlimit(2_000)
    machine.bound(memory, _FILES)
    given, out = sys.stdin.buffer, sys.stdout.buffer
    while line := given.readline():
        try:
            sizes = iter(lambda: int(given.readline()), 0)
            for item in answer(json.loads(line), b"".join(given.read(size) for size in sizes)):
                _say(out, item)
            last: Json = {"end": True}
        except MemoryError:
            last = {"failed": "memory"}
        except RecursionError:
            last = {"failed": "depth"}
        out.write(_line(last))
        out.flush()


def _say(out: BinaryIO, item: Json) -> None:
    line = _line({"item": item})
    if len(line) > _PIECE:
        long: list[tuple[Place, str]] = []
        line = _line({"item": _without_texts(item, (), long)})
        for place, text in long:
            for at in range(0, len(text), _PIECE):
                out.write(_line({"piece": text[at : at + _PIECE]}))
            out.write(_line({"text": place}))
    out.write(line)


def _without_texts(value: Json, place: Place, long: list[tuple[Place, str]]) -> Json:
    match value:
        case str() if len(value) > _SHORT:
            long.append((place, value))
            return ""
        case dict():
            return {key: _without_texts(inner, (*place, key), long) for key, inner in value.items()}
        case list() | tuple():
            return [_without_texts(inner, (*place, at), long) for at, inner in enumerate(value)]
        case _:
            return value


def _line(value: Json) -> bytes:
    return json.dumps(value).encode() + b"\n"
