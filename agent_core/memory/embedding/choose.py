"""Chooses the embedding model that the settings name; choosing loads nothing."""

from collections.abc import Callable
from importlib import import_module
from typing import Literal, TypeAlias

from agent_core.base.errors import UsageError

from .embedder import Embedder
from .minilm import minilm
from .static import wordllama

Name: TypeAlias = Literal["wordllama", "minilm", "endpoint", "none"]


def embedder(
    name: Name, *, model: str | None = None, url: str = "", key: str = "", check: Callable[[], None] | None = None
) -> Embedder | None:
    """Return the model of that name; None if texts are found by words alone.

    An endpoint is asked only where `check` raises nothing.

    Raises:
        UsageError: an endpoint's model needs an address and a name.
    """
    match name:
        case "none":
            return None
        case "wordllama":
            return wordllama()
        case "minilm":
            return minilm()
    if not (url and model):
        raise UsageError("An endpoint that embeds needs an address and a model.", fix="Set `[memory] embedding_model`.")
    endpoint_model: Embedder = import_module(f"{__package__}.endpoint").EndpointModel(
        url, model, key, check
    )  # httpx2 is slow to import
    return endpoint_model
