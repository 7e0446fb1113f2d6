"""Check of a returned value against the return annotation. A whole number counts as a float too."""

import collections.abc
import typing
from typing import Any

from .hints import NOTHING_TO_CHECK, Hint, is_union, of_class, origin_of, peel, required_keys, words

_NUMBERS = {float: (int, float), complex: (int, float, complex)}
_SEQUENCES = (list, set, frozenset, collections.abc.Sequence, collections.abc.Set, collections.deque)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class ReturnTypeError(TypeError):
    """A function returned something other than it declares."""


def check(value: Any, hint: Hint) -> None:
    """Raise ReturnTypeError, naming the place, if the value does not fit."""
    misfit = _misfit(value, hint, "the result")
    if misfit:
        raise ReturnTypeError(misfit)


def _misfit(value: Any, hint: Hint, path: str) -> str:
    hint = peel(hint)
    if any(hint is free for free in NOTHING_TO_CHECK) or isinstance(hint, str):
        return ""
    origin = origin_of(hint)
    if is_union(origin):
        fits = any(not _misfit(value, member, path) for member in typing.get_args(hint))
        return "" if fits else _say(value, hint, path)
    if origin is typing.Literal:
        return "" if value in typing.get_args(hint) else _say(value, hint, path)
    if typing.is_typeddict(origin):
        return _fields(value, origin, path)
    if not _is_instance(value, origin):
        return _say(value, hint, path)
    return _inside(value, origin, typing.get_args(hint), path)


def _is_instance(value: Any, origin: Any) -> bool:
    try:
        return isinstance(value, _NUMBERS.get(origin, origin))
    except TypeError:  # a protocol or a special form: nothing that can be decided by looking
        return True


def _inside(value: Any, origin: Any, arguments: tuple[Hint, ...], path: str) -> str:
    if not arguments:
        return ""
    if origin is tuple:
        return _tuple(value, arguments, path)
    if origin in _SEQUENCES:
        return _first(_misfit(item, arguments[0], f"{path}[{at}]") for at, item in enumerate(value))
    if origin in _MAPPINGS:
        keys = (_misfit(key, arguments[0], f"{path}'s key {key!r}") for key in value)
        items = (_misfit(item, arguments[1], f"{path}[{key!r}]") for key, item in value.items())
        return _first(keys) or _first(items)
    return ""


def _tuple(value: tuple[Any, ...], arguments: tuple[Hint, ...], path: str) -> str:
    if arguments[-1] is Ellipsis:
        arguments = arguments[:1] * len(value)
    if len(arguments) != len(value):
        return f"{path}: expected {len(arguments)} items, got {len(value)}"
    pairs = zip(value, arguments, strict=True)
    return _first(_misfit(item, hint, f"{path}[{at}]") for at, (item, hint) in enumerate(pairs))


def _fields(value: Any, kind: Any, path: str) -> str:
    if not isinstance(value, dict):
        return _say(value, kind, path)
    hints = of_class(kind)
    missing = [key for key in required_keys(kind) if key not in value]
    if missing:
        return f"{path}: the key {missing[0]!r} is missing"
    unknown = [key for key in value if key not in hints]
    if unknown:
        return f"{path}: {kind.__name__} has no key {unknown[0]!r}"
    return _first(_misfit(item, hints[key], f"{path}[{key!r}]") for key, item in value.items())


def _first(misfits: collections.abc.Iterator[str]) -> str:
    return next((misfit for misfit in misfits if misfit), "")


def _say(value: Any, hint: Hint, path: str) -> str:
    shown = repr(value)
    actual = shown if len(shown) <= 80 else f"{shown[:79]}…"
    return f"{path}: expected {words(hint)}, got {actual} ({type(value).__name__})"
