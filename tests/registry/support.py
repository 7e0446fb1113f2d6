"""Helpers to read a text as a module of `functions/`."""

from collections.abc import Mapping
from typing import Any

from agent_core.base.problem import Problem
from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource


def read(text: str, module: str = "probe") -> ModuleReading:
    """Return the reading of a text as a module."""
    return read_module(ModuleSource.of(module, text))


def only(text: str, modules: Mapping[str, str] | None = None) -> Function:
    """Return the only function of a text, next to modules with these texts."""
    around = {name: ModuleSource.of(name, of, _path(name, modules)) for name, of in (modules or {}).items()}
    (function,) = read_module(ModuleSource.of("probe", text), modules=around).functions
    return function


def _path(name: str, modules: Mapping[str, str] | None) -> str:
    is_package = any(other.startswith(f"{name}.") for other in modules or ())
    return f"functions/{name.replace('.', '/')}{'/__init__' if is_package else ''}.py"


def schema_of(annotation: str, prelude: str = "") -> dict[str, Any]:  # Any: JSON Schema
    """Return the schema of a parameter without its description; any definitions are under `$defs`."""
    function = only(
        f'{prelude}\ndef probe(value: {annotation}):\n    """Probe.\n\n    Args:\n        value: It.\n    """\n'
    )
    assert function.unresolved == ()
    schema = dict(function.parameters["properties"]["value"])
    assert schema.pop("description") == "It."
    definitions = function.parameters.get("$defs")
    return {**schema, "$defs": definitions} if definitions else schema


def codes(problems: tuple[Problem, ...]) -> list[str]:
    """Return the codes of problems, in order."""
    return [problem.code for problem in problems]
