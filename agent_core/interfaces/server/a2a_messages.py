"""A2A on the wire, in both versions that clients speak: 1.0 (`SendMessage`) and 0.3 (`message/send`).

Pure: requests are read into values, and values written as JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Final

from pydantic import Field

from agent_core.base.errors import KnapperError

from .parts import InvalidBody, Open, read_part

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
    """How a task is, in the words of 0.3."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen."""
        return self in (TaskState.COMPLETED, TaskState.CANCELED, TaskState.FAILED)


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as a client sees it; `reason` is why it waits or failed, `reply` what came of it.

    `metadata` has the receipt of a turn that has ended.
    """

    id: str
    context: str
    state: TaskState
    reason: str = ""
    reply: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplyPiece:
    """A piece of the reply as it streams or, at the end of one that was not streamed, all of it."""

    text: str
    is_whole: bool = False


class RpcError(KnapperError):
    """A request that is answered with an error of JSON-RPC; `number` is the code of it."""

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
    """One request: what is wanted, in which version, of which task, with what message."""

    id: str | int | None
    verb: str
    is_v1: bool
    task: str
    text: str
    context: str
    key: str
    waits: bool


async def read_request(body: bytes) -> RpcRequest:
    """Return what a client asks for.

    Raises:
        RpcError: it is no request, asks for what there is not, or holds what cannot be read.
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
    """Writes results in the version that a client speaks."""

    def __init__(self, *, is_v1: bool) -> None:
        self._is_v1 = is_v1

    def result(self, task: TaskView) -> Json:
        """Return the result of a message that was sent."""
        return {"task": self.task(task)} if self._is_v1 else self.task(task)

    def task(self, task: TaskView) -> Json:
        """Return a task."""
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
        """Return the news that a task has another state."""
        is_over = task.state.is_final or task.state is TaskState.INPUT_REQUIRED
        last = {} if self._is_v1 else {"final": is_over}
        status = self._status(task)
        place = {"taskId": task.id, "contextId": task.context}
        event = {**self._kind("status-update"), **place, "status": status, **last, **self._metadata(task)}
        return {"statusUpdate": event} if self._is_v1 else event

    def piece(self, task: TaskView, piece: ReplyPiece) -> Json:
        """Return a piece of the reply."""
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
        return {"state": name, **({"message": self._message(task)} if task.reason else {})}

    def _message(self, task: TaskView) -> Json:
        return {
            **self._kind("message"),
            "messageId": f"{task.id}.{task.state.value}",
            "role": "ROLE_AGENT" if self._is_v1 else "agent",
            "taskId": task.id,
            "contextId": task.context,
            "parts": [self._part(task.reason)],
        }

    def _part(self, text: str) -> Json:
        return {**self._kind("text"), "text": text}

    def _kind(self, kind: str) -> Json:
        return {} if self._is_v1 else {"kind": kind}


def card(name: str, description: str, url: str, version: str) -> Json:
    """Return an agent's card, which clients of both versions can read."""
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
