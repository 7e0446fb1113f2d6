"""A plain Starlette server for comparison: it streams back what it receives and stores nothing."""

import json
import socket
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


async def _echo(request: Request) -> Response:
    text = (await request.json())["text"]

    async def frames() -> AsyncIterator[bytes]:
        for word in text.split():
            yield f"data: {json.dumps({'text': word})}\n\n".encode()
        yield b"data: [DONE]\n\n"

    return StreamingResponse(frames(), media_type="text/event-stream")


async def _taken(request: Request) -> Response:
    return JSONResponse({"event": (await request.json())["text"]}, 202)


def main() -> None:
    """Serve on a free port, which is printed, until the process is ended."""
    routes = [Route("/echo", _echo, methods=["POST"]), Route("/taken", _taken, methods=["POST"])]
    sock = socket.socket(
        socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # like a server that binds by itself
    sock.bind(("127.0.0.1", 0))
    sock.listen(512)
    print(f"http://127.0.0.1:{sock.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_config=None, http="h11")).run(
        sockets=[sock]
    )


if __name__ == "__main__":
    main()
