"""Making one call: bind the arguments, give `self`, await what is awaitable, check what comes back."""

import importlib
import types
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .context import Context


class Unfit(Exception):
    """The job does not fit the code; the message is for whoever asked."""


def is_bare(value: object) -> bool:
    """Whether this is a function whose first parameter is the context."""
    return isinstance(value, types.FunctionType) and value.__code__.co_varnames[:1] == ("self",)


def bind(function: Callable[..., Any], arguments: Mapping[str, Any], context: Context) -> Callable[[], Any]:
    """The call, ready to run."""
    given = (context,) if is_bare(function) else ()
    return lambda: function(*given, **arguments)


def run(call: Callable[[], Any]) -> Any:  # whatever function code gives
    """The call's value, awaited where it is awaitable."""
    value = call()
    if not isinstance(value, Awaitable):
        return value
    asyncio = importlib.import_module("asyncio")
    return asyncio.run(_wait(value))


async def _wait(value: Awaitable[Any]) -> Any:
    return await value
