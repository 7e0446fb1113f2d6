"""The one connection to an MCP server: started when it is needed, and again when it ended, ever more slowly.

The package `mcp` is imported with the first connection. A task of its own holds the connection; whoever calls waits for
it for a while, and is told why there is none.
"""

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_core.base import programs
from agent_core.base.errors import KnapperError
from agent_core.base.untrusted import one_line

from .entry import ServerEntry
from .tools import ForeignListing, read_tools

if TYPE_CHECKING:
    from mcp import Client

_WAIT_S: Final = 60.0  # for a connection
_CALL_S: Final = 120.0
_CLOSING_S: Final = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_CLOSED: Final = "Connection closed"  # as the SDK says it
_MOST_PAGES: Final = 50
_SYSTEM: Final = (
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc",
    "/opt",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
)


class ServerUnavailable(KnapperError):
    """There is no connection to a server."""

    code = "mcp-server"


class ServerConnection:
    """The connection to one server, as long as it is open."""

    def __init__(self, name: str, entry: ServerEntry, home: Path, secrets: Mapping[str, str]) -> None:
        self.name = name
        self.entry = entry
        self.listing = ForeignListing({})
        self._home = home
        self._secrets = secrets
        self._client: Client | None = None
        self._is_up = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._trouble = ""
        self._relist = asyncio.Event()
        self._lost = asyncio.Event()

    async def aclose(self) -> None:
        """End the connection, and the server if it was started here."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
            self._work = None

    async def client(self) -> "Client":
        """Return the client, connected.

        Raises:
            ServerUnavailable: there is none; the message says why.
        """
        if self._work is None:
            self._work = asyncio.create_task(self._stay_connected())
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_S):
                while self._client is None and not self._trouble:
                    await self._is_up.wait()
                    self._is_up.clear()
        if self._client is None:
            why = self._trouble or f"it did not answer in {_WAIT_S:g} s"
            fix = f"Type: knapper mcp doctor {self.name}"
            raise ServerUnavailable(f"The MCP server `{self.name}` cannot be used: {why}.", fix=fix)
        return self._client

    async def call(
        self, tool: str, arguments: dict[str, Any], on_progress: Callable[[float, float | None, str], None]
    ) -> Any:  # Any: the SDK's result
        """Call a tool.

        Raises:
            ServerUnavailable: there is no connection, it ended, or no answer came in time.
        """
        client = await self.client()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, one_line(message or "", 400))

        try:
            async with asyncio.timeout(_CALL_S):
                return await client.call_tool(tool, arguments, progress_callback=hear)
        except TimeoutError:
            why = f"it did not answer in {_CALL_S:g} s"
        except _errors() as error:
            why = _reason(error)
            if why == _CLOSED:  # its process may live on, with nobody who reads what it says
                self._lost.set()
        raise ServerUnavailable(f"The MCP server `{self.name}` did not answer `{tool[:80]}`: {why}.")

    async def _stay_connected(self) -> None:
        pause = _FIRST_PAUSE_S
        await asyncio.to_thread(_load)
        failures: tuple[type[Exception], ...] = (OSError, ExceptionGroup, KnapperError, *_errors())
        while True:
            try:
                async with AsyncExitStack() as stack:
                    ended = await self._connect(stack)
                    pause = _FIRST_PAUSE_S
                    await ended
                self._trouble = "it ended"
            except failures as error:
                self._trouble = _reason(error)
            finally:
                self._client = None
                self._is_up.set()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            self._trouble = ""

    async def _connect(self, stack: AsyncExitStack) -> Awaitable[object]:
        """Connect, and return what is done when the connection has ended."""
        import mcp_types as wire  # noqa: PLC0415 - loaded with the first connection
        from mcp import Client  # noqa: PLC0415 - the same

        async def hear(message: object) -> None:
            if isinstance(message, wire.ToolListChangedNotification):
                self._relist.set()

        async with asyncio.timeout(_WAIT_S):
            transport, ended = await self._transport(stack)
            client = await stack.enter_async_context(
                Client(transport, message_handler=hear, read_timeout_seconds=_CALL_S)
            )
            self.listing = await _listing(client)
        self._client = client
        self._is_up.set()
        self._lost.clear()
        following, lost = asyncio.create_task(self._follow(client)), asyncio.create_task(self._lost.wait())
        for task in (following, lost, ended):
            stack.push_async_callback(_end, task)
        return asyncio.wait((following, lost, ended), return_when=asyncio.FIRST_COMPLETED)

    async def _follow(self, client: "Client") -> None:
        """Read the list again whenever the server says that it changed."""
        listening = asyncio.create_task(self._listen(client))
        try:
            while True:
                await self._relist.wait()
                self._relist.clear()
                self.listing = await _listing(client)
                await asyncio.sleep(_FIRST_PAUSE_S)  # a server may say so without end
        finally:
            await _end(listening)

    async def _listen(self, client: "Client") -> None:
        if client.protocol_version >= "2026-07-28":
            with suppress(*_errors()):  # it need not serve this
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._relist.set()

    async def _transport(self, stack: AsyncExitStack) -> tuple[Any, asyncio.Task[Any]]:  # Any: the SDK's
        if self.entry.url:
            return self._over_http(stack), asyncio.create_task(asyncio.Event().wait())
        from .line_wire import wired  # noqa: PLC0415 - it imports the package

        process = await stack.enter_async_context(_started(self.command(), self._variables(), self._home))
        assert process.stdout is not None
        assert process.stdin is not None
        ended = asyncio.create_task(process.wait())
        stack.push_async_callback(_end, ended)
        return wired(process.stdout, process.stdin), ended

    def _over_http(self, stack: AsyncExitStack) -> Any:
        import httpx2  # noqa: PLC0415 - loaded with the first connection
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - the same

        secret = self._secrets.get(self.entry.bearer, "")
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        http = httpx2.AsyncClient(headers=headers, timeout=_CALL_S, follow_redirects=False, trust_env=False)
        stack.push_async_callback(http.aclose)
        return streamable_http_client(self.entry.url, http_client=http)

    def command(self) -> list[str]:
        """Return the command that is really started.

        Raises:
            ServerUnavailable: there is no such program.
        """
        program = shutil.which(self.entry.command[0], path=self._variables()["PATH"])
        if program is None:
            fix = "Install it, or write its whole path."
            raise ServerUnavailable(f"There is no program {one_line(self.entry.command[0], 100)}.", fix=fix)
        own = [program, *self.entry.command[1:]]
        if not self.entry.confined:
            return own
        own_files = sorted({str(_around(place)) for place in (Path(program), Path(program).resolve())})
        readable = ":".join(
            [
                *_SYSTEM,
                *own_files,
                str(Path(sys.executable).resolve().parents[1]),
                sys.prefix,
                sys.base_prefix,
                *self.entry.read,
            ]
        )
        writable = ":".join([str(self._home), *self.entry.write])
        return programs.python("-m", f"{__package__}.confined", readable, writable, *own)

    def _variables(self) -> dict[str, str]:
        own = {name: self._secrets[name] for name in self.entry.secrets if name in self._secrets}
        places = {"HOME": str(self._home), "TMPDIR": str(self._home)}
        around = programs.variables_for_python() if self.entry.confined else programs.variables()
        return {**around, **own, **places}


def _around(program: Path) -> Path:
    """Return what a program reads as its own: the environment that it is installed in, or itself if it is in none."""
    folder = program.parents[1]
    is_environment = (folder / "pyvenv.cfg").is_file() or (program.parent.name == "bin" and (folder / "lib").is_dir())
    is_of_user = Path.home().is_relative_to(folder) or folder == Path.home() / ".local"
    return folder if is_environment and not is_of_user else program


def _load() -> None:
    import mcp  # noqa: F401, PLC0415 - it takes a second


def _errors() -> tuple[type[Exception], ...]:
    import anyio  # noqa: PLC0415 - loaded with the first connection
    import httpx2  # noqa: PLC0415 - the same
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - the same
    from pydantic import ValidationError  # noqa: PLC0415 - the same

    gone = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
    return (MCPError, httpx2.HTTPError, ValidationError, RuntimeError, TimeoutError, *gone)


def _reason(error: BaseException) -> str:
    """Return why a connection failed, in one line that a stranger may have written."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"it did not answer in {_WAIT_S:g} s"
    return one_line(str(error) or type(error).__name__, 200).rstrip(".")


async def _listing(client: "Client") -> ForeignListing:
    rows: list[tuple[str, str, object]] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        rows += [(tool.name, tool.description or "", tool.input_schema) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            break
    return await asyncio.to_thread(read_tools, rows)


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def _started(command: list[str], variables: Mapping[str, str], home: Path) -> AsyncIterator[Process]:
    """Start a server; at the end of the block its input is closed, and it is killed if that does not end it."""
    from .line_wire import MOST_LINE  # noqa: PLC0415 - it imports the package

    await asyncio.to_thread(home.mkdir, mode=0o700, parents=True, exist_ok=True)
    streams = {"stdin": PIPE, "stdout": PIPE, "stderr": DEVNULL, "limit": MOST_LINE}
    process = await programs.start(command, env=variables, cwd=home, **streams)
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_CLOSING_S):
                await process.wait()
        except TimeoutError:
            pass
        finally:
            _kill(process)
            await asyncio.shield(process.wait())
        process._transport.close()  # type: ignore[attr-defined]  # asyncio keeps the pipes of a killed one open


def _kill(process: Process) -> None:
    """Kill what is left of the server's session: it was started in one of its own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
