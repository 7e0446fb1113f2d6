"""Functions with the schemas that a worker adds, which here is this process."""

import sys
import types

from agent_core.base.problem import Problem
from agent_core.functions.gate.trial import with_schemas
from agent_core.registry.function import Function
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from sandbox.inside import jobs


def described(text: str) -> Function:
    """Return the only function of a text, with the schemas of the types that its text leaves open."""
    (function,) = read_module(ModuleSource.of("probe", text)).functions
    if not function.unresolved:
        return function
    module = types.ModuleType("functions.probe")
    sys.modules[module.__name__] = module  # dataclasses look up the names of their module there
    try:
        exec(compile(text, "functions/probe.py", "exec", dont_inherit=True), vars(module))
        claimed = jobs.of(getattr(module, function.name), function.name)
    finally:
        del sys.modules[module.__name__]
    resolved = with_schemas(function, claimed)
    assert not isinstance(resolved, Problem), resolved
    return resolved
