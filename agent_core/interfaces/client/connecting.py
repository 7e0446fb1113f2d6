"""`connect`: a client of a workspace, by its folder or by the address of its server."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from agent_core.workspace.workspace import Workspace

from .client import Client
from .local import local_wire
from .wire import HttpWire


async def connect(
    place: str | Path | Workspace,
    *,
    token: str = "",
    transport: httpx2.AsyncBaseTransport | None = None,
    **options: Any,  # Any: what `Workspace.open` takes
) -> Client:
    """Return a client of the workspace at a place: its folder, its server's address (`https://…`), or an open one.

    With a folder, the workspace runs in this process, and `options` are those of `Workspace.open`; with an address,
    `token` says who you are, and `transport` is another way to the server than a socket. Close the client with
    `aclose`, or use it in `async with`.

    Raises:
        WorkspaceError: the folder cannot be used.
    """
    if isinstance(place, str) and urlsplit(place).scheme in ("http", "https"):
        return Client(HttpWire(place, token, transport))
    async with AsyncExitStack() as stack:
        if not isinstance(place, Workspace):
            place = await stack.enter_async_context(Workspace.open(place, **options))
        wire = await stack.enter_async_context(local_wire(place))
        return Client(wire, stack.pop_all())
