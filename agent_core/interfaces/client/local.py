"""A workspace in this process behind the same operations as a server's, with its agents at work."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote

from agent_core.base.errors import KnapperError
from agent_core.base.json_form import to_json
from agent_core.workspace.workspace import Workspace
from sandbox.wire.foreign import LOOSE, read_json

from ..server.catalog import OPERATIONS
from ..server.failures import ApiRefusal
from ..server.identity import SCOPES, Identity
from ..server.operations import Operation, Sent, Stream
from ..server.rooms import Rooms, opened_rooms
from .wire import Query

_GRACE_S: Final = 0.0  # whoever closes the client has heard what they wanted to
_OWNER: Final = Identity("in-process", frozenset(SCOPES))
_PATHS: Final = [(re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", row.path)), row) for row in OPERATIONS]


@asynccontextmanager
async def local_wire(workspace: Workspace) -> AsyncIterator["LocalWire"]:
    """Give the way to the operations of a workspace that is open in this process."""
    async with opened_rooms(workspace, _GRACE_S) as rooms:
        yield LocalWire(rooms)


class LocalWire:
    """Requests to the operations of a workspace that is open in this process."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    async def ask(self, method: str, path: str, query: Query, body: object) -> Any:  # Any: JSON
        """Return the answer to a request."""
        content = b"" if body is None else json.dumps(body).encode("utf-8", "replace")
        result = await self._run(method, path, query, content)
        return read_json(json.dumps(to_json(result), default=str), LOOSE)

    async def stream(self, path: str, after: int) -> AsyncGenerator[bytes, None]:
        """Yield the frames of an event stream."""
        result = await self._run("GET", path, {"after": after}, b"")
        assert isinstance(result, Stream)
        async with aclosing(result.frames) as frames:
            async for frame in frames:
                yield frame

    async def aclose(self) -> None:
        """Do nothing: whoever opened the workspace closes it."""

    async def _run(self, method: str, path: str, query: Query, body: bytes) -> object:
        operation, names = _operation(method, path)
        sent = Sent(names, {key: str(value) for key, value in query.items()}, body)
        try:
            return await operation.run(self._rooms, _OWNER, sent)
        except KnapperError as error:
            raise ApiRefusal.of(error) from error


def _operation(method: str, path: str) -> tuple[Operation, dict[str, str]]:
    for pattern, operation in _PATHS:
        if operation.method == method and (match := pattern.fullmatch(path)):
            return operation, {name: unquote(value) for name, value in match.groupdict().items()}
    raise ApiRefusal(404, "no-route", "There is nothing at this address.")
