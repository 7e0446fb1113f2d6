"""The MCP server of a workspace, for old and new protocol versions. It is imported when a client comes: `mcp` is slow.

Clients of the versions with a handshake are notified on their connection, those of 2026 on the streams that they
opened. Each call runs in a separate task: when a client cancels or leaves, the call is canceled like one of a user,
and its cleanup is not cut off.
"""

import asyncio
import math
import os
import stat
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import mcp_types as wire
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent_core import __version__
from agent_core.base.errors import KnapperError, UsageError
from agent_core.context import presentation
from agent_core.functions.mcp.wire import MOST_LINE, connect_pipes
from agent_core.registry.registry import Registry, RegistryChange
from agent_core.workspace.workspace import Workspace

from .identity import OWNER, Identity
from .mcp_offer import Offer, Tool, ToolAnswer

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]  # Any: types of the transport
Identify = Callable[[Any], Identity]
"""Returns the identity of an HTTP request, which is None for a pipe."""

_INSTRUCTIONS: Final = (
    "Functions that were made and tested in a workspace, and run in a sandbox. More than the list shows can be found"
    " with find_functions and called with call_function; new ones may appear at any time."
    " What one reaches stands in [] at the end of its description; without that it only computes."
)
_SCHEME: Final = "knapper://functions/"
_PATIENCE_S: Final = 1.0  # timeout for a client that does not read its notices
_REFUSED: Final = -32001


class WorkspaceServer(Server[Any]):
    """The SDK's server; it declares to all clients, over both transports, that its lists may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the options of a handshake; over HTTP, the SDK calls this without arguments."""
        options = notification_options or NotificationOptions(tools_changed=True, resources_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class SessionManager(StreamableHTTPSessionManager):
    """The SDK's sessions over HTTP. When all are taken, the longest idle one is closed for a new one.

    Otherwise clients that left without closing their session would block new ones until the session expires.
    """

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        sessions = self._server_instances  # the SDK has no public access to them
        if self.max_sessions is not None and len(sessions) >= self.max_sessions:
            silent = {id: one.idle_scope for id, one in sessions.items() if one.idle_scope is not None}
            oldest = min(silent, key=lambda id: silent[id].deadline, default="")
            if oldest and math.isfinite(silent[oldest].deadline):  # otherwise all sessions are in use
                silent[oldest].cancel()
                del sessions[oldest]
        return super()._admit_session(requestor)


class McpDoor:
    """A workspace as an MCP server; run the SDK's `server` on a transport while this is open."""

    def __init__(self, workspace: Workspace, identify: Identify) -> None:
        self._offer = Offer(workspace)
        self._identify = identify
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._streams = 0
        self._running: set[asyncio.Task[Any]] = set()
        self._slots = asyncio.Semaphore(workspace.settings.turn.parallel)
        self._announcer = Announcer(self._offer.functions.registry, self._offer, self._notify, lambda: self.clients)
        self.server = WorkspaceServer(
            "knapper",
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self._listen,
        )
        self.server.middleware.append(self._remember)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Announce changes of functions while the block runs; then cancel the running calls."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._offer.questions.aclose)
            stack.push_async_callback(self._end_calls)
            await stack.enter_async_context(self._announcer.at_work())
            yield

    @property
    def clients(self) -> int:
        """The number of clients that are notified of changes, on their connection or on a stream."""
        return len(self._connections) + self._streams

    def end_streams(self) -> None:
        """End the streams of clients that listen for changes."""
        self._listening.close()

    async def _end_calls(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _remember(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._connections.add(ctx.session._connection)  # the SDK has no public access to it
        return await call_next(ctx)

    async def _notify(self, names: Sequence[str]) -> None:
        await self._bus.publish(ToolsListChanged())
        await self._bus.publish(ResourcesListChanged())
        for name in names:
            await self._bus.publish(ResourceUpdated(uri=f"{_SCHEME}{name}/source"))
        await asyncio.gather(*(_send_notices(connection) for connection in list(self._connections)))

    async def _listen(
        self, ctx: Context, params: wire.SubscriptionsListenRequestParams
    ) -> wire.SubscriptionsListenResult:
        with _refusals():
            self._identify(ctx.request).needs("read", "chat")
        self._streams += 1
        try:
            return await self._listening(ctx, params)
        finally:
            self._streams -= 1

    async def _list_tools(self, ctx: Context, _: wire.PaginatedRequestParams | None) -> wire.ListToolsResult:
        with _refusals():
            tools = await self._offer.tools(self._identify(ctx.request))
        return wire.ListToolsResult(tools=[*map(_on_wire, tools)], ttl_ms=0)

    async def _call_tool(self, ctx: Context, params: wire.CallToolRequestParams) -> wire.CallToolResult:
        news = _Progress()
        identity = self._identify(ctx.request)

        async def call() -> ToolAnswer:
            async with self._slots:
                return await self._offer.call(params.name, params.arguments or {}, identity, news.hear)

        answer = await self._apart(call(), news, ctx)
        content: list[wire.ContentBlock] = [wire.TextContent(type="text", text=answer.text)]
        value = None if answer.value is None else dict(answer.value)
        return wire.CallToolResult(content=content, structured_content=value, is_error=answer.is_error)

    async def _apart(self, work: Awaitable[T], news: "_Progress", ctx: Context) -> T:
        """Run work in a separate task and report its progress; if this is canceled, cancel the work, too."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: news.comes.set())
        try:
            while not task.done():
                await news.comes.wait()
                news.comes.clear()
                if (latest := news.take()) is not None:
                    await ctx.session.report_progress(*latest)
        finally:
            task.cancel()
        return await task

    async def _list_resources(self, ctx: Context, _: wire.PaginatedRequestParams | None) -> wire.ListResourcesResult:
        with _refusals():
            functions = await self._offer.shown(self._identify(ctx.request))
        resources = [
            wire.Resource(uri=f"{_SCHEME}{function.name}/source", name=function.name, mime_type="text/x-python")
            for function in functions
        ]
        return wire.ListResourcesResult(resources=resources, ttl_ms=0)

    async def _list_templates(
        self, _: Context, __: wire.PaginatedRequestParams | None
    ) -> wire.ListResourceTemplatesResult:
        parts = {"source": "The source of a function.", "history": "The versions of a function."}
        templates = [
            wire.ResourceTemplate(uri_template=f"{_SCHEME}{{name}}/{part}", name=part, description=about)
            for part, about in parts.items()
        ]
        return wire.ListResourceTemplatesResult(resource_templates=templates)

    async def _read_resource(self, ctx: Context, params: wire.ReadResourceRequestParams) -> wire.ReadResourceResult:
        uri = str(params.uri)
        name, _, part = uri.removeprefix(_SCHEME).partition("/")
        with _refusals():
            self._identify(ctx.request).needs("read")
            service = self._offer.functions
            if uri.startswith(_SCHEME) and part == "source" and name in service.names():
                text, kind = service.source(name), "text/x-python"
            elif uri.startswith(_SCHEME) and part == "history":
                text, kind = presentation.history(await service.history.of(name)), "text/plain"
            else:
                raise MCPError(wire.INVALID_PARAMS, f"There is no resource {uri[:200]}.", {"uri": uri[:200]})
        contents: list[wire.TextResourceContents | wire.BlobResourceContents] = [
            wire.TextResourceContents(uri=params.uri, text=text, mime_type=kind)
        ]
        return wire.ReadResourceResult(contents=contents)


class _Progress:
    """The latest progress of a function that was not sent yet."""

    def __init__(self) -> None:
        self.comes = asyncio.Event()
        self._latest: tuple[float, float | None, str] | None = None
        self._sent = float("-inf")

    def hear(self, done: float, total: float | None, note: str) -> None:
        """Store the progress that a function reports."""
        self._latest = (done, total, note)
        self.comes.set()

    def take(self) -> tuple[float, float | None, str | None] | None:
        """Return the progress to send, or None if it did not increase since the last one sent."""
        latest, self._latest = self._latest, None
        if latest is None or latest[0] <= self._sent:
            return None
        self._sent = latest[0]
        return latest[0], latest[1], latest[2] or None


@contextmanager
def _refusals() -> Iterator[None]:
    """Convert our errors to protocol errors."""
    try:
        yield
    except KnapperError as error:
        raise MCPError(_REFUSED, f"{error.message} {error.fix}".strip()) from error


async def _send_notices(connection: Connection) -> None:
    """Send the notices to one client, with a timeout, so that a client that does not read them delays no other."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            await connection.send_tool_list_changed()
            await connection.send_resource_list_changed()


def _on_wire(tool: Tool) -> wire.Tool:
    return wire.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.parameters),
        output_schema=None if tool.result is None else dict(tool.result),
        annotations=wire.ToolAnnotations(read_only_hint=True) if tool.reads_only else None,
    )


# Notifies connected clients of changed functions: soon, but not often, and a changed signature as a removal first.
# Some clients skip a tool with a name that they know. So a function with a changed signature is removed from the list
# for a moment: these clients are notified twice and load it again. Some clients drop the list that they are loading
# when they are notified again, so the second notice is delayed by the time that the first load took.

_SETTLING_S: Final = 0.03  # changes within this time share a notice
_BETWEEN_S: Final = 0.1  # from one notice to the next
_LOADING_S: Final = 2.0  # timeout until each client has loaded the list without the altered functions

Notify = Callable[[Sequence[str]], Awaitable[None]]
"""Notifies clients that the list and the named functions changed."""


class Announcer:
    """Announces changes of the registry to clients while `at_work` runs."""

    def __init__(self, registry: Registry, offer: Offer, notify: Notify, clients: Callable[[], int]) -> None:
        """Create the announcer; `clients` returns the number of clients that are notified."""
        self._clients = clients
        self._registry = registry
        self._offer = offer
        self._notify = notify
        self._changed: set[str] = set()
        self._comes = asyncio.Event()
        self._known = registry.snapshot().functions  # at the last notice

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Announce changes while the block runs."""
        end = self._registry.subscribe(self._hear)
        work = asyncio.create_task(self._announce())
        try:
            yield
        finally:
            end()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    def _hear(self, change: RegistryChange) -> None:
        self._changed |= {*change.loaded, *change.changed, *change.removed}
        if self._changed:
            self._comes.set()

    async def _announce(self) -> None:
        async with asyncio.TaskGroup() as returning:
            while True:
                await self._comes.wait()
                await asyncio.sleep(_SETTLING_S)
                self._comes.clear()
                changed, self._changed = sorted(self._changed), set()
                old, self._known = self._known, self._registry.snapshot().functions
                both = old.keys() & self._known.keys()
                altered = frozenset(name for name in both if old[name].parameters != self._known[name].parameters)
                self._offer.hidden |= altered
                if altered:
                    returning.create_task(self._return(altered, self._offer.listings))
                await self._notify(changed)
                await asyncio.sleep(_BETWEEN_S)

    async def _return(self, altered: frozenset[str], listings: int) -> None:
        """Put functions back into the list once clients have loaded it without them. Other changes do not wait."""
        told = time.monotonic()
        await asyncio.sleep(_BETWEEN_S)
        await self._offer.listed(listings + self._clients(), _LOADING_S)
        await asyncio.sleep(time.monotonic() - told)
        self._offer.hidden -= altered
        self._comes.set()  # the list has changed, although no function has


# The server on standard input and output, for the program that started it. Only messages go to standard output; all
# other output of this process goes to standard error.

_INPUT, _OUTPUT, _ERRORS = 0, 1, 2


async def serve_pipe(workspace: Workspace, stopping: asyncio.Event) -> None:
    """Serve until the other side closes the pipe, or `stopping` is set.

    Raises:
        UsageError: standard input or output is not a pipe.
    """
    if os.isatty(_INPUT):
        raise UsageError("Standard input is a terminal.", fix="Let the MCP client start this command.")
    async with _standard_pipes() as (reader, writer):
        await serve_streams(workspace, reader, writer, stopping)


async def serve_streams(
    workspace: Workspace, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stopping: asyncio.Event
) -> None:
    """Serve the owner of the workspace, at the other end of these streams."""
    door = McpDoor(workspace, lambda _: OWNER)
    async with door.opened(), connect_pipes(reader, writer) as (arrived, leaving):
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
        if not transport.is_closing():  # it closes when its reader has gone
            transport.abort()


def _is_nothing(source: BinaryIO) -> bool:
    """Check whether this is /dev/null, which the event loop cannot wait for and which is at its end at once."""
    found, nothing = os.fstat(source.fileno()), Path(os.devnull).stat()
    return stat.S_ISCHR(found.st_mode) and os.path.samestat(found, nothing)
