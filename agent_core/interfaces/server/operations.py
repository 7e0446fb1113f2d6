"""API operations: a path, scopes, and typed parts that validate and describe requests.

They do not depend on HTTP: the server and the in-process client run the same operations.
"""

import inspect
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from agent_core.functions.service import FunctionService
from agent_core.workspace.workspace import Workspace

from .agent_host import Rooms
from .failures import misfits
from .identity import Identity, Scope
from .parts import InvalidBody, Nothing, Part, checked, read_part

API: Final = "/api/v1"
_PLACES: Final = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Sent:
    """A raw request: its path parameters, query, body, last received event, and trace."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = b""
    last_event: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request: its sender, and the rooms that it uses."""

    rooms: Rooms
    identity: Identity
    path: Mapping[str, str]
    last_event: str = ""
    trace: str = ""

    @property
    def workspace(self) -> Workspace:
        """The open workspace."""
        return self.rooms.workspace

    @property
    def functions(self) -> FunctionService:
        """The functions of the workspace."""
        return self.rooms.workspace.functions


@dataclass(frozen=True, slots=True)
class Stream:
    """A response of server-sent events, in frames."""

    frames: AsyncGenerator[bytes, None]


Handler: TypeAlias = Callable[..., Awaitable[object]]
OPERATIONS_BY_MODULE: Final = defaultdict[str, list["Operation"]](list)
"""The operations of each module, in order."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A method on a path. A token needs one of the `scopes`; if it `streams`, the response is an event stream."""

    method: str
    path: str
    scopes: tuple[Scope, ...]
    summary: str
    handler: Handler
    body: type[Part] = Nothing
    query: type[Part] = Nothing
    status: int = 200
    streams: bool = False

    @property
    def names(self) -> list[str]:
        """The parameters in the path."""
        return _PLACES.findall(self.path)

    async def run(self, rooms: Rooms, identity: Identity, sent: Sent) -> object:
        """Check a request, run its handler, and return the result.

        Raises:
            KnapperError: the request was refused or failed with an expected error.
        """
        identity.needs(*self.scopes)
        where = "query"
        try:
            query = checked(self.query, dict(sent.query))
            where = "body"
            is_empty = self.body is Nothing and not sent.body.strip()
            body = await read_part(self.body, b"{}" if is_empty else sent.body or b"{}")
        except InvalidBody as error:
            raise misfits([*error.listed(where)]) from error
        path = dict(sent.path)
        if "agent" in path:
            path["agent"] = await rooms.known(path["agent"], identity)
        asked = Asked(rooms, identity, path, sent.last_event, sent.trace)
        given: dict[str, object] = dict(path)
        for name, param in _parameters(self.handler).items():
            if param.annotation in (self.body, self.query):
                given[name] = body if param.annotation is self.body else query
            for read in getattr(param.annotation, "__metadata__", ()):
                given[name] = await read(asked, path[name])
        return await self.handler(asked, **given)


@cache
def _parameters(handler: Handler) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(handler).parameters


def operation(
    method: str, path: str, scopes: tuple[Scope, ...], summary: str, *, status: int = 200, streams: bool = False
) -> Callable[[Handler], Handler]:
    """Register a handler as the operation of a method and path; its docstring becomes the description.

    Its parameters are the path parameters and a part: the query for `GET` and `DELETE`, otherwise the body. An `agent`
    must exist for the token. A path parameter annotated with a function gets the result of that function.
    """

    def decorate(handler: Handler) -> Handler:
        hints = [param.annotation for param in _parameters(handler).values()]
        part = next((hint for hint in hints if isinstance(hint, type) and issubclass(hint, Part)), Nothing)
        body, query = (Nothing, part) if method in ("GET", "DELETE") else (part, Nothing)
        new_operation = Operation(method, f"{API}{path}", scopes, summary, handler, body, query, status, streams)
        OPERATIONS_BY_MODULE[handler.__module__].append(new_operation)
        return handler

    return decorate
