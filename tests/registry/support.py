"""Short ways to read a text as a module of `functions/`."""

from typing import Any

from agent_core.base.problem import Problem
from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource


def read(text: str, module: str = "probe") -> ModuleReading:
    """The reading of a text as a module."""
    return read_module(ModuleSource.of(module, text))


def only(text: str) -> Function:
    """The one function that a text offers."""
    (function,) = read(text).functions
    return function


def schema_of(annotation: str, prelude: str = "") -> dict[str, Any]:  # Any: JSON Schema
    """The schema of a parameter, without its description; the definitions under `$defs` where there are some."""
    function = only(
        f'{prelude}\ndef probe(value: {annotation}):\n    """Probe.\n\n    Args:\n        value: It.\n    """\n'
    )
    assert function.unresolved == ()
    schema = dict(function.parameters["properties"]["value"])
    assert schema.pop("description") == "It."
    definitions = function.parameters.get("$defs")
    return {**schema, "$defs": definitions} if definitions else schema


def codes(problems: tuple[Problem, ...]) -> list[str]:
    """The codes of problems, in their order."""
    return [problem.code for problem in problems]
