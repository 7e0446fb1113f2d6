"""Prefilling: what a model can read before it is asked. Most models cannot do this and lose nothing."""

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from .request import Request

Tell: TypeAlias = Callable[[int, int], None]
"""Hears how many tokens were read, and of how many."""


@runtime_checkable
class Preparing(Protocol):
    """A model that reads slowly and can read the fixed beginning of its requests in advance."""

    async def prepare(self, request: Request, tell: Tell) -> None:
        """Prefill the model's prompt cache with the fixed part of the request.

        Raises:
            ModelError: it cannot be.
        """
