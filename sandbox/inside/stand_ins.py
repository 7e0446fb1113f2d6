"""Built-ins that would wait for a human who is not there, and functions of `self` within examples."""

import builtins
import functools
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from .context import Context


def install() -> None:
    """Replace `input` and what `breakpoint` does."""
    builtins.input = _no_input
    sys.breakpointhook = _no_debugger


def _no_input(prompt: object = "") -> NoReturn:
    raise EOFError("input() has nobody to ask: take the value as a parameter of the function")


def _no_debugger(*_arguments: Any, **_options: Any) -> None:  # the hook's own signature
    frame = sys._getframe(1)
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    print(f"breakpoint() at {place}: no debugger is attached, so it was passed over")  # noqa: T201 - the call's output


def with_context(function: Callable[..., Any], context: Context) -> Callable[..., Any]:  # any function
    """The function with its `self` given."""
    return functools.wraps(function)(functools.partial(function, context))
