"""Operations over HTTP: a request is read, its operation run, and the result or the failure answered."""

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent_core.base.errors import ToolwrightError

from .operations import Operation, Sent, Stream
from .responses import error_response, failure, json_response
from .rooms import Rooms

STREAM = {"X-Accel-Buffering": "no"}


async def answered(operation: Operation, rooms: Rooms, request: Request) -> Response:
    """Return the answer to a request; every failure has the one shape."""
    if operation.streams and request.method == "HEAD":  # its answer would never end
        return error_response(405, "no-route", "A stream has no head alone.", "Send GET.")
    try:
        last = request.headers.get("last-event-id", "")
        sent = Sent(request.path_params, request.query_params, await request.body(), last)
        result = await operation.run(rooms, request.scope["identity"], sent)
    except ToolwrightError as error:
        return failure(error)
    except Exception as error:  # noqa: BLE001  (the door's edge: the traceback is kept, and the program goes on)
        return error_response(500, "internal", "Toolwright failed.", rooms.crash(error))
    if isinstance(result, Stream):
        return StreamingResponse(result.frames, media_type="text/event-stream", headers=STREAM)
    return json_response(result, operation.status)
