"""What stands beside this program: the packages in `knapper_ext`, found by listing that folder, and others let in.

A hook is a dictionary in the `__init__.py` of such a package, from a name that a user types to what the core calls for
it. The folder is listed when it is first asked, which `knapper --help` and the opening of a workspace do.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from .late import LateModule
from .own_installation import add_extra, extras
from .records import dataclass

if TYPE_CHECKING:
    from . import added_packages
else:
    added_packages = LateModule("agent_core.base.added_packages")

AGENT_FILES: Final = "AGENT_FILES"  # of other programs
COMMANDS: Final = "COMMANDS"  # of the shell
DOORS: Final = "DOORS"  # of the server
EMBEDDERS: Final = "EMBEDDERS"
FOREIGN: Final = "FOREIGN"  # functions of other programs
LEVELS: Final = "LEVELS"  # of the sandbox
LOGS: Final = "LOGS"  # of findings, for other programs
MODELS: Final = "MODELS"  # prefixes of their names
MODES: Final = "MODES"  # in which calls are sent, besides natively
STORES: Final = "STORES"  # schemes of their addresses
SUBJECTS: Final = "SUBJECTS"  # of the state
UPKEEP: Final = "UPKEEP"  # of the functions, while a workspace is open
VERBS: Final = "VERBS"  # with their nouns: operations and commands
WRITERS: Final = "WRITERS"  # of the functions that agents ask for
_FOLDER: Final = "knapper_ext"


@dataclass(frozen=True, slots=True)
class NounBeside:
    """A command of the shell that an extension adds: the group of the help that it is in, and what is said of it there.

    The command, or the group of commands, is at `place`, `module:name`, and is imported when it is used. It is listed
    before another command, or last. The verbs of one that `is_everywhere` work at the prompt and over a server, too.
    """

    group: str
    says: str
    place: str
    before: str = ""
    is_everywhere: bool = False

    def command(self) -> Any:  # Any: of click, which the core does not import for this
        """Import the command and return it."""
        return _imported(self.place)


@dataclass(frozen=True, slots=True)
class LogBeside:
    """A log of findings that an extension adds: what the help says of its option, and what begins it."""

    says: str
    begin: Callable[..., Any]  # Any: `OpenLog` of the operations, which are a layer above


def imported(place: str) -> Callable[[], Any]:  # Any: as what is there
    """Return a function that imports what is at a place, `module:name`, and returns it."""
    return partial(_imported, place)


def imported_by_call(place: str) -> Callable[..., Any]:  # Any: as what is there
    """Return a function that imports what is at a place, `module:name`, and calls it."""
    return partial(_call, place)


def offers(hook: str) -> dict[str, Any]:  # Any: what the hook calls for
    """Return what the extensions that are here add at a hook, by name. Of two of one name, that of ours counts."""
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
    sentences = []
    if names := ", ".join(extras()):
        sentences.append(f"More comes with the extras of this program: {names}.")
        sentences.append(f"To add one, type: {add_extra('NAME')}")
    for package in added_packages.installed_packages():
        if not package.enabled:
            sentences.append(f"The package {package.name} adds something, too, once you let it in:")
            sentences.append(f"knapper extensions enable {package.name}")
    return " ".join(sentences)


@cache
def _extensions() -> tuple[ModuleType, ...]:
    """Return the packages of others that this user enabled, and those in the folder, if there are any."""
    from pkgutil import iter_modules  # noqa: PLC0415 - no start needs it

    room = find_spec(_FOLDER)
    folders = room.submodule_search_locations if room is not None else None
    names = sorted(module.name for module in iter_modules(folders or []) if module.ispkg)
    ours = [import_module(f"{_FOLDER}.{name}") for name in names]
    return (*added_packages.enabled_modules(), *ours)
