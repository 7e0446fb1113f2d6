"""The MCP server on standard input and output, for the program that started it.

Only messages go out there: whatever else this process prints goes to standard error.
"""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from agent_core.base.errors import UsageError
from agent_core.functions.foreign.line_wire import MOST_LINE, wired
from agent_core.workspace.workspace import Workspace

from ..server.identity import OWNER
from .server import McpDoor

_INPUT, _OUTPUT, _ERRORS = 0, 1, 2


async def serve_pipe(workspace: Workspace, stopping: asyncio.Event) -> None:
    """Serve until the other side closes the pipe, or `stopping` is set.

    Raises:
        UsageError: standard input or output is no pipe.
    """
    if os.isatty(_INPUT):
        raise UsageError("Standard input is a terminal.", fix="Let the MCP client start this command.")
    async with _standard_pipes() as (reader, writer):
        await serve_streams(workspace, reader, writer, stopping)


async def serve_streams(
    workspace: Workspace, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stopping: asyncio.Event
) -> None:
    """Serve the owner of the workspace, who is at the other end of these streams."""
    door = McpDoor(workspace, lambda _: OWNER)
    async with door.opened(), wired(reader, writer) as (arrived, leaving):
        server = door.server
        running = asyncio.create_task(server.run(arrived, leaving, server.create_initialization_options()))
        stopped = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            running.cancel()
            stopped.cancel()
            await asyncio.gather(running, stopped, return_exceptions=True)


@asynccontextmanager
async def _standard_pipes() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    loop = asyncio.get_running_loop()
    source, sink = os.fdopen(os.dup(_INPUT), "rb", 0), os.fdopen(os.dup(_OUTPUT), "wb", 0)
    os.dup2(_ERRORS, _OUTPUT)
    reader = asyncio.StreamReader(MOST_LINE)
    incoming: asyncio.BaseTransport | None = None
    try:
        if _is_nothing(source):
            reader.feed_eof()
        else:
            incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    except ValueError as error:
        source.close()
        sink.close()
        raise UsageError("Standard input is no pipe.", fix="Let the MCP client start this command.") from error
    try:
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
    except ValueError as error:
        (incoming or source).close()
        sink.close()
        raise UsageError("Standard output is no pipe.", fix="Let the MCP client start this command.") from error
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        yield reader, writer
    finally:
        (incoming or source).close()
        if not transport.is_closing():  # a reader that is gone has closed it
            transport.abort()


def _is_nothing(source: BinaryIO) -> bool:
    """Check whether this is /dev/null: its end is there at once, and the event loop cannot wait for it."""
    found, nothing = os.fstat(source.fileno()), Path(os.devnull).stat()
    return stat.S_ISCHR(found.st_mode) and os.path.samestat(found, nothing)
