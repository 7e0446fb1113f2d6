"""The endpoints for clients of chat completions or responses: an agent is the model, its functions run here."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import Discriminator, Field, Tag
from starlette.requests import Request

from agent_core.api.agent_host import Rooms
from agent_core.api.http_door import HttpAnswer, HttpDoor, HttpRoute, HttpStream
from agent_core.api.identity import ApiRefusal, Identity, status_of
from agent_core.api.operations import InvalidBody, Open, read_part
from agent_core.base import events
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.messages import Call
from agent_core.base.offload import aside
from agent_core.base.pictures import PictureFile, UnusablePicture, decoded
from agent_core.base.untrusted import one_line
from agent_core.storage import CONVERSATION
from agent_core.workspace.agent_files import is_group

from .chat_threads import (
    MOST_TOOLS,
    ChatThreads,
    ClientMessage,
    ClientReply,
    ClientRequest,
    Json,
    RequestMark,
    Thread,
    Unsupported,
    offered,
)
from .openai_parameters import (
    CHAT,
    RESPONSES,
    Effort,
    ResponseFormat,
    Shared,
    Tokens,
    Verbosity,
    sent_on,
)

R = TypeVar("R", bound=Shared)
T = TypeVar("T")
MOST_MESSAGES: Final = 10_000
_MOST_PARTS: Final = 1_000  # of a message
_SPEAKERS: Final = ("system", "developer", "user")
_LEFT: Final = 499  # as in the logs of other servers


class PictureAddress(Open):
    """A picture as chat completions have it."""

    url: str
    detail: str | None = None


class MessagePart(Open):
    """A part of a message: a text or a picture; others are rejected by their type."""

    type: str
    text: str = ""
    image_url: PictureAddress | str | None = None
    detail: str | None = None

    @property
    def file(self) -> PictureFile | None:
        """The picture, if it is one.

        Raises:
            Unsupported: it is no content, but an address elsewhere.
        """
        if self.image_url is None:
            return None
        url = self.image_url
        if isinstance(url, PictureAddress):
            url = url.url
        try:
            return decoded(url)
        except UnusablePicture as error:
            raise Unsupported("image_url", f"cannot be used. {error.message}", error.fix) from error


Parts: TypeAlias = Annotated[list[MessagePart], Field(max_length=_MOST_PARTS, fail_fast=True)]


def _joined(parts: str | list[MessagePart]) -> str:
    return parts if isinstance(parts, str) else "".join(part.text for part in parts)


def _files(parts: str | list[MessagePart] | None) -> tuple[PictureFile, ...]:
    files = list[PictureFile]()
    for part in parts or ():
        if isinstance(part, MessagePart) and (file := part.file) is not None:
            files.append(file)
    return tuple(files)


class CalledFunction(Open):
    """A called function of a client."""

    name: Annotated[str, Field(max_length=200)]
    arguments: str = "{}"


class ToolCall(Open):
    """A call of a client's function, as the client sends it back."""

    id: Annotated[str, Field(min_length=1, max_length=200)]
    type: str = "function"
    function: CalledFunction | None = None

    @property
    def call(self) -> Call:
        """The call in our form; raises `Unsupported` if it names no function."""
        if self.function is None:
            raise Unsupported(
                "messages", "has a call without a `function`.", "Send calls as they came."
            )
        return Call(self.id, self.function.name, self.function.arguments)


class ChatMessage(Open):
    """A message in the form that clients send."""

    role: str
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = None
    content: str | Parts | None = None
    tool_calls: Annotated[list[ToolCall], Field(max_length=MOST_TOOLS, fail_fast=True)] | None = (
        None
    )
    tool_call_id: Annotated[str | None, Field(max_length=200)] = None

    def read(self, agent: str = "") -> ClientMessage:
        """Return the message in our form, for a conversation with this agent.

        Raises:
            Unsupported: it is from an assistant with another name, or has a call without a function.
        """
        text, name = _joined(self.content or ""), self.name or ""
        if self.role == "assistant" and name not in ("", self.role, agent):
            fix = "Send what another one said as the words of a user of that name."
            raise Unsupported(
                "messages", "has a `name` of an assistant that is not the agent's.", fix
            )
        if self.role in _SPEAKERS and name not in ("", self.role) and text:
            text = f"{name}: {text}"
        calls = tuple(row.call for row in self.tool_calls or ())
        answers = self.tool_call_id or ""
        called = name if self.role == "tool" else ""
        return ClientMessage(self.role, text, calls, answers, called, _files(self.content))


class StreamOptions(Open):
    """The options of a stream."""

    include_usage: bool = False


class ChatRequest(Shared):
    """A request for a reply."""

    messages: Annotated[
        list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES, fail_fast=True)
    ]
    stream_options: StreamOptions | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    response_format: ResponseFormat | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    reasoning_effort: Effort | None = None
    verbosity: Verbosity | None = None

    def terms(self) -> Json:
        """Return the client's options for the turn, except its tools.

        Raises:
            UsageError: a parameter cannot take effect here.
        """
        parameters = sent_on(self, CHAT)
        caps = [cap for cap in (self.max_tokens, self.max_completion_tokens) if cap]
        shape = self.response_format.read("response_format") if self.response_format else None
        return {"parameters": parameters, "max_tokens": min(caps, default=None), "shape": shape}

    def read(self) -> list[ClientMessage]:
        """Return the messages."""
        return [message.read(self.agent) for message in self.messages]

    def forget(self) -> None:
        """Drop the messages to free their memory."""
        self.messages.clear()


class ChatDoor(HttpDoor):
    """Answers chat completions and responses with turns of agents."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._threads = ChatThreads(rooms)

    def routes(self) -> Sequence[HttpRoute]:
        """Return the paths that clients of OpenAI know."""
        return (
            HttpRoute("/v1/models", self.models),
            HttpRoute("/v1/models/{model}", self.model),
            HttpRoute("/v1/chat/completions", self.complete, methods=("POST",), scopes=("chat",)),
            HttpRoute("/v1/responses", self.respond, methods=("POST",), scopes=("chat",)),
        )

    def refusal(self, error: KnapperError) -> HttpAnswer:
        """Return a refusal in OpenAI's format."""
        message = f"{error.message} {error.fix}".strip()
        parameter = error.parameter if isinstance(error, Unsupported) else None
        return client_error(status_of(error), message, error.code, parameter)

    async def models(self, request: Request) -> HttpAnswer:
        """List the agents that the token may talk to."""
        return HttpAnswer({"object": "list", "data": await self._models(request.scope["identity"])})

    async def model(self, request: Request) -> HttpAnswer:
        """Return one of the agents that the token may talk to."""
        asked = request.path_params["model"]
        row = next(
            (row for row in await self._models(request.scope["identity"]) if row["id"] == asked),
            None,
        )
        if row is None:
            message = f"There is no model `{one_line(asked, 80)}`. See: GET /v1/models"
            return client_error(404, message, "model_not_found", "model")
        return HttpAnswer(row)

    async def _models(self, identity: Identity) -> list[Json]:
        names = [
            name for name in await self._rooms.workspace.agent_names() if CONVERSATION not in name
        ]
        shown = await self._rooms.shown(names, identity)
        return [
            {"id": name, "object": "model", "created": 0, "owned_by": "knapper"} for name in shown
        ]

    async def complete(self, request: Request) -> HttpAnswer | HttpStream:
        """Let an agent reply to the last message of a conversation."""
        return await self._reply(request, ChatRequest, _Completion)

    async def respond(self, request: Request) -> HttpAnswer | HttpStream:
        """Let an agent reply to a request of the responses API."""
        return await self._reply(request, ResponsesRequest, _Response)

    async def _reply(
        self,
        request: Request,
        kind: type[R],
        answer: "Callable[[ChatThreads, Thread, R], _ClientAnswer]",
    ) -> HttpAnswer | HttpStream:
        try:
            asked, request_mark, size = await _read_request(request, kind)
            if asked.stream:
                request.scope["open_stream"]()
            turn = answer(
                self._threads,
                await self._thread(asked, request.scope["identity"], request_mark, size),
                asked,
            )
            request.scope["body_done"]()
            if asked.stream:
                return turn.stream()
            return await _wait_with_client(request, turn.whole())
        except InvalidBody as error:
            message = (
                error.message if error.is_json else f"The request is not JSON: {error.message}."
            )
            places, _ = error.problems[0]
            return client_error(
                400, message, "invalid_request_error", places[0] if places else None
            )
        except KnapperError as error:
            return self.refusal(error)
        except Exception as error:  # noqa: BLE001  (the endpoint's edge: the traceback is stored, and the server continues)
            return client_error(500, f"Knapper failed. {self._rooms.crash(error)}", "internal")

    async def _thread(
        self, shared: Shared, identity: Identity, request_mark: RequestMark, size: int
    ) -> Thread:
        """Return the conversation that a request of `size` bytes continues or starts."""
        agent = await self._rooms.known(shared.agent, identity)
        client = await client_terms(self._rooms, agent, shared, size)
        messages = await aside(size, shared.read)
        shared.forget()  # otherwise they would stay in memory during the turn
        client_request = ClientRequest(
            identity,
            shared.owner(identity.name),
            shared.model,
            client,
            request_mark,
            shared.previous,
            shared.is_stored,
        )
        files = list[Sequence[PictureFile]]()
        for message in messages:
            files.append(message.files)
        async with self._rooms.host.keeping(*files) as kept:
            for place, pictures in enumerate(kept):
                if pictures:
                    messages[place] = messages[place].showing(pictures)
            return await self._threads.take_up(client_request, messages)


async def _read_request(request: Request, kind: type[R]) -> tuple[R, RequestMark, int]:
    """Return what a client asks, by what it is known if it comes again, and the size of the body.

    Nothing of the body is kept: the turn may take long.
    """
    body = b"".join([part async for part in request.stream()])  # `request.body` would keep it
    asked = await read_part(kind, body)
    token = request.scope["identity"].name
    key = request.headers.get("idempotency-key", "")
    request_mark = await aside(len(body), RequestMark.of, token, request.scope["path"], body, key)
    return asked, request_mark, len(body)


async def _wait_with_client(request: Request, work: Coroutine[None, None, T]) -> T:
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


async def client_terms(rooms: Rooms, agent: str, shared: Shared, size: int) -> Json:
    """Return the client's functions and options in the form that the agent's turn receives them.

    `size` is that of the request in bytes.

    Raises:
        UsageError: the functions or options cannot be passed on.
    """
    terms = {name: value for name, value in (await aside(size, shared.terms)).items() if value}
    if (shared.tools or terms) and is_group(rooms.workspace.root, agent):
        what = f"`{agent}` is a group: each of its members has functions and a model of its own."
        raise UsageError(
            what, fix="Leave out `tools` and all that is meant for one model, or name one agent."
        )
    taken: Collection[str] = ()
    if shared.tools:  # a client's function cannot have the name of one here
        opened = await rooms.host.agent(agent)
        snapshot = opened.snapshot()
        taken = snapshot.reserved | opened.model_session.functions.offered(snapshot).keys()
    tools, choice, parallel = shared.tools, shared.tool_choice, shared.parallel_tool_calls
    return {**await aside(size, offered, tools, choice, parallel=parallel, taken=taken), **terms}


class _ClientAnswer:
    """The response of one turn to one client."""

    def __init__(self, threads: ChatThreads, thread: Thread) -> None:
        self._threads = threads
        self._thread = thread
        self._reply = ClientReply(thread.request.client, thread.mark)
        self._created = int(thread.row["at"])

    async def whole(self) -> HttpAnswer:
        """Return the response in one piece."""
        happened: list[Json] = []
        async for event in self._threads.turn(self._thread):
            if event is not None:
                await self._reply.take(event)
                happened += self._reply.shown(event)
        await self._threads.remember(self._thread, self._reply)
        ended = self._reply.ended
        if ended is None or not self._reply.is_whole:
            return client_error(502, self._reply.failure(), "turn_failed")
        return HttpAnswer(self._document(ended, happened))

    def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the response in pieces."""
        raise NotImplementedError

    def _document(self, ended: events.TurnEnded, happened: list[Json]) -> Json:
        raise NotImplementedError


class _Completion(_ClientAnswer):
    """A reply as a chat completion."""

    def __init__(self, threads: ChatThreads, thread: Thread, chat_request: ChatRequest) -> None:
        super().__init__(threads, thread)
        self._request = chat_request
        self._id = f"chatcmpl-{thread.id}"

    def _document(self, ended: events.TurnEnded, happened: list[Json]) -> Json:
        message: Json = {"role": "assistant", "content": ended.reply}
        if calls := self._reply.handed:
            message = {
                **message,
                "content": ended.reply or None,
                "tool_calls": [_call_json(call) for call in calls],
            }
        choice = {"message": message, "finish_reason": self._finish(), "logprobs": None}
        return {**self._frame("chat.completion", choice, happened), "usage": _usage(ended)}

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the reply in pieces, with the events of the turn in a vendor field."""
        yield self._chunk({"role": "assistant", "content": ""})
        async for event in self._threads.turn(self._thread):
            if event is None:
                yield b": keep-alive\n\n"
                continue
            if text := await self._reply.take(event):
                yield self._chunk({"content": text})
            if happened := self._reply.shown(event):
                yield self._chunk({}, happened=happened)
        await self._threads.remember(self._thread, self._reply)
        ended = self._reply.ended
        if ended is None or not self._reply.is_whole:
            yield _data(_error_of(self._reply.failure(), "turn_failed"))
        else:
            for place, call in enumerate(self._reply.handed):
                yield self._chunk({"tool_calls": [{"index": place, **_call_json(call)}]})
            yield self._chunk({}, finish=self._finish())
            if self._request.stream_options and self._request.stream_options.include_usage:
                yield _data(
                    {**self._frame("chat.completion.chunk", None, []), "usage": _usage(ended)}
                )
        yield b"data: [DONE]\n\n"

    def _finish(self) -> str:
        return "tool_calls" if self._reply.calls else "length" if self._reply.is_cut else "stop"

    def _chunk(
        self, delta: Json, *, finish: str | None = None, happened: list[Json] | None = None
    ) -> bytes:
        choice = {"delta": delta, "finish_reason": finish}
        return _data(self._frame("chat.completion.chunk", choice, happened or []))

    def _frame(self, kind: str, choice: Json | None, happened: list[Json]) -> Json:
        frame: Json = {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._request.model,
        }
        frame["choices"] = [{"index": 0, **choice}] if choice is not None else []
        return {**frame, "knapper": {"events": happened}} if happened else frame


def _call_json(call: Call) -> Json:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _usage(ended: events.TurnEnded) -> Json:
    prompt, completion = (
        ended.usage.get("prompt_tokens", 0),
        ended.usage.get("completion_tokens", 0),
    )
    cached = {"cached_tokens": ended.usage.get("cached_tokens", 0)}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": cached,
    }


def _data(value: Json) -> bytes:
    return f"data: {json.dumps(value, default=str)}\n\n".encode()


def _error_of(message: str, code: str, parameter: str | None = None) -> Json:
    return {"error": {"message": message, "type": code, "param": parameter, "code": code}}


def client_error(status: int, message: str, code: str, parameter: str | None = None) -> HttpAnswer:
    """Return an error in OpenAI's format."""
    return HttpAnswer(_error_of(message, code, parameter), status)


# Responses API: a reply as an object or as a stream of its parts.

_MOST: Final = 1_000_000
_Key: TypeAlias = Annotated[str, Field(max_length=64)]
_Value: TypeAlias = Annotated[str, Field(max_length=512)]


class CallItem(CalledFunction):
    """A call of a client's function, as the client sends it back."""

    type: Literal["function_call"]
    call_id: Annotated[str, Field(min_length=1, max_length=200)]

    def read(self) -> ClientMessage:
        """Return the item as a message in our form."""
        return ClientMessage("assistant", "", (Call(self.call_id, self.name, self.arguments),))


class OutputItem(Open):
    """A client's answer to a call."""

    type: Literal["function_call_output"]
    call_id: Annotated[str, Field(min_length=1, max_length=200)]
    name: Annotated[str, Field(max_length=200)] | None = None
    output: str | Parts

    def read(self) -> ClientMessage:
        """Return the item as a message in our form."""
        text = _joined(self.output)
        name = self.name or ""
        files = _files(self.output)
        return ClientMessage("tool", text, answers=self.call_id, name=name, files=files)


class ItemMessage(ChatMessage):
    """A message among the items."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]


class OtherItem(Open):
    """An item of another type: thoughts that a program sends back are passed over, all else is rejected by its type."""

    type: str

    def read(self) -> ClientMessage:
        """Return an empty message."""
        return ClientMessage("user", "")


def _kind(item: object) -> str:
    given = item.get("type", "message") if isinstance(item, dict) else "message"
    return given if given in ("function_call", "function_call_output", "message") else "other"


Item: TypeAlias = Annotated[
    Annotated[ItemMessage, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[OutputItem, Tag("function_call_output")]
    | Annotated[OtherItem, Tag("other")],
    Discriminator(_kind),
]


class TextOptions(Open):
    """The options for the text of a response."""

    format: ResponseFormat | None = None
    verbosity: Verbosity | None = None


class ReasoningOptions(Open):
    """The options for the model's reasoning."""

    effort: Effort | None = None


class ResponsesRequest(Shared):
    """A request for a response. `input` is a text, or the items of a conversation."""

    input: (
        Annotated[str, Field(min_length=1, max_length=_MOST)]
        | Annotated[list[Item], Field(max_length=MOST_MESSAGES, fail_fast=True)]
    )
    instructions: str | None = None
    previous_response_id: Annotated[str | None, Field(max_length=200)] = None
    max_output_tokens: Tokens | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    metadata: Annotated[dict[_Key, _Value], Field(max_length=16)] | None = None
    store: bool | None = None

    def terms(self) -> Json:
        """Return the client's options for the turn, except its tools.

        Raises:
            UsageError: a parameter cannot take effect here.
        """
        parameters, shape = sent_on(self, RESPONSES), None
        if self.reasoning is not None:
            parameters |= (
                {"reasoning_effort": self.reasoning.effort} if self.reasoning.effort else {}
            )
        if self.text is not None:
            shape = self.text.format.read("text.format") if self.text.format else None
            parameters |= {"verbosity": self.text.verbosity} if self.text.verbosity else {}
        return {"parameters": parameters, "max_tokens": self.max_output_tokens, "shape": shape}

    def read(self) -> list[ClientMessage]:
        """Return the messages."""
        system = [ClientMessage("system", self.instructions)] if self.instructions else []
        if isinstance(self.input, str):
            return [*system, ClientMessage("user", self.input)]
        return [*system, *(item.read() for item in self.input if not isinstance(item, OtherItem))]

    def forget(self) -> None:
        """Drop the items to free their memory."""
        self.input = ""

    @property
    def previous(self) -> str:
        """The id of the response to continue from, or ""."""
        return self.previous_response_id or ""

    @property
    def is_stored(self) -> bool:
        """Whether the response can be continued from."""
        return self.store is not False


class _Response(_ClientAnswer):
    """A reply as an object of the responses API."""

    def __init__(
        self, threads: ChatThreads, thread: Thread, responses_request: ResponsesRequest
    ) -> None:
        super().__init__(threads, thread)
        self._request = responses_request
        self._id = f"resp_{thread.id}"
        self._item = f"msg_{thread.id}"
        self._sent = 0

    def _document(self, ended: events.TurnEnded, happened: list[Json]) -> Json:
        return self._object(self._status, ended.reply) | _vendors(happened)

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the events of the response as they occur."""
        place = {"item_id": self._item, "output_index": 0, "content_index": 0}
        yield self._event("response.created", response=self._object("in_progress"))
        begun = False
        async for event in self._threads.turn(self._thread):
            if event is None:
                yield b": keep-alive\n\n"
            elif text := await self._reply.take(event):
                if not begun:
                    begun = True
                    item = self._message("", "in_progress")
                    yield self._event("response.output_item.added", output_index=0, item=item)
                    yield self._event("response.content_part.added", **place, part=_part(""))
                yield self._event("response.output_text.delta", **place, delta=text, logprobs=[])
            elif happened := self._reply.shown(event):
                yield self._event(
                    "response.in_progress",
                    response=self._object("in_progress"),
                    **_vendors(happened),
                )
        await self._threads.remember(self._thread, self._reply)
        if not self._reply.is_whole:
            error = {"code": "server_error", "message": self._reply.failure()}
            yield self._event("response.failed", response=self._object("failed") | {"error": error})
            return
        if begun:
            said = self._reply.text
            yield self._event("response.output_text.done", **place, text=said, logprobs=[])
            yield self._event("response.content_part.done", **place, part=_part(said))
            item = self._message(said, "completed")
            yield self._event("response.output_item.done", output_index=0, item=item)
        for index, call in enumerate(self._reply.handed, int(begun)):
            of_call = {"item_id": _item_id(call), "output_index": index}
            item = _call_item(call, "in_progress") | {"arguments": ""}
            yield self._event("response.output_item.added", output_index=index, item=item)
            yield self._event(
                "response.function_call_arguments.delta", **of_call, delta=call.arguments
            )
            done = {"name": call.name, "arguments": call.arguments}
            yield self._event("response.function_call_arguments.done", **of_call, **done)
            yield self._event(
                "response.output_item.done", output_index=index, item=_call_item(call, "completed")
            )
        yield self._event(
            f"response.{self._status}", response=self._object(self._status, self._reply.text)
        )

    @property
    def _status(self) -> str:
        return "incomplete" if self._reply.is_cut else "completed"

    def _object(self, status: str, text: str = "") -> Json:
        ended = self._reply.ended
        used = ended.usage if ended else {}
        said = [self._message(text, status)] if text or not self._reply.calls else []
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
            "incomplete_details": {"reason": "max_output_tokens"}
            if status == "incomplete"
            else None,
            "instructions": self._request.instructions,
            "model": self._request.model,
            "output": [*said, *(_call_item(call, status) for call in self._reply.handed)]
            if ended
            else [],
            "parallel_tool_calls": self._request.parallel_tool_calls is not False,
            "previous_response_id": self._request.previous_response_id,
            "tool_choice": _as_sent(self._request, "tool_choice", "auto"),
            "tools": _as_sent(self._request, "tools", []),
            "usage": usage if ended else None,
            "metadata": self._request.metadata or {},
            "temperature": self._request.temperature,
            "top_p": self._request.top_p,
            "max_output_tokens": self._request.max_output_tokens,
            "text": _as_sent(self._request, "text", {"format": {"type": "text"}}),
            "store": self._request.is_stored,
        }

    def _message(self, text: str, status: str) -> Json:
        parts = [_part(text)] if text else []
        return {
            "type": "message",
            "id": self._item,
            "status": status,
            "role": "assistant",
            "content": parts,
        }

    def _event(self, kind: str, **fields: Any) -> bytes:  # Any: JSON
        data = {"type": kind, "sequence_number": self._sent, **fields}
        self._sent += 1
        return f"event: {kind}\ndata: {json.dumps(data, default=str)}\n\n".encode()


def _as_sent(request: ResponsesRequest, name: str, usual: object) -> object:
    """Return a field of the request as the client sent it, or `usual`."""
    return request.model_dump(include={name}, exclude_unset=True).get(name) or usual


def _vendors(happened: list[Json]) -> Json:
    return {"knapper": {"events": happened}} if happened else {}


def _item_id(call: Call) -> str:
    return f"fc_{hashlib.sha256(call.id.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _call_item(call: Call, status: str) -> Json:
    row = {"type": "function_call", "id": _item_id(call), "call_id": call.id, "status": status}
    return {**row, "name": call.name, "arguments": call.arguments}


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
