"""What the examples show of a function: the literal arguments of each call, and the literal that it gives."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...registry.examples import find as find_prompts
from ..tree import literal, parameters
from .view import View

_MOST = 50  # examples that are looked at


@dataclass(frozen=True, slots=True)
class Sample:
    """One call of the function; `results` holds what it gives, where that is a literal and certain in its type."""

    call: str
    arguments: dict[str, object]
    results: tuple[object, ...] = ()


def samples(view: View) -> list[Sample]:
    """Every call of the function in its examples, in the docstring and beside the code."""
    return [*_written(view), *_given(view)][:_MOST]


def _written(view: View) -> Iterator[Sample]:
    try:
        prompts = list(find_prompts(view.words)) if ">>>" in view.words else []
    except ValueError:
        return
    for one in prompts:
        arguments = _arguments(view, one.source)
        if arguments is not None and not one.raises:
            yield Sample(one.source.strip(), arguments, _results(one.want))


def _given(view: View) -> Iterator[Sample]:
    # Given results are compared as Python compares, 2 with 2.0, so they tell no types.
    for one in view.examples[:_MOST]:
        arguments = _arguments(view, one.call)
        if arguments is not None:
            yield Sample(one.call.strip(), arguments)


def _results(text: str) -> tuple[object, ...]:
    try:
        is_literal, value = literal(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return (value,) if is_literal else ()


def _arguments(view: View, call: str) -> dict[str, object] | None:
    """The literal arguments of a call of the function by their names; None if it is something else."""
    try:
        node = ast.parse(call.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != view.name:
        return None
    if any(isinstance(one, ast.Starred) for one in node.args):
        return None
    named = {one.arg for one in view.node.args.kwonlyargs}
    order = [one.arg for one in parameters(view.node) if one.arg not in named]
    pairs = [*zip(order, node.args, strict=False), *((one.arg, one.value) for one in node.keywords if one.arg)]
    read = {name: literal(value) for name, value in pairs}
    return {name: value for name, (is_literal, value) in read.items() if is_literal}
