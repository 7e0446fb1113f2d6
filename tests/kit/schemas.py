"""Functions with the schemas that a worker adds, which here is this process."""

import sys
from collections.abc import Mapping
from types import MappingProxyType, ModuleType

import pytest

from agent_core.base.problem import Problem
from agent_core.functions.gate.trial import with_schemas
from agent_core.registry.function import Function
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from sandbox.inside.annotations import schemas_of


def described(text: str, around: Mapping[str, str] = MappingProxyType({})) -> Function:
    """Return the only function of a text, with the schemas of the types that its text leaves open.

    `around` are the texts of other modules, by name, in the order in which they are imported.
    """
    (function,) = read_module(ModuleSource.of("probe", text)).functions
    if not function.unresolved:
        return function
    with pytest.MonkeyPatch.context() as patch:
        for name, source in {
            "functions": "",
            **{f"functions.{name}": each for name, each in around.items()},
        }.items():
            _imported(name, source, patch)
        module = _imported("functions.probe", text, patch)
        claimed = schemas_of(getattr(module, function.name), function.name)
    resolved = with_schemas(function, claimed)
    assert not isinstance(resolved, Problem), resolved
    return resolved


def _imported(name: str, text: str, patch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType(name)
    parent, _, last = name.rpartition(".")
    module.__package__, module.__path__ = name if name == "functions" else parent, []
    patch.setitem(sys.modules, name, module)  # dataclasses look up the names of their module there
    if parent:
        setattr(sys.modules[parent], last, module)
    exec(compile(text, f"{name.replace('.', '/')}.py", "exec", dont_inherit=True), vars(module))
    return module
