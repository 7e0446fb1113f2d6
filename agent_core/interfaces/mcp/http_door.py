"""`/mcp` of the server: streamable HTTP, for whoever passed the guard, with the scopes of their tokens.

It is opened by the first request to it, since the package `mcp` takes a second to import.
"""

import asyncio
import gc
import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_core.base.own_installation import add_extra
from agent_core.workspace.workspace import Workspace

from ..server.identity import Identity
from ..server.responses import error_response

_MOST_SESSIONS: Final = 500
_IDLE_S: Final = 30 * 60.0


class HttpDoor:
    """The application at `/mcp`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._app: asyncio.Future[ASGIApp] | None = None
        self._work: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if importlib.util.find_spec("mcp") is None:
            fix = f"Type: {add_extra('mcp')}"
            refused = error_response(404, "no-mcp", "This server has no MCP: the package mcp is missing.", fix)
            await refused(scope, receive, send)
            return
        scope["open_stream"]()  # what it answers with
        if self._app is None:
            self._app = asyncio.get_running_loop().create_future()
            self._work = asyncio.create_task(self._serve(self._app))
        app = await asyncio.shield(self._app)
        await app({**scope, "user": _user(scope["identity"])}, receive, send)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Close at the end of the block what was opened in it."""
        try:
            yield
        finally:
            self.end_streams()
            if self._work is not None:
                await self._work

    def end_streams(self) -> None:
        """Let all clients go."""
        self._stopping.set()

    async def _serve(self, ready: asyncio.Future[ASGIApp]) -> None:
        await asyncio.to_thread(import_module, "agent_core.interfaces.mcp.server")
        from .server import McpDoor, SessionManager  # noqa: PLC0415 - see above

        gc.freeze()  # what is loaded stays: looking through it again and again would hold everybody up

        door = McpDoor(self._workspace, lambda request: request.scope["identity"])
        manager = SessionManager(door.server, max_sessions=_MOST_SESSIONS, session_idle_timeout=_IDLE_S)
        async with door.opened(), manager.run():
            ready.set_result(manager.asgi_app)
            await self._stopping.wait()
            door.end_streams()


def _user(identity: Identity) -> Any:  # Any: a class of the package
    """Return the user that owns a session: the SDK lets nobody else use it."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser  # noqa: PLC0415 - see above
    from mcp.server.auth.provider import AccessToken  # noqa: PLC0415 - see above

    return AuthenticatedUser(AccessToken(token="", client_id=identity.name, scopes=sorted(identity.scopes)))
