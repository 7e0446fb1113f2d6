"""The functions that a memory class offers: its public methods, as the loader reads them."""

from functools import lru_cache

from pydantic import BaseModel

from ..errors import SettingsError
from ..registry.function import Function
from ..registry.methods import read_methods
from .classes import Memory


@lru_cache(maxsize=16)
def methods_of(memory_class: type[Memory]) -> tuple[Function, ...]:
    """The functions of a class; one that no model could call is an error, since a human wrote it and can mend it."""
    functions, problems = read_methods(memory_class, BaseModel)
    refused = [problem for problem in problems if problem.severity == "refuses"]
    if refused:
        what = "; ".join(f"{one.where}: {one.what}" for one in refused)
        raise SettingsError(f"The memory class `{memory_class.__qualname__}` cannot be used: {what}.")
    return tuple(each for each in functions if each.name not in memory_class.without)
