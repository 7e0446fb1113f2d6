"""Mode `auto`: native calls for as long as the endpoint takes functions, constrained mode from then on.

What the endpoint shows decides: a refusal in words that `dialects.toml` knows, or a window that the functions fill.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from ..errors import ModelError
from .failures import FunctionsRefused
from .reply import Mode, ModeChanged, Model, Piece
from .request import FunctionShown, Request

_BYTES_PER_TOKEN: Final = 3.4
_MOST: Final = 0.5  # of the window may be functions
_FROM_NOW: Final = "its calls are written under a schema from now on (`model.mode` = constrained)."


class EitherModel:
    """A native model, and the way to the constrained one there; `room_mend` says how to get a larger window."""

    def __init__(self, native: Model, constrained: Callable[[], Model], room_mend: str = "") -> None:
        self._model = native
        self._room_mend = room_mend
        self._constrained = constrained

    @property
    def name(self) -> str:
        """What it is called at its endpoint."""
        return self._model.name

    @property
    def mode(self) -> Mode:
        """How calls travel at present."""
        return self._model.mode

    @property
    def context_limit(self) -> int:
        """The size of its window in tokens."""
        return self._model.context_limit

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """The size of the functions as they are shown at present."""
        return self._model.overhead(functions)

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """The pieces of one reply, in order; the last is the one `Reply`."""
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
        """Let go of connections."""
        await self._model.aclose()

    def _check_room(self, request: Request) -> None:
        tokens = int(self.overhead(request.functions) / _BYTES_PER_TOKEN)
        if self.mode == "native" and tokens > self.context_limit * _MOST:
            what = f"The functions need about {tokens:,} tokens of {self.name}'s {self.context_limit:,}"
            raise self._changed(f"{what}, so {_FROM_NOW} {self._room_mend}".rstrip())

    def _changed(self, why: str) -> ModelError:
        self._model = self._constrained()
        return ModeChanged(why)
