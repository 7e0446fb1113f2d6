"""What every program does when it first needs it, done once in the process that the programs of tests are forked from.

The methods of our dataclasses are compiled (`agent_core/base/records.py`), and what does not change while tests run is
looked up: the requirements of the packages that functions may import, and the cases of letters.
"""

import sys
from contextlib import suppress
from dataclasses import is_dataclass

from agent_core.base.matching import Mention
from sandbox.confine import mounts

_METHODS = ("__init__", "__repr__", "__eq__", "__hash__")
_ROOMS = ("agent_core.", "knapper", "meta_functions.", "sandbox.")


def compile_methods() -> None:
    """Compile each method of each dataclass that is compiled at its first call."""
    modules = [module for name, module in [*sys.modules.items()] if name.startswith(_ROOMS)]
    named = [value for module in modules for value in vars(module).values()]
    kinds = {kind for kind in named if isinstance(kind, type) and is_dataclass(kind)}
    for kind in kinds:
        for name in _METHODS:
            method = vars(kind).get(name)
            if method and method.__qualname__.startswith("_late_method."):
                with suppress(TypeError):  # compiled first, and then it does not take this
                    method(object.__new__(kind), no_such_field=None)


compile_methods()
mounts.packages(("pydantic",))
Mention("Ann").within("Ann")
