"""The endpoint for A2A clients: an agent has a card and accepts messages as tasks.

A context is a separate conversation with the agent; a task is the turn that a message started. Nothing is stored
except the turns. A turn that waits for an approval is a task that requires input.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from enum import Enum
from typing import Annotated, Any, Final, get_args

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from agent_core import __version__
from agent_core.access.grants import Answer, Decision, PendingQuestion
from agent_core.access.grants.approval import QuestionChanged
from agent_core.base import events
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.records import dataclass, field, replace
from agent_core.storage import AGAIN

from ..render.grant_question import question_rows
from ..styled_lines import plain
from .agent_host import Listening, Rooms
from .chat_threads import ChatThreads, no_reply
from .identity import Identity
from .operations import InvalidBody, Open, read_part
from .responses import failure, json_response, stream_response, wait_with_client

# The A2A wire format, in the two versions that clients use: 1.0 (`SendMessage`) and 0.3 (`message/send`).
# Pure functions: requests are parsed into values, and values rendered as JSON.

Json = dict[str, Any]  # Any: JSON
_METHODS: Final = {
    "SendMessage": ("send", True),
    "SendStreamingMessage": ("stream", True),
    "GetTask": ("get", True),
    "CancelTask": ("cancel", True),
    "SubscribeToTask": ("follow", True),
    "message/send": ("send", False),
    "message/stream": ("stream", False),
    "tasks/get": ("get", False),
    "tasks/cancel": ("cancel", False),
    "tasks/resubscribe": ("follow", False),
}
REPLY: Final = "reply"
_MOST_PARTS: Final = 1_000  # of a message


class TaskState(Enum):
    """The state of a task, with the names of version 0.3."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """True if the task has ended."""
        return self in (TaskState.COMPLETED, TaskState.CANCELED, TaskState.FAILED)


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as a client sees it; `reason` is why it waits or failed, `reply` its result.

    `metadata` has the receipt of an ended turn.
    """

    id: str
    context: str
    state: TaskState
    reason: str = ""
    reply: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplyPiece:
    """A streamed piece of the reply, or the whole reply at its end if it was not streamed."""

    text: str
    is_whole: bool = False


class RpcError(KnapperError):
    """A request that gets a JSON-RPC error; `number` is its code."""

    code = "a2a"

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class _Sent(Open):
    messageId: str = Field(default="", max_length=200)
    contextId: str = Field(default="", pattern="^[A-Za-z0-9_-]{0,40}$")
    taskId: str = Field(default="", max_length=200)
    parts: Annotated[list[Json], Field(min_length=1, max_length=_MOST_PARTS, fail_fast=True)]


class _Configuration(Open):
    returnImmediately: bool = False
    blocking: bool = True


class _Params(Open):
    id: str = Field(default="", max_length=200)
    message: _Sent | None = None
    configuration: _Configuration = Field(default_factory=_Configuration)


class _Body(Open):
    id: str | int | None = None
    method: str
    params: _Params = Field(default_factory=_Params)


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """One request: its method (`verb`), protocol version, task and message."""

    id: str | int | None
    verb: str
    is_v1: bool
    task: str
    text: str
    context: str
    key: str
    waits: bool


async def read_request(body: bytes) -> RpcRequest:
    """Parse a request.

    Raises:
        RpcError: the body is not a valid request, or it has an unknown method or an unsupported part.
    """
    try:
        asked = await read_part(_Body, body)
    except InvalidBody as error:
        if not error.is_json:
            raise RpcError(-32700, f"This is not JSON: {error.message}.") from error
        is_of_params = error.problems[0][0][:1] == ("params",)
        raise RpcError(-32602 if is_of_params else -32600, error.message) from error
    if asked.method not in _METHODS:
        raise RpcError(-32601, f"There is no method `{asked.method[:80]}`. There are: {', '.join(_METHODS)}.")
    verb, is_v1 = _METHODS[asked.method]
    params, message = asked.params, asked.params.message
    if message is None and verb in ("send", "stream"):
        raise RpcError(-32602, "params.message: a message is needed.")
    waits = params.configuration.blocking and not params.configuration.returnImmediately
    if message is None:
        return RpcRequest(asked.id, verb, is_v1, params.id, "", "", "", waits)
    text = "\n\n".join(map(_text, message.parts))
    return RpcRequest(asked.id, verb, is_v1, message.taskId, text, message.contextId, message.messageId, waits)


def _text(part: Json) -> str:
    match part:
        case {"text": str(text)}:
            return text
        case {"data": data}:
            return json.dumps(data, ensure_ascii=False)
        case _:
            raise RpcError(-32005, "Only parts with text or data can be read.")


class TaskDialect:
    """Renders results in the protocol version of a client."""

    def __init__(self, *, is_v1: bool) -> None:
        self._is_v1 = is_v1

    def result(self, task: TaskView) -> Json:
        """Return the result of sending a message."""
        return {"task": self.task(task)} if self._is_v1 else self.task(task)

    def task(self, task: TaskView) -> Json:
        """Return a task as JSON."""
        artifacts = [self._artifact(task.reply)] if task.reply else []
        status = self._status(task)
        return {
            **self._kind("task"),
            "id": task.id,
            "contextId": task.context,
            "status": status,
            "artifacts": artifacts,
            **self._metadata(task),
        }

    def update(self, task: TaskView) -> Json:
        """Return the event of a changed task state."""
        is_over = task.state.is_final or task.state is TaskState.INPUT_REQUIRED
        last = {} if self._is_v1 else {"final": is_over}
        status = self._status(task)
        place = {"taskId": task.id, "contextId": task.context}
        event = {**self._kind("status-update"), **place, "status": status, **last, **self._metadata(task)}
        return {"statusUpdate": event} if self._is_v1 else event

    def piece(self, task: TaskView, piece: ReplyPiece) -> Json:
        """Return the event of a piece of the reply."""
        event = {
            **self._kind("artifact-update"),
            "taskId": task.id,
            "contextId": task.context,
            "artifact": self._artifact(piece.text),
            "append": not piece.is_whole,
            "lastChunk": piece.is_whole,
        }
        return {"artifactUpdate": event} if self._is_v1 else event

    def _artifact(self, text: str) -> Json:
        return {"artifactId": REPLY, "name": REPLY, "parts": [self._part(text)]}

    @staticmethod
    def _metadata(task: TaskView) -> Json:
        return {"metadata": {**task.metadata}} if task.metadata else {}

    def _status(self, task: TaskView) -> Json:
        state = task.state.value
        name = f"TASK_STATE_{state.upper().replace('-', '_')}" if self._is_v1 else state
        if not task.reason:
            return {"state": name}
        message = {
            **self._kind("message"),
            "messageId": f"{task.id}.{state}",
            "role": "ROLE_AGENT" if self._is_v1 else "agent",
            "taskId": task.id,
            "contextId": task.context,
            "parts": [self._part(task.reason)],
        }
        return {"state": name, "message": message}

    def _part(self, text: str) -> Json:
        return {**self._kind("text"), "text": text}

    def _kind(self, kind: str) -> Json:
        return {} if self._is_v1 else {"kind": kind}


def card(name: str, description: str, url: str, version: str) -> Json:
    """Return an agent's card, readable for clients of both versions."""
    bearer = {"type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "Bearer"}}
    interfaces = [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": number} for number in ("1.0", "0.3")]
    about: Mapping[str, object] = {"name": name, "description": description}
    return {
        **about,
        "version": version,
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": "JSONRPC",
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": True, "pushNotifications": False},
        "securitySchemes": {"token": bearer},
        "security": [{"token": []}],
        "securityRequirements": [{"schemes": {"token": {"list": []}}}],
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "talk", **about, "tags": ["assistant"]}],
    }


_ABOUT: Final = "An assistant that makes the functions it is missing, tests them in a sandbox, and uses them."
_BORDERS: Final = (events.TurnStarted, events.GrantAsked, events.GrantAnswered, events.TurnEnded)
_WAIT_S: Final = 15.0  # time without an event after which the client gets a sign of life
_AGAIN_S: Final = 0.02
_COLUMNS: Final = 119  # of a question
_NO_TASK, _NOT_CANCELABLE, _UNSUPPORTED = -32001, -32002, -32004


@dataclass(frozen=True, slots=True)
class _TaskPlace:
    """The location of a task: the agent of its conversation, its context, and the event of its message."""

    agent: str
    context: str
    event: str

    @property
    def task(self) -> str:
        return f"{self.context}.{self.event}"


class A2aDoor:
    """Answers A2A requests with turns of agents."""

    def __init__(self, rooms: Rooms, threads: ChatThreads) -> None:
        self._rooms = rooms
        self._threads = threads

    async def card(self, request: Request) -> Response:
        """Respond with the card of the agent in the path, or of the default agent."""
        try:
            identity: Identity = request.scope["identity"]
            identity.needs("read", "chat")
            name = await self._agent(request, identity)
        except KnapperError as error:
            return failure(error)
        purpose = self._rooms.workspace.directory.names().get(name) or _ABOUT
        url = f"{request.url.scheme}://{request.headers['host']}/a2a/{name}"
        return json_response(card(name, purpose, url, __version__))

    async def call(self, request: Request) -> Response:
        """Answer one JSON-RPC request."""
        identity: Identity = request.scope["identity"]
        id: str | int | None = None
        try:
            identity.needs("chat")
            agent = await self._agent(request, identity)
            asked = await read_request(await request.body())
            id = asked.id
            if asked.verb in ("stream", "follow"):
                request.scope["open_stream"]()
            place = await self._place(agent, asked, identity)
            request.scope["body_done"]()
            dialect = TaskDialect(is_v1=asked.is_v1)
            if asked.verb in ("stream", "follow"):
                return stream_response(self._frames(place, asked, dialect))
            if asked.verb == "send":
                view = await (
                    wait_with_client(request, self._wait_until_settled(place)) if asked.waits else self._view(place)
                )
                result = dialect.result(view)
            else:
                view = await (self._cancel(place) if asked.verb == "cancel" else self._view(place))
                result = dialect.task(view)
            return json_response(_response(asked, result))
        except (RpcError, UsageError) as error:
            about = {"code": getattr(error, "number", -32602), "message": f"{error.message} {error.fix}".strip()}
            return json_response({"jsonrpc": "2.0", "id": id, "error": about})
        except KnapperError as error:
            return failure(error)

    async def _agent(self, request: Request, identity: Identity) -> str:
        name = request.path_params.get("agent") or self._rooms.workspace.settings.agent
        return await self._rooms.known(name, identity)

    async def _place(self, agent: str, request: RpcRequest, identity: Identity) -> _TaskPlace:
        """Return the task of a request: the one that it names, or the one that its message starts."""
        if request.task:
            place = await self._find_place(agent, request.task)
            if request.verb in ("send", "stream"):
                question = await self._question(place)
                if question is None:
                    message = "The task takes no input: it waits for none. Send a message without its id."
                    raise RpcError(_UNSUPPORTED, message)
                identity.needs("approve")
                await self._answer(question, request.text)
                while question.id in [row.id for row in await self._rooms.workspace.questions()]:  # noqa: ASYNC110 - a row
                    await asyncio.sleep(_AGAIN_S)
            return place
        if request.verb not in ("send", "stream"):
            raise RpcError(-32602, "params.id: the id of a task is needed.")
        context = request.context or await self._threads.begin(agent)
        name = await self._threads.named(agent, context)
        key = f"{identity.name}:{request.key}" if request.key else None  # clients number their messages as they like
        posted = await self._rooms.host.post(name, request.text, key, identity=identity, alone=True)
        if posted.payload.get("text") != request.text:
            message = "params.message.messageId: another message of this context has this id, so this one was not sent."
            raise RpcError(-32602, message)
        return _TaskPlace(name, context, posted.event)

    async def _answer(self, question: PendingQuestion, text: str) -> None:
        """Answer the question of a task. The answer names it by its id, which changes with all that a yes covers."""
        line, _, word = text.strip().partition("\n")
        answer, _, id = line.strip().partition(" ")
        given = next((choice for choice in get_args(Answer) if choice == answer.lower()), None)
        if given is None or id.strip() != question.id:
            why = "This names no answer and question." if given is None or not id else "That question is gone."
            raise RpcError(-32602, f"{why} Nothing was answered. {_asked(question)}")
        try:
            await self._rooms.workspace.answer(question.id, Decision(given, word.strip()))
        except QuestionChanged as changed:
            row = replace(question, question=changed.question)
            raise RpcError(-32602, f"{changed.message} {_asked(row)}") from changed

    async def _find_place(self, agent: str, task: str) -> _TaskPlace:
        context, _, event = task.partition(".")
        with suppress(UsageError):
            is_there = await self._rooms.workspace.can_be_talked_to(self._threads.name_of(agent, context))
            name = await self._threads.named(agent, context) if is_there else ""
            place = _TaskPlace(name, context, event)
            if name and event and await self._find_task(place) is not None:
                return place
        raise RpcError(_NO_TASK, f"There is no task `{task[:100]}`.")

    async def _question(self, place: _TaskPlace) -> PendingQuestion | None:
        turn = await self._rooms.workspace.store.turn_of(place.event, place.agent)
        rows = await self._rooms.workspace.questions()
        return next((row for row in rows if turn is not None and row.turn == turn), None)

    async def _view(self, place: _TaskPlace) -> TaskView:
        """Return the current state of a task; unknown ones are submitted."""
        return await self._find_task(place) or self._as(place, TaskState.SUBMITTED)

    async def _find_task(self, place: _TaskPlace) -> TaskView | None:
        """Return the current state of a task, or None if the conversation has no task with that event."""
        store = self._rooms.workspace.store
        turn = await store.turn_of(place.event, place.agent)
        if turn is None:
            is_there = any(place.event == id or kind == AGAIN for id, kind in await store.waiting_events(place.agent))
            return self._as(place, TaskState.SUBMITTED) if is_there else None
        if question := await self._question(place):
            return self._as(place, TaskState.INPUT_REQUIRED, _asked(question))
        ended, has_begun = None, False
        async for event in self._rooms.host.past(place.agent, turn):
            ended, has_begun = event if isinstance(event, events.TurnEnded) else ended, True
        if ended is not None:
            view = self._outcome(place, ended)
            receipt = {"made": ended.made, "receipt": ended.receipt} if view.state.is_final else {}
            return replace(view, metadata={"knapper": receipt} if receipt else {})
        return self._as(place, TaskState.WORKING) if has_begun or self._rooms.host.is_running(place.agent) else None

    def _outcome(self, place: _TaskPlace, ended: events.TurnEnded) -> TaskView:
        match ended.reason:
            case "replied":
                return TaskView(place.task, place.context, TaskState.COMPLETED, reply=ended.reply)
            case "parked":
                return self._as(place, TaskState.WORKING)
            case "interrupted" | "cancelled":
                return self._as(place, TaskState.CANCELED)
            case _:
                warnings = [row.text for row in self._rooms.host.warnings if row.turn == ended.turn]
                return self._as(place, TaskState.FAILED, no_reply(ended, "".join(warnings[-1:])))

    @staticmethod
    def _as(place: _TaskPlace, state: TaskState, reason: str = "") -> TaskView:
        return TaskView(place.task, place.context, state, reason)

    async def _wait_until_settled(self, place: _TaskPlace) -> TaskView:
        """Wait until a task has ended or needs input, and return it."""
        with self._rooms.host.listen(place.agent) as listening:
            async with aclosing(self._news(place, listening)) as news:
                view = self._as(place, TaskState.SUBMITTED)
                async for part in news:
                    view = part if isinstance(part, TaskView) else view
                return view

    async def _cancel(self, place: _TaskPlace) -> TaskView:
        view = await self._view(place)
        is_at_work = view.state in (TaskState.WORKING, TaskState.INPUT_REQUIRED)
        if not is_at_work or not await self._rooms.host.interrupt(place.agent):
            raise RpcError(_NOT_CANCELABLE, f"The task is {view.state.value}: it cannot be canceled.")
        while not (view := await self._view(place)).state.is_final:  # noqa: ASYNC110 - it is on disk when it has ended
            await asyncio.sleep(_AGAIN_S)
        return view

    async def _news(
        self, place: _TaskPlace, listening: Listening
    ) -> AsyncGenerator[TaskView | ReplyPiece | None, None]:
        """Yield the task whenever its state changes, and pieces of its reply, until it has ended or needs input.

        Yield None while nothing happens. A reply that was not streamed is one piece, before the task that has ended.
        """
        view, event, streamed = None, None, ""
        while True:
            if event is None or isinstance(event, _BORDERS):
                now = await self._view(place)
                is_news = view is not None and not streamed.endswith(now.reply)
                if now.state is TaskState.COMPLETED and is_news:
                    yield ReplyPiece(now.reply, is_whole=True)
                if view is None or now.state is not view.state:
                    view = now
                    yield now
                if now.state.is_final or now.state is TaskState.INPUT_REQUIRED or listening.is_over:
                    return
            elif isinstance(event, events.Text) and view is not None and view.state is TaskState.WORKING:
                streamed += event.text
                yield ReplyPiece(event.text)
            event = await listening.next(_WAIT_S)
            if event is None and await self._rooms.host.has_lost(place.agent, place.event):
                yield self._as(place, TaskState.FAILED, no_reply(None, ""))
                return
            if event is None:
                yield None

    async def _frames(
        self, place: _TaskPlace, request: RpcRequest, dialect: TaskDialect
    ) -> AsyncGenerator[bytes, None]:
        is_first = True
        with self._rooms.host.listen(place.agent) as listening:
            async with aclosing(self._news(place, listening)) as news:
                async for part in news:
                    if part is None:
                        yield b": keep-alive\n\n"
                        continue
                    if isinstance(part, ReplyPiece):
                        result = dialect.piece(TaskView(place.task, place.context, TaskState.WORKING), part)
                    else:
                        result = dialect.result(part) if is_first else dialect.update(part)
                        is_first = False
                    yield f"data: {json.dumps(_response(request, result))}\n\n".encode()


def _asked(pending_question: PendingQuestion) -> str:
    """Return a question with all that it shows, and how a message answers it."""
    id, question = pending_question.id, pending_question.question
    how = f"Answer with `yes {id}`, `once {id}` or `no {id}`; a line below it is for the agent."
    by_command = f" Or a human types: {question.command}" if question.missing else ""
    return f"A human must say yes first. {how}{by_command}\n{plain(question_rows(question, _COLUMNS))}".rstrip()


def _response(request: RpcRequest, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": request.id, "result": result}
