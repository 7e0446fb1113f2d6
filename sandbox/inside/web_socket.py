"""A replacement for a socket below an HTTP client: HTTP/1.1 in, one fetch by the host, HTTP/1.1 out.

TLS happens in the host. Each exchange is one connection: the response says so, and clients close it.
"""

import io
import re
from typing import Any, TypeAlias

from .channel import Channel
from .web import Body, send

Bytes: TypeAlias = bytes | bytearray | memoryview

_HEAD_END = b"\r\n\r\n"
_LINE = re.compile(rb"([!-~]+) (\S+) HTTP/1\.[01]")
_CHUNK = re.compile(rb"([0-9a-fA-F]+)[^\r\n]*\r\n")
_LAST_CHUNK = b"0\r\n\r\n"
_FRAMING = frozenset({"transfer-encoding", "connection", "keep-alive"})


class WebSocket:
    """A receiver of the bytes of one request. Once it is complete, the host is asked, and the answer can be read."""

    def __init__(self, channel: Channel, place: tuple[str, int], *, secure: bool, timeout: object = None) -> None:
        self._channel = channel
        self._place = place
        self._secure = secure
        self._timeout = timeout
        self._sent = bytearray()
        self._head: list[bytes] | None = None
        self._headers: list[list[str]] = []
        self._answer: io.BufferedReader | None = None

    def sendall(self, data: Bytes, _flags: int = 0) -> None:
        """Take a part of the request. Raise OSError if the complete request is refused, or fails."""
        self._sent += data
        if self._head is None:
            head, separator, remainder = bytes(self._sent).partition(_HEAD_END)
            if not separator:
                return
            self._head, self._sent = head.split(b"\r\n"), bytearray(remainder)
            self._headers = [_header(line) for line in self._head[1:]]
        body = _body({name.lower(): value for name, value in self._headers}, self._sent)
        if body is not None:
            line, self._head, self._sent = self._head[0], None, bytearray()
            self._fetch(line, self._headers, body)

    def send(self, data: Bytes, flags: int = 0) -> int:
        """Send as sendall does. Return how much was taken: all."""
        self.sendall(data, flags)
        return memoryview(data).nbytes

    def makefile(self, *_mode: Any, **_options: Any) -> io.BufferedReader:  # the signature of a socket's
        """Return the response, as an HTTP client reads it."""
        if self._answer is None:
            raise ConnectionError("no whole request was sent here, so there is no response")
        return self._answer

    def recv(self, size: int, _flags: int = 0) -> bytes:
        """Return some bytes of the response."""
        return self.makefile().read1(size)

    def settimeout(self, timeout: object) -> None:
        """Set how long the host may take for later requests."""
        self._timeout = timeout

    def start_tls(self) -> None:
        """Request that the host use TLS."""
        self._secure = True

    def close(self) -> None:
        """Do nothing: a response outlives the connection, and is closed by itself."""

    shutdown = setsockopt = close_request = lambda self, *_options: None

    def _fetch(self, line: bytes, headers: list[list[str]], body: bytes) -> None:
        match = _LINE.fullmatch(line)
        if match is None:
            raise OSError(f"{line[:100]!r} is not a line that begins a request")
        method, target = match[1].decode("latin-1"), match[2].decode("latin-1")
        if method == "CONNECT" or not target.startswith("/"):
            raise PermissionError("there are no proxies here: the host fetches directly, from what was granted")
        seconds = self._timeout if isinstance(self._timeout, int | float) and self._timeout > 0 else None
        request = {"url": self._url(target), "method": method, "headers": headers, "timeout": seconds}
        answer, stream = send(self._channel, request, body)
        self._answer = io.BufferedReader(_Answer(_head(answer), stream), 64 << 10)

    def _url(self, target: str) -> str:
        host, port = self._place
        bare = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"{'https' if self._secure else 'http'}://{bare}:{port}{target}"


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
            self._body.drop()  # the collector closes files too
        super().close()


def _header(line: bytes) -> list[str]:
    name, _, value = line.decode("latin-1").partition(":")
    return [name, value.strip(" \t")]


def _body(headers: dict[str, str], data: bytearray) -> bytes | None:
    """Return the body of a request, or None while some of it is still to come."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _unchunked(bytes(data)) if data.endswith(_LAST_CHUNK) else None
    length = headers.get("content-length", "0")
    size = int(length) if length.isascii() and length.isdigit() else 0
    return bytes(data[:size]) if len(data) >= size else None


def _unchunked(data: bytes) -> bytes | None:
    parts: list[bytes] = []
    at = 0
    while match := _CHUNK.match(data, at):
        size = int(match[1], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(data[match.end() : match.end() + size])
        at = match.end() + size + 2
    return None


def _head(answer: dict[str, Any]) -> bytes:
    lines = [f"HTTP/1.1 {answer['status']} {answer['reason']}"]
    lines += [f"{name}: {value}" for name, value in answer["headers"] if name.lower() not in _FRAMING]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")
