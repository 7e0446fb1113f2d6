"""Helpers to read a text as a module of `functions/`."""

from typing import Any

from agent_core.base.problem import Problem
from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from tests.kit.schemas import described


def read(text: str, module: str = "probe") -> ModuleReading:
    """Return the reading of a text as a module."""
    return read_module(ModuleSource.of(module, text))


def only(text: str) -> Function:
    """Return the only function of a text."""
    (function,) = read(text).functions
    return function


def schema_of(
    annotation: str, prelude: str = "", *, is_open: bool = False
) -> dict[str, Any]:  # Any: JSON Schema
    """Return the schema of a parameter without its description; any definitions are under `$defs`.

    If its type `is_open`, it is that of a worker.
    """
    function = described(
        f'{prelude}\ndef probe(value: {annotation}):\n    """Probe.\n\n    Args:\n        value: It.\n    """\n'
    )
    assert function.unresolved == (("value",) if is_open else ())
    schema = dict(function.parameters["properties"]["value"])
    assert schema.pop("description") == "It."
    definitions = function.parameters.get("$defs")
    return {**schema, "$defs": definitions} if definitions else schema


def codes(problems: tuple[Problem, ...]) -> list[str]:
    """Return the codes of problems, in order."""
    return [problem.code for problem in problems]
