"""What the examples show of a function: the literal arguments of each call, and the literal that it gives."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...registry.examples import find as find_prompts
from ..tree import literal, nodes_of, parameters, parse
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
        for node in _calls(view, one.source) if not one.raises else ():
            source = ast.unparse(node)
            is_alone = isinstance(_parsed(one.source), ast.Expr) and source == ast.unparse(ast.parse(one.source))
            yield Sample(source, _arguments(view, node), _results(one.want) if is_alone else ())


def _given(view: View) -> Iterator[Sample]:
    # Given results are compared as Python compares, 2 with 2.0, so they tell no types.
    for one in view.examples[:_MOST]:
        for node in _calls(view, one.call):
            yield Sample(ast.unparse(node), _arguments(view, node))


def _results(text: str) -> tuple[object, ...]:
    try:
        is_literal, value = literal(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return (value,) if is_literal else ()


def _parsed(source: str) -> ast.stmt | None:
    tree = parse(source.strip())
    return tree.body[0] if isinstance(tree, ast.Module) and tree.body else None


def _calls(view: View, source: str) -> Iterator[ast.Call]:
    """The calls of the function in an example, wherever they stand in it."""
    statement = _parsed(source) if view.name in source else None
    for node in nodes_of(statement) if statement else ():
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if name == view.name:
                if not any(isinstance(one, ast.Starred) for one in args):
                    yield node


def _arguments(view: View, node: ast.Call) -> dict[str, object]:
    """The literal arguments of a call by the names of the parameters."""
    named = {one.arg for one in view.node.args.kwonlyargs}
    order = [one.arg for one in parameters(view.node) if one.arg not in named]
    pairs = [*zip(order, node.args, strict=False), *((one.arg, one.value) for one in node.keywords if one.arg)]
    read = {name: literal(value) for name, value in pairs}
    return {name: value for name, (is_literal, value) in read.items() if is_literal}
