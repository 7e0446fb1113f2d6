"""The input of a model as plain values: the messages, and the functions that it may call.

A model that reads slowly can read the beginning of its requests in advance. Most cannot, and lose nothing.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from agent_core.base.messages import Message

_ENVELOPE: Final = 80
REPLY: Final = "(reply)"
"""Stands in `Request.excluded` for the reply: this step has to call something."""


@dataclass(frozen=True)  # without slots: what is made once lies in it
class FunctionShown:
    """A function as the model sees it; `parameters` is the JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]  # Any: JSON Schema, passed on as it is

    @cached_property
    def size(self) -> int:
        """About how many bytes it takes on the wire."""
        return len(self.name) + len(self.description) + len(json.dumps(self.parameters)) + _ENVELOPE


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Reuse the message and function objects from step to step: known ones are not serialized again."""

    messages: tuple[Message, ...]
    functions: tuple[FunctionShown, ...] = ()
    max_tokens: int | None = None
    excluded: frozenset[str] = frozenset()
    """Names that constrained mode leaves out of this step's schema; native mode ignores them."""
    parameters: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON
    """More parameters for the endpoint, such as a temperature; they take precedence over the settings."""
    shape: Mapping[str, Any] | None = None  # Any: JSON
    """The shape of the reply as `response_format` says it, if it has to be a JSON object."""
    vectors: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Of texts that constrained mode compares, the vectors of an embedding; without them it compares words alone."""
    is_apart: bool = False
    """A question of its own, no step of a conversation: constrained mode shows no demonstration of one, and holds the
    answer to a call of the functions, if there are any."""


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
