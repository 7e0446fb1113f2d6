"""One call: build the arguments, pass `self`, await the result if needed, and check it against the annotation."""

import collections.abc
import importlib
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..wire.caps import MOST_ITEMS
from .build import Unfit, build
from .context import Context
from .hints import NOTHING_TO_CHECK, Hint, is_union, of_class, of_function, origin_of, peel, required_keys, words
from .simplification import bounded, is_iterator

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
    except TypeError:  # a protocol or a special form cannot be checked
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


_HAS_REST, _HAS_KEYWORDS = 0x04, 0x08  # the code flags of *rest and **keywords


def is_bare(value: object) -> bool:
    """Return whether this is a function with the context as its first parameter."""
    return isinstance(value, types.FunctionType) and value.__code__.co_varnames[: value.__code__.co_argcount][:1] == (
        "self",
    )


def call(function: Callable[..., Any], arguments: Mapping[str, Any], context: Context) -> Any:
    """Return the result of the function for these JSON-like arguments."""
    plain = _unwrap(function)
    if not isinstance(plain, types.FunctionType):
        return run(lambda: function(**arguments))
    hints = _hints(plain)
    leading: list[Any] = [context] if is_bare(plain) else []
    named = _build_arguments(plain, arguments, hints, leading)
    rest, named = _spread(plain, named)
    names = plain.__code__.co_varnames
    for name in names[len(leading) : plain.__code__.co_argcount if rest else plain.__code__.co_posonlyargcount]:
        if name not in named and not rest:
            break
        leading.append(named.pop(name) if name in named else defaults(plain)[name])
    value = function(*leading, *rest, **named)
    if isinstance(value, types.AsyncGeneratorType):
        return run(lambda: value)
    value = run(lambda: value)
    if "return" in hints:
        if is_iterator(value) and origin_of(peel(hints["return"])) is list:
            value = bounded(value)
        check(value, hints["return"])
    return value


def _variadic(function: types.FunctionType) -> tuple[str, str]:
    """Return the names of `*args` and `**kwargs`, each empty if there is none."""
    code = function.__code__
    at = code.co_argcount + code.co_kwonlyargcount
    rest = code.co_varnames[at] if code.co_flags & _HAS_REST else ""
    return rest, code.co_varnames[at + bool(rest)] if code.co_flags & _HAS_KEYWORDS else ""


def _spread(function: types.FunctionType, named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the items for `*args`, and all arguments by name, including those for `**kwargs`."""
    rest, keywords = _variadic(function)
    items = named.pop(rest, ()) if rest else ()
    more = named.pop(keywords, {}) if keywords else {}
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if taken := [name for name in more if name in named or name in own]:
        raise Unfit(f"{keywords}: {taken[0]} is {'given twice' if taken[0] in named else 'a parameter of its own'}")
    return list(items), {**named, **more}


def _unwrap(function: Callable[..., Any]) -> Callable[..., Any]:
    for _depth in range(50):
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    return function


def _hints(function: types.FunctionType) -> dict[str, Hint]:
    try:
        return of_function(function)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise Unfit(f"the types in the signature of {function.__name__} cannot be resolved: {error}") from error


def _build_arguments(
    function: types.FunctionType, arguments: Mapping[str, Any], hints: dict[str, Hint], leading: list[Any]
) -> dict[str, Any]:
    code = function.__code__
    positional = code.co_varnames[len(leading) : code.co_argcount]
    names = (*positional, *code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
    rest, keywords = _variadic(function)
    known = {*names, rest, keywords}
    if not keywords and (unknown := [name for name in arguments if name not in known]):
        raise Unfit(f"{unknown[0]}: {function.__name__} has no such parameter; it has {', '.join(names) or 'none'}")
    optional = {*positional[len(positional) - len(function.__defaults__ or ()) :], *(function.__kwdefaults__ or {})}
    declared = _declared_defaults(function, names, arguments, hints) if "pydantic.fields" in sys.modules else {}
    if missing := [name for name in names if name not in arguments and name not in optional | declared.keys()]:
        raise Unfit(f"{missing[0]}: {function.__name__} needs this argument")
    kinds: dict[str, Hint] = {name: hints.get(name, Any) for name in arguments}
    kinds |= {rest: list[hints.get(rest, Any)], keywords: dict[str, hints.get(keywords, Any)]}  # type: ignore[misc]
    return declared | {name: build(value, kinds[name], name) for name, value in arguments.items()}


def _declared_defaults(
    function: types.FunctionType, names: tuple[str, ...], arguments: Mapping[str, Any], hints: dict[str, Hint]
) -> dict[str, Any]:
    """Return the defaults that `Field(…)` declares for omitted parameters."""
    info = sys.modules["pydantic.fields"].FieldInfo
    given = defaults(function)
    declared = {}
    for name in names:
        if name in arguments:
            continue
        own = given.get(name, Ellipsis)
        if own is not Ellipsis and not isinstance(own, info):
            continue  # Python applies a plain default
        fields = [own, *reversed(getattr(hints.get(name), "__metadata__", ()))]
        field = next((part for part in fields if isinstance(part, info) and not part.is_required()), None)
        if field is not None:
            declared[name] = field.get_default(call_default_factory=True)
        elif own is not Ellipsis:
            raise Unfit(f"{name}: {function.__name__} needs this argument")
    return declared


def defaults(function: types.FunctionType) -> dict[str, Any]:
    """Return the default of each parameter that has one."""
    names, given = function.__code__.co_varnames[: function.__code__.co_argcount], function.__defaults__ or ()
    return {**dict(zip(names[len(names) - len(given) :], given, strict=True)), **(function.__kwdefaults__ or {})}


def run(act: Callable[[], Any]) -> Any:
    """Return the result of an action, awaited if it is awaitable, or the items if it is an async generator."""
    value = act()
    if isinstance(value, types.AsyncGeneratorType):
        return importlib.import_module("asyncio").run(_gather(value))
    if not isinstance(value, Awaitable):
        return value
    return importlib.import_module("asyncio").run(_wait(value))


async def _gather(items: types.AsyncGeneratorType[Any, None]) -> list[Any]:
    gathered: list[Any] = []
    async for item in items:
        gathered.append(item)
        if len(gathered) > MOST_ITEMS:
            break
    return bounded(iter(gathered))


async def _wait(value: Awaitable[Any]) -> Any:
    return await value
