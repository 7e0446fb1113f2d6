"""The fetches of one call: requested, checked, counted, timed, logged, and ended with the call."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from agent_core.base.receipt import Fact
from agent_core.base.records import dataclass
from sandbox import RequestRefused

from ..call_exit import CallExit
from .caps import PIECE
from .exchange import (
    REDIRECTS,
    Exchange,
    FetchFailed,
    FetchRequest,
    Hosts,
    ResponseHead,
    checked,
    head_of,
    resolve,
    take,
    tls,
    tls_context,
)

if TYPE_CHECKING:  # it makes the fetches
    from .broker import Broker

_MOST_ASKED = 3  # hosts that one call may ask a human for

_numbers = itertools.count(
    1
)  # unique in the process: what one call opened is not what another names
_log = logging.getLogger("knapper.broker")


@dataclass(slots=True)
class _Stream:
    """One request from its start until its response is read or dropped."""

    number: int
    order: FetchRequest
    began: float
    sent: tuple[str, ...] = ()  # the URL in the worker's words, if a secret reaches into its host
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
        broker: "Broker",
        function: str,
        hosts: tuple[str, ...],
        exit: CallExit,
    ) -> None:
        self._broker = broker
        self._caps = broker.caps
        self._function = function
        self._hosts = Hosts.of(hosts)
        self._exit = exit
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

    async def answer(
        self, name: str, arguments: Mapping[str, Any]
    ) -> Any:  # Any: values that cross the sandbox
        """Return the answer to one request; a failed fetch is a value, too.

        Raises:
            RequestRefused: it was not granted, or cannot be sent at all.
        """
        try:
            match name:
                case "fetch":
                    return await self._fetch_openly(arguments)
                case "fetch_send":
                    data = arguments.get("data")
                    if (
                        not isinstance(data, bytes)
                        or len(self._ahead) + len(data) > self._caps.request
                    ):
                        self._ahead.clear()
                        raise RequestRefused(
                            f"the body of a request is bytes, {self._caps.request} of them at most"
                        )
                    self._ahead += data
                    return None
                case "fetch_read":
                    return await self._read(
                        self._stream(arguments.get("stream")), arguments.get("size")
                    )
                case _:
                    return await self._end(self._stream(arguments.get("stream")).number)
        except FetchFailed as failed:
            return {"failed": failed.kind, "message": str(failed)}

    async def _fetch_openly(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Fetch, and word a refusal for everyone.

        A secret that reaches into the host of a URL would be torn, translated or put in lower case there.
        """
        url = str(arguments.get("url"))
        sent = () if self._exit.shows(url, len(head_of(url))) else (url,)
        try:
            return await self._fetch(arguments, sent)
        except RequestRefused as refusal:
            raise RequestRefused(self._exit.refusal(str(refusal), *sent)) from refusal

    async def _fetch(self, arguments: Mapping[str, Any], sent: tuple[str, ...]) -> dict[str, Any]:
        ahead = bytes(self._ahead)
        self._ahead.clear()
        order = take(arguments, ahead, self._caps, only_reads=self._exit.only_reads)
        if len(self._streams) >= self._caps.streams:
            raise RequestRefused(
                f"{self._caps.streams} responses are open: read them to their end, or close them"
            )
        stream, answer = await self._follow(order, sent)
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

    async def _follow(
        self, request: FetchRequest, sent: tuple[str, ...]
    ) -> tuple[_Stream, ResponseHead]:
        """Return the final response after redirects; each hop is checked like the first."""
        until, host = (
            self._now() + min(request.timeout_s, self._caps.request_s),
            request.target.host,
        )
        for _hop in range(self._caps.redirects + 1):
            self._requests += 1
            stream = _Stream(
                next(_numbers), request, self._now(), sent if request.target.host == host else ()
            )
            self._streams[stream.number] = stream
            async with self._ended_by_failure(stream):
                await self._permit(stream)
                async with self._within(until, request):
                    answer = await self._begin(stream)
            location = answer.header("location")
            if not request.follows or answer.status not in REDIRECTS or location is None:
                return stream, answer
            await self._end(stream.number)
            request = request.redirected(location, answer.status, self._caps.url)
        raise FetchFailed(
            "response", f"{request.target.host} redirected more than {self._caps.redirects} times"
        )

    async def _begin(self, stream: _Stream) -> ResponseHead:
        order = stream.order
        async with asyncio.timeout(self._caps.resolve_s):
            addresses = await checked(order.target, self._hosts, self._broker.resolve or resolve)
        secure = await tls_context(order.target, self._broker.tls or tls)
        stream.exchange = Exchange(order, addresses, secure, self._caps.connect_s)
        place = order.target.place
        if place not in self._reached:
            self._reached.add(place)
            await self._exit.reach(place, *stream.sent)
        answer = await stream.exchange.begin(self._caps.headers)
        stream.status = str(answer.status)
        return answer

    async def _permit(self, stream: _Stream) -> None:
        if self._requests > self._caps.requests:
            raise RequestRefused(f"one call may make {self._caps.requests} requests")
        place = stream.order.target.place
        if not self._hosts.cover(stream.order.target) and not await self._ask_for_place(
            place, stream.sent
        ):
            raise RequestRefused(
                f"`{self._function}` may not reach {place}. Grant it at a terminal:"
                f" `knapper functions grant {self._function} --network {place}`"
            )

    async def _ask_for_place(self, place: str, sent: tuple[str, ...]) -> bool:
        """Check whether the user allows this place to be reached, asking once per place."""
        if place in self._asked or len(self._asked) >= _MOST_ASKED:
            return False
        self._asked.add(place)
        began = _now()
        try:
            is_granted = await self._exit.want_host(place, *sent)
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
                piece = (
                    await stream.exchange.read(size if isinstance(size, int) else PIECE)
                    if stream.exchange
                    else b""
                )
            stream.read += len(piece)
            if stream.read > self._caps.response:
                raise FetchFailed(
                    "response",
                    f"a response may have {self._caps.response} bytes, and this one has more",
                )
        if not piece:
            await self._end(stream.number)
        return piece

    async def _end(self, number: int) -> None:
        """Log a request and close its connection, once."""
        if (stream := self._streams.pop(number, None)) is None:
            return
        target = stream.order.target
        place = self._exit.shown(f"{target.place}{target.path.partition('?')[0]}", *stream.sent)
        line = (
            self._function,
            stream.order.method,
            place,
            stream.status,
            stream.read,
            self._now() - stream.began,
        )
        text = "{}: {} {}: {}, {} bytes, {:.3f} s".format(*line)
        _log.info("%s", text)
        self._broker.note(text)
        self._exit.note(_fact_of(stream), target.place, *stream.sent)
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
            raise FetchFailed(
                "timeout", f"{request.target.place} did not answer in time"
            ) from error
        finally:
            self._seconds += self._now() - began

    def _now(self) -> float:
        return _now() - self._stood


def _now() -> float:
    return asyncio.get_running_loop().time()


def _fact_of(stream: _Stream) -> Fact:
    if stream.is_connected:
        return "reached"
    if stream.status == "refused":
        return "refused"
    return "unreached"
