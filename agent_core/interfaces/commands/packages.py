"""Packages of extras, without which a command or an option cannot do what it is for."""

from importlib.util import find_spec

from agent_core.base.errors import UsageError
from agent_core.base.own_installation import add_extra


def must_have(extra: str, *modules: str) -> None:
    """Do nothing if these modules are installed.

    Raises:
        UsageError: one is missing; the fix names the extra that has it.
    """
    missing = [name for name in modules if not _is_there(name)]
    if missing:
        packages = "package" if len(missing) == 1 else "packages"
        raise UsageError(f"This needs the {packages} {' and '.join(missing)}.", fix=f"Type: {add_extra(extra)}")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even its parent is
        return False
