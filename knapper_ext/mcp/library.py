"""The foreign functions of a workspace: the approved tools of its MCP servers, and how they are called."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core.access.secrets.session import CallSecrets
from agent_core.access.secrets.source import NoSecret
from agent_core.base.errors import KnapperError, WorkspaceError
from agent_core.base.offload import aside
from agent_core.base.pictures import UnusablePicture, decoded
from agent_core.base.records import dataclass
from agent_core.base.workspace_folder import STATE
from agent_core.functions.foreign import ForeignFunction, OnPicture, OnProgress
from sandbox import Failure, Outcome, Raised, Refused, Returned

from .connection import ServerConnection, ServerPlace, ServerUnavailable
from .replies import IMAGES, VALUE
from .servers import (
    FILE,
    NOT_LET,
    ForeignListing,
    ForeignTool,
    Reach,
    ServerBook,
    ServerEntry,
    capped,
    functions_of,
)

if TYPE_CHECKING:
    from agent_core.access.secrets import Secrets
    from agent_core.registry.function import Function


@dataclass(frozen=True, slots=True)
class ApprovedTool:
    """An approved tool as a function, with its server and its name on the server."""

    function: "Function"
    server: str
    tool: str
    approved: Mapping[str, Any]  # Any: JSON


class McpLibrary:
    """The approved functions, and the open connections to their servers."""

    def __init__(self, root: Path, secrets: "Secrets") -> None:
        self.book = ServerBook(root)
        self._secrets = secrets
        self._functions: Mapping[str, ForeignFunction] = {}
        self._files = [root / path for path in (FILE, ".knapper/mcp.json")]
        self._stamps: tuple[object, ...] = ()
        self._entries: Mapping[str, ServerEntry] = {}
        self._approved: dict[str, ServerEntry] = {}
        self._connections: dict[str, ServerConnection] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}

    def functions(self) -> Mapping[str, ForeignFunction]:
        """Return the callable functions, by name. The same object is returned until something changes."""
        stamps = tuple(map(_stamp, self._files))
        if stamps != self._stamps:
            self._stamps, self._approved = stamps, {}
            functions = dict[str, ForeignFunction]()
            with suppress(
                WorkspaceError
            ):  # `knapper mcp list` reports it; a file being edited ends no program
                self._entries = self.book.entries()
            for server, entry in self._entries.items():
                if not self.book.is_started(server, entry):
                    continue
                self._approved[server] = entry
                approved = self.book.tools(server, entry)
                tools = {name: ForeignTool(name, **row) for name, row in approved.items()}
                for name, (function, tool) in functions_of(server, tools).items():
                    as_approved = ApprovedTool(function, server, tool, approved[tool])
                    functions[name] = ForeignFunction(
                        function,
                        program=f"the MCP server `{server}`",
                        reached=f"mcp:{server}",
                        call=partial(self._call, as_approved),
                    )
            self._functions = functions
        return self._functions

    async def _call(
        self,
        approved: ApprovedTool,
        arguments: dict[str, Any],  # Any: JSON
        on_progress: OnProgress,
        on_picture: OnPicture = lambda _: None,
    ) -> Outcome:
        """Call a tool with checked arguments. `on_picture` gets the pictures of its result."""
        loop = asyncio.get_running_loop()
        began, entry = loop.time(), self.book.entry(approved.server)
        try:
            connection = self.connection(approved.server, entry)
            if before := self._closing.get(approved.server):
                await asyncio.wait(
                    {before}
                )  # the program before it may hold what the new one needs
            await connection.client()
            if why := self._why_changed(approved, connection.listing):
                return Refused(why)
            result = await connection.call(approved.tool, arguments, on_progress)
        except KnapperError as error:
            return Refused(f"{error.message} {error.fix}".strip())
        masks = CallSecrets(self._secrets, approved.function.name, _secret_names(entry))
        text = masks.words(capped("\n".join(part.text for part in result.content)))
        seconds = loop.time() - began
        if result.is_error:
            advice = await asyncio.to_thread(connection.advice_on, arguments)
            said = "\n".join(part for part in (text[:2_000], masks.words(advice)) if part)
            return Raised(Failure("ForeignError", said), "", seconds)
        for data in (result.meta or {}).get(IMAGES, ()):
            with suppress(UnusablePicture):  # the text has the words for it
                on_picture(await aside(len(data), decoded, data))
        structured = (result.meta or {}).get(VALUE)
        is_small = len(str(structured)) <= len(text) * 4 + 100_000
        if structured is None or not is_small or (text and structured in ([], {})):
            return Returned(text, "", "", seconds)
        return Returned(masks.words(structured), "", "", seconds)

    def _why_changed(self, approved: ApprovedTool, listing: ForeignListing) -> str:
        now = listing.tools.get(approved.tool)
        name, fix = (
            approved.function.name,
            f"Look at it at a terminal: knapper mcp approve {approved.server}",
        )
        if approved.tool in listing.left_out:
            why = listing.left_out[approved.tool]
            return f"`{name}` was not called: of what the server `{approved.server}` says of it now, {why}. {fix}"
        if now is None:
            return f"`{name}` is not there any more: the server `{approved.server}` does not offer it. {fix}"
        said = now.to_json()
        if {key: said.get(key) for key in approved.approved} != approved.approved:
            return f"`{name}` was not called: the server changed what it says of it since it was approved. {fix}"
        return ""

    def connection(self, server: str, entry: ServerEntry) -> ServerConnection:
        """Return the connection to an approved server.

        Raises:
            ServerUnavailable: this user has not approved its entry, or a secret of it is not set.
        """
        if not self.book.is_started(server, entry):
            fix = f"Type: knapper mcp approve {server}"
            why = self.book.doubt(server, entry) or f"{FILE} names it, and you did not."
            raise ServerUnavailable(f"The MCP server `{server}` is not started: {why}", fix=fix)
        return self.trial(
            server, entry, partial(self._is_approved, server, entry), is_approved=True
        )

    def _is_approved(self, server: str, entry: ServerEntry) -> bool:
        self.functions()  # reads what has changed
        return self._approved.get(server) == entry

    def _reach(self, server: str, entry: ServerEntry, *, is_approved: bool) -> Reach:
        """Return where the paths of an entry lead, for one start.

        Raises:
            KnapperError: the approval does not cover that, or they lead where no server may be let.
        """
        reach = self.book.reach(entry)
        if why := self.book.objection(entry, reach):
            raise ServerUnavailable(f"{why}. {NOT_LET}")
        if is_approved and not self.book.is_started(server, entry, reach):
            fix = f"Type: knapper mcp approve {server}"
            raise ServerUnavailable("its paths lead elsewhere than when you approved them. " + fix)
        return reach

    def trial(
        self,
        server: str,
        entry: ServerEntry,
        is_wanted: Callable[[], bool] = lambda: True,
        *,
        is_approved: bool = False,
    ) -> ServerConnection:
        """Return the connection to a server that this user just asked for, without checking its approval.

        It ends when `is_wanted` becomes false. One with another entry, or with other values of secrets, is replaced.

        Raises:
            ServerUnavailable: a secret of it is not set.
        """
        known, values = self._connections.get(server), dict[str, str]()
        try:
            values |= {name: self._secrets.value(name) for name in _secret_names(entry)}
        except NoSecret as error:
            self._close(server)
            message = f"The MCP server `{server}` needs a secret. {error.message}"
            raise ServerUnavailable(message, fix=error.fix) from error
        if known is None or not known.serves(entry, values):
            self._close(server)
            root, masks = (
                self.book.root.resolve(),
                CallSecrets(self._secrets, server, _secret_names(entry)),
            )
            note = partial(self.book.note, server, entry)
            home, reach = (
                root / STATE / "mcp" / server,
                partial(self._reach, server, entry, is_approved=is_approved),
            )
            place = ServerPlace(root, home, masks.words, note, is_wanted, reach)
            known = self._connections[server] = ServerConnection(server, entry, place, values)
        return known

    def _close(self, server: str) -> None:
        known, before = self._connections.pop(server, None), self._closing.get(server)
        if known is None:
            return

        async def close() -> None:
            if before is not None:
                await asyncio.wait({before})
            await known.aclose()

        self._closing[server] = asyncio.create_task(close())

    async def aclose(self) -> None:
        """Close all connections."""
        await asyncio.gather(
            *self._closing.values(),
            *(connection.aclose() for connection in self._connections.values()),
        )


def _secret_names(entry: ServerEntry) -> tuple[str, ...]:
    return (*entry.secrets, *([entry.bearer] if entry.bearer else []))


def _stamp(path: Path) -> object:
    try:
        stat = path.stat(follow_symlinks=False)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
