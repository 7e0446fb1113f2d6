"""Constrained mode, for a model that cannot call functions natively: each step is one JSON object under a schema.

Works with any endpoint that constrains its model to a JSON schema: the known ways are tried in turn, and the first one
that works is kept. The thought and the reply are shown while they are written, and a truncated reply is reported as
such.
"""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, Protocol

from agent_core.base.clock import Clock
from agent_core.base.errors import ModelError
from agent_core.base.messages import Assistant, Call, User
from agent_core.base.records import dataclass, replace
from agent_core.base.settings import ModelSettings
from agent_core.model.connection import Endpoint, NotTaken, read_aside
from agent_core.model.dialect import Dialect
from agent_core.model.forms import NotHeld, ReplyFormState
from agent_core.model.reasoning import Reasoning
from agent_core.model.reply import (
    CallPiece,
    Piece,
    Reply,
    RetryPiece,
    TextPiece,
    ThoughtPiece,
    TokenUsage,
)
from agent_core.model.request import REPLY, FunctionShown, Request
from agent_core.model.splitter import MAX_BLANKS, Splitter
from agent_core.model.stream import cut_call, finish_of, note_of, note_on
from agent_core.model.tokens import BYTES_PER_TOKEN, Window
from agent_core.model.wire import bulk_of, read_chunk, read_progress, read_usage
from sandbox.wire.strict_json import LOOSE, read_json, with_plain_escapes

from .conversation import (
    INSTRUCTIONS,
    Entry,
    WireConversation,
    compared,
    find,
    fixed_size,
    read_step,
    step_schema,
)

_NEXT: Final[Mapping[str, Mapping[str, re.Pattern[str]]]] = {
    "": {"thought": re.compile(r'\s*(?:```\w*\s*)?\{\s*"thought"\s*:\s*"')},
    "thought": {
        "reply": re.compile(r'"\s*,\s*"reply"\s*:\s*"'),
        "call": re.compile(
            r'"\s*,\s*"call"\s*:\s*\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*'
        ),
    },
}
"""The patterns that may begin after each part of a step."""
# Whole characters only: an incomplete escape or surrogate pair waits for the rest.
_CHARACTERS = re.compile(
    r'(?:[^"\\]+|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])*'
)


@dataclass(slots=True)
class GrowingStep:
    """An incremental parser of one step; `thought` and `reply` contain the text read so far."""

    text: str = ""
    thought: str = ""
    reply: str = ""
    _part: str = ""
    _place: int = 0
    _called: str = ""

    def feed(self, more: str) -> list[TextPiece | ThoughtPiece | CallPiece]:
        """Return the pieces that new text adds to the thought and to the reply or the call."""
        self.text += more
        if not self._part and len(self.text) > MAX_BLANKS and not self.text[:MAX_BLANKS].strip():
            self._part = "blanks"
        pieces = [self._read()]
        while begun := self._match_beginning():
            self._part, self._place = begun[0], begun[1].end()
            self._called = begun[1][1] if self._part == "call" else ""
            pieces.append(self._read())
        return [piece for piece in pieces if piece is not None]

    def _match_beginning(self) -> tuple[str, re.Match[str]] | None:
        """Return the part that begins here, if any."""
        found = (
            (part, how.match(self.text, self._place))
            for part, how in _NEXT.get(self._part, {}).items()
        )
        return next(((part, match) for part, match in found if match), None)

    def _read(self) -> TextPiece | ThoughtPiece | CallPiece | None:
        begun = self._place
        if self._part == "call":
            self._place = len(self.text)
            return CallPiece(0, self._called, self.text[begun:]) if begun < self._place else None
        match = _CHARACTERS.match(self.text, begun) if self._part in ("thought", "reply") else None
        if match is None or not match[0]:
            return None
        self._place = match.end()
        read = str(read_json(f'"{with_plain_escapes(match[0])}"', LOOSE))
        if self._part == "thought":
            self.thought += read
            return ThoughtPiece(read)
        self.reply += read
        return TextPiece(read)


REPLY_TOKENS: Final = 1_536
"""Maximum tokens of a step unless the settings say otherwise: a function of about a hundred lines."""

AGAIN: Final = 0.8
"""Temperature of a step after the model repeated itself; at 0, the likeliest step would repeat again."""

_USUAL: Final = Dialect().constraints[:1]


class Completions(Protocol):
    """A provider of chat completions, such as an `Endpoint`."""

    def complete(
        self, body: Mapping[str, Any]
    ) -> AsyncGenerator[dict[str, Any] | RetryPiece, None]:
        """Yield the chunks of one completion. Any: JSON in the shape of chat completions."""

    async def aclose(self) -> None:
        """Release the resources."""


class ConstrainedModel:
    """A `Model` that writes one JSON object per step; `ways` are the ways to constrain it to a schema, in order."""

    mode = "constrained"

    def __init__(
        self,
        completions: Completions,
        name: str,
        window: Window | int,
        settings: ModelSettings | None = None,
        clock: Clock | None = None,
        *,
        ways: Sequence[str] = _USUAL,
    ) -> None:
        self._forms = ReplyFormState(ways)
        self.name = name
        self.window = Window(window, "its own") if isinstance(window, int) else window
        self.context_limit = self.window.tokens
        self._completions = completions
        self._settings = settings or ModelSettings()
        self._clock = clock or Clock()
        self._conversation = WireConversation()
        self._measured: tuple[tuple[FunctionShown, ...], int] = ((), fixed_size(()))

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """Return the size of the fixed text in bytes: the protocol, the few functions that are always shown, the
        demonstration.
        """
        if functions is not self._measured[0]:
            self._measured = functions, fixed_size(functions)
        return self._measured[1]

    async def stream(self, request: Request) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of one step; the last piece is the `Reply`.

        Raises:
            ContextOverflow: the request is longer than the window.
            ModelError: there is no usable answer; the message says why and what to do.
        """
        entries = self._conversation.write(request)
        while True:
            try:
                async with aclosing(self._once(request, entries)) as pieces:
                    async for piece in pieces:
                        yield piece
            except (NotTaken, NotHeld) as error:
                self._forms.next(error)
            else:
                return

    async def _once(self, request: Request, entries: list[Entry]) -> AsyncGenerator[Piece, None]:
        whole, received = _Whole(), 0
        async with aclosing(self._completions.complete(self._body(request, entries))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, RetryPiece):
                    yield chunk
                    continue
                bulk = bulk_of(chunk)
                received += bulk
                for piece in await read_aside(bulk, partial(whole.take, chunk)):
                    yield piece
                self._check_held(whole.is_prose)
        reply = await read_aside(received, partial(whole.reply, self._clock.new_id(), entries))
        self._check_held(whole.is_other)
        if whole.is_step:
            self._forms.worked()
        if len(reply.text) > len(whole.step.reply):
            yield TextPiece(reply.text[len(whole.step.reply) :])
        yield reply

    def _check_held(self, is_loose: bool) -> None:  # noqa: FBT001 - a finding, not a mode
        """Raise `NotHeld` for prose from an endpoint that is not known to constrain replies."""
        if is_loose and not self._forms.holds:
            raise NotHeld("answered as if it had not been asked for")

    async def aclose(self) -> None:
        """Close the endpoint."""
        await self._completions.aclose()

    def _body(self, request: Request, entries: list[Entry]) -> dict[str, Any]:
        may_reply = REPLY not in request.excluded and not (request.is_apart and request.functions)
        shape = (
            None
            if request.shape is None
            else (request.shape.get("json_schema") or {}).get("schema", {})
        )
        calls: list[tuple[str, str]] = []  # since the user's last message
        for message in request.messages:
            if isinstance(message, User):
                calls.clear()
            elif isinstance(message, Assistant):
                calls += [(call.name, call.arguments) for call in message.calls]
        is_repeating = len(set(calls)) < len(calls)
        temperature, usual = self._settings.temperature, AGAIN if is_repeating else 0
        schema = step_schema(
            self._conversation.callable_now(request), may_reply=may_reply, shape=shape
        )
        body: dict[str, Any] = {
            "messages": entries,
            **self._forms.constrain(schema),
            "max_tokens": request.max_tokens or self._settings.max_tokens or REPLY_TOKENS,
            "temperature": usual if temperature is None else temperature,
            "stream": self._settings.stream,
        }
        if self._settings.stream:
            body["stream_options"] = {"include_usage": True}
        return body | dict(request.parameters)


class _Whole:
    """The chunks of one completion, combined."""

    def __init__(self) -> None:
        self.step = GrowingStep()
        self.is_step = False
        """Whether the text is a complete step."""
        self._has_step = False
        self._splitter = Splitter()
        self._reasoning = Reasoning()
        self._finish = ""
        self._usage: TokenUsage | None = None

    @property
    def is_prose(self) -> bool:
        """True if the text so far can no longer become a JSON object."""
        return self.step.text[:MAX_BLANKS].lstrip()[:1] not in ("", "{", "`")

    @property
    def is_other(self) -> bool:
        """True if there is text but it is not a step; known once the reply is."""
        return bool(self.step.text.strip()) and not self._has_step

    def take(self, chunk: Mapping[str, Any]) -> list[Piece]:
        """Return the displayable pieces that a chunk adds."""
        self._usage = read_usage(dict(chunk)) or self._usage
        pieces: list[Piece] = [*read_progress(dict(chunk))]
        for delta in read_chunk(dict(chunk)):
            self._finish = delta.finish or self._finish
            thought, text = self._splitter.feed(delta.text)
            thought = self._reasoning.add(delta.message) + thought
            pieces += [ThoughtPiece(thought)] if thought else []
            pieces += self.step.feed(text) if text else ()
        return pieces

    def reply(self, call_id: str, entries: list[Entry]) -> Reply:
        """Return the whole reply. A call that was cut off is left out; `cut` names it and where it ended."""
        self.step.feed(self._splitter.rest()[1])
        text, finish = self.step.text, finish_of(self._finish)
        base = Reply(
            "",
            self.step.thought,
            (),
            finish,
            self._tokens(entries),
            note=note_of(finish, self._finish),
        )
        step = read_step(text)
        self._has_step = step is not None
        if step is None:
            note = "The model wrote no step, so its text is used as it is." if text else base.note
            return replace(base, text=text.strip(), note=note)
        if not step.is_whole and finish == "stop":
            raise ModelError(
                "The model's answer broke off in the middle.",
                fix="Try again, or raise `model.max_tokens`.",
            )
        self.is_step = step.is_whole
        thought = step.thought or base.thought
        if not step.name:
            return replace(base, text=step.reply or self.step.reply, thought=thought)
        if step.is_whole:
            calls = (Call(call_id, step.name, step.arguments),)
            return replace(base, thought=thought, calls=calls, finish="calls", note="")
        cut = (cut_call(step.name, step.arguments),)
        return replace(base, thought=thought, cut=cut, note=note_on(cut))

    def _tokens(self, entries: list[Entry]) -> TokenUsage:
        if self._usage is not None:
            return self._usage
        prompt = sum(len(entry["content"].encode("utf-8", "replace")) for entry in entries)
        written = len(self.step.text.encode("utf-8", "replace"))
        return TokenUsage(
            int(prompt / BYTES_PER_TOKEN), int(written / BYTES_PER_TOKEN), estimated=True
        )


class ConstrainedMode:
    """The mode, as the core asks it."""

    instructions = INSTRUCTIONS

    def open(self, endpoint: Endpoint, window: Window, clock: Clock | None) -> ConstrainedModel:
        """Return the endpoint's model in this mode."""
        ways = endpoint.dialect.constraints
        return ConstrainedModel(
            endpoint, endpoint.model, window, endpoint.settings, clock, ways=ways
        )

    def compared(self, request: Request) -> list[str]:
        """Return the texts that are compared by their vectors: the functions and the user's messages."""
        return compared(request)

    def find(
        self,
        message: str,
        functions: Sequence[FunctionShown],
        vectors: Mapping[str, bytes] | None = None,
    ) -> list[FunctionShown]:
        """Return the functions that a message brings up, best first."""
        return find(message, functions, vectors)
