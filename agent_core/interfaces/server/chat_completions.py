"""The door for programs that speak chat completions: an agent is the model, and its functions run here."""

import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent_core.base import events
from agent_core.base.errors import ToolwrightError, UsageError
from agent_core.base.json_form import to_json
from sandbox.wire.foreign import MESSAGE, Malformed, read_json

from .chat_threads import ChatThreads, ClientMessage, Thread
from .failures import NotThere, status_of
from .identity import CONVERSATION, Identity
from .responses import json_response
from .rooms import Rooms

Json = dict[str, Any]  # Any: JSON
_SHOWN: Final = (events.CallStarted, events.CallAnswered, events.GrantAsked, events.GrantAnswered, events.Warned)


class Open(BaseModel):
    """A part of a client's request; what is not known here is left alone."""

    model_config = ConfigDict(extra="allow")  # sampling and the like are the server's own


class TextPart(Open):
    """A part of a message; parts that are no text cannot be read."""

    type: Literal["text", "input_text", "output_text"]
    text: str


class ChatMessage(Open):
    """A message as clients send it."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """Its text."""
        parts = self.content or ""
        return parts if isinstance(parts, str) else "".join(part.text for part in parts)


class StreamOptions(Open):
    """What a stream holds besides."""

    include_usage: bool = False


class ChatRequest(Open):
    """A request for a reply. `model` is an agent, or `AGENT@CONVERSATION`."""

    model: Annotated[str, Field(min_length=1, max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=10_000)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    tools: list[Json] | None = None
    n: int | None = None


class ChatDoor:
    """Answers chat completions by turns of agents."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._threads = ChatThreads(rooms)

    async def models(self, request: Request) -> Response:
        """List the agents that the token may talk to."""
        identity: Identity = request.scope["identity"]
        names = await self._rooms.workspace.agent_names()
        shown = [name for name in names if identity.sees(name) and CONVERSATION not in name]
        rows = [{"id": name, "object": "model", "created": 0, "owned_by": "toolwright"} for name in shown]
        return json_response({"object": "list", "data": rows})

    async def complete(self, request: Request) -> Response:
        """Let an agent reply to the last message of a conversation."""
        try:
            asked = ChatRequest.model_validate(read_json(await request.body(), MESSAGE))
        except (Malformed, ValidationError) as error:
            return client_error(400, misfit(error), "invalid_request_error")
        try:
            return await self._reply(asked, request.scope["identity"])
        except ToolwrightError as error:
            return client_error(status_of(error), f"{error.message} {error.fix}".strip(), error.code)

    async def _reply(self, asked: ChatRequest, identity: Identity) -> Response:
        identity.needs("chat")
        agent, conversation = await model_agent(self._rooms, identity, asked.model, asked.tools)
        if (asked.n or 1) != 1:
            return client_error(400, "One reply at a time: leave `n` out.", "unsupported_parameter")
        messages = [ClientMessage(message.role, message.text) for message in asked.messages]
        thread = await self._threads.take_up(agent, conversation, messages)
        turn = _Completion(self._rooms, self._threads, thread, asked, messages)
        if asked.stream:
            return StreamingResponse(turn.stream(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        return await turn.whole()


async def model_agent(rooms: Rooms, identity: Identity, model: str, tools: list[Json] | None) -> tuple[str, str]:
    """Return the agent and the conversation that a client's `model` names.

    Raises:
        NotThere: there is no such agent, as far as the token may see.
        UsageError: the client wants functions of its own.
    """
    agent, _, conversation = model.partition("@")
    if not identity.sees(agent) or agent not in await rooms.workspace.agent_names():
        raise NotThere(f"There is no agent `{agent}`.", fix="GET /v1/models lists them.")
    if tools:
        what = "Functions of clients are not passed on; the agent has its own, and makes what it lacks."
        raise UsageError(what, fix="Leave `tools` out.")
    return agent, conversation


class _Completion:
    """One reply on its way to one client."""

    def __init__(
        self, rooms: Rooms, threads: ChatThreads, thread: Thread, asked: ChatRequest, messages: list[ClientMessage]
    ) -> None:
        self._rooms, self._threads, self._thread = rooms, threads, thread
        self._asked, self._messages = asked, messages
        self._id = f"chatcmpl-{thread.name}-{time.time_ns():x}"
        self._created = int(time.time())

    async def whole(self) -> Response:
        """Return the reply in one piece."""
        happened: list[Json] = []
        ended: events.TurnEnded | None = None
        async for event in self._turn():
            if isinstance(event, events.TurnEnded):
                ended = event
            elif isinstance(event, _SHOWN):
                happened.append(to_json(event))
        if ended is None or ended.reason != "replied":
            return client_error(502, ended_badly(ended, happened), "turn_failed")
        message = {"role": "assistant", "content": ended.reply}
        answer = self._frame("chat.completion", {"message": message, "finish_reason": "stop"}, happened)
        return json_response({**answer, "usage": _usage(ended)})

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the reply in pieces, and what happens here in a field of its own."""
        sent = ""
        yield self._chunk({"role": "assistant", "content": ""})
        async for event in self._turn():
            match event:
                case None:
                    yield b": keep-alive\n\n"
                case events.Text():
                    sent += event.text
                    yield self._chunk({"content": event.text})
                case events.TurnEnded():
                    for frame in self._last(event, sent):
                        yield frame
                case _ if isinstance(event, _SHOWN):
                    yield self._chunk({}, happened=[to_json(event)])
                case _:
                    pass
        yield b"data: [DONE]\n\n"

    def _last(self, ended: events.TurnEnded, sent: str) -> Iterator[bytes]:
        if ended.reason != "replied":
            yield _data(_error_of(ended_badly(ended), "turn_failed"))
            return
        if ended.reply.strip() not in sent:
            yield self._chunk({"content": ended.reply})
        yield self._chunk({}, finish="stop")
        if self._asked.stream_options and self._asked.stream_options.include_usage:
            yield _data({**self._frame("chat.completion.chunk", None, []), "usage": _usage(ended)})

    async def _turn(self) -> AsyncIterator[events.Event | None]:
        async for event in self._threads.turn(self._thread):
            if isinstance(event, events.TurnEnded):
                agent = self._asked.model.partition("@")[0]
                await self._threads.remember(self._thread, agent, self._messages, event.reply)
            yield event

    def _chunk(self, delta: Json, *, finish: str | None = None, happened: list[Json] | None = None) -> bytes:
        choice = {"delta": delta, "finish_reason": finish}
        return _data(self._frame("chat.completion.chunk", choice, happened or []))

    def _frame(self, kind: str, choice: Json | None, happened: list[Json]) -> Json:
        frame: Json = {"id": self._id, "object": kind, "created": self._created, "model": self._asked.model}
        frame["choices"] = [{"index": 0, **choice}] if choice is not None else []
        return {**frame, "toolwright": {"events": happened}} if happened else frame


def ended_badly(ended: events.TurnEnded | None, happened: Iterable[Json] = ()) -> str:
    """Return a sentence about a turn that gave no reply."""
    warnings = [row["message"] for row in happened if row["type"] == "warning"]
    reason = ended.reason if ended else "the server stopped"
    return " ".join([f"The turn ended without a reply ({reason}).", *warnings[-1:]])


def _usage(ended: events.TurnEnded) -> Json:
    prompt, completion = ended.usage.get("prompt_tokens", 0), ended.usage.get("completion_tokens", 0)
    cached = {"cached_tokens": ended.usage.get("cached_tokens", 0)}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": cached,
    }


def _data(value: Json) -> bytes:
    return f"data: {json.dumps(value, default=str)}\n\n".encode()


def _error_of(message: str, code: str) -> Json:
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


def misfit(error: Malformed | ValidationError) -> str:
    """Return a sentence about a request that is not as it must be."""
    if isinstance(error, Malformed):
        return f"The request is not JSON: {error}."
    row = error.errors()[0]
    return f"{'.'.join(map(str, row['loc']))}: {row['msg']}"


def client_error(status: int, message: str, code: str) -> Response:
    """Return an error in the form that these clients read."""
    return json_response(_error_of(message, code), status)
