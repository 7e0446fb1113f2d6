"""An operation of the API: a path, scopes, and typed parts by which requests are checked and described.

It knows nothing of HTTP: the server and the client in the same process run the same operations.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from .failures import misfits
from .identity import Identity, Scope
from .parts import InvalidBody, Nothing, Part, checked, read_part
from .rooms import Rooms

API: Final = "/api/v1"
_PLACES: Final = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it came in: the names in its path, its query, its body, the last event that was heard, its trace."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = b""
    last_event: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, checked."""

    rooms: Rooms
    identity: Identity
    path: Mapping[str, str]
    body: Any  # Any: the operation's own part
    query: Any  # Any: the same
    last_event: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that comes in frames of server-sent events."""

    frames: AsyncGenerator[bytes, None]


Handler: TypeAlias = Callable[[Asked], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `scopes`: a token needs one of them; `streams`: the answer is an event stream."""

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
        """Check a request, do what it asks for, and return the result.

        Raises:
            KnapperError: it is refused, or failed as one may.
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
        return await self.handler(Asked(rooms, identity, sent.path, body, query, sent.last_event, sent.trace))
