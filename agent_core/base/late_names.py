"""The public names of a package, each imported when it is first asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late_names(
    package: str, modules: Mapping[str, str]
) -> Callable[[str], Any]:  # Any: the package's `.pyi` says which
    """Return the `__getattr__` of a package: `modules` has the names that each of its modules gives, with blanks between.

    A small use of a package then does not wait for all of it (ADR 0006).
    """
    places = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{places[name]}"), name)

    return load
