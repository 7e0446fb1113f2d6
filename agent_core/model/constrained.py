"""A model that cannot call functions by itself: each step is one JSON object under a schema.

Works with any endpoint that holds its model to a JSON schema. The reply's text and the thought are told
while they are written. What the endpoint cuts off is said to be cut off.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, Literal, Protocol, TypeAlias

from ..clock import Clock
from ..errors import ModelError
from ..messages import Assistant, Call, Message, User
from ..settings import ModelSettings
from .conversation import Conversation, Entry
from .growing import GrowingStep
from .reply import Finish, Piece, Reply, RetryPiece, TextPiece, TokenUsage
from .request import Request
from .step import REPLY, read_step, step_schema

REPLY_TOKENS: Final = 1_536
"""Longest step unless the settings say otherwise: a function of about a hundred lines."""

AGAIN: Final = 0.8
"""Temperature of a step after the model repeated itself: at 0, where each step is the likeliest, it goes on so."""

_BYTES_PER_TOKEN: Final = 3.4


class Completions(Protocol):
    """Something that completes chats, such as an `Endpoint`."""

    def complete(self, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any] | RetryPiece, None]:
        """The chunks of one completion; Any: JSON in the shape of chat completions."""

    async def aclose(self) -> None:
        """Let go of what it holds."""


Constrain: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]  # Any: JSON


def by_json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    """The part of a request that holds a reply to a schema, as most endpoints take it."""
    named = {"name": "step", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


class ConstrainedModel:
    """A `Model` that writes one JSON object a step; `constrain` is the endpoint's own way to hold it to a schema."""

    mode: Literal["constrained"] = "constrained"

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        completions: Completions,
        name: str,
        context_limit: int,
        settings: ModelSettings | None = None,
        clock: Clock | None = None,
        *,
        constrain: Constrain = by_json_schema,
    ) -> None:
        self._constrain = constrain
        self.name = name
        self.context_limit = context_limit
        self._completions = completions
        self._settings = settings or ModelSettings()
        self._clock = clock or Clock()
        self._conversation = Conversation()

    async def stream(self, request: Request) -> AsyncGenerator[Piece, None]:
        """The pieces of one step; the last is the one `Reply`.

        Raises:
            ContextOverflow: the request is longer than the window.
            ModelError: there is no usable answer; the message says why and what to do.
        """
        entries = self._conversation.write(request)
        whole = _Whole(GrowingStep())
        async with aclosing(self._completions.complete(self._body(request, entries))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, RetryPiece):
                    yield chunk
                    continue
                for piece in whole.take(chunk):
                    yield piece
        reply = whole.reply(self._clock.new_id(), entries)
        if len(reply.text) > len(whole.step.reply):
            yield TextPiece(reply.text[len(whole.step.reply) :])
        yield reply

    async def aclose(self) -> None:
        """Let go of the endpoint."""
        await self._completions.aclose()

    def _body(self, request: Request, entries: list[Entry]) -> dict[str, Any]:
        schema = step_schema(self._conversation.callable_now(request), may_reply=REPLY not in request.excluded)
        body: dict[str, Any] = {
            "messages": entries,
            **self._constrain(schema),
            "max_tokens": request.max_tokens or self._settings.max_tokens or REPLY_TOKENS,
            "temperature": self._temperature(request),
            "stream": self._settings.stream,
        }
        if self._settings.stream:
            body["stream_options"] = {"include_usage": True}
        return body

    def _temperature(self, request: Request) -> float:
        if self._settings.temperature is not None:
            return self._settings.temperature
        return AGAIN if _is_repeating(request.messages) else 0


def _is_repeating(messages: Sequence[Message]) -> bool:
    """Whether the model has asked for the same call twice since the user spoke."""
    calls: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, User):
            calls.clear()
        elif isinstance(message, Assistant):
            calls += [(call.name, call.arguments) for call in message.calls]
    return len(set(calls)) < len(calls)


class _Whole:
    """The chunks of one completion, put together."""

    def __init__(self, step: GrowingStep) -> None:
        self.step = step
        self._finish = ""
        self._usage: Mapping[str, Any] | None = None

    def take(self, chunk: Mapping[str, Any]) -> list[Piece]:
        """What the chunk adds that can be shown."""
        self._usage = chunk.get("usage") or self._usage
        pieces: list[Piece] = []
        for choice in chunk.get("choices") or ():
            self._finish = choice.get("finish_reason") or self._finish
            content = (choice.get("delta") or choice.get("message") or {}).get("content")
            pieces += self.step.feed(content) if content else ()
        return pieces

    def reply(self, call_id: str, entries: list[Entry]) -> Reply:
        """The whole reply; a cut call keeps its broken arguments."""
        text, usage, finish = self.step.text, self._tokens(entries), self._finish_word()
        step = read_step(text)
        if step is None:
            return Reply(text.strip(), "", (), finish, usage, note="The model wrote no JSON object." if text else "")
        if not step.is_whole and finish == "stop":
            raise ModelError(
                "The model's answer broke off in the middle.", mend="Try again, or raise `model.max_tokens`."
            )
        thought = step.thought or self.step.thought
        if step.name:
            calls = (Call(call_id, step.name, step.arguments),)
            return Reply("", thought, calls, "calls" if step.is_whole else finish, usage)
        return Reply(step.reply or self.step.reply, thought, (), finish, usage)

    def _finish_word(self) -> Finish:
        match self._finish:
            case "length":
                return "length"
            case "content_filter":
                return "filter"
            case _:
                return "stop"

    def _tokens(self, entries: list[Entry]) -> TokenUsage:
        if self._usage is None:
            prompt = sum(len(entry["content"].encode()) for entry in entries)
            written = len(self.step.text.encode())
            return TokenUsage(int(prompt / _BYTES_PER_TOKEN), int(written / _BYTES_PER_TOKEN), estimated=True)
        details = self._usage.get("prompt_tokens_details") or {}
        return TokenUsage(
            self._usage.get("prompt_tokens") or 0,
            self._usage.get("completion_tokens") or 0,
            details.get("cached_tokens") or 0,
        )
