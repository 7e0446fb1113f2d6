"""The input of a model as plain values: the messages, and the functions that it may call.

A model that reads slowly can read the beginning of its requests in advance. Most cannot, and lose nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from agent_core.base.messages import Message


@dataclass(frozen=True, slots=True)
class FunctionShown:
    """A function as the model sees it; `parameters` is the JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]  # Any: JSON Schema, passed on as it is


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Reuse the message and function objects from step to step: known ones are not serialized again."""

    messages: tuple[Message, ...]
    functions: tuple[FunctionShown, ...] = ()
    max_tokens: int | None = None
    excluded: frozenset[str] = frozenset()
    """Names that constrained mode leaves out of this step's schema; native mode ignores them."""


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
