"""How an endpoint is made to keep replies to a schema: the known ways are tried in turn, and one that works is kept."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_core.base.errors import ModelError

from .connection import NotTaken
from .dialect import constraint


class NotHeld(ModelError):
    """Error raised when the endpoint answers as if no schema had been requested."""


class NoneHeld(ModelError):
    """Error raised when an endpoint constrains replies in none of the known ways."""


class ReplyFormState:
    """The way that is used at one endpoint. `holds` is true once it has constrained a reply."""

    def __init__(self, ways: Sequence[str]) -> None:
        self._ways = ways
        self._place = 0
        self._failed: list[tuple[str, ModelError]] = []
        self.holds = False

    def constrain(self, schema: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
        """Return the part of a request that constrains the reply to the schema."""
        return constraint(self._ways[self._place], schema)

    def worked(self) -> None:
        """Record that the reply was constrained, so that this way is kept."""
        self.holds = True
        self._failed.clear()

    def next(self, error: NotTaken | NotHeld) -> None:
        """Switch to the next way for the same request.

        Raises:
            ModelError: every way was tried; the next request starts with the first one.
        """
        self._failed.append((self._ways[self._place], error))
        self._place = (self._place + 1) % len(self._ways)
        self.holds = False
        if len(self._failed) == len(self._ways):
            failed, self._failed = self._failed, []
            first = failed[0][1]
            if (
                len(failed) > 1
                and len({each.message for _, each in failed}) == 1
                and isinstance(first, NotTaken)
            ):
                raise first from error  # the same message for every way: the cause is something else
            tried = "; ".join(f"{name} ({each.message.rstrip('.')})" for name, each in failed)
            message = "The endpoint does not enforce a schema on replies, which was needed."
            fix = "Use another server or model, or set `model.mode` to native."
            raise NoneHeld(f"{message} Tried: {tried}.", fix=fix) from error
