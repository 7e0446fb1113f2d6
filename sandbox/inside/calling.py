"""One call: build the arguments, pass `self`, await what is awaitable, check the result."""

import importlib
import types
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .build import Unfit, build
from .check import check
from .context import Context
from .hints import Hint, of_function

_GENERATORS = (types.GeneratorType, types.AsyncGeneratorType)
_HAS_KEYWORDS = 0x08  # the code flag of **keywords


def is_bare(value: object) -> bool:
    """Return whether this is a function with the context as its first parameter."""
    return isinstance(value, types.FunctionType) and value.__code__.co_varnames[: value.__code__.co_argcount][:1] == (
        "self",
    )


def call(function: Callable[..., Any], arguments: Mapping[str, Any], context: Context) -> Any:
    """Return the result of the function for these JSON-like arguments."""
    plain = _unwrapped(function)
    if not isinstance(plain, types.FunctionType):
        return run(lambda: function(**arguments))
    hints = _hints(plain)
    leading: list[Any] = [context] if is_bare(plain) else []
    named = _built(plain, arguments, hints, leading)
    for name in plain.__code__.co_varnames[len(leading) : plain.__code__.co_posonlyargcount]:
        if name not in named:
            break
        leading.append(named.pop(name))
    value = run(lambda: function(*leading, **named))
    if "return" in hints:
        check(value, hints["return"])
    return value


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
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


def _built(
    function: types.FunctionType, arguments: Mapping[str, Any], hints: dict[str, Hint], leading: list[Any]
) -> dict[str, Any]:
    code = function.__code__
    positional = code.co_varnames[len(leading) : code.co_argcount]
    names = (*positional, *code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
    if not code.co_flags & _HAS_KEYWORDS and (unknown := [name for name in arguments if name not in names]):
        raise Unfit(f"{unknown[0]}: {function.__name__} has no such parameter; it has {', '.join(names) or 'none'}")
    optional = {*positional[len(positional) - len(function.__defaults__ or ()) :], *(function.__kwdefaults__ or {})}
    if missing := [name for name in names if name not in arguments and name not in optional]:
        raise Unfit(f"{missing[0]}: {function.__name__} needs this argument")
    return {name: build(value, hints.get(name, Any), name) for name, value in arguments.items()}


def run(act: Callable[[], Any]) -> Any:
    """Return the result of an action, awaited if it is awaitable. A generator cannot be sent."""
    value = act()
    if isinstance(value, _GENERATORS):
        raise TypeError("the function gave a generator, which cannot be sent: return a list of what it yields")
    if not isinstance(value, Awaitable):
        return value
    return importlib.import_module("asyncio").run(_wait(value))


async def _wait(value: Awaitable[Any]) -> Any:
    return await value
