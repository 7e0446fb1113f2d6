"""A workspace as an MCP server over pipes and over HTTP, and real clients of both protocol eras."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import httpx2
import mcp_types as wire
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agent_core import Workspace
from knapper_ext.mcp.door import serve_streams
from knapper_ext.mcp.wire import MOST_LINE, connect_pipes
from sandbox import Sandbox
from tests.kit import ScriptedModel
from tests.knapper_ext.server.conftest import Served, server

Era: TypeAlias = Literal["auto", "legacy"]


async def pipe_pair() -> tuple[tuple[asyncio.StreamReader, asyncio.StreamWriter], ...]:
    """Return the two ends of a pipe pair."""
    ours, theirs = socket.socketpair()
    return (
        await asyncio.open_connection(sock=ours, limit=MOST_LINE),
        await asyncio.open_connection(sock=theirs, limit=MOST_LINE),
    )


@asynccontextmanager
async def piped(
    workspace: Workspace, era: Era = "auto", hear: Any = None
) -> AsyncIterator[Client]:  # Any: the SDK's
    """Connect a client through a pipe."""
    (their_reader, their_writer), (reader, writer) = await pipe_pair()
    serving = asyncio.create_task(serve_streams(workspace, reader, writer, asyncio.Event()))
    try:
        async with Client(
            connect_pipes(their_reader, their_writer), mode=era, message_handler=hear
        ) as client:
            yield client
    finally:
        for end in (their_writer, writer):
            end.close()
        await serving


@asynccontextmanager
async def over_http(
    served: Served, token: str, era: Era = "auto", hear: Any = None
) -> AsyncIterator[Client]:
    """Connect a client to `/mcp`."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with Client(transport, mode=era, message_handler=hear) as client:
            yield client


@pytest.fixture
async def workspace(tmp_path: Path, one_sandbox: Sandbox) -> AsyncIterator[Workspace]:
    """An empty workspace."""
    async with Workspace.open(tmp_path, sandbox=one_sandbox) as opened:
        yield opened


@pytest.fixture
async def served(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> AsyncIterator[Served]:
    """A server on a socket that shows drafts: what the gate detects in time depends on the load."""
    standings = ("draft", "trial", "trusted")
    async with server(tmp_path, scripted([]), one_sandbox, mcp__standings=standings) as running:
        yield running


def text_of(result: wire.CallToolResult) -> str:
    """Return the text of a result."""
    (content,) = result.content
    assert isinstance(content, wire.TextContent)
    return content.text


async def names(client: Client) -> set[str]:
    """Return the tools that a client sees, except those that are always there."""
    tools = (await client.list_tools(cache_mode="bypass")).tools
    return {tool.name for tool in tools} - {"find_functions", "describe_function", "call_function"}
