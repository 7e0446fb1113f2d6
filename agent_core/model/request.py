"""The input of a model as plain values: the messages, and the functions that it may call.

A model that reads slowly may support reading the beginning of its requests in advance. Most models do not.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from agent_core.base.messages import Message
from agent_core.base.records import dataclass, field

if TYPE_CHECKING:
    from .reading import KnownFunctions

_ENVELOPE: Final = 80
REPLY: Final = "(reply)"
"""Represents the reply in `Request.excluded`: this step must make a call."""


@dataclass(frozen=True)  # without slots, which `cached_property` cannot use
class FunctionShown:
    """A function as the model sees it; `parameters` is the JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]  # Any: JSON Schema, passed on unchanged
    is_host: bool = False
    """True for a function of the program, which no other function of a request brings along."""

    @cached_property
    def size(self) -> int:
        """The approximate size on the wire in bytes."""
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
    """Additional parameters for the endpoint, such as a temperature; they take precedence over the settings."""
    shape: Mapping[str, Any] | None = None  # Any: JSON
    """The form of the reply, as in `response_format`, if it must be a JSON object."""
    vectors: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Embedding vectors of the texts that constrained mode compares; without them it compares words only."""
    callable: "KnownFunctions | None" = field(default=None, repr=False)
    """Functions that can be called without being shown by a schema."""
    pictures: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The pictures of the messages by their digest, each as a `data:` address; the model is told of others in words."""
    is_apart: bool = False
    """A separate question, not a step of a conversation: constrained mode shows no demonstration and, if there are
    functions, requires the answer to be a call.
    """


Tell: TypeAlias = Callable[[int, int], None]
"""A listener that receives the number of tokens read and the total."""


@runtime_checkable
class Preparing(Protocol):
    """A model that reads slowly and can read the fixed beginning of its requests in advance."""

    async def prepare(self, request: Request, tell: Tell) -> None:
        """Prefill the model's prompt cache with the fixed part of the request.

        Raises:
            ModelError: that failed.
        """
