"""The calls that the examples show: the literal arguments of each, and its literal result."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from agent_core.registry.examples import find as find_prompts
from ..tree import literal, nodes_of, parameters, parse
from .view import View

_MOST = 50  # examples that are looked at


@dataclass(frozen=True, slots=True)
class Sample:
    """One call of the function; `results` holds its result, if that is a literal of a certain type."""

    call: str
    arguments: dict[str, object]
    results: tuple[object, ...] = ()


def samples(view: View) -> list[Sample]:
    """Return every call of the function in its examples, in the docstring and next to the code."""
    return [*_written(view), *_given_samples(view)][:_MOST]


def _written(view: View) -> Iterator[Sample]:
    try:
        prompts = list(find_prompts(view.words)) if ">>>" in view.words else []
    except ValueError:
        return
    for prompt in prompts:
        for node in _calls(view, prompt.source) if not prompt.raises else ():
            source = ast.unparse(node)
            is_alone = isinstance(_parsed(prompt.source), ast.Expr) and source == ast.unparse(ast.parse(prompt.source))
            yield Sample(source, _arguments(view, node), _results(prompt.want) if is_alone else ())


def _given_samples(view: View) -> Iterator[Sample]:
    # Given results are compared as Python compares, 2 with 2.0, so they tell no types.
    for example in view.examples[:_MOST]:
        for node in _calls(view, example.call):
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
    """Yield the calls of the function in an example, at any position."""
    statement = _parsed(source) if view.name in source else None
    for node in nodes_of(statement) if statement else ():
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if name == view.name:
                if not any(isinstance(argument, ast.Starred) for argument in args):
                    yield node


def _arguments(view: View, node: ast.Call) -> dict[str, object]:
    """Return the literal arguments of a call by parameter name."""
    named = {parameter.arg for parameter in view.node.args.kwonlyargs}
    order = [parameter.arg for parameter in parameters(view.node) if parameter.arg not in named]
    pairs = [
        *zip(order, node.args, strict=False),
        *((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg),
    ]
    read = {name: literal(value) for name, value in pairs}
    return {name: value for name, (is_literal, value) in read.items() if is_literal}
