"""JSON Schema of annotations that syntax cannot decide, by pydantic, in the worker."""

from typing import Any


def of(function: object, name: str) -> dict[str, Any]:
    """Parameter → JSON Schema, and `return`."""
    raise NotImplementedError(name)
