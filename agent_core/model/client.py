"""The function that opens the chosen model, and the client for models that call functions natively (`native` mode).

A step costs what is new in it: messages written for the last request are not written again.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal

from agent_core.base.clock import Clock
from agent_core.base.errors import ContextOverflow, ModelError
from agent_core.base.messages import Assistant, Message
from agent_core.base.settings import ModelSettings

from .constrained import ConstrainedModel
from .dialect import changed
from .discover import DiscoveredModel
from .either import EitherModel
from .endpoint import Endpoint
from .reply import Model, Piece, Reply, RetryPiece, TokenUsage
from .request import FunctionShown, Request
from .stream import Assembly
from .strict import loosened
from .tokens import Estimator
from .tour.endpoint import TourEndpoint
from .window import Window, find_window
from .wire import RequestWriter

_KEPT_CHARS: Final = 2000
_NAMED: Final = 6
_TOUR_TOKENS: Final = 1 << 17


class NativeModel:
    """A model behind an endpoint that accepts functions and answers with calls."""

    mode: Final[Literal["native"]] = "native"

    def __init__(self, endpoint: Endpoint, *, window: Window, clock: Clock | None = None) -> None:
        self.name = endpoint.model
        self.context_limit = window.tokens
        self.context_source = window.source
        self.estimator = Estimator()
        self._endpoint = endpoint
        self._settings = endpoint.settings
        self._clock = clock or Clock()
        self._writer = RequestWriter(endpoint.dialect)
        self._shown: tuple[FunctionShown, ...] = ()
        self._is_loosened_said = False

    @property
    def loosened(self) -> dict[str, str]:
        """The functions last shown that this endpoint's strict mode cannot express, each with the reason."""
        if not self._writer.dialect.strict:
            return {}
        reasons = {function.name: loosened(function.parameters) for function in self._shown}
        return {name: why for name, why in reasons.items() if why}

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """Return the size of the functions as they are sent."""
        return len(self._writer.functions(functions)) if functions else 0

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """Yield the pieces of one reply, in order; the last piece is the one `Reply`."""
        self._shown = request.functions
        begun = False
        while True:
            try:
                async with aclosing(self._once(request)) as pieces:
                    async for piece in pieces:
                        begun = begun or not isinstance(piece, RetryPiece)
                        yield self._with_loosened(piece) if isinstance(piece, Reply) else piece
            except ModelError as error:
                dialect = None if begun else changed(self._writer.dialect, error.message)
                if dialect is None:
                    raise
                self._writer.speak(dialect)
            else:
                return

    def _with_loosened(self, reply: Reply) -> Reply:
        """Add to the first reply a note that names the functions sent without strict schemas."""
        names = {} if self._is_loosened_said else self.loosened
        if not names:
            return reply
        self._is_loosened_said = True
        listed = ", ".join([*names][:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        note = f"Sent without a strict schema, which cannot express them (`toolwright doctor` says why): {listed}."
        return replace(reply, note=f"{reply.note} {note}".strip())

    async def _once(self, request: Request) -> AsyncGenerator[Piece, None]:
        body = self._body(request)
        size = len(body["messages"]) + len(body.get("tools", b""))
        assembly = Assembly(
            shown={function.name: (*function.parameters.get("properties", ()),) for function in request.functions},
            used_ids=_ids(request.messages),
            new_id=lambda: f"call_{self._clock.entropy(12).hex()}",
        )
        try:
            async with aclosing(self._endpoint.complete(body)) as chunks:
                async for chunk in chunks:
                    for piece in [chunk] if isinstance(chunk, RetryPiece) else assembly.add(chunk):
                        yield piece
        except ModelError as error:
            raise _with_what_came(error, assembly.text) from error
        last = assembly.close(self._estimate(size, assembly.text))
        self._writer.extras.update(assembly.extras)
        for piece in last:
            yield piece
        if assembly.usage:
            self.estimator.learn(size, assembly.usage.prompt)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def _body(self, request: Request) -> dict[str, Any]:  # Any: JSON values, and JSON text as bytes
        body: dict[str, Any] = {"messages": self._writer.messages(request.messages)}
        if request.functions:
            body["tools"] = self._writer.functions(request.functions)
        if self._settings.stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        if max_tokens := request.max_tokens or self._settings.max_tokens:
            body["max_tokens"] = max_tokens
        if self._settings.temperature is not None:
            body["temperature"] = self._settings.temperature
        return body

    def _estimate(self, prompt_bytes: int, text: str) -> TokenUsage:
        return TokenUsage(self.estimator.tokens(prompt_bytes), self.estimator.tokens_of(text), estimated=True)


class TourModel(NativeModel):
    """The model of the tour. It is not a language model: it reads and writes no tokens."""

    def _estimate(self, prompt_bytes: int, text: str) -> TokenUsage:
        return TokenUsage(0, 0)


async def open_model(chosen: DiscoveredModel, settings: ModelSettings, *, clock: Clock | None = None) -> Model:
    """Return the chosen model, ready for requests."""
    if chosen.kind == "local":
        from .local.server import open_local  # noqa: PLC0415 the local engine is an extra that may not be installed

        return await open_local(chosen.model_name, settings)
    if chosen.kind == "tour":
        return TourModel(await TourEndpoint.start(settings), window=Window(_TOUR_TOKENS, "the tour's"), clock=clock)
    endpoint = Endpoint(chosen.endpoint_url, chosen.model_name, key=chosen.key, settings=settings, clock=clock)
    window = await find_window(endpoint, chosen)
    native = NativeModel(endpoint, window=window, clock=clock)
    ways = endpoint.dialect.ways
    if settings.mode == "native" or (settings.mode == "auto" and not ways):
        return native
    if not ways:
        await endpoint.aclose()
        raise ModelError(
            f"{endpoint.dialect.name} holds no reply to a schema, which constrained mode needs.",
            fix="Set `model.mode` to native: its models call functions by themselves.",
        )
    constrained = partial(ConstrainedModel, endpoint, endpoint.model, window.tokens, settings, clock, ways=ways)
    return constrained() if settings.mode == "constrained" else EitherModel(native, constrained, window.fix)


def _ids(messages: tuple[Message, ...]) -> set[str]:
    return {call.id for message in messages if type(message) is Assistant for call in message.calls}


def _with_what_came(error: ModelError, text: str) -> ModelError:
    """Return the same error with the part of the reply that had already arrived."""
    if not text or isinstance(error, ContextOverflow):
        return error
    shown = text if len(text) <= _KEPT_CHARS else f"…{text[-_KEPT_CHARS:]}"
    return ModelError(f"{error.message} What had come: {shown}", fix=error.fix)
