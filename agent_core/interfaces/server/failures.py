"""What goes wrong at a door, in the one shape: `{"error": {"code", "message", "fix", "problems"}}`, and its status."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_core.base.errors import (
    AgentBusy,
    KnapperError,
    ModelError,
    StaleFile,
    StorageError,
    UnknownName,
    UsageError,
)
from agent_core.storage import InboxFull

from .identity import NotAllowed

Json = dict[str, Any]  # Any: JSON
_STATUS: Final = (
    (NotAllowed, 403),
    (AgentBusy, 409),
    (StaleFile, 409),
    (InboxFull, 429),
    (UnknownName, 404),
    (UsageError, 400),
    (ModelError, 502),
    (StorageError, 503),
)
_OTHER: Final = 422


class NotThere(KnapperError):
    """Nothing has that name, as far as the token may see."""

    code = "not-found"


class ApiRefusal(KnapperError):
    """A request that was refused: `status` of HTTP, `code`, and `problems` that say what is wrong with which part.

    `besides` is what the answer holds next to the error, such as the verdict of the gate.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        fix: str = "",
        problems: Sequence[Json] = (),
        **besides: object,
    ) -> None:
        super().__init__(message, fix=fix)
        self.status = status
        self.code = code
        self.problems = list(problems)
        self.besides = besides

    @classmethod
    def of(cls, error: KnapperError) -> "ApiRefusal":
        """Return an error as a caller elsewhere gets it."""
        return error if isinstance(error, cls) else cls(_status(error), error.code, error.message, error.fix)

    @classmethod
    def read(cls, status: int, document: object) -> "ApiRefusal":
        """Return the refusal in an answer, whatever is in it."""
        besides = dict(document) if isinstance(document, dict) else {}
        error = besides.pop("error", None)
        error = error if isinstance(error, dict) else {}
        message = str(error.get("message") or f"The server answered {status}.")
        problems = error.get("problems")
        return cls(
            status,
            str(error.get("code") or "error"),
            message,
            str(error.get("fix") or ""),
            problems if isinstance(problems, list) else (),
            **{str(key): value for key, value in besides.items()},
        )

    @property
    def document(self) -> Json:
        """The answer."""
        error = {"code": self.code, "message": self.message, "fix": self.fix or None, "problems": self.problems}
        return {"error": error, **self.besides}


def status_of(error: KnapperError) -> int:
    """Return the status of HTTP that an error stands for."""
    return ApiRefusal.of(error).status


def _status(error: KnapperError) -> int:
    is_missing = isinstance(error, NotThere) or error.code == "no-agent"
    return 404 if is_missing else next((status for kind, status in _STATUS if isinstance(error, kind)), _OTHER)


def misfits(problems: Sequence[Mapping[str, Any]]) -> ApiRefusal:  # Any: JSON
    """Return the refusal of a request whose parts are not as they must be."""
    fix = "See /openapi.json for what each operation takes."
    return ApiRefusal(422, "invalid", "The request is not as it must be.", fix, [dict(row) for row in problems])
