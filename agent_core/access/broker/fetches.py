"""The fetches of one call: requested, checked, counted, timed, logged, and all ended when the call ends.

One request on one new connection, to an address that was checked; HTTP/1.1 by httpcore2, without its pool.
"""

import asyncio
import functools
import itertools
import logging
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpcore2

from sandbox import RequestRefused

from .addresses import checked, resolve
from .broker import Broker, Tls, Want
from .caps import PIECE
from .failing import FetchFailed, Kind
from .hosts import Hosts
from .order import REDIRECTS, FetchRequest, Headers, take
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


_MOST_ASKED = 3  # hosts that one call may have a human asked for

_numbers = itertools.count(1)  # of one process: a worker that is kept may hold a response of an earlier call
_log = logging.getLogger("toolwright.broker")


@dataclass(slots=True)
class _Stream:
    """One request from its start until its response is read or dropped."""

    number: int
    order: FetchRequest
    began: float
    exchange: Exchange | None = None
    status: str = "failed"
    read: int = 0


class Fetches:
    """Answers `fetch`, `fetch_send`, `fetch_read` and `fetch_close` of one call; what is still open ends with the
    call.
    """

    def __init__(self, broker: Broker, function: str, hosts: tuple[str, ...], want: Want | None) -> None:
        self._broker = broker
        self._caps = broker.caps
        self._function = function
        self._hosts = Hosts.of(hosts)
        self._want = want
        self._asked: set[str] = set()
        self._stood = 0.0  # seconds that a human was asked for, which no limit counts
        self._requests = 0
        self._seconds = 0.0
        self._ahead = bytearray()  # of the next request's body
        self._streams: dict[int, _Stream] = {}

    @property
    def open(self) -> int:
        """The number of requests that have not ended."""
        return len(self._streams)

    async def aclose(self) -> None:
        """End all open requests."""
        async with AsyncExitStack() as stack:  # one that cannot be closed keeps no other open
            for number in self._streams:
                stack.push_async_callback(self._end, number)

    async def answer(self, name: str, arguments: Mapping[str, Any]) -> Any:  # Any: values that cross the sandbox
        """Return the answer to one request; a failed fetch is a value too.

        Raises:
            RequestRefused: it was not granted, or cannot be sent at all.
        """
        try:
            match name:
                case "fetch":
                    return await self._fetch(arguments)
                case "fetch_send":
                    return self._send(arguments.get("data"))
                case "fetch_read":
                    return await self._read(self._stream(arguments.get("stream")), arguments.get("size"))
                case _:
                    return await self._end(self._stream(arguments.get("stream")).number)
        except FetchFailed as failed:
            return {"failed": failed.kind, "message": str(failed)}

    def _send(self, data: object) -> None:
        if not isinstance(data, bytes) or len(self._ahead) + len(data) > self._caps.request:
            self._ahead.clear()
            raise RequestRefused(f"the body of a request is bytes, {self._caps.request} of them at most")
        self._ahead += data

    async def _fetch(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        ahead = bytes(self._ahead)
        self._ahead.clear()
        order = take(arguments, ahead, self._caps)
        if len(self._streams) >= self._caps.streams:
            raise RequestRefused(f"{self._caps.streams} responses are open: read them to their end, or close them")
        stream, answer = await self._follow(order)
        is_empty = order.method == "HEAD" or answer.is_empty
        if is_empty:
            await self._end(stream.number)
        return {
            "status": answer.status,
            "reason": answer.reason,
            "headers": [[name, value] for name, value in answer.headers],
            "url": stream.order.target.url,
            "stream": None if is_empty else stream.number,
            "decoded": self._caps.decoded,
        }

    async def _follow(self, order: FetchRequest) -> tuple[_Stream, ResponseHead]:
        """Return the response that redirects lead to; each hop is checked like the first."""
        until = self._now() + min(order.timeout_s, self._caps.request_s)
        for _hop in range(self._caps.redirects + 1):
            stream, answer = await self._hop(order, until)
            location = answer.header("location")
            if not order.follows or answer.status not in REDIRECTS or location is None:
                return stream, answer
            await self._end(stream.number)
            order = order.redirected(location, answer.status, self._caps.url)
        raise FetchFailed("response", f"{order.target.host} redirected more than {self._caps.redirects} times")

    async def _hop(self, order: FetchRequest, until: float) -> tuple[_Stream, ResponseHead]:
        self._requests += 1
        stream = _Stream(next(_numbers), order, self._now())
        self._streams[stream.number] = stream
        async with self._ended_by_failure(stream):
            await self._permit(order)
            async with self._within(until, order):
                return stream, await self._begin(stream)

    async def _begin(self, stream: _Stream) -> ResponseHead:
        order = stream.order
        async with asyncio.timeout(self._caps.resolve_s):
            addresses = await checked(order.target, self._hosts, self._broker.resolve or resolve)
        secure = await secured(order.target, self._broker.tls or tls)
        stream.exchange = Exchange(order, addresses, secure, self._caps.connect_s)
        answer = await stream.exchange.begin(self._caps.headers)
        stream.status = str(answer.status)
        return answer

    async def _permit(self, order: FetchRequest) -> None:
        if self._requests > self._caps.requests:
            raise RequestRefused(f"one call may make {self._caps.requests} requests")
        place = order.target.place
        if not self._hosts.cover(order.target) and not await self._wanted(place):
            raise RequestRefused(
                f"`{self._function}` may not reach {place}: a human grants it with"
                f" `toolwright functions grant {self._function} --network {place}`"
            )

    async def _wanted(self, place: str) -> bool:
        """Check whether the user allows this place to be reached, asking once per place."""
        if self._want is None or place in self._asked or len(self._asked) >= _MOST_ASKED:
            return False
        self._asked.add(place)
        began = _now()
        try:
            is_granted = await self._want(place)
        finally:
            self._stood += _now() - began
        if is_granted:
            self._hosts = self._hosts.with_host(place)
        return is_granted

    def _stream(self, number: object) -> _Stream:
        stream = self._streams.get(number) if isinstance(number, int) else None
        if stream is None:
            raise RequestRefused("this response is closed")
        return stream

    async def _read(self, stream: _Stream, size: object) -> bytes:
        async with self._ended_by_failure(stream):
            async with self._within(stream.began + self._caps.request_s, stream.order):
                piece = await stream.exchange.read(size if isinstance(size, int) else PIECE) if stream.exchange else b""
            stream.read += len(piece)
            if stream.read > self._caps.response:
                raise FetchFailed("response", f"a response may have {self._caps.response} bytes, and this one has more")
        if not piece:
            await self._end(stream.number)
        return piece

    async def _end(self, number: int) -> None:
        """Log a request and drop its connection, once."""
        if (stream := self._streams.pop(number, None)) is None:
            return
        target = stream.order.target
        path, seconds = target.path.partition("?")[0], self._now() - stream.began
        line = (self._function, stream.order.method, target.place, path, stream.status, stream.read, seconds)
        text = "{}: {} {}{}: {}, {} bytes, {:.3f} s".format(*line)
        _log.info("%s", text)
        self._broker.note(text)
        if stream.exchange is not None:
            with suppress(OSError):
                await stream.exchange.aclose()

    @asynccontextmanager
    async def _ended_by_failure(self, stream: _Stream) -> AsyncIterator[None]:
        """Leave no connection open if anything goes wrong in the block, including a cancelled call."""
        try:
            yield
        except BaseException as error:
            stream.status = "refused" if isinstance(error, RequestRefused) else stream.status
            await self._end(stream.number)
            raise

    @asynccontextmanager
    async def _within(self, until: float, order: FetchRequest) -> AsyncIterator[None]:
        """Limit one operation to this deadline, and to the time that the call has left for all of them."""
        began = self._now()
        try:
            async with asyncio.timeout(min(until - began, self._caps.call_s - self._seconds)):
                yield
        except TimeoutError as error:
            raise FetchFailed("timeout", f"{order.target.place} did not answer in time") from error
        finally:
            self._seconds += self._now() - began

    def _now(self) -> float:
        return _now() - self._stood


def _now() -> float:
    return asyncio.get_running_loop().time()
