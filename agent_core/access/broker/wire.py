"""One request on one new connection, to an address that was checked; HTTP/1.1 by httpcore2, without its pool."""

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import httpcore2

from .broker import Tls
from .caps import PIECE
from .failing import FetchFailed, Kind
from .order import FetchRequest, Headers
from .target import Target

_BODILESS = frozenset({204, 304})


@functools.cache
def tls() -> ssl.SSLContext:
    """Return a context that verifies certificates against what this machine trusts."""
    return httpcore2.default_ssl_context()


async def secured(target: Target, tls: Tls) -> ssl.SSLContext | None:
    """Return the context that verifies a secure connection; loaded in a thread, because a certificate store is
    large.
    """
    with _translate_errors(target.place):
        return await asyncio.to_thread(tls) if target.scheme == "https" else None


class _Checked(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses that it was given, one after another, whatever host is requested."""

    def __init__(self, addresses: tuple[str, ...], connect_s: float) -> None:
        self._addresses = addresses
        self._connect_s = connect_s
        self._inner = httpcore2.AnyIOBackend()
        self.stream: httpcore2.AsyncNetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a stream to the first address that answers."""
        share = self._connect_s / len(self._addresses)
        for address in self._addresses[:-1]:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                self.stream = await self._inner.connect_tcp(address, port, share)
                return self.stream
        self.stream = await self._inner.connect_tcp(self._addresses[-1], port, share)
        return self.stream

    async def aclose(self) -> None:
        """Drop the connection, even if it was cancelled during the TLS handshake."""
        if self.stream is not None:
            await self.stream.aclose()


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The head of a response."""

    status: int
    reason: str
    headers: Headers

    @property
    def is_empty(self) -> bool:
        """True if no body follows."""
        return self.status in _BODILESS or self.header("content-length") == "0"

    def header(self, name: str) -> str | None:
        """Return the first value of a header."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class Exchange:
    """A request that is sent, and a response that is read as far as the caller wants."""

    def __init__(
        self, order: FetchRequest, addresses: tuple[str, ...], secure: ssl.SSLContext | None, connect_s: float
    ) -> None:
        target = order.target
        url = httpcore2.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        self._backend = _Checked(addresses, connect_s)
        self._where = target.place
        self._request = httpcore2.Request(order.method, url, headers=_sent(order), content=order.body)
        self._connection = httpcore2.AsyncHTTPConnection(url.origin, secure, network_backend=self._backend)
        self._pieces: AsyncGenerator[bytes] | None = None
        self._left = b""

    async def begin(self, limit: int) -> ResponseHead:
        """Send the request, and read the head of the response."""
        with _translate_errors(self._where):
            response = await self._connection.handle_async_request(self._request)
        if sum(len(name) + len(value) for name, value in response.headers) > limit:
            raise FetchFailed("response", f"{self._where} answered with headers of more than {limit} bytes")
        self._pieces = response.aiter_stream()
        reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers)
        return ResponseHead(response.status, reason, headers)

    async def read(self, size: int) -> bytes:
        """Return up to `size` bytes of the body, as they arrive; b"" at its end."""
        if not self._left and self._pieces is not None:
            with _translate_errors(self._where):
                self._left = await anext(self._pieces, b"")
        size = max(1, min(size, PIECE))
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    async def aclose(self) -> None:
        """Drop the connection, whatever state it is in."""
        if self._pieces is not None:
            await self._pieces.aclose()
        await self._backend.aclose()


def _sent(order: FetchRequest) -> list[tuple[bytes, bytes]]:
    names = {name.lower() for name, _ in order.headers}
    headers = [("Host", order.target.place), *order.headers, ("Connection", "close")]
    headers += [(name, value) for name, value in _DEFAULTS if name.lower() not in names]
    if order.body or order.method in {"POST", "PUT", "PATCH"}:
        headers.append(("Content-Length", str(len(order.body))))
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


_DEFAULTS = (("Accept", "*/*"), ("Accept-Encoding", "identity"), ("User-Agent", "toolwright"))


@contextmanager
def _translate_errors(where: str) -> Iterator[None]:
    """Translate connection failures into errors that help the function's author."""
    try:
        yield
    except (httpcore2.TimeoutException, TimeoutError) as error:
        raise FetchFailed("timeout", f"{where} did not answer in time") from error
    except (httpcore2.NetworkError, OSError, ValueError) as error:
        kind: Kind = "tls" if isinstance(error.__cause__, ssl.SSLError) else "connection"
        raise FetchFailed(kind, f"{where}: {error or error.__cause__ or 'the connection broke'}") from error
    except httpcore2.ProtocolError as error:
        raise FetchFailed("response", f"{where} broke the rules of HTTP: {error}") from error
