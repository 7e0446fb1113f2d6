"""The fetches of one call: requested, checked, counted, timed, logged, and ended with the call."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from agent_core.base.receipt import Fact, Receipt
from agent_core.base.records import dataclass
from sandbox import RequestRefused

from .broker import PIECE, Broker, Reach, Want
from .exchange import (
    REDIRECTS,
    Exchange,
    FetchFailed,
    FetchRequest,
    Hosts,
    ResponseHead,
    checked,
    resolve,
    take,
    tls,
    tls_context,
)

_MOST_ASKED = 3  # hosts that one call may ask a human for

_numbers = itertools.count(1)  # unique in the process: a worker that is kept may hold a response of an earlier call
_log = logging.getLogger("knapper.broker")


@dataclass(slots=True)
class _Stream:
    """One request from its start until its response is read or dropped."""

    number: int
    order: FetchRequest
    began: float
    exchange: Exchange | None = None
    status: str = "failed"
    read: int = 0

    @property
    def is_connected(self) -> bool:
        """True if there was a connection, so something may have been sent."""
        return self.exchange is not None and self.exchange.is_connected


class Fetches:
    """Answers `fetch`, `fetch_send`, `fetch_read` and `fetch_close` of one call, whose end closes the connections."""

    def __init__(
        self,
        broker: Broker,
        function: str,
        hosts: tuple[str, ...],
        want: Want | None = None,
        receipt: Receipt | None = None,
        reach: Reach | None = None,
    ) -> None:
        self._broker = broker
        self._caps = broker.caps
        self._function = function
        self._hosts = Hosts.of(hosts)
        self._want = want
        self._did = Receipt() if receipt is None else receipt
        self._reach = reach
        self._reached: set[str] = set()
        self._asked: set[str] = set()
        self._stood = 0.0  # seconds of waiting for a human, which count toward no limit
        self._requests = 0
        self._seconds = 0.0
        self._ahead = bytearray()  # the part of the next request's body that was sent already
        self._streams: dict[int, _Stream] = {}

    @property
    def open(self) -> int:
        """The number of requests that have not ended."""
        return len(self._streams)

    async def aclose(self) -> None:
        """End all open requests."""
        async with AsyncExitStack() as stack:  # a failure to close one must not keep others open
            for number in self._streams:
                stack.push_async_callback(self._end, number)

    async def answer(self, name: str, arguments: Mapping[str, Any]) -> Any:  # Any: values that cross the sandbox
        """Return the answer to one request; a failed fetch is a value, too.

        Raises:
            RequestRefused: it was not granted, or cannot be sent at all.
        """
        try:
            match name:
                case "fetch":
                    return await self._fetch(arguments)
                case "fetch_send":
                    data = arguments.get("data")
                    if not isinstance(data, bytes) or len(self._ahead) + len(data) > self._caps.request:
                        self._ahead.clear()
                        raise RequestRefused(f"the body of a request is bytes, {self._caps.request} of them at most")
                    self._ahead += data
                    return None
                case "fetch_read":
                    return await self._read(self._stream(arguments.get("stream")), arguments.get("size"))
                case _:
                    return await self._end(self._stream(arguments.get("stream")).number)
        except FetchFailed as failed:
            return {"failed": failed.kind, "message": str(failed)}

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

    async def _follow(self, request: FetchRequest) -> tuple[_Stream, ResponseHead]:
        """Return the final response after redirects; each hop is checked like the first."""
        until = self._now() + min(request.timeout_s, self._caps.request_s)
        for _hop in range(self._caps.redirects + 1):
            self._requests += 1
            stream = _Stream(next(_numbers), request, self._now())
            self._streams[stream.number] = stream
            async with self._ended_by_failure(stream):
                await self._permit(request)
                async with self._within(until, request):
                    answer = await self._begin(stream)
            location = answer.header("location")
            if not request.follows or answer.status not in REDIRECTS or location is None:
                return stream, answer
            await self._end(stream.number)
            request = request.redirected(location, answer.status, self._caps.url)
        raise FetchFailed("response", f"{request.target.host} redirected more than {self._caps.redirects} times")

    async def _begin(self, stream: _Stream) -> ResponseHead:
        order = stream.order
        async with asyncio.timeout(self._caps.resolve_s):
            addresses = await checked(order.target, self._hosts, self._broker.resolve or resolve)
        secure = await tls_context(order.target, self._broker.tls or tls)
        stream.exchange = Exchange(order, addresses, secure, self._caps.connect_s)
        place = order.target.place
        if self._reach is not None and place not in self._reached:
            self._reached.add(place)
            await self._reach(place)
        answer = await stream.exchange.begin(self._caps.headers)
        stream.status = str(answer.status)
        return answer

    async def _permit(self, request: FetchRequest) -> None:
        if self._requests > self._caps.requests:
            raise RequestRefused(f"one call may make {self._caps.requests} requests")
        place = request.target.place
        if not self._hosts.cover(request.target) and not await self._ask_for_place(place):
            raise RequestRefused(
                f"`{self._function}` may not reach {place}: a human grants it with"
                f" `knapper functions grant {self._function} --network {place}`"
            )

    async def _ask_for_place(self, place: str) -> bool:
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
        """Log a request and close its connection, once."""
        if (stream := self._streams.pop(number, None)) is None:
            return
        target = stream.order.target
        path, seconds = target.path.partition("?")[0], self._now() - stream.began
        line = (self._function, stream.order.method, target.place, path, stream.status, stream.read, seconds)
        text = "{}: {} {}{}: {}, {} bytes, {:.3f} s".format(*line)
        _log.info("%s", text)
        self._broker.note(text)
        fact: Fact = "reached" if stream.is_connected else "refused" if stream.status == "refused" else "unreached"
        self._did.note(fact, target.place)
        if stream.exchange is not None:
            with suppress(OSError):
                await stream.exchange.aclose()

    @asynccontextmanager
    async def _ended_by_failure(self, stream: _Stream) -> AsyncIterator[None]:
        """Close the connection if anything goes wrong in the block, including a cancelled call."""
        try:
            yield
        except BaseException as error:
            stream.status = "refused" if isinstance(error, RequestRefused) else stream.status
            await self._end(stream.number)
            raise

    @asynccontextmanager
    async def _within(self, until: float, request: FetchRequest) -> AsyncIterator[None]:
        """Limit one operation to this deadline, and to the call's remaining time for all operations."""
        began = self._now()
        try:
            async with asyncio.timeout(min(until - began, self._caps.call_s - self._seconds)):
                yield
        except TimeoutError as error:
            raise FetchFailed("timeout", f"{request.target.place} did not answer in time") from error
        finally:
            self._seconds += self._now() - began

    def _now(self) -> float:
        return _now() - self._stood


def _now() -> float:
    return asyncio.get_running_loop().time()
