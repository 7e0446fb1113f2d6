"""MCP: our share of a call, how soon another program can call a new function, and what dropped connections leave.

    python -m benchmarks.mcp_doors [--json]

The same client calls a bare server of the SDK and ours, in turns and in one run. Each server is a separate process.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as wire
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from agent_core import Workspace
from tests.kit.desk import VOWELS, another

from .measure import Row, show

_CALLS, _GROWN, _DROPPED = 200, 10, 500
_SHARE, _SOON_MS = 1.5, 300.0


async def bare() -> None:
    """Run a server of the SDK with one tool that does nothing."""

    async def tools(_: Any, __: Any) -> wire.ListToolsResult:  # Any: the SDK's
        return wire.ListToolsResult(tools=[wire.Tool(name="echo", input_schema={"type": "object"})])

    async def call(
        _: Any, params: wire.CallToolRequestParams
    ) -> wire.CallToolResult:  # Any: the same
        return wire.CallToolResult(
            content=[wire.TextContent(type="text", text=str(params.arguments))]
        )

    server = Server[Any]("bare", on_list_tools=tools, on_call_tool=call)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


async def share(folder: Path) -> list[Row]:
    """Compare our call, minus the sandboxed call in it, with a call of the bare server."""
    async with AsyncExitStack() as stack:
        workspace = await stack.enter_async_context(Workspace.open(folder))
        await workspace.functions.create("count_vowels", VOWELS, "letters")
        asked = {"function_name": "count_vowels", "arguments": {"text": "queueing"}}
        other = await stack.enter_async_context(
            Client(stdio_client(_started("-m", __spec__.name, "--bare")))
        )
        ours = await stack.enter_async_context(
            Client(stdio_client(_started("-m", "knapper", "mcp", "-C", str(folder))))
        )
        ways: list[Callable[[], Awaitable[object]]] = [
            lambda: other.call_tool("echo", {"text": "queueing"}),
            lambda: ours.call_tool("describe_function", {"function_name": "count_vowels"}),
            lambda: ours.call_tool("call_function", asked),
            lambda: workspace.functions.call("count_vowels", {"text": "queueing"}),
        ]
        taken: list[list[float]] = [[] for _ in ways]
        for _ in range(_CALLS):
            for times, way in zip(taken, ways, strict=True):
                began = time.perf_counter()
                await way()
                times.append((time.perf_counter() - began) * 1000)
    echo, described, called, sandboxed = map(statistics.median, taken)
    own = called - sandboxed
    return [
        Row(
            "MCP: a call without the sandbox", described, "a bare server", described / echo, _SHARE
        ),
        Row(
            "MCP: a call of a function, less the sandboxed call",
            own,
            "a bare server",
            own / echo,
            _SHARE,
        ),
        Row("MCP: a call of a function", called),
    ]


async def soon(folder: Path) -> list[Row]:
    """Measure from the gate's approval in one program to the result of a call by another one, which was notified."""
    taken, heard = list[float](), asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, wire.ToolListChangedNotification):
            heard.set()

    served = stdio_client(_started("-m", "knapper", "mcp", "-C", str(folder)))
    async with (
        Workspace.open(folder) as workspace,
        Client(served, mode="legacy", message_handler=hear) as client,
    ):
        for number in range(_GROWN):
            name = f"count_letters_{number}"
            heard.clear()
            assert (
                await workspace.functions.create(name, another(name), f"grown_{number}")
            ).admitted
            began = time.perf_counter()
            asked = {"function_name": name, "arguments": {"text": "queueing"}}
            await heard.wait()
            while (
                await client.call_tool("call_function", asked)
            ).is_error:  # the notification was of another change
                heard.clear()
                await heard.wait()
            taken.append((time.perf_counter() - began) * 1000)
    return [
        Row(
            "MCP: from the gate's yes to another program's answer, p95",
            sorted(taken)[-1],
            aim=_SOON_MS,
        )
    ]


async def dropped(folder: Path) -> list[Row]:
    """Count what dropped connections leave in the server."""
    with _served(folder) as (process, url, token):
        await _connect(url, token, 20)  # allocations made once and kept
        before = _kept(process.pid)
        await _connect(url, token, _DROPPED)
        await asyncio.sleep(2)
        after = _kept(process.pid)
        await _connect(url, token, 1)
    return [
        Row(
            f"MCP: descriptors left by {_DROPPED} dropped connections",
            after[0] - before[0],
            aim=5,
            unit="",
        ),
        Row("MCP: memory left by them", after[1] - before[1], aim=20, unit="MB"),
    ]


async def _connect(url: str, token: str, count: int) -> None:
    """Open connections of both protocol eras in turn, and drop half of them without terminating the session."""
    for number in range(count):
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
        async with (
            http,
            Client(
                streamable_http_client(
                    f"{url}/mcp", http_client=http, terminate_on_close=number % 2 == 0
                ),
                mode="legacy" if number % 4 < 2 else "auto",
            ) as client,
        ):
            await client.list_tools()


def _kept(pid: int) -> tuple[int, float]:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return len([*Path(f"/proc/{pid}/fd").iterdir()]), int(
        rollup.partition("Pss:")[2].split(maxsplit=1)[0]
    ) / 1024


@contextmanager
def _served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    ours = [sys.executable, "-m", "knapper", "-C", str(folder)]
    adding = [*ours, "tokens", "add", "bench", "--scope=chat", "--json"]
    token = json.loads(subprocess.run(adding, capture_output=True, text=True, check=True).stdout)[
        "token"
    ]
    with subprocess.Popen(
        [*ours, "serve", "--json", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())["url"], token
        finally:
            process.terminate()


def _started(*arguments: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=[*arguments], env=dict(os.environ))


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mcp_doors", description=__doc__)
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        await bare()
        return
    rows: list[Row] = []
    for part in (share, soon, dropped):
        with tempfile.TemporaryDirectory(prefix="bench-mcp-") as folder:
            Workspace.create(folder)
            rows += await part(Path(folder))
    show(rows, as_json=given.json)


if __name__ == "__main__":
    asyncio.run(main())
