"""MCP messages over two pipes, one on each line, for servers and clients alike. Imports the package `mcp`.

A line has a limit, and so has the number of lines in a row that are no messages: whoever sends more is cut off.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from sandbox.wire.foreign import MESSAGE, read_json

MOST_LINE: Final = 8 << 20  # bytes
_MOST_GARBAGE: Final = 200  # lines in a row
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError)

Received: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Sent: TypeAlias = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def wired(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[tuple[Received, Sent]]:
    """Give the messages that come and take those that go, while the block runs; the pipes stay the caller's."""
    arriving, arrived = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    leaving, left = anyio.create_memory_object_stream[SessionMessage](0)
    with arriving, arrived, leaving, left:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_take_in(reader, arriving)), group.create_task(_send_out(left, writer))]
            try:
                yield arrived, leaving
            finally:
                for task in tasks:
                    task.cancel()


async def _take_in(reader: asyncio.StreamReader, arriving: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    garbage = 0
    with suppress(*_GONE), arriving:
        while garbage < _MOST_GARBAGE and (line := await _line(reader)):
            try:
                message = jsonrpc_message_adapter.validate_python(read_json(line, MESSAGE), by_name=False)
            except ValueError as error:
                garbage += 1
                await arriving.send(error)
                continue
            garbage = 0
            await arriving.send(SessionMessage(message))


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line; nothing at the end, and for one that is too long."""
    try:
        return await reader.readline()
    except ValueError:
        return b""


async def _send_out(left: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter) -> None:
    with suppress(*_GONE), left:
        async for message in left:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            writer.write(text.encode("utf-8", "replace") + b"\n")
            await writer.drain()
