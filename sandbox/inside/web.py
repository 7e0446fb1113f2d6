"""HTTP requests over the call's channel: the host connects, checks the grant and does TLS; bodies are sent in pieces.

HTTP clients are patched when they are imported, so functions without them pay nothing: `urllib.request` through
`http.client`, `requests` through `urllib3`, `httpx` through `httpcore`. Asyncio clients get an error that explains it.
The patch replaces the socket: HTTP/1.1 in, one fetch by the host, HTTP/1.1 out. Each exchange is one connection; the
response has `Connection: close`.
"""

import errno
import functools
import importlib.machinery
import importlib.util
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn, TypeAlias

from .channel import Channel
from .files import Opener

PIECE: Final = 32 << 10  # bytes of a body per request, which fits into any frame
Pairs = list[list[str]]

_dropped: list[
    int
] = []  # streams to close; a destructor may run in the middle of a request, so it makes none


class Body:
    """The body of a response, read piece by piece from the host."""

    def __init__(self, channel: Channel, stream: int | None) -> None:
        self._channel = channel
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Return up to this many bytes, or b"" at the end."""
        if self._stream is None or size <= 0:
            return b""
        piece: bytes = _check_answer(
            self._channel.request("fetch_read", {"stream": self._stream, "size": size})
        )
        if not piece:
            self._stream = None
        return piece

    def close(self) -> None:
        """Tell the host to drop the unread rest."""
        stream, self._stream = self._stream, None
        if stream is not None:
            try:
                self._channel.request("fetch_close", {"stream": stream})
            except PermissionError:  # the host has closed it already, after a failure or timeout
                return

    def drop(self) -> None:
        """Close the body with the next request, for places where no request can be made."""
        stream, self._stream = self._stream, None
        if stream is not None:
            _dropped.append(stream)

    __del__ = drop


def send(
    channel: Channel, request: dict[str, Any], body: bytes
) -> tuple[dict[str, Any], Body]:  # values that cross
    """Send a request and return the response's head and body. Raise OSError if there is no response."""
    while _dropped:
        Body(channel, _dropped.pop()).close()
    whole = len(body) - len(body) % PIECE
    for start in range(0, whole, PIECE):
        channel.request("fetch_send", {"data": body[start : start + PIECE]})
    answer = _check_answer(channel.request("fetch", {**request, "body": body[whole:]}))
    return answer, Body(channel, answer["stream"])


def _check_answer(answer: Any) -> Any:  # values that cross
    """Return an answer, or raise the exception that the standard library would raise for a real connection."""
    if not isinstance(answer, dict) or "failed" not in answer:
        return answer
    message = answer["message"]
    match answer["failed"]:
        case "timeout":
            raise TimeoutError(message)
        case "connection":
            raise ConnectionError(message)
        case "tls":
            try:
                import ssl  # noqa: PLC0415 - needed only after a bad certificate
            except ImportError:  # a component has no ssl
                raise OSError(message) from None
            raise ssl.SSLError(message)
        case "name":
            import socket  # noqa: PLC0415

            raise socket.gaierror(socket.EAI_NONAME, message)
        case _:
            raise OSError(message)


Bytes: TypeAlias = bytes | bytearray | memoryview

_HEAD_END = b"\r\n\r\n"
_LINE = re.compile(rb"([!-~]+) (\S+) HTTP/1\.[01]")
_CHUNK = re.compile(rb"([0-9a-fA-F]++)[^\r\n]*+\r\n")
_LAST_CHUNK = b"0\r\n\r\n"
_FRAMING = frozenset({"transfer-encoding", "connection", "keep-alive"})


class WebSocket:
    """A replacement of a socket: once a request is complete, the host fetches it, and the response can be read."""

    def __init__(
        self, channel: Channel, place: tuple[str, int], *, secure: bool, timeout: object = None
    ) -> None:
        self._channel = channel
        self._place = place
        self._secure = secure
        self._timeout = timeout
        self._sent = bytearray()
        self._head: list[bytes] | None = None
        self._headers: list[list[str]] = []
        self._answer: io.BufferedReader | None = None

    def sendall(self, data: Bytes, _flags: int = 0) -> None:
        """Add data to the request, and fetch it when it is complete. Raise OSError if that is refused or fails."""
        self._sent += data
        if self._head is None:
            head, separator, remainder = bytes(self._sent).partition(_HEAD_END)
            if not separator:
                return
            self._head, self._sent = head.split(b"\r\n"), bytearray(remainder)
            fields = [line.decode("latin-1").partition(":") for line in self._head[1:]]
            self._headers = [[name, value.strip(" \t")] for name, _, value in fields]
        body = _body({name.lower(): value for name, value in self._headers}, self._sent)
        if body is not None:
            line, self._head, self._sent = self._head[0], None, bytearray()
            self._fetch(line, self._headers, body)

    def send(self, data: Bytes, flags: int = 0) -> int:
        """Send all data, as `sendall` does, and return its size."""
        self.sendall(data, flags)
        return memoryview(data).nbytes

    def makefile(
        self, *_mode: Any, **_options: Any
    ) -> io.BufferedReader:  # the signature of `socket.makefile`
        """Return the response as a file with head and body."""
        if self._answer is None:
            raise ConnectionError("no whole request was sent here, so there is no response")
        return self._answer

    def recv(self, size: int, _flags: int = 0) -> bytes:
        """Return some bytes of the response."""
        return self.makefile().read1(size)

    def settimeout(self, timeout: object) -> None:
        """Set the timeout of later requests."""
        self._timeout = timeout

    def start_tls(self) -> None:
        """Use TLS, which the host does."""
        self._secure = True

    def close(self) -> None:
        """Do nothing: a response outlives the connection and is closed separately."""

    shutdown = setsockopt = close_request = lambda self, *_options: None

    def _fetch(self, line: bytes, headers: list[list[str]], body: bytes) -> None:
        match = _LINE.fullmatch(line)
        if match is None:
            raise OSError(f"{line[:100]!r} is not a line that begins a request")
        method, target = match[1].decode("latin-1"), match[2].decode("latin-1")
        if method == "CONNECT" or not target.startswith("/"):
            raise PermissionError(
                "there are no proxies here: the host fetches directly, from what was granted"
            )
        seconds = (
            self._timeout if isinstance(self._timeout, int | float) and self._timeout > 0 else None
        )
        host, port = self._place
        bare = f"[{host}]" if ":" in host and not host.startswith("[") else host
        url = f"{'https' if self._secure else 'http'}://{bare}:{port}{target}"
        request = {"url": url, "method": method, "headers": headers, "timeout": seconds}
        answer, stream = send(self._channel, request, body)
        lines = [f"HTTP/1.1 {answer['status']} {answer['reason']}"]
        lines += [
            f"{name}: {value}" for name, value in answer["headers"] if name.lower() not in _FRAMING
        ]
        head = "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")
        self._answer = io.BufferedReader(_Answer(head, stream), 64 << 10)


class _Answer(io.RawIOBase):
    """The head of a response as bytes, followed by its body."""

    def __init__(self, head: bytes, body: Body) -> None:
        self._head = head
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:  # what RawIOBase takes
        size = len(buffer)
        if self._head:
            piece, self._head = self._head[:size], self._head[size:]
        else:
            piece = self._body.read(size)
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._body.drop()  # garbage collection may call this
        super().close()


def _body(headers: dict[str, str], data: bytearray) -> bytes | None:
    """Return the body of a request, or None while it is incomplete."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        whole = bytes(data) if data.endswith(_LAST_CHUNK) else b""
        parts: list[bytes] = []
        at = 0
        while match := _CHUNK.match(whole, at):
            size = int(match[1], 16)
            if size == 0:
                return b"".join(parts)
            parts.append(whole[match.end() : match.end() + size])
            at = match.end() + size + 2
        return None
    length = headers.get("content-length", "0")
    size = int(length) if length.isascii() and length.isdigit() else 0
    return bytes(data[:size]) if len(data) >= size else None


_ASYNC = (
    "clients on asyncio have no network here: fetch with self.fetch, urllib.request, or a package that does not wait"
    " with await (requests, httpx.Client)"
)


def install(channel: Channel) -> None:
    """Patch HTTP clients that are already imported, and those imported later."""
    for name, route in _ROUTES.items():
        if (module := sys.modules.get(name)) is not None:
            route(module, channel)
    sys.meta_path[:] = [
        _Finder(channel),
        *(finder for finder in sys.meta_path if not isinstance(finder, _Finder)),
    ]


class _Finder:
    """A finder that lets the other finders find a module, and patches it after its import."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module to patch, or None for all others."""
        route = _ROUTES.get(name) or (_http_client if name.endswith(_VENDORED) else None)
        if route is None:
            return None
        others = (
            finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self
        )
        spec = next(filter(None, others), None)
        if spec is not None and spec.loader is not None:
            self._add(spec.loader, route)
        return spec

    def _add(
        self, loader: Any, route: "Route"
    ) -> None:  # Any: the method of an instance is replaced
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            route(module, self._channel)

        loader.exec_module = exec_module


Route = Callable[[Any, Channel], None]  # Any: a third-party module


def _http_client(module: Any, channel: Channel) -> None:
    _connect(channel, module.HTTPConnection, secure=False)
    if hasattr(module, "HTTPSConnection"):
        _connect(channel, module.HTTPSConnection, secure=True)


def _connect(channel: Channel, kind: Any, *, secure: bool) -> None:
    def connect(self: Any) -> None:
        if getattr(self, "_tunnel_host", None) or getattr(self, "proxy", None):
            raise PermissionError(
                "there are no proxies here: the host fetches directly, from what was granted"
            )
        self.sock = WebSocket(channel, (self.host, self.port), secure=secure, timeout=self.timeout)
        self.is_verified = True  # the host verifies, and urllib3 would warn

    kind.connect = connect


def _httpcore(module: Any, channel: Channel) -> None:
    def connect_tcp(
        _self: Any, host: str, port: int, timeout: float | None = None, *_args: Any, **_more: Any
    ) -> Any:
        return _Stream(WebSocket(channel, (host, port), secure=False, timeout=timeout))

    module.SyncBackend.connect_tcp = connect_tcp


class _Stream:
    """A network stream with the interface of httpcore."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._socket.settimeout(timeout)
        self._socket.sendall(buffer)

    def start_tls(
        self, ssl_context: object, server_hostname: str | None = None, timeout: float | None = None
    ) -> Any:
        self._socket.start_tls()
        return self

    def get_extra_info(self, info: str) -> None:
        return None

    def close(self) -> None:
        self._socket.close()


def _asyncio(module: Any, _channel: Channel) -> None:
    async def refuse(*_arguments: Any, **_options: Any) -> NoReturn:
        raise PermissionError(_ASYNC)

    module.BaseEventLoop.create_connection = module.BaseEventLoop.getaddrinfo = refuse


_VENDORED = ".urllib3.connection"


_ROUTES: dict[str, Route] = {
    "sqlite3.dbapi2": lambda module, _channel: connect(module),
    "http.client": _http_client,
    "urllib3.connection": _http_client,
    "httpcore._backends.sync": _httpcore,
    "httpcore2._backends.sync": _httpcore,
    "asyncio.base_events": _asyncio,
}


# Databases without a grant: `sqlite3.connect` opens a copy of a file that the user grants during the call.


def connect(module: Any) -> None:  # sqlite3.dbapi2
    """Make `sqlite3.connect` open a copy of a database that the user grants during the call."""
    opener: Opener | None = getattr(io.open, "asks", None)
    if opener is None or hasattr(module.connect, "asks"):
        return
    real = module.connect

    @functools.wraps(real)
    def asking(database: Any, *arguments: Any, **more: Any) -> Any:  # the signature of sqlite3
        file = database
        if more.get("uri") and isinstance(database, str) and database.startswith("file:"):
            from urllib.parse import unquote  # noqa: PLC0415 - few workers need it

            file = unquote(database.removeprefix("file:").partition("?")[0].partition("#")[0])
        path = None if database == ":memory:" else opener.named(file)
        if path is None:
            return real(database, *arguments, **more)
        error: OSError | None = None
        if not opener.starts_elsewhere(path):
            try:
                return real(database, *arguments, **more)
            except module.OperationalError:
                error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        copy = opener.copy(path, error)
        if copy is None:
            return real(database, *arguments, **more)
        quoted = copy.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        try:
            return real(f"file:{quoted}?mode=ro", *arguments, **{**more, "uri": True})
        except module.OperationalError:  # SQLite in a component cannot open files
            connection = real(":memory:", *arguments, **more)
            connection.deserialize(Path(copy).read_bytes())
            return connection

    asking.__dict__["asks"] = opener  # marks it as installed
    module.connect = asking
