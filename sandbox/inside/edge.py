"""The worker's edge: the one place where whatever function code raises is caught."""

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def attempt(action: Callable[[], Result]) -> Result | BaseException:
    """What the action gave, or what it raised, SystemExit and KeyboardInterrupt included."""
    try:
        return action()
    except BaseException as error:  # noqa: BLE001 - the edge; told to the host as a failure
        return error
