"""The start of every program that Knapper runs, in its own folder and environment, and readers of untrusted data.

A program neither imports nor executes anything from the current folder, and it inherits no key: it gets only the
variables on an allow-list, and Python runs isolated. Only the user's own editor and shell get more, as their modules
describe. (The sandbox, which is independent, starts its processes by the same rule.)

pip is the only program that gets the login to the user's package index. It gets no key and finds no program of the
user's, and no module or configuration of the current folder counts.
"""

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from sandbox.wire.strict_json import Strictness, read_json

from . import machine
from .errors import KnapperError
from .own_environment import absolute, places

_PASSED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")
_CONFIGURES: Final = frozenset(  # how the user's index is reached, but not what is installed where
    {
        "INDEX_URL",
        "EXTRA_INDEX_URL",
        "NO_INDEX",
        "FIND_LINKS",
        "TRUSTED_HOST",
        "CERT",
        "CLIENT_CERT",
        "PROXY",
    }
    | {
        "TIMEOUT",
        "DEFAULT_TIMEOUT",
        "RETRIES",
        "CONFIG_FILE",
        "KEYRING_PROVIDER",
        "CACHE_DIR",
        "NO_CACHE_DIR",
    }
    | {"PREFER_BINARY", "PRE", "USE_FEATURE", "USE_DEPRECATED"}
)
_KEPT: Final = frozenset(
    {"HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
)
_SEARCHED: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def variables(*more: str, around: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a program: its search paths, the language, and the named variables."""
    environment = os.environ if around is None else around
    passed_on = {name: environment[name] for name in (*_PASSED_ON, *more) if name in environment}
    searched = {name: path for name in _SEARCHED if (path := absolute(environment.get(name, "")))}
    return {**passed_on, **searched, "PATH": absolute(environment.get("PATH", "")) or os.defpath}


def variables_for_python(*more: str) -> dict[str, str]:
    """Return the same for a Python process that imports the packages of this process."""
    return {**variables(*more), "PYTHONPATH": os.pathsep.join(places())}


def python(*arguments: str) -> list[str]:
    """Return the command of this Python, without modules from the current folder or the user's site-packages."""
    return [sys.executable, "-P", "-s", "-B", "-X", "utf8", *arguments]


def isolated_python(*arguments: str) -> list[str]:
    """Return the same for a program that needs no package of this process; Python ignores its environment variables."""
    return [sys.executable, "-I", *arguments]


async def start(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str | Path, **more: Any
) -> Process:  # Any: what asyncio takes
    """Start a program, by default in its own session, so that terminal keys such as Ctrl+C do not end it.

    If that is canceled, the program is ended once it has started. (asyncio would kill it before its pipes are
    connected, and then wait for their end, which gVisor never reports.)
    """
    options = {"start_new_session": True, **more}
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*command, env=env, cwd=cwd, **options)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            getattr(await starting, "_transport").close()  # noqa: B009 - asyncio has no public API for it
        raise


def pip_environment(around: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return the environment of pip: the location of its configuration, and how it reaches the network.

    It may contain a login, so pip finds no programs (it would run several to describe this machine to the index),
    unless the user configured a keyring program for that login.
    """
    configured = {f"PIP_{name}" for name in _CONFIGURES}
    own = {
        name: value for name, value in around.items() if name in configured or name.upper() in _KEPT
    }
    path = {} if "PIP_KEYRING_PROVIDER" in around else {"PATH": str(scratch / "no-programs")}
    fixed = {
        "TMPDIR": str(scratch),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }
    return {**variables(around=around), **own, **path, **fixed}


async def start_pip(
    *arguments: str, env: Mapping[str, str], cwd: Path, **streams: Any
) -> Process:  # Any: what asyncio takes
    """Start pip in a folder."""
    return await start(isolated_python("-m", "pip", *arguments), env=env, cwd=cwd, **streams)


# A reader is a separate process for untrusted data: limited in memory and time, with no key and no file to write.
# Both halves are here. The host sends an order, and data in pieces. The child answers with items, each a short line of
# JSON. A long text precedes its item in pieces, so that no line blocks the event loop of the host.

Json = Any  # Any: JSON
_Place = tuple[int | str, ...]

_PIECE: Final = 1 << 16
_SHORT: Final = 64  # maximum characters of a text that stays inside a long item
_LONGEST_LINE: Final = 1 << 20
_FILES: Final = 32
_TURN_S: Final = 0.005
_LINE: Final = Strictness(
    unique=False, whole=False
)  # lone surrogates are handled where a text is stored
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
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end()

    async def read(
        self, order: Json, data: Iterable[bytes], take: Callable[[Json], None], most: int
    ) -> None:
        """Send data to the process and pass each item of the answer to `take`; the answer has at most `most` bytes.

        Raises:
            NotRead: it took too long, was too large, or ended the process, or `take` rejected an item.
        """
        is_answered = False
        try:
            async with asyncio.timeout(self._within_s):
                if self._process is None:
                    self._process = await start(
                        python("-m", self._module),
                        stdin=PIPE,
                        stdout=PIPE,
                        stderr=DEVNULL,
                        env=variables_for_python("HOME", "TMPDIR"),
                        cwd="/",
                        limit=_LONGEST_LINE,
                    )
                process = self._process
                await _send(process, order, data)
                await _receive(process, take, most)
            is_answered = True
        except TimeoutError as error:
            raise NotRead(f"It was not read within {self._within_s:g} s.") from error
        except (
            OSError,
            EOFError,
            ValueError,
            LookupError,
            TypeError,
            asyncio.LimitOverrunError,
        ) as error:
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
    return (
        text[at : at + _PIECE].encode("utf-8", "surrogatepass")
        for at in range(0, len(text), _PIECE)
    )


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
    texts: list[tuple[_Place, str]] = []
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
        long: list[tuple[_Place, str]] = []
        line = _line({"item": _without_texts(item, (), long)})
        for place, text in long:
            for at in range(0, len(text), _PIECE):
                out.write(_line({"piece": text[at : at + _PIECE]}))
            out.write(_line({"text": place}))
    out.write(line)


def _without_texts(value: Json, place: _Place, long: list[tuple[_Place, str]]) -> Json:
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
