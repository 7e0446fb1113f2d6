"""The worker's edge: the one place where everything that function code raises is caught."""

import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")


def attempt(action: Callable[[], Result]) -> Result | BaseException:
    """Return the result of the action, or the exception it raised, SystemExit and KeyboardInterrupt included."""
    try:
        return action()
    except BaseException as error:  # noqa: BLE001 - the edge; reported to the host as a failure
        return error


class Interruptible:
    """A runner of actions like `attempt`, which a signal handler can interrupt."""

    def __init__(self) -> None:
        self._by: int | None = None  # the thread that runs an action

    def attempt(self, action: Callable[[], Result]) -> Result | BaseException:
        """Return the result of the action, or the exception that it raised, such as KeyboardInterrupt."""

        def act() -> Result:
            outer, self._by = self._by, threading.get_ident()
            try:
                return action()
            finally:
                self._by = outer

        return attempt(act)

    def interrupt(self, frame: FrameType | None, within: str) -> bool:
        """Raise KeyboardInterrupt in the action, from a signal handler. Return False if no action is running.

        Nothing is raised while a function of the file `within` is running, because that would break its state.
        """
        if self._by != threading.get_ident():
            return False
        while frame is not None:
            if frame.f_code.co_filename == within:
                return True
            frame = frame.f_back
        self._by = None
        raise KeyboardInterrupt("it was stopped at the prompt")
