"""HTTP responses: runs the operation of a request and returns its result or error as JSON."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Coroutine, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent_core.api.agent_host import Rooms
from agent_core.api.identity import ApiRefusal
from agent_core.api.operations import ApiOperation, Asked
from agent_core.base.errors import KnapperError
from agent_core.base.offload import LARGE, aside
from agent_core.base.records import to_json

T = TypeVar("T")
_MANY: Final = 2_000
_LONG: Final = 1_000  # characters that take as long as a part
_TOO_MANY: Final = 429
_RETRY_S: Final = "1"  # clients try again after this many seconds, and wait longer each time
_LEFT: Final = 499  # as in the logs of other servers
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


async def wait_with_client(request: Request, work: Coroutine[None, None, T]) -> T:
    """Return the result of what a request waits for; its body was read before. The work ends when the client leaves.

    Raises:
        ApiRefusal: the client has left, or may no longer listen.
    """

    async def leaves() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(leaves())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ApiRefusal(_LEFT, "left", "The client has left, or its token is no longer valid.")
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


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
