"""Replacements for built-ins that would wait for absent users, and for functions of `self` within examples."""

import builtins
import functools
from collections.abc import Callable
from typing import Any, NoReturn

from .context import Context


def install() -> None:
    """Replace `input`."""
    builtins.input = _no_input


def _no_input(prompt: object = "") -> NoReturn:
    raise EOFError("input() has nobody to ask: take the value as a parameter of the function")


def with_context(function: Callable[..., Any], context: Context) -> Callable[..., Any]:  # any function
    """Return the function with its `self` bound."""
    return functools.wraps(function)(functools.partial(function, context))
