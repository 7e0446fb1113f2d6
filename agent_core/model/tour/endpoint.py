"""The tour as an ordinary endpoint: a small chat completions server on the loopback that plays the script.

It is built on the standard library, runs while the model is open, and keeps nothing: each answer follows from the
request alone.
"""

import asyncio
import json
from contextlib import suppress
from typing import Any, Final, TypeAlias

from agent_core.base.settings import ModelSettings
from sandbox.wire.foreign import LOOSE, read_json

from ..endpoint import Endpoint
from .script import SERVED, TourReply, play

Body: TypeAlias = dict[str, Any]  # Any: JSON of a request, or of an answer

_MOST_BYTES: Final = 64 << 20
_PIECE: Final = 24
_CLOSE_S: Final = 2.0


class TourServer:
    """A server that runs until it is closed."""

    def __init__(self) -> None:
        self.url = ""
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    @classmethod
    async def start(cls) -> "TourServer":
        """Start a server on a free port."""
        server = cls()
        server._server = await asyncio.start_server(server._serve, "127.0.0.1", 0, limit=1 << 20)
        server.url = f"http://127.0.0.1:{server._server.sockets[0].getsockname()[1]}/v1"
        return server

    async def aclose(self) -> None:
        """Stop accepting connections, and close the open ones."""
        if self._server is not None:
            self._server.close()
        serving = [task for task in self._open.values() if task is not None]
        for writer in list(self._open):
            writer.close()
        # Each ends by the end of its connection: asyncio prints a traceback for one that is cancelled.
        if serving:
            await asyncio.wait(serving, timeout=_CLOSE_S)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[writer] = asyncio.current_task()
        try:
            with suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError):
                while await _answer(reader, writer):
                    await writer.drain()
        finally:
            self._open.pop(writer, None)
            writer.close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Answer one request; return whether another may follow on this connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
    if length > _MOST_BYTES:
        return False
    body = await reader.readexactly(length)
    if head.startswith("get /v1/models "):
        writer.write(_whole(200, {"object": "list", "data": [{"id": SERVED, "object": "model"}]}))
    elif head.startswith("post /v1/chat/completions "):
        request: Body = read_json(body, LOOSE)
        writer.write(_completion(request, play(request["messages"], _names(request))))
    else:
        writer.write(_whole(404, {"error": {"message": "The tour has no such address.", "code": None}}))
    return True


def _names(request: Body) -> frozenset[str]:
    return frozenset(str(tool["function"]["name"]) for tool in request.get("tools") or ())


def _completion(request: Body, line: TourReply) -> bytes:
    finish = "tool_calls" if line.call else "stop"
    n = len(request["messages"])
    head: Body = {"id": f"tour-{n}", "created": 0, "model": SERVED}
    calls = _calls(line, n)
    if not request.get("stream"):
        message: Body = {"role": "assistant", "content": line.text or None}
        message |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return _whole(200, {**head, "object": "chat.completion", "choices": [choice]})
    deltas: list[Body] = [{"content": line.text[at : at + _PIECE]} for at in range(0, len(line.text), _PIECE)]
    deltas += [{"tool_calls": [{"index": 0, **call}]} for call in calls]
    choices: list[Body] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    chunks: list[Body] = [{**head, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    events = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    return _response(200, "text/event-stream", events)


def _calls(line: TourReply, n: int) -> list[Body]:
    if not line.call:
        return []
    function = {"name": line.call, "arguments": json.dumps(line.arguments, ensure_ascii=False)}
    return [{"id": f"tour_{n}", "type": "function", "function": function}]


def _whole(status: int, body: Body) -> bytes:
    return _response(status, "application/json", json.dumps(body).encode())


def _response(status: int, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("latin-1") + body


class TourEndpoint(Endpoint):
    """A client of the tour's own server."""

    def __init__(self, server: TourServer, settings: ModelSettings) -> None:
        super().__init__(server.url, SERVED, settings=settings)
        self._server = server

    @classmethod
    async def start(cls, settings: ModelSettings) -> "TourEndpoint":
        """Start the server on a free loopback port, and return its client."""
        return cls(await TourServer.start(), settings)

    async def aclose(self) -> None:
        """Close the connections and the server."""
        await super().aclose()
        await self._server.aclose()
