"""The ways to constrain a reply to a schema, tried one after another; the first that works is kept."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_core.base.errors import ModelError

from .dialect import Way
from .failures import NotTaken

_FIX: Final = "Use another server or model, or set `model.mode` to native."


class NotHeld(ModelError):
    """Error raised when the endpoint answers as if no schema had been requested."""


class ReplyFormState:
    """The way in use at one endpoint. `holds` is true once it has constrained a reply."""

    def __init__(self, ways: Sequence[Way]) -> None:
        self._ways = ways
        self._place = 0
        self._failed: list[tuple[str, ModelError]] = []
        self.holds = False

    def constrain(self, schema: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
        """Return the part of a request that constrains the reply to the schema."""
        return self._ways[self._place].constrain(schema)

    def worked(self) -> None:
        """Record that the reply was constrained, so that this way is kept."""
        self.holds = True
        self._failed.clear()

    def next(self, error: NotTaken | NotHeld) -> None:
        """Switch to the next way for the same request.

        Raises:
            ModelError: every way was tried; the next request begins with the first again.
        """
        self._failed.append((self._ways[self._place].name, error))
        self._place = (self._place + 1) % len(self._ways)
        self.holds = False
        if len(self._failed) == len(self._ways):
            failed, self._failed = self._failed, []
            raise _none_left(failed) from error


def _none_left(failed: Sequence[tuple[str, ModelError]]) -> ModelError:
    first = failed[0][1]
    if len(failed) > 1 and len({error.message for _, error in failed}) == 1 and isinstance(first, NotTaken):
        return first  # the same words for every way: it is about something else
    tried = "; ".join(f"{name} ({error.message.rstrip('.')})" for name, error in failed)
    message = "The endpoint holds no reply to a schema, which constrained mode needs."
    return ModelError(f"{message} Tried: {tried}.", fix=_FIX)
