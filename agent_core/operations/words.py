"""How the parameters of operations are typed, in each face."""

import inspect
from typing import Any, get_args

from agent_core.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """How a parameter is typed: the kind of its completions, its type and its name in help, its name for models,
    and the longest text that a server takes.

    Some are options of the shell; one with `max_items` is a list, and its option is given once for each item.
    """

    kind: str = ""
    type: Any = None  # Any: a type of click
    metavar: str | None = None
    for_models: str = ""
    max_chars: int | None = None
    is_option: bool = False
    max_items: int | None = None


def word_of(parameter: inspect.Parameter) -> Word:
    """Return how a parameter is typed."""
    return next((part for part in get_args(parameter.annotation) if isinstance(part, Word)), Word())


def kind_of(parameter: inspect.Parameter) -> Any:  # Any: a type
    """Return the type of a parameter without what else is said of it."""
    return getattr(parameter.annotation, "__origin__", parameter.annotation)
