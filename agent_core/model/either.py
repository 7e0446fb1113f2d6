"""Mode `auto`: native calls while the endpoint accepts functions, constrained mode afterwards.

What the endpoint shows decides: a refusal in words that `dialects.toml` knows, or a window that the functions fill.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from agent_core.base.errors import ModelError

from .failures import FunctionsRefused
from .reply import Mode, ModeChanged, Model, Piece
from .request import FunctionShown, Request

_BYTES_PER_TOKEN: Final = 3.4
_MOST: Final = 0.5  # of the window may be functions
_FROM_NOW: Final = "its calls are written under a schema from now on (`model.mode` = constrained)."


class EitherModel:
    """A native model that can change to constrained mode; `room_fix` says how to get a larger window."""

    def __init__(self, native: Model, constrained: Callable[[], Model], room_fix: str = "") -> None:
        self._model = native
        self._room_fix = room_fix
        self._constrained = constrained

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

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """Return the size of the functions as they are shown at present."""
        return self._model.overhead(functions)

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """Yield the pieces of one reply, in order; the last piece is the one `Reply`."""
        self._check_room(request)
        try:
            async with aclosing(self._model.stream(request)) as pieces:  # type: ignore[type-var]  # a generator
                async for piece in pieces:
                    yield piece
        except FunctionsRefused as error:
            if self.mode == "constrained":
                raise
            raise self._changed(f"{error.message} So {_FROM_NOW}") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._model.aclose()

    def _check_room(self, request: Request) -> None:
        tokens = int(self.overhead(request.functions) / _BYTES_PER_TOKEN)
        if self.mode == "native" and tokens > self.context_limit * _MOST:
            message = f"The functions need about {tokens:,} tokens of {self.name}'s {self.context_limit:,}"
            raise self._changed(f"{message}, so {_FROM_NOW} {self._room_fix}".rstrip())

    def _changed(self, why: str) -> ModelError:
        self._model = self._constrained()
        return ModeChanged(why)
