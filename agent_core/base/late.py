"""Names and modules that are imported at first use (ADR 0006), so that a small use does not load everything."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:  # Any: its `.pyi` says which
    """Return the `__getattr__` of a package. `modules` maps each module to its names, separated by blanks."""
    places = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{places[name]}"), name)

    return load


class LateModule:
    """A module that is imported at first use. Type checkers see the module itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # Any: as the module has it
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # found without this from now on
        return value
