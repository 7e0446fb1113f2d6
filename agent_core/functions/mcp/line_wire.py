"""Bounded reading of untrusted MCP messages, and a transport over two pipes with one message per line. Imports `mcp`.

`Intake` has the bounds for pipes and HTTP. They limit the bytes and values of one message, and the rate of everything
that answers nothing (notifications, requests, invalid messages). A connection that exceeds them is cut off.
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
_MOST_VALUES: Final = 100_000  # of one message: each takes hundreds of bytes in memory
_AT_ONCE, _A_SECOND = 5_000.0, 50.0  # costs
_BYTES_A_COST: Final = 8 << 10
_GARBAGE, _QUESTION = 25, 25  # costs, which allow 200 at once and two per second
ENDLESS: Final = "it sent without end what answers nothing"
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError)

Received: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Sent: TypeAlias = MemoryObjectSendStream[SessionMessage]


class CutOff(Exception):
    """The other side sent more than is accepted."""


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


class Intake:
    """The bounds of one connection; `trouble` is why it was cut off.

    `refusal` is the status of the last HTTP response, if it was an error.
    """

    def __init__(self, *, serves: bool = False) -> None:
        """Create the intake; with `serves`, the other side is a client, whose requests are expected."""
        self.trouble = ""
        self.refusal = 0
        self._serves = serves
        self._allowance = ReadAllowance(_AT_ONCE, _A_SECOND)

    def read(self, data: bytes) -> JSONRPCMessage:
        """Return the parsed message.

        Raises:
            ValueError: it is not a valid message, or nested too deeply.
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
            case {"result": {"tools": list(tools)}}:  # the SDK would run their patterns
                for tool in tools:
                    if isinstance(tool, dict):
                        tool["_meta"] = {RESULT: tool.pop(RESULT, None)}
        return jsonrpc_message_adapter.validate_python(value, by_name=False)

    def take(self, message: JSONRPCMessage, size: int) -> None:
        """Count a message that arrived on a stream of messages.

        Raises:
            CutOff: too many messages answered nothing.
        """
        if not (self._serves or isinstance(message, JSONRPCResponse | JSONRPCError)):
            self.take_unasked(message, size)

    def take_unasked(self, message: JSONRPCMessage, size: int) -> None:
        """Count a message that cannot be an answer.

        Raises:
            CutOff: too many arrived.
        """
        self._spend((_QUESTION if isinstance(message, JSONRPCRequest) else 1) + size / _BYTES_A_COST)

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
    """Return the next line; empty at the end."""
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
