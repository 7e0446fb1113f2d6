"""The door for programs that speak the responses API: one reply as an object or as a stream of its parts."""

import json
import secrets
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent_core.base import events
from agent_core.base.errors import ToolwrightError, UsageError
from sandbox.wire.foreign import MESSAGE, Malformed, read_json

from .chat_completions import ChatMessage, Open, client_error, ended_badly, misfit, model_agent
from .chat_threads import ChatThreads, ClientMessage, Thread
from .failures import status_of
from .identity import Identity
from .responses import json_response
from .rooms import Rooms

Json = dict[str, Any]  # Any: JSON
_MOST: Final = 1_000_000


class ResponsesRequest(Open):
    """A request for a response. `input` is a text, or the messages of a conversation."""

    model: Annotated[str, Field(min_length=1, max_length=200)]
    input: Annotated[str, Field(min_length=1, max_length=_MOST)] | list[ChatMessage]
    instructions: str | None = None
    previous_response_id: Annotated[str | None, Field(max_length=200)] = None
    stream: bool = False
    tools: list[Json] | None = None
    background: Literal[False] | None = None


class ResponsesDoor:
    """Answers requests for responses by turns of agents."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._threads = ChatThreads(rooms)

    async def create(self, request: Request) -> Response:
        """Let an agent respond."""
        try:
            asked = ResponsesRequest.model_validate(read_json(await request.body(), MESSAGE))
        except (Malformed, ValidationError) as error:
            return client_error(400, misfit(error), "invalid_request_error")
        identity: Identity = request.scope["identity"]
        try:
            identity.needs("chat")
            agent, conversation = await model_agent(self._rooms, identity, asked.model, asked.tools)
            thread = await self._thread(asked, agent, conversation)
        except ToolwrightError as error:
            return client_error(status_of(error), f"{error.message} {error.fix}".strip(), error.code)
        response = _Response(self._threads, thread, agent, asked)
        if asked.stream:
            return StreamingResponse(response.stream(), media_type="text/event-stream")
        return await response.whole()

    async def _thread(self, asked: ResponsesRequest, agent: str, conversation: str) -> Thread:
        given = [ChatMessage(role="user", content=asked.input)] if isinstance(asked.input, str) else asked.input
        messages = [ClientMessage(message.role, message.text) for message in given]
        if asked.instructions:
            messages.insert(0, ClientMessage("system", asked.instructions))
        if asked.previous_response_id is None:
            return await self._threads.take_up(agent, conversation, messages)
        text = "\n\n".join(message.text for message in messages if message.role == "user")
        if not text:
            raise UsageError("There is no message of the user in `input`.", fix="Send the new message as `input`.")
        return Thread(await self._threads.of_response(asked.previous_response_id, agent), text)


class _Response:
    """One response on its way to one client."""

    def __init__(self, threads: ChatThreads, thread: Thread, agent: str, asked: ResponsesRequest) -> None:
        self._threads, self._thread, self._agent, self._asked = threads, thread, agent, asked
        self._id = f"resp_{secrets.token_hex(16)}"
        self._item = f"msg_{secrets.token_hex(16)}"
        self._created = int(time.time())
        self._sent = 0

    async def whole(self) -> Response:
        """Return the response in one piece."""
        ended: events.TurnEnded | None = None
        async for event in self._threads.turn(self._thread):
            ended = event if isinstance(event, events.TurnEnded) else ended
        if ended is None or ended.reason != "replied":
            return client_error(502, ended_badly(ended), "turn_failed")
        await self._threads.note_response(self._thread, self._agent, self._id)
        return json_response(self._object("completed", ended))

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the parts of the response as they come."""
        text = ""
        place = {"item_id": self._item, "output_index": 0, "content_index": 0}
        yield self._event("response.created", response=self._object("in_progress"))
        yield self._event("response.output_item.added", output_index=0, item=self._message("", "in_progress"))
        yield self._event("response.content_part.added", **place, part=_part(""))
        async for event in self._threads.turn(self._thread):
            if event is None:
                yield b": keep-alive\n\n"
            elif isinstance(event, events.Text):
                text += event.text
                yield self._event("response.output_text.delta", **place, delta=event.text, logprobs=[])
            elif isinstance(event, events.TurnEnded) and event.reason != "replied":
                failed = self._object("failed") | {"error": {"code": "server_error", "message": ended_badly(event)}}
                yield self._event("response.failed", response=failed)
            elif isinstance(event, events.TurnEnded):
                if event.reply.strip() not in text:
                    text += event.reply
                    yield self._event("response.output_text.delta", **place, delta=event.reply, logprobs=[])
                await self._threads.note_response(self._thread, self._agent, self._id)
                yield self._event("response.output_text.done", **place, text=text, logprobs=[])
                yield self._event("response.content_part.done", **place, part=_part(text))
                item = self._message(text, "completed")
                yield self._event("response.output_item.done", output_index=0, item=item)
                yield self._event("response.completed", response=self._object("completed", event, text))

    def _object(self, status: str, ended: events.TurnEnded | None = None, text: str = "") -> Json:
        said = text or (ended.reply if ended else "")
        used = ended.usage if ended else {}
        read, written = used.get("prompt_tokens", 0), used.get("completion_tokens", 0)
        usage = {
            "input_tokens": read,
            "output_tokens": written,
            "total_tokens": read + written,
            "input_tokens_details": {"cached_tokens": used.get("cached_tokens", 0)},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": self._asked.instructions,
            "model": self._asked.model,
            "output": [self._message(said, status)] if ended else [],
            "parallel_tool_calls": True,
            "previous_response_id": self._asked.previous_response_id,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage if ended else None,
            "metadata": {},
        }

    def _message(self, text: str, status: str) -> Json:
        parts = [_part(text)] if text else []
        return {"type": "message", "id": self._item, "status": status, "role": "assistant", "content": parts}

    def _event(self, kind: str, **fields: Any) -> bytes:  # Any: JSON
        data = {"type": kind, "sequence_number": self._sent, **fields}
        self._sent += 1
        return f"event: {kind}\ndata: {json.dumps(data, default=str)}\n\n".encode()


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
