"""API errors in their common format, `{"error": {"code", "message", "fix", "problems"}}`, and their HTTP status."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from agent_core.base.errors import AgentBusy, KnapperError, ModelError, StaleFile, StorageError, UnknownName, UsageError
from agent_core.base.problem import Problem
from agent_core.base.records import to_json
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
    """Nothing that the token may see has this name."""

    code = "not-found"


class ApiRefusal(KnapperError):
    """A refused request, with the HTTP `status`, a `code`, and `problems` with individual parts of the request.

    `besides` is data in the response next to the error, such as the gate's verdict.
    """

    def __init__(
        self, status: int, code: str, message: str, fix: str = "", problems: Sequence[Json] = (), **besides: object
    ) -> None:
        super().__init__(message, fix=fix)
        self.status = status
        self.code = code
        self.problems = list(problems)
        self.besides = besides

    @classmethod
    def of(cls, error: KnapperError) -> "ApiRefusal":
        """Convert an error to the form that remote callers get."""
        if isinstance(error, cls):
            return error
        is_missing = isinstance(error, NotThere) or error.code == "no-agent"
        status = 404 if is_missing else next((status for kind, status in _STATUS if isinstance(error, kind)), _OTHER)
        return cls(status, error.code, error.message, error.fix)

    @classmethod
    def read(cls, status: int, document: object) -> "ApiRefusal":
        """Return the refusal in a response, even if its content is invalid."""
        besides = dict(document) if isinstance(document, dict) else {}
        error = besides.pop("error", None)
        given = error if isinstance(error, dict) else {}
        usual = {"code": "error", "message": f"The server answered {status}.", "fix": ""}
        code, message, fix = (str(given.get(name) or text) for name, text in usual.items())
        problems = given.get("problems")
        return cls(status, code, message, fix, problems if isinstance(problems, list) else (), **besides)

    @property
    def document(self) -> Json:
        """The response body."""
        error = {"code": self.code, "message": self.message, "fix": self.fix or None, "problems": self.problems}
        return {"error": error, **self.besides}


def status_of(error: KnapperError) -> int:
    """Return the HTTP status for an error."""
    return ApiRefusal.of(error).status


def rejected(verdict: object, problems: Iterable[Problem], message: str) -> ApiRefusal:
    """Return the refusal of what a gate does not admit; without a `message`, it says the first of the problems."""
    rows = [to_json(problem) for problem in problems]
    first = rows[0] if rows else {"message": "The gate does not admit it.", "fix": ""}
    return ApiRefusal(422, "rejected", message or first["message"], first["fix"], rows, verdict=to_json(verdict))
