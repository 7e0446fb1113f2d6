"""MCP messages from a stranger within bounds, and over two pipes, one on each line. Imports the package `mcp`.

`Intake` has the bounds for pipes and addresses alike: of one message its bytes and values, and of all that answers
nothing (notifications, requests, what is no message) so much at once and so much a second. More is cut off.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from sandbox.wire.strict_json import MESSAGE, Malformed, read_json

from .tools import RESULT

MOST_LINE: Final = 8 << 20  # bytes
_MOST_VALUES: Final = 100_000  # of one message: each takes hundreds of bytes once it is read
_AT_ONCE, _A_SECOND = 5_000.0, 50.0  # costs
_BYTES_A_COST: Final = 8 << 10
_GARBAGE, _QUESTION = 25, 25  # costs: 200 at once, two a second
ENDLESS: Final = "it sent without end what answers nothing"
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError)

Received: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Sent: TypeAlias = MemoryObjectSendStream[SessionMessage]


class CutOff(Exception):
    """The other side sent more than is taken in."""


class ReadAllowance:
    """So much at once, and so much a second."""

    def __init__(self, at_once: float, a_second: float) -> None:
        self._at_once, self._a_second = at_once, a_second
        self._left = at_once
        self._since = time.monotonic()

    def spend(self, cost: float = 1.0) -> bool:
        """Take so much of it, and check whether there was as much."""
        now = time.monotonic()
        self._left = min(self._at_once, self._left + (now - self._since) * self._a_second) - cost
        self._since = now
        return self._left >= 0


class Intake:
    """What is taken in over one connection; `trouble` is why no more is, once it was cut off.

    `refusal` is the status of the last answer over HTTP, if it was an error.
    """

    def __init__(self, *, serves: bool = False) -> None:
        """Create it; `serves`: the other side is a client, whose requests are what the connection is for."""
        self.trouble = ""
        self.refusal = 0
        self._serves = serves
        self._allowance = ReadAllowance(_AT_ONCE, _A_SECOND)

    def read(self, data: bytes) -> JSONRPCMessage:
        """Return the message that this is.

        Raises:
            ValueError: it is none, or is too deep for one.
            CutOff: it is too large.
        """
        try:
            value = read_json(data, MESSAGE, most=MOST_LINE, most_values=0 if self._serves else _MOST_VALUES)
        except Malformed as error:
            if error.code != "size":
                raise
            raise self.cut(
                f"it sent a message of more than {MOST_LINE >> 20} MiB or {_MOST_VALUES:,} values"
            ) from error
        match value:
            case {"result": {"tools": list(tools)}}:  # the SDK would run these schemas on results, patterns and all
                for tool in tools:
                    if isinstance(tool, dict):
                        tool["_meta"] = {RESULT: tool.pop(RESULT, None)}
        return jsonrpc_message_adapter.validate_python(value, by_name=False)

    def take(self, message: JSONRPCMessage, size: int) -> None:
        """Count a message that came on a stream of messages.

        Raises:
            CutOff: too many came that answer nothing.
        """
        if not (self._serves or isinstance(message, JSONRPCResponse | JSONRPCError)):
            self.take_unasked(message, size)

    def take_unasked(self, message: JSONRPCMessage, size: int) -> None:
        """Count a message where no answer can come.

        Raises:
            CutOff: too many came.
        """
        self._spend((_QUESTION if isinstance(message, JSONRPCRequest) else 1) + size / _BYTES_A_COST)

    def take_garbage(self, times: int = 1) -> None:
        """Count what is no message.

        Raises:
            CutOff: too much came.
        """
        self._spend(_GARBAGE * times)

    def cut(self, why: str) -> CutOff:
        """Return the error that ends the connection, and keep why."""
        self.trouble = self.trouble or why
        return CutOff(self.trouble)

    def _spend(self, cost: float) -> None:
        if not self._allowance.spend(cost):
            raise self.cut(ENDLESS)


@asynccontextmanager
async def connect_pipes(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, intake: Intake | None = None
) -> AsyncIterator[tuple[Received, Sent]]:
    """Give the messages that come and take those that go, while the block runs; the pipes stay the caller's."""
    arriving, arrived = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    leaving, left = anyio.create_memory_object_stream[SessionMessage](0)
    taking_in = _take_in(reader, arriving, intake or Intake(serves=True))
    with arriving, arrived, leaving, left:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(taking_in), group.create_task(_send_out(left, writer))]
            try:
                yield arrived, leaving
            finally:
                for task in tasks:
                    task.cancel()


async def _take_in(
    reader: asyncio.StreamReader, arriving: MemoryObjectSendStream[SessionMessage | Exception], intake: Intake
) -> None:
    with suppress(*_GONE, CutOff), arriving:
        while line := await _line(reader, intake):
            try:
                message = intake.read(line)
            except ValueError as error:
                intake.take_garbage()
                await arriving.send(error)
                continue
            intake.take(message, len(line))
            await arriving.send(SessionMessage(message))


async def _line(reader: asyncio.StreamReader, intake: Intake) -> bytes:
    """Return the next line; nothing at the end."""
    try:
        return await reader.readline()
    except ValueError as error:
        raise intake.cut(f"it sent a line of more than {MOST_LINE >> 20} MiB") from error


async def _send_out(left: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter) -> None:
    with suppress(*_GONE), left:
        async for message in left:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            writer.write(text.encode("utf-8", "replace") + b"\n")
            await writer.drain()
