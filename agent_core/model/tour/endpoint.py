"""The tour as an ordinary endpoint: the script answers the package's client in this process, by chat completions.

It keeps no state: each answer follows from the request alone.
"""

import json
import re
from typing import Any, Final, TypeAlias

import httpx2

from agent_core.base.settings import ModelSettings
from sandbox.wire.strict_json import LOOSE, read_json

from ..connection import Endpoint
from .script import SERVED, play

Body: TypeAlias = dict[str, Any]  # Any: JSON of a request, or of an answer

_URL: Final = "http://127.0.0.1/v1"  # nothing is sent there
_PIECE: Final = 24
_COMES: Final = {
    "system": re.compile(r"^(\w+)\(.*\)(?: ->|:|$)", re.MULTILINE),
    "tool": re.compile(r"^`(\w+)` .* can be called now\."),
    "user": re.compile(r"`(\w+)` appeared:"),
}
"""The patterns that announce a function: in the index, in an answer, and in a notice."""
_GOES: Final = re.compile(r"^`(\w+)` was deleted from|`(\w+)` is gone")


class _TourTransport(httpx2.AsyncBaseTransport):
    """The replacement for the network."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request."""
        if request.method == "GET":
            return httpx2.Response(200, json={"object": "list", "data": [{"id": SERVED, "object": "model"}]})
        body: Body = read_json(await request.aread(), LOOSE)
        functions = {str(tool["function"]["name"]) for tool in body.get("tools") or ()}
        for message in body["messages"] if len(functions) > 1 else ():  # its texts announce others
            text = str(message.get("content") or "")
            functions.update(_COMES[message["role"]].findall(text) if message["role"] in _COMES else ())
            functions.difference_update(name for pair in _GOES.findall(text) for name in pair)
        reply, n = play(body["messages"], frozenset(functions)), len(body["messages"])
        arguments = json.dumps(reply.arguments, ensure_ascii=False)
        call = {"id": f"tour_{n}", "type": "function", "function": {"name": reply.call, "arguments": arguments}}
        deltas: list[Body] = [{"content": reply.text[at : at + _PIECE]} for at in range(0, len(reply.text), _PIECE)]
        deltas += [{"tool_calls": [{"index": 0, **call}]}] if reply.call else []
        choices: list[Body] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if reply.call else "stop"})
        head: Body = {"id": f"tour-{n}", "created": 0, "model": SERVED, "object": "chat.completion.chunk"}
        chunks = (json.dumps({**head, "choices": [choice]}).encode() for choice in choices)
        events = b"".join(b"data: " + chunk + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
        return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, content=events)


def tour_endpoint(settings: ModelSettings) -> Endpoint:
    """Return a client of the tour."""
    return Endpoint(_URL, SERVED, settings=settings, transport=_TourTransport())
