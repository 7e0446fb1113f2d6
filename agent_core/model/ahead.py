"""What a model can be told before it is asked: most cannot, and lose nothing by that."""

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from .request import Request

Tell: TypeAlias = Callable[[int, int], None]
"""Hears how many tokens were read, and of how many."""


@runtime_checkable
class Preparing(Protocol):
    """A model that reads slowly, and reads what every request begins with ahead of them."""

    async def prepare(self, request: Request, tell: Tell) -> None:
        """Have the fixed part of such a request read.

        Raises:
            ModelError: it cannot be.
        """
