"""What stands beside this program: the packages in `knapper_ext`, found by listing that folder.

A hook is a dictionary in the `__init__.py` of such a package, from a name that a user types to what the core calls for
it. The folder is listed when it is first asked, which `knapper --help` and the opening of a workspace do.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from .own_installation import add_extra, extras
from .records import dataclass

COMMANDS: Final = "COMMANDS"  # of the shell
DOORS: Final = "DOORS"  # of the server
EMBEDDERS: Final = "EMBEDDERS"
FOREIGN: Final = "FOREIGN"  # functions of other programs
LEVELS: Final = "LEVELS"  # of the sandbox
MODELS: Final = "MODELS"  # prefixes of their names
MODES: Final = "MODES"  # in which calls are sent, besides natively
STORES: Final = "STORES"  # schemes of their addresses
_FOLDER: Final = "knapper_ext"


@dataclass(frozen=True, slots=True)
class NounBeside:
    """A command of the shell that an extension adds: the group of the help that it is in, and what is said of it there.

    The command, or the group of commands, is at `place`, `module:name`, and is imported when it is used. It is listed
    before another command, or last.
    """

    group: str
    says: str
    place: str
    before: str = ""

    def command(self) -> Any:  # Any: of click, which the core does not import for this
        """Import the command and return it."""
        return _imported(self.place)


def imported_by_call(place: str) -> Callable[..., Any]:  # Any: as what is there
    """Return a function that imports what is at a place, `module:name`, and calls it."""
    return partial(_call, place)


def offers(hook: str) -> dict[str, Any]:  # Any: what the hook calls for
    """Return what the extensions that are here add at a hook, by name."""
    found: dict[str, Any] = {}
    for extension in _extensions():
        found |= getattr(extension, hook, {})
    return found


def _imported(place: str) -> Any:  # Any: as what is there
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _call(place: str, *given: Any) -> Any:  # Any: the same
    return _imported(place)(*given)


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
