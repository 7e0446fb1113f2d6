"""Bounded reading of untrusted MCP messages, over two pipes with one message per line, and over HTTP. Imports `mcp`.

`Intake` has the bounds for both. They limit the bytes and values of one message, and the rate of everything that
answers nothing (notifications, requests, invalid messages). A connection that exceeds them is cut off.

Every answer over HTTP is checked here before the package `mcp` reads it: one that is compressed, too large or too slow
is cut off. Only parsed messages are passed on: an answer as a whole, a stream event by event. Of the headers, only
those that the protocol needs are passed on, so no other untrusted data is kept. A server that works for a long time may
stay silent or send comments, but what it has begun must end soon.
"""

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import anyio
import httpcore2
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import one_line
from sandbox.wire.strict_json import LOOSE, MESSAGE, Malformed, read_json

from . import replies

MOST_LINE: Final = 8 << 20  # bytes
_MOST_VALUES: Final = 100_000  # of one message: each takes hundreds of bytes in memory
_AT_ONCE, _A_SECOND = 5_000.0, 50.0  # costs
_BYTES_A_COST: Final = 8 << 10
_GARBAGE, _QUESTION = 25, 25  # costs, which allow 200 at once and two per second
_OF_SERVERS: Final = replace(
    MESSAGE, constants=False, finite=False, whole=False, bare=True
)  # what is odd is read
_ODD_NUMBER: Final = re.compile(
    rb"NaN|Infinity|[eE]\+?[0-9]{3}"
)  # as other languages write what JSON does not have
_BEGINNING: Final = 400  # bytes of an unreadable message in which its number is looked for
_MAX_OPEN: Final = 1_000  # requests that are remembered until they are answered
ENDLESS: Final = "it sent without end what answers nothing"
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError)

Received: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Sent: TypeAlias = MemoryObjectSendStream[SessionMessage]


class CutOff(httpx2.SSEError):
    """The other side sent more than is accepted. The package `mcp` reports an `SSEError` to the waiting caller."""


class ReadAllowance:
    """A budget with an initial amount that refills at a constant rate."""

    def __init__(self, at_once: float, a_second: float) -> None:
        self._at_once, self._a_second = at_once, a_second
        self._left = at_once
        self._since = time.monotonic()

    def spend(self, cost: float = 1.0) -> bool:
        """Spend an amount, and return whether the budget covered it."""
        now = time.monotonic()
        self._left = min(self._at_once, self._left + (now - self._since) * self._a_second) - cost
        self._since = now
        return self._left >= 0


@dataclass(frozen=True, slots=True)
class _OpenRequest:
    """A request that is not answered yet, and how long it is waited for."""

    number: int | str  # as it was sent
    method: str
    until: float


class Intake:
    """The bounds of one connection, and what waits for an answer on it; `trouble` is why it was cut off.

    `refusal` is the status of the last HTTP response, if it was an error.
    """

    def __init__(self, *, serves: bool = False) -> None:
        """Create the intake; with `serves`, the other side is a client, whose requests are expected."""
        self.trouble = ""
        self.refusal = 0
        self._serves = serves
        self._allowance = ReadAllowance(_AT_ONCE, _A_SECOND)
        self._open: dict[str, _OpenRequest] = {}
        self._unanswered_notes = 0

    def expect(self, number: int | str, method: str, patience_s: float = math.inf) -> None:
        """Remember a request until it is answered, or for this time."""
        now = time.monotonic()
        for other, request in [*self._open.items()]:
            # A handshake begins anew, without what was tried before it.
            if request.until < now or method == "initialize" or len(self._open) >= _MAX_OPEN:
                del self._open[other]
        self._open[str(number)] = _OpenRequest(number, method, now + patience_s)

    def note_sent(self, message: JSONRPCMessage) -> None:
        """Remember what was sent through a pipe, where nothing else says what an answer belongs to."""
        match message:
            case JSONRPCRequest():
                self.expect(message.id, message.method)
            case JSONRPCNotification():
                self._unanswered_notes += 1
                if message.method == "notifications/cancelled":
                    self._open.pop(str((message.params or {}).get("requestId")), None)

    def is_waiting(self, number: object) -> bool:
        """Return whether a request of this number is not answered yet."""
        return str(number) in self._open

    async def read_line(self, reader: asyncio.StreamReader) -> bytes:
        """Return the next line; empty at the end.

        Raises:
            CutOff: it is too long.
        """
        try:
            return await reader.readline()
        except ValueError as error:
            raise self.cut(f"it sent a line of more than {MOST_LINE >> 20} MiB") from error

    def read(self, data: bytes, number: str = "", *, is_refusal: bool = False) -> JSONRPCMessage:
        """Return the parsed message. What arrives in place of the answer to a request has its `number`.

        Raises:
            ValueError: it is not a valid message, or nested too deeply.
            CutOff: it is too large.
        """
        try:
            strictness = MESSAGE if self._serves else _OF_SERVERS
            value = read_json(
                data, strictness, most=MOST_LINE, most_values=0 if self._serves else _MOST_VALUES
            )
        except Malformed as error:
            if error.code == "size":
                raise self.cut(
                    f"it sent a message of more than {MOST_LINE >> 20} MiB or {_MOST_VALUES:,} values"
                ) from error
            value = self._unreadable_answer(data, error)
            if value is None:
                raise
        if not self._serves:
            if _ODD_NUMBER.search(data):
                value = replies.finite(value)
            value = self._understood(value, number, is_refusal=is_refusal)
        return jsonrpc_message_adapter.validate_python(value, by_name=False)

    def _unreadable_answer(self, data: bytes, error: Malformed) -> object:
        """Return an error in place of an answer that is no JSON, which ends its request; None if it is none."""
        number = (
            "" if self._serves else replies.number_in(data[:_BEGINNING].decode("utf-8", "replace"))
        )
        if number not in self._open:
            return None
        return {"id": number, "error": f"its answer cannot be read: {error}"}

    def _understood(self, value: object, number: str, *, is_refusal: bool) -> object:
        """Return a message in the form that the package `mcp` takes, as far as it can be understood."""
        value = replies.unwrapped(value)
        if isinstance(value, dict) and isinstance(value.get("method"), str):
            return replies.as_question(value)
        if not isinstance(value, dict) or not replies.is_answer(value):
            return value
        named = replies.answered_number(value)
        if named not in self._open and (named == "" or number):
            if not number:
                return self._answer_to_no_one(value)
            if named:  # what answers one POST cannot be for another
                return value
            named = number
        request = self._open.get(named)
        if request is None or not value.keys() & {"result", "error", "jsonrpc"}:
            return value
        self._unanswered_notes = 0
        return replies.as_answer(value, request.number, request.method, is_refusal=is_refusal)

    def _answer_to_no_one(self, value: dict[str, Any]) -> object:  # Any: JSON
        """Return an answer without a number as one to the request that waits for one.

        Some servers answer notifications, always with an error. If several requests wait, nobody can say whose result
        it is, so it ends the first one as an error.
        """
        if self._unanswered_notes and "error" in value:
            self._unanswered_notes -= 1
            raise ValueError("an answer to a notification")
        if not self._open:
            return value
        request = next(iter(self._open.values()))
        if len(self._open) > 1 and "result" in value:
            value = {
                "error": f"it answered without a number while {len(self._open)} requests waited"
            }
        return replies.as_answer(value, request.number, request.method)

    def take(self, message: JSONRPCMessage, size: int) -> None:
        """Count a message that arrived on a stream of messages.

        Raises:
            CutOff: too many messages answered nothing.
        """
        if not (self._serves or self.is_expected_answer(message)):
            self.take_unasked(message, size)

    def is_expected_answer(self, message: JSONRPCMessage) -> bool:
        """Return whether a message answers a request, which is then no longer open."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError):
            return False
        return self._open.pop(str(message.id), None) is not None

    def take_unasked(self, message: JSONRPCMessage, size: int) -> None:
        """Count a message that is no answer.

        Raises:
            CutOff: too many arrived.
        """
        self._spend(
            (_QUESTION if isinstance(message, JSONRPCRequest) else 1) + size / _BYTES_A_COST
        )

    def take_garbage(self, times: int = 1) -> None:
        """Count data that is not a message.

        Raises:
            CutOff: too much arrived.
        """
        self._spend(_GARBAGE * times)

    def cut(self, why: str) -> CutOff:
        """Store the reason and return the error that ends the connection."""
        self.trouble = self.trouble or why
        return CutOff(self.trouble)

    def _spend(self, cost: float) -> None:
        if not self._allowance.spend(cost):
            raise self.cut(ENDLESS)


@asynccontextmanager
async def connect_pipes(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, intake: Intake | None = None
) -> AsyncIterator[tuple[Received, Sent]]:
    """Yield the streams of received messages and of messages to send; the caller keeps the pipes."""
    arriving, arrived = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    leaving, left = anyio.create_memory_object_stream[SessionMessage](0)
    intake = intake or Intake(serves=True)
    taking_in = _take_in(reader, arriving, intake)
    with arriving, arrived, leaving, left:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(taking_in),
                group.create_task(_send_out(left, writer, intake)),
            ]
            try:
                yield arrived, leaving
            finally:
                for task in tasks:
                    task.cancel()


async def _take_in(
    reader: asyncio.StreamReader,
    arriving: MemoryObjectSendStream[SessionMessage | Exception],
    intake: Intake,
) -> None:
    with suppress(*_GONE, CutOff), arriving:
        while line := await intake.read_line(reader):
            try:
                message = intake.read(line)
            except ValueError as error:
                intake.take_garbage()
                await arriving.send(error)
                continue
            intake.take(message, len(line))
            await arriving.send(SessionMessage(message))


async def _send_out(
    left: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter, intake: Intake
) -> None:
    with suppress(*_GONE), left:
        async for message in left:
            intake.note_sent(message.message)
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            writer.write(text.encode("utf-8", "replace") + b"\n")
            await writer.drain()


ANSWER_S: Final = 15.0  # timeout of an answer, and from its first to its last byte; a call may take longer to begin
_CLOSING_S: Final = 2.0
_CONNECT_S: Final = 10.0
_MOST_REFUSAL: Final = 64 << 10
_MAX_REDIRECTS: Final = 3
_MESSAGE_KEEPING: Final = (307, 308)  # the statuses of redirects after which a POST stays one
_RECONNECTING: Final = 4  # cost in non-messages: a server may end a stream and be polled again
_IDLE_AT_ONCE, _IDLE_A_SECOND = (
    10.0,
    0.5,
)  # stream parts without a message: a comment every 5 to 30 s is usual
_KEPT_S: Final = 5.0
_HEAD: Final = ("content-type", "mcp-session-id", "location")
_LONGEST_ID: Final = 1_000
_LONGEST_PAUSE: Final = 6  # digits of a pause in milliseconds


def http_client(intake: Intake, call_s: float, headers: dict[str, str]) -> httpx2.AsyncClient:
    """Return the HTTP client of one connection."""
    return httpx2.AsyncClient(
        transport=BoundedTransport(intake, call_s),
        headers={"Accept-Encoding": "identity", **headers},
        timeout=httpx2.Timeout(
            None, connect=_CONNECT_S, write=ANSWER_S
        ),  # the transport limits reading
        follow_redirects=False,  # the transport follows them, as does the package `mcp`, which asks for this number
        max_redirects=0,
        trust_env=False,
    )


class BoundedTransport(httpx2.AsyncBaseTransport):
    """A transport that reads only as much of an answer as `intake` accepts, and only as long as a call may take."""

    def __init__(self, intake: Intake, call_s: float) -> None:
        self._intake = intake
        self._call_s = call_s
        self._inner = _Connections(intake)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response with its body read and checked, or streamed event by event.

        Raises:
            CutOff: it is too large, or does not arrive in time.
        """
        asked, now = _Asked.of(request, self._call_s), asyncio.get_running_loop().time()
        if asked.number:
            self._intake.expect(asked.raw_number, asked.method, asked.patience_s)
        try:
            if request.method == "GET":
                self._intake.take_garbage(_RECONNECTING)
            async with asyncio.timeout_at(now + asked.patience_s):
                response = await self._redirected(request)
        except TimeoutError as error:
            raise self._intake.cut(f"it did not answer in {asked.patience_s:g} s") from error
        try:
            return await self._passed_on(request, response, asked, now + asked.patience_s)
        except BaseException:
            await response.aclose()
            raise

    async def _redirected(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response to a request, or that of the place at the same address to which it is redirected."""
        for _ in range(_MAX_REDIRECTS + 1):
            response = await self._inner.handle_async_request(request)
            try:
                place = self._next_place(request, response)
            except CutOff:
                await response.aclose()
                raise
            if place is None:
                return response
            await response.aclose()  # unread: a redirect needs no body
            request = httpx2.Request(
                request.method,
                place,
                headers=request.headers,
                stream=request.stream,
                extensions=request.extensions,
            )
        raise self._intake.cut(f"it redirects more than {_MAX_REDIRECTS} times")

    def _next_place(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
        """Return where to send the request again, or None if this is the response.

        Only the same address, so with what was configured for it, and only if the request stays the same. Without the
        stream of news (GET) and the farewell (DELETE), the connection works; without a message (POST) it does not.

        Raises:
            CutOff: a message is redirected elsewhere, or so that it would be lost.
        """
        if not response.has_redirect_location:
            return None
        location = response.headers["location"]
        try:
            place = request.url.join(location).copy_with(userinfo=b"", fragment=None)
        except httpx2.InvalidURL:
            place = None
        is_same_address = place is not None and _address(place) == _address(request.url)
        is_kept = request.method == "GET" or response.status_code in _MESSAGE_KEEPING
        if is_same_address and is_kept:
            return place
        if request.method != "POST":
            return None
        why = "which is another address"
        if is_same_address:
            why = f"with the status {response.status_code}, after which no message is sent"
        where = one_line(str(place or location), 200)
        raise self._intake.cut(
            f"it redirects to {where}, {why}, so this is not followed: if it is the server that you mean, give that"
            " address in mcp.toml"
        )

    async def _passed_on(
        self, request: httpx2.Request, response: httpx2.Response, asked: "_Asked", until: float
    ) -> httpx2.Response:
        head = [(name, response.headers[name]) for name in _HEAD if name in response.headers]
        coding = response.headers.get("content-encoding", "").strip().lower()
        kind = response.headers.get("content-type", "").lower()
        if coding not in ("", "identity"):
            raise self._intake.cut(
                "it packed its answer, which was not asked for and is not unpacked"
            )
        is_asked = request.method == "POST"
        if response.is_success and kind.startswith("text/event-stream"):
            limit = None if asked.is_endless else until
            events = _Events(response, self._intake, asked.number, limit, is_asked=is_asked)
            return httpx2.Response(response.status_code, headers=head, stream=events)
        if is_asked:
            self._intake.refusal = response.status_code if response.is_error else 0
        is_answer = is_asked and kind.startswith("application/json")
        body = await self._body(response, asked, until) if is_answer else b""
        await response.aclose()
        return httpx2.Response(response.status_code, headers=head, content=body)

    async def _body(self, response: httpx2.Response, asked: "_Asked", until: float) -> bytes:
        """Return the parsed message of a body; empty for an error response without one."""
        body, most = bytearray(), _MOST_REFUSAL if response.is_error else MOST_LINE
        parts = _parts(response)
        try:
            while len(body) <= most:
                async with asyncio.timeout_at(until):
                    part = await anext(parts, b"")
                if not part:
                    break
                until = until if body else asyncio.get_running_loop().time() + ANSWER_S
                body += part
            if len(body) > MOST_LINE:
                raise self._intake.cut(f"it sent more than {MOST_LINE >> 20} MiB in one answer")
            message = self._intake.read(bytes(body), asked.number, is_refusal=response.is_error)
            answered = (
                str(message.id) if isinstance(message, JSONRPCResponse | JSONRPCError) else None
            )
            if asked.number and response.is_success and answered != asked.number:
                raise self._intake.cut("its answer is none to what was asked")
            self._intake.is_expected_answer(message)
        except TimeoutError as error:
            raise self._intake.cut(f"it did not send its answer in {ANSWER_S:g} s") from error
        except ValueError as error:
            if response.is_error or response.status_code == httpx2.codes.ACCEPTED:
                return b""
            raise self._intake.cut(f"its answer is no message: {error}") from error
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


@dataclass(frozen=True, slots=True)
class _Asked:
    """An expected answer: the number of its request, if any, its time, and whether its stream may be endless."""

    number: str
    raw_number: int | str  # as it is sent
    method: str
    patience_s: float
    is_endless: bool

    @classmethod
    def of(cls, request: httpx2.Request, call_s: float) -> "_Asked":
        """Return what a request of the package `mcp` expects."""
        if request.method == "DELETE":
            return cls("", "", "", _CLOSING_S, is_endless=False)
        table: dict[str, Any] = {}  # Any: JSON
        with suppress(ValueError):
            table = read_json(request.content, LOOSE) if request.method == "POST" else {}
        method = str(table.get("method") or "")
        is_endless = request.method == "GET" or method == "subscriptions/listen"
        number = str(table["id"]) if method and "id" in table else ""
        return cls(
            number,
            table.get("id", ""),
            method,
            call_s if method == "tools/call" else ANSWER_S,
            is_endless,
        )


def _address(url: httpx2.URL) -> tuple[str, str, int | None]:
    """Return what an approval is for; the package leaves out the usual port of a scheme."""
    return url.scheme, url.host, url.port


async def _parts(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the parts of a body as they arrive."""
    connection: _Connection = response.extensions["network_stream"]
    connection.begin()
    async for part in response.aiter_raw():
        connection.begin()
        yield part


class _Connection(httpcore2.AsyncNetworkStream):
    """A connection on which whatever has begun, headers or part of a body, must end soon."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream, intake: Intake) -> None:
        self._inner = inner
        self._intake = intake
        self._begun: float | None = None

    def begin(self) -> None:
        """Treat the next data as the beginning of something new."""
        self._begun = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as the package has it
        """Return the data that arrived.

        Raises:
            CutOff: what has begun does not end in time.
        """
        try:
            async with asyncio.timeout_at(None if self._begun is None else self._begun + ANSWER_S):
                data = await self._inner.read(max_bytes, timeout)
        except TimeoutError as error:
            raise self._intake.cut(f"it did not send its answer in {ANSWER_S:g} s") from error
        if self._begun is None:
            self._begun = asyncio.get_running_loop().time()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the same
        """Send a part of a request; its response has not begun yet."""
        self.begin()
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    async def start_tls(
        self, *arguments: Any, **named: Any
    ) -> "_Connection":  # Any: as the package passes them
        """Return the connection with TLS."""
        return _Connection(await self._inner.start_tls(*arguments, **named), self._intake)

    def get_extra_info(self, info: str) -> Any:  # Any: as the package has it
        """Return what the package asks about the socket."""
        return self._inner.get_extra_info(info)


class _Network(httpcore2.AnyIOBackend):
    """A network backend with bounded connections."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    async def connect_tcp(
        self, *arguments: Any, **named: Any
    ) -> _Connection:  # Any: as the package passes them
        """Return a new connection."""
        return _Connection(await super().connect_tcp(*arguments, **named), self._intake)


class _Connections(httpx2.AsyncHTTPTransport):
    """The `httpx2` transport over bounded connections, for which it has no parameter."""

    def __init__(self, intake: Intake) -> None:
        context = httpx2.create_ssl_context(trust_env=False)
        network = _Network(intake)
        self._pool = httpcore2.AsyncConnectionPool(
            context, keepalive_expiry=_KEPT_S, network_backend=network
        )


class _Events(httpx2.AsyncByteStream):
    """A stream of server-sent events that passes on only parsed events with a message.

    `until` is the deadline of the stream, if any; `number` is that of the request that it answers. With `is_asked`, a
    caller waits for the first answer, which ends the stream.
    """

    def __init__(
        self,
        response: httpx2.Response,
        intake: Intake,
        number: str,
        until: float | None,
        *,
        is_asked: bool,
    ) -> None:
        self._response = response
        self._parts = _parts(response)
        self._intake = intake
        self._number = number
        self._until = until
        self._is_asked = is_asked
        self._idle = ReadAllowance(_IDLE_AT_ONCE, _IDLE_A_SECOND)
        self._is_idle = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        event, rest = _Event(), bytearray()
        begun: float | None = None  # when the unfinished event began
        while part := await self._next(begun):
            lines: list[bytes] = []
            if b"\n" in part or b"\r" in part:
                data = bytes(rest) + part
                held = b"\r" if data.endswith(b"\r") else b""  # possibly half of a line end
                data = data.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                *lines, last = data.split(b"\n")
                rest = bytearray(last + held)
            else:
                rest += part
            self._is_idle, has_ended = True, False
            for line in lines:
                if text := self._take_line(event, line):
                    yield text
                event = event if line else _Event()
                has_ended = has_ended or not event.size
            if has_ended and self._is_idle and not self._idle.spend():
                raise self._intake.cut(ENDLESS)
            if len(rest) + event.size > MOST_LINE:
                raise self._intake.cut(f"it sent more than {MOST_LINE >> 20} MiB in one event")
            is_whole = not rest and not event.size
            since = None if has_ended else begun
            begun = None if is_whole else since or asyncio.get_running_loop().time()

    async def _next(self, begun: float | None) -> bytes:
        """Return the next part; empty at the end."""
        limits = [at for at in (self._until, begun and begun + ANSWER_S) if at is not None]
        try:
            async with asyncio.timeout_at(min(limits, default=None)):
                return await anext(self._parts, b"")
        except TimeoutError as error:
            raise self._intake.cut("it did not end its answer in time") from error

    def _take_line(self, event: "_Event", line: bytes) -> bytes:
        """Take a line; if it ends an event with a message, return what is passed on of it."""
        if line.startswith(b":") or not (line or event.size):
            self._intake.take_garbage()
        elif line:
            event.take(line)
        else:
            return self._passed_on(event)
        return b""

    def _passed_on(self, event: "_Event") -> bytes:
        if event.kind not in (b"", b"message") or not event.data:
            self._intake.take_garbage()
            return event.written(b"") if event.id else b""
        try:
            message = self._intake.read(bytes(event.data), self._number)
        except ValueError:
            self._intake.take_garbage()
            return b""
        self._is_idle = self._is_idle and not self._is_useful(message)
        if not (self._is_asked and isinstance(message, JSONRPCResponse | JSONRPCError)):
            self._intake.take_unasked(message, event.size)
        return event.written(message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    def _is_useful(self, message: JSONRPCMessage) -> bool:
        """Check that a message answers a request, reports its progress, or is another message of the protocol."""
        match message:
            case JSONRPCNotification(method="notifications/progress"):
                return self._intake.is_waiting((message.params or {}).get("progressToken"))
            case JSONRPCNotification():
                return message.method.startswith("notifications/")
            case JSONRPCRequest():
                return True
        return self._intake.is_expected_answer(message)

    async def aclose(self) -> None:
        """Close this side of the response."""
        await self._response.aclose()


class _Event:
    """One event, built from its lines; `size` is the number of bytes taken."""

    def __init__(self) -> None:
        self.size = 0
        self.data = bytearray()
        self.kind = b""
        self.id = b""
        self._pause = b""

    def take(self, line: bytes) -> None:
        """Take one line of the event."""
        self.size += len(line) + 1
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self.data += (b"\n" if self.data else b"") + value
        elif name == b"event":
            self.kind = value
        elif name == b"id" and len(value) <= _LONGEST_ID and b"\0" not in value:
            self.id = value
        elif name == b"retry" and value.isdigit() and len(value) <= _LONGEST_PAUSE:
            self._pause = value

    def written(self, data: bytes) -> bytes:
        """Return the event with this data, in the format of the protocol."""
        lines = {b"id": self.id, b"retry": self._pause}
        return (
            b"".join(b"%b: %b\n" % (name, value) for name, value in lines.items() if value)
            + b"data: %b\n\n" % data
        )
