"""HTTP responses: runs the operation of a request and returns its result or error as JSON."""

import json
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_core.api.agent_host import Rooms
from agent_core.api.http_door import HttpAnswer, HttpApp, HttpDoor, HttpRoute
from agent_core.api.identity import SCOPES, ApiRefusal
from agent_core.api.operations import ApiOperation, Asked
from agent_core.base.errors import KnapperError
from agent_core.base.offload import LARGE, aside
from agent_core.base.records import to_json

_MANY: Final = 2_000
_LONG: Final = 1_000  # characters that take as long as a part
_TOO_MANY: Final = 429
_RETRY_S: Final = "1"  # clients try again after this many seconds, and wait longer each time
_TRACE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def json_response(value: object, status: int = 200) -> Response:
    """Return a response with the published JSON of a result."""
    text = json.dumps(to_json(value), ensure_ascii=False, default=str)
    headers = {"Retry-After": _RETRY_S} if status == _TOO_MANY else None
    return Response(text.encode("utf-8", "replace"), status, headers, media_type="application/json")


def stream_response(frames: AsyncGenerator[bytes, None]) -> Response:
    """Return a response of server-sent events, which proxies pass on at once."""
    return StreamingResponse(
        frames, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


def error_response(status: int, code: str, message: str, fix: str = "") -> Response:
    """Return an error response."""
    return failure(ApiRefusal(status, code, message, fix))


def failure(error: KnapperError) -> Response:
    """Return the response for an expected error."""
    refused = ApiRefusal.of(error)
    return json_response(refused.document, refused.status)


async def answered(operation: ApiOperation, rooms: Rooms, request: Request) -> Response:
    """Run an operation and return the response. All errors have the same format."""
    if operation.streams and request.method == "HEAD":  # the response would never end
        return error_response(405, "no-route", "A stream has no head alone.", "Send GET.")
    try:
        last = request.headers.get("last-event-id", "")
        trace = request.headers.get("traceparent", "")
        trace = trace if _TRACE.fullmatch(trace) else ""
        if operation.streams:
            request.scope["open_stream"]()
        asked = Asked(rooms, request.scope["identity"], last, trace, request.scope["hold"])
        result = await operation.run(
            asked, request.path_params, request.query_params, await request.body()
        )
    except KnapperError as error:
        return failure(error)
    except Exception as error:  # noqa: BLE001  (top of the interface: keep the traceback and continue)
        return error_response(500, "internal", "Knapper failed.", rooms.crash(error))
    if isinstance(result, AsyncGenerator):
        return stream_response(result)
    return await aside(
        LARGE + 1 if _has_many_parts(result) else 0, json_response, result, operation.status
    )


class DoorEntry:
    """Answers the requests at one path of a door, if their token has a scope that the path needs.

    What a browser may load before it is logged in is never a door's, and a token that is limited to conversations has
    nothing to do there.
    """

    def __init__(self, http_door: HttpDoor, http_route: HttpRoute | HttpApp, rooms: Rooms) -> None:
        self._door = http_door
        self._route = http_route
        self._rooms = rooms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        answer = await self._answer(Request(scope, receive))
        try:
            await answer(scope, receive, send)
        except KnapperError as error:  # of an application that has not begun to answer
            await _written(self._door.refusal(error))(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        try:
            return await self._choose(request)
        except KnapperError as error:
            return _written(self._door.refusal(error))
        except Exception as error:  # noqa: BLE001  (top of the interface: keep the traceback and continue)
            return error_response(500, "internal", "Knapper failed.", self._rooms.crash(error))

    async def _choose(self, request: Request) -> ASGIApp:
        identity = request.scope["identity"]
        if identity is None:
            raise ApiRefusal(401, "no-token", "This needs a token.")
        if isinstance(self._route, HttpApp):
            identity.needs(*SCOPES)
            return self._route.app
        identity.needs(*(self._route.scopes or SCOPES))
        result = await self._route.answer(request)
        return _written(result) if isinstance(result, HttpAnswer) else stream_response(result)


def _written(answer: HttpAnswer) -> Response:
    return json_response(answer.value, answer.status)


def _has_many_parts(result: object) -> bool:
    """Return whether making the JSON of a result would hold up the event loop."""
    waiting, count = [result], 0
    while waiting and count <= _MANY:
        match waiting.pop():
            case Mapping() as members:
                inner = [*islice(members.values(), _MANY)]
            case list() | tuple() as items:
                inner = [*items[:_MANY]]
            case record if is_dataclass(record):
                inner = [getattr(record, one.name) for one in fields(record)]
            case str() as text:
                count += len(text) // _LONG
                continue
            case _:
                continue
        count += len(inner)
        waiting += inner
    return count > _MANY
