"""A door of the server: what an extension answers at paths of its own, and which scopes a token needs there.

The hook `DOORS` has a function for each, `OpenHttpDoor`, which the server calls when it opens. Every request has passed
the server's guard: it has the identity of a token, and a body of a bounded size.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from agent_core.api.agent_host import Rooms
from agent_core.api.identity import ApiRefusal
from agent_core.base.errors import KnapperError
from agent_core.base.extensions import DOORS, offers
from agent_core.base.records import dataclass
from agent_core.operations.operation import Scope


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a door answers: a value that becomes JSON."""

    value: object
    status: int = 200


HttpStream: TypeAlias = AsyncGenerator[bytes, None]
"""The pieces of a stream of events, instead of an answer."""


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A path of a door, and who answers there. A token needs one of the scopes; with none, any token may come.

    `answer` gets the request as Starlette has it, with the token's identity at `scope["identity"]`. What it raises of
    ours becomes the door's refusal.
    """

    path: str
    answer: Callable[[Any], Awaitable[HttpAnswer | HttpStream]]  # Any: of Starlette, an extra
    methods: Sequence[str] = ("GET",)
    scopes: Sequence[Scope] = ()


@dataclass(frozen=True, slots=True)
class HttpApp:
    """A path of a door where an ASGI application answers all requests; it asks for scopes by what is requested."""

    path: str
    app: Callable[..., Awaitable[None]]


class HttpDoor:
    """A door without a path, which others are made of."""

    def routes(self) -> Sequence[HttpRoute | HttpApp]:
        """Return what it answers."""
        return ()

    def refusal(self, error: KnapperError) -> HttpAnswer:
        """Return its answer to a request that is refused, in the form that its clients read."""
        refused = ApiRefusal.of(error)
        return HttpAnswer(refused.document, refused.status)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Be at work while the block runs."""
        yield

    def end_streams(self) -> None:
        """End the streams of all clients: the server closes."""


OpenHttpDoor: TypeAlias = Callable[[Rooms], HttpDoor]


def open_http_doors(rooms: Rooms) -> list[HttpDoor]:
    """Return the doors that extensions add to a server."""
    doors: Mapping[str, OpenHttpDoor] = offers(DOORS)
    return [open_door(rooms) for open_door in doors.values()]
