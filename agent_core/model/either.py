"""Mode `auto`: a model that calls functions natively as long as that works, and writes under a schema otherwise."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from agent_core.base.errors import ModelError

from .constrained import NoneHeld
from .failures import FunctionsRefused
from .profile import KnownModes, ModelProfile
from .reply import Mode, ModeChanged, Model, Piece, Reply
from .request import FunctionShown, Request
from .tokens import Window

_BYTES_PER_TOKEN: Final = 3.4
_MOST: Final = 0.5  # of the window may be functions
_FROM_NOW: Final = "from now on, its calls are written under a schema (`model.mode` = constrained)."
_NAME_CHARS: Final = 80


class EitherModel:
    """A native model that can change to constrained mode.

    It changes where the endpoint refuses functions, where they fill the window, and where the model writes a call as
    text before it has ever made one. It begins as the `profile` says; what is found out is kept in `known`.
    """

    def __init__(
        self,
        native: Model,
        constrained: Callable[[], Model],
        *,
        profile: ModelProfile,
        known: KnownModes,
    ) -> None:
        self._native = native
        self._constrained = constrained
        self._key, self._known = profile.key, known
        self._is_settled = profile.mode == "native"  # nothing that is written changes the mode any more
        self._model = constrained() if profile.mode == "constrained" else native

    @property
    def name(self) -> str:
        """The model's name at its endpoint."""
        return self._model.name

    @property
    def mode(self) -> Mode:
        """The mode in which calls are transmitted at present."""
        return self._model.mode

    @property
    def context_limit(self) -> int:
        """The size of the model's window in tokens."""
        return self._model.context_limit

    @property
    def window(self) -> Window:
        """The same, with the origin of the number."""
        return self._model.window

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """Return the size of the functions as they are shown at present."""
        return self._model.overhead(functions)

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """Yield the pieces of one reply, in order; the last piece is the one `Reply`."""
        self._check_room(request)
        is_native = self.mode == "native"
        try:
            async with aclosing(self._model.stream(request)) as pieces:  # type: ignore[type-var]  # a generator
                async for piece in pieces:
                    yield self._weighed(piece) if is_native and isinstance(piece, Reply) else piece
        except FunctionsRefused as error:
            if self.mode == "constrained":
                raise
            self._is_settled = True
            raise self._changed(f"{error.message} So {_FROM_NOW}") from error
        except NoneHeld as error:
            if self._is_settled:
                raise
            self._model, self._is_settled = self._native, True
            self._known.put(self._key, "native")
            raise ModeChanged(f"{error.message} So its calls are sent natively again.") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._model.aclose()

    def _weighed(self, reply: Reply) -> Reply:
        """Return a native reply. If it is a call as text and the model has never made one, the mode changes: a reply
        without calls is then to be asked for anew.
        """
        if self._is_settled or not (reply.calls or reply.written):
            return reply
        self._known.put(self._key, "constrained" if reply.written else "native")
        if not reply.written:
            self._is_settled = True
            return reply
        name = reply.written[0][:_NAME_CHARS]
        change = self._changed(f"{self.name} wrote a call of `{name}` as text: {_FROM_NOW}")
        return replace(reply, note=f"{reply.note} {change.message}".strip())

    def _check_room(self, request: Request) -> None:
        tokens = int(self.overhead(request.functions) / _BYTES_PER_TOKEN)
        if self.mode == "native" and tokens > self.context_limit * _MOST:
            message = f"The functions need about {tokens:,} tokens of {self.name}'s {self.context_limit:,}"
            self._is_settled = True
            raise self._changed(f"{message}, so {_FROM_NOW} {self.window.fix}".rstrip())

    def _changed(self, why: str) -> ModelError:
        self._model = self._constrained()
        return ModeChanged(why)
