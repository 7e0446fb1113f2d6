"""The functions that a memory class offers: its public methods, as the loader reads them."""

from functools import lru_cache

from pydantic import BaseModel

from agent_core.base.errors import SettingsError
from agent_core.registry.function import Function
from agent_core.registry.methods import read_methods

from .classes import Memory


@lru_cache(maxsize=16)
def methods_of(memory_class: type[Memory]) -> tuple[Function, ...]:
    """Return the functions of a class. One that no model could call is an error, since its author can fix it."""
    functions, problems = read_methods(memory_class, BaseModel)
    refused = [problem for problem in problems if problem.severity == "refuses"]
    if refused:
        reasons = "; ".join(f"{problem.where}: {problem.message}" for problem in refused)
        raise SettingsError(f"The memory class `{memory_class.__qualname__}` cannot be used: {reasons}.")
    return tuple(function for function in functions if function.name not in memory_class.without)
