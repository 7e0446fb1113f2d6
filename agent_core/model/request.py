"""The input of a model: the messages, and the functions it may call. Plain values."""

from dataclasses import dataclass
from typing import Any

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
