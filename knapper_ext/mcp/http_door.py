"""`/mcp` of the server: streamable HTTP, with the scopes of the token. It is opened by its first request, because the
package `mcp` takes a second to import.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_core.api.agent_host import Rooms
from agent_core.api.http_door import HttpApp, HttpDoor
from agent_core.api.identity import ApiRefusal
from agent_core.base.own_installation import add_extra

MAX_SESSIONS: Final = 500
_IDLE_S: Final = 30 * 60.0


class McpHttpDoor(HttpDoor):
    """The application at `/mcp`."""

    def __init__(self, rooms: Rooms) -> None:
        self._workspace = rooms.workspace
        self._app: asyncio.Future[ASGIApp] | None = None
        self._work: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    def routes(self) -> Sequence[HttpApp]:
        """Return its one path. Which scopes are needed depends on the tool that a client calls."""
        return (HttpApp("/mcp", self._answer),)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            ApiRefusal: the package `mcp` is missing.
        """
        if find_spec("mcp") is None:
            fix = f"Type: {add_extra('mcp')}"
            message = "This server has no MCP: the package mcp is missing."
            raise ApiRefusal(404, "no-mcp", message, fix)
        scope["open_stream"]()  # the response is a stream
        if self._app is None:
            self._app = asyncio.get_running_loop().create_future()
            self._work = asyncio.create_task(self._serve(self._app))
        app = await asyncio.shield(self._app)
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser  # noqa: PLC0415 - see above
        from mcp.server.auth.provider import AccessToken  # noqa: PLC0415 - see above

        identity = scope["identity"]
        owner = AccessToken(token="", client_id=identity.name, scopes=sorted(identity.scopes))
        await app(
            {**scope, "user": AuthenticatedUser(owner)}, receive, send
        )  # nobody else can use the session

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Close the MCP application at the end of the block, if a request opened it."""
        try:
            yield
        finally:
            self.end_streams()
            if self._work is not None:
                await self._work

    def end_streams(self) -> None:
        """End the streams of all clients."""
        self._stopping.set()

    async def _serve(self, ready: asyncio.Future[ASGIApp]) -> None:
        await asyncio.to_thread(import_module, f"{__package__}.door")
        from .door import McpDoor, SessionManager  # noqa: PLC0415 - see above

        gc.freeze()  # loaded modules stay: scanning them in every collection would block the event loop

        door = McpDoor(self._workspace, lambda request: request.scope["identity"])
        manager = SessionManager(
            door.server, max_sessions=MAX_SESSIONS, session_idle_timeout=_IDLE_S
        )
        async with door.opened(), manager.run():
            ready.set_result(manager.asgi_app)
            await self._stopping.wait()
            door.end_streams()
