"""JSON Schema of annotations that cannot be decided from syntax, by pydantic, in the worker."""

import importlib
import types
from typing import Any

from .build import Unfit
from .hints import Hint, of_function


def of(function: object, name: str) -> dict[str, Any]:
    """Return parameter → JSON Schema, with `return` for the result. Raise Unfit naming a type that has none."""
    if not isinstance(function, types.FunctionType):
        raise Unfit(f"{name}: there is no such function")
    try:
        pydantic = importlib.import_module("pydantic")
        hints = of_function(function)
    except ImportError as error:
        raise Unfit(f"{name}: its types need pydantic, which functions cannot import here") from error
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise Unfit(f"{name}: its types cannot be resolved: {error}") from error
    return {parameter: _schema(pydantic, hint, f"{name}: {parameter}") for parameter, hint in hints.items()}


def _schema(pydantic: types.ModuleType, hint: Hint, place: str) -> dict[str, Any]:
    mode = "serialization" if place.endswith(": return") else "validation"
    try:
        schema: dict[str, Any] = pydantic.TypeAdapter(hint).json_schema(mode=mode)
    except (pydantic.errors.PydanticUserError, TypeError, AttributeError) as error:
        raise Unfit(f"{place}: there is no JSON Schema for this type: {error}") from error
    return schema
