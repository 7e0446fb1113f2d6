"""What stands beside this program: the packages in `knapper_ext`, found by listing that folder.

A hook is a dictionary in the `__init__.py` of such a package, from a name that a user types to what the core calls for
it. The folder is listed only when somebody names what the core does not know, so a start pays nothing for it.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from .own_installation import add_extra, extras

LEVELS: Final = "LEVELS"  # of the sandbox
STORES: Final = "STORES"  # schemes of their addresses
_FOLDER: Final = "knapper_ext"


def offers(hook: str) -> dict[str, Any]:  # Any: what the hook calls for
    """Return what the extensions that are here add at a hook, by name."""
    found: dict[str, Any] = {}
    for extension in _extensions():
        found |= getattr(extension, hook, {})
    return found


def what_else() -> str:
    """Return the sentences for somebody who named what is not here: which extras this program has."""
    names = ", ".join(extras())
    if not names:
        return ""
    return f"More comes with the extras of this program: {names}. To add one, type: {add_extra('NAME')}"


@cache
def _extensions() -> tuple[ModuleType, ...]:
    """Return the packages in the folder; none where the core was installed alone."""
    from pkgutil import iter_modules  # noqa: PLC0415 - no start needs it

    room = find_spec(_FOLDER)
    folders = room.submodule_search_locations if room is not None else None
    names = sorted(module.name for module in iter_modules(folders or []) if module.ispkg)
    return tuple(import_module(f"{_FOLDER}.{name}") for name in names)
