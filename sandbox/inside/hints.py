"""Annotations as objects, with forward references resolved, and their text form."""

import dataclasses
import importlib
import types
import typing
from collections.abc import Callable
from typing import Any

NOTHING_TO_CHECK = (Any, object, typing.NoReturn, typing.Never, typing.Self)
_PLAIN = frozenset({int, str, float, bool, None})
_WRAPPERS: tuple[Any, ...] = (typing.Annotated, typing.Required, typing.NotRequired, typing.Final, typing.ClassVar)

Hint = Any  # anything that an annotation can be


def of_function(function: Callable[..., Any]) -> dict[str, Hint]:
    """Return the function's annotations. Raise NameError or the like if one does not resolve."""
    written = _annotations(function)
    if all(isinstance(hint, type) and hint in _PLAIN for hint in written.values()):
        return dict(written)
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError:
        known = getattr(function, "__globals__", {})
        if not _has_checkers_names(known):
            raise
        return {name: _resolve(hint, known) for name, hint in written.items()}


def _annotations(function: Callable[..., Any]) -> dict[str, Hint]:
    """Return the raw annotations, which newer versions of Python evaluate only now."""
    try:
        return getattr(function, "__annotations__", {})
    except NameError:
        annotations: Any = importlib.import_module("annotationlib")
        written: dict[str, Hint] = annotations.get_annotations(function, format=annotations.Format.FORWARDREF)
        return written


def _has_checkers_names(known: dict[str, Any]) -> bool:
    """Check whether a module imports names only for type checkers."""
    spec = known.get("__spec__")
    if known.get("TYPE_CHECKING") is False or typing not in known.values() or spec is None:
        return known.get("TYPE_CHECKING") is False
    return "TYPE_CHECKING" in (spec.loader.get_source(spec.name) or "")


def _resolve(hint: Hint, known: dict[str, Any]) -> Hint:
    """Resolve one hint; return Any for a name that only a type checker imports."""
    holder = types.SimpleNamespace(__annotations__={"hint": hint})
    try:
        return typing.get_type_hints(holder, known, include_extras=True)["hint"]
    except NameError:
        return Any


def of_class(kind: type) -> dict[str, Hint]:
    """Return the annotations of a class's fields; that of an `InitVar[T]` is `T`."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: hint.type if isinstance(hint, dataclasses.InitVar) else hint for name, hint in hints.items()}


def init_fields(kind: Any) -> list[dataclasses.Field[Any]]:
    """Return the fields that a dataclass takes when it is made, also those that it does not keep."""
    hints, fields = of_class(kind), kind.__dataclass_fields__.values()
    return [field for field in fields if field.init and origin_of(hints[field.name]) is not typing.ClassVar]


def peel(hint: Hint) -> Hint:
    """Return the hint without wrappers such as Annotated, Required or NewType; a type variable becomes its bound."""
    while True:
        if type(hint) is type:  # the common case
            return hint
        if any(origin_of(hint) is wrapper for wrapper in _WRAPPERS):
            hint = typing.get_args(hint)[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif isinstance(hint, typing.TypeVar):
            hint = hint.__bound__ or Any
        else:
            return type(None) if hint is None else hint


def alternatives(hint: Hint) -> tuple[Hint, ...]:
    """Return the alternative types of a value: the members of a union, or the bound or constraints of a variable."""
    if isinstance(hint, typing.TypeVar):
        return (hint.__bound__,) if hint.__bound__ else hint.__constraints__
    return typing.get_args(hint) if is_union(origin_of(hint)) else ()


def required_keys(kind: Any) -> list[str]:
    """Return the required keys of a TypedDict. `__required_keys__` is wrong if annotations are text."""
    origins = {key: origin_of(hint) for key, hint in of_class(kind).items()}
    required = {key for key, origin in origins.items() if origin is typing.Required}
    return sorted(required | {key for key in kind.__required_keys__ if origins[key] is not typing.NotRequired})


def origin_of(hint: Hint) -> Any:
    """Return the origin: `list` for `list[int]`, the hint itself if it takes no parameters."""
    origin: Any = typing.get_origin(hint)
    return hint if origin is None else origin


def is_union(origin: object) -> bool:
    """Return whether this is the origin of `X | Y`, `Union` or `Optional`."""
    return origin is typing.Union or origin is types.UnionType


def words(hint: Hint) -> str:
    """Return the hint as source text."""
    if isinstance(hint, type) and not typing.get_args(hint):
        return "None" if hint is type(None) else hint.__qualname__
    return str(hint).replace("typing.", "").replace("datetime.", "").replace("decimal.", "")
