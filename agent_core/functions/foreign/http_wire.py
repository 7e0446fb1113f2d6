"""MCP over HTTP within the bounds of the pipes: every answer passes through here before the package `mcp` reads it.

An answer that is packed, too large or too slow is cut off, and what is passed on was read as messages: an answer whole,
a stream event by event. Of the head only what the protocol needs is passed on, so nothing of a stranger is kept.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import httpx2
from mcp_types import JSONRPCError, JSONRPCResponse

from sandbox.wire.foreign import LOOSE, read_json

from .line_wire import MOST_LINE, CutOff, Intake

ANSWER_S: Final = 15.0  # for an answer; a call may take as long as it does over a pipe
_CLOSING_S: Final = 2.0
_CONNECT_S: Final = 10.0
_MOST_REFUSAL: Final = 64 << 10
_MOST_REDIRECTS: Final = 3
_RECONNECTING: Final = 4  # costs as many messages that are none: a server may end a stream and be asked again
_HEAD: Final = ("content-type", "mcp-session-id", "location")
_LONGEST_ID: Final = 1_000
_LONGEST_PAUSE: Final = 6  # digits of milliseconds


class Cut(httpx2.SSEError):
    """An answer was cut off. Of this kind, because the package `mcp` reports such an error to who waits for it."""


def client(intake: Intake, call_s: float, headers: dict[str, str]) -> httpx2.AsyncClient:
    """Return the HTTP client of one connection."""
    return httpx2.AsyncClient(
        transport=BoundedTransport(intake, call_s),
        headers={"Accept-Encoding": "identity", **headers},
        timeout=httpx2.Timeout(None, connect=_CONNECT_S, write=ANSWER_S),  # the transport bounds what is read
        follow_redirects=False,
        max_redirects=_MOST_REDIRECTS,
        trust_env=False,
    )


class BoundedTransport(httpx2.AsyncBaseTransport):
    """A transport that reads no more of an answer than `intake` takes, and for no longer than a call may take."""

    def __init__(self, intake: Intake, call_s: float) -> None:
        self._intake = intake
        self._call_s = call_s
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer, whose body is read and checked, or is read event by event.

        Raises:
            Cut: there is more of it than is read, or it does not come in time.
        """
        until_s, is_endless = _patience(request, self._call_s)
        until = asyncio.get_running_loop().time() + until_s
        try:
            if request.method == "GET":
                self._intake.take_garbage(_RECONNECTING)
            async with asyncio.timeout_at(until):
                response = await self._inner.handle_async_request(request)
        except TimeoutError as error:
            raise Cut(str(self._intake.cut(f"it did not answer in {until_s:g} s"))) from error
        except CutOff as error:
            raise Cut(str(error)) from error
        try:
            return await self._passed_on(request, response, None if is_endless else until)
        except BaseException:
            await response.aclose()
            raise

    async def _passed_on(
        self, request: httpx2.Request, response: httpx2.Response, until: float | None
    ) -> httpx2.Response:
        head = [(name, response.headers[name]) for name in _HEAD if name in response.headers]
        coding = response.headers.get("content-encoding", "").strip().lower()
        kind = response.headers.get("content-type", "").lower()
        if coding not in ("", "identity"):
            raise Cut(str(self._intake.cut("it packed its answer, which was not asked for and is not unpacked")))
        if response.is_success and kind.startswith("text/event-stream"):
            events = _Events(response, self._intake, until, is_asked=request.method == "POST")
            return httpx2.Response(response.status_code, headers=head, stream=events)
        if request.method == "POST":
            self._intake.refusal = response.status_code if response.is_error else 0
        is_answer = request.method == "POST" and not response.has_redirect_location
        body = await self._body(response) if is_answer and kind.startswith("application/json") else b""
        await response.aclose()
        return httpx2.Response(response.status_code, headers=head, content=body)

    async def _body(self, response: httpx2.Response) -> bytes:
        """Return the message in a body, as it was read; nothing for a refusal without one."""
        body, most = bytearray(), _MOST_REFUSAL if response.is_error else MOST_LINE
        try:
            async with asyncio.timeout(ANSWER_S):
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > most:
                        break
        except TimeoutError as error:
            raise Cut(str(self._intake.cut(f"it did not send its answer in {ANSWER_S:g} s"))) from error
        if len(body) > MOST_LINE:
            raise Cut(str(self._intake.cut(f"it sent more than {MOST_LINE >> 20} MiB in one answer")))
        try:
            return self._intake.read(bytes(body)).model_dump_json(by_alias=True, exclude_unset=True).encode()
        except CutOff as error:
            raise Cut(str(error)) from error
        except ValueError as error:
            if response.is_error or response.status_code == httpx2.codes.ACCEPTED:
                return b""
            raise Cut(str(self._intake.cut(f"its answer is no message: {error}"))) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _patience(request: httpx2.Request, call_s: float) -> tuple[float, bool]:
    """Return the seconds that the answer to a request may take, and whether the stream in it may go on for longer."""
    if request.method == "DELETE":
        return _CLOSING_S, False
    method = ""
    with suppress(ValueError, AttributeError):
        method = str(read_json(request.content, LOOSE).get("method")) if request.method == "POST" else ""
    return (call_s if method == "tools/call" else ANSWER_S), request.method == "GET" or method == "subscriptions/listen"


class _Events(httpx2.AsyncByteStream):
    """A stream of server-sent events, of which those that hold a message are passed on, as they were read.

    `until` is when it has to be over, if ever. `is_asked`: the first answer in it is awaited, and ends it.
    """

    def __init__(self, response: httpx2.Response, intake: Intake, until: float | None, *, is_asked: bool) -> None:
        self._response = response
        self._parts = response.aiter_raw()
        self._intake = intake
        self._until = until
        self._is_asked = is_asked

    async def __aiter__(self) -> AsyncIterator[bytes]:
        event, rest = _Event(), bytearray()
        begun: float | None = None  # the event that is not whole yet
        try:
            while part := await self._next(begun):
                if b"\n" in part or b"\r" in part:
                    lines, rest = _split(bytes(rest) + part)
                    for line in lines:
                        if text := self._heard(event, line):
                            yield text
                        event = event if line else _Event()
                else:
                    rest += part
                if len(rest) + event.size > MOST_LINE:
                    raise self._intake.cut(f"it sent more than {MOST_LINE >> 20} MiB in one event")
                is_whole = not rest and not event.size
                begun = None if is_whole else begun or asyncio.get_running_loop().time()
        except CutOff as error:
            raise Cut(str(error)) from error

    async def _next(self, begun: float | None) -> bytes:
        """Return the next part; nothing at the end."""
        limits = [at for at in (self._until, begun and begun + ANSWER_S) if at is not None]
        try:
            async with asyncio.timeout_at(min(limits, default=None)):
                return await anext(self._parts, b"")
        except TimeoutError as error:
            raise self._intake.cut("it did not end its answer in time") from error

    def _heard(self, event: "_Event", line: bytes) -> bytes:
        """Take a line, and return what is passed on of the event that it ends, if it ends one that holds a message."""
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
            message = self._intake.read(bytes(event.data))
        except ValueError:
            self._intake.take_garbage()
            return b""
        if not (self._is_asked and isinstance(message, JSONRPCResponse | JSONRPCError)):
            self._intake.take_unasked(message, event.size)
        return event.written(message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async def aclose(self) -> None:
        """Close the connection's side of the body."""
        await self._response.aclose()


class _Event:
    """One event as its lines come; `size` is how much was taken in for it."""

    def __init__(self) -> None:
        self.size = 0
        self.data = bytearray()
        self.kind = b""
        self.id = b""
        self._pause = b""

    def take(self, line: bytes) -> None:
        """Take one line of it."""
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
        """Return it with these data, as the protocol writes it."""
        lines = {b"id": self.id, b"retry": self._pause}
        return b"".join(b"%b: %b\n" % (name, value) for name, value in lines.items() if value) + b"data: %b\n\n" % data


def _split(data: bytes) -> tuple[list[bytes], bytearray]:
    """Return the lines that are whole, ended in one of the three ways, and the rest."""
    held = b"\r" if data.endswith(b"\r") else b""  # half of an end, perhaps
    *lines, rest = data.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return lines, bytearray(rest + held)
