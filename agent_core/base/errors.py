"""The errors of the program, as one tree.

    KnapperError
    ├── UsageError            the caller asked for something impossible (exit code 2)
    │   ├── SettingsError     a setting is unknown, malformed or out of range
    │   ├── ConfigError       the file of an agent, a helper or a group is invalid
    │   └── UnknownName       nothing has that name
    ├── WorkspaceError        the folder, its files or its lock are not as required
    │   ├── NoWorkspace       the folder is no workspace
    │   ├── AgentBusy         another process runs this agent
    │   └── StaleFile         a file has changed since the writer read it
    ├── StorageError          the state file cannot be read or written
    ├── ModelError            the endpoint or its answer cannot be used
    │   ├── NoModel           nothing is configured and nothing was found, or local weights are missing
    │   ├── ContextOverflow   the endpoint reports that the request is too long
    │   └── NothingLeft       a cap on spending, or a pause, keeps the request from being sent
    ├── TurnError             a turn ended without a reply
    └── IntegrityError        a download or a stored file does not match its hash

    LostLease (BaseException) this runner no longer owns its turn; no handler may swallow it

Expected findings, which come in numbers, are values instead: `problem.Problem`.
"""


class KnapperError(Exception):
    """The base class of every error that a caller may want to catch.

    `fix` is the next step, as a sentence or a command to type; `code` is stable.
    """

    code = "error"

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message} {self.fix}".rstrip()


class UsageError(KnapperError):
    """The caller asked for something impossible."""

    code = "usage"


class SettingsError(UsageError):
    """A setting is unknown, malformed or out of range."""

    code = "settings"


class ConfigError(UsageError):
    """A file that describes an agent, a helper or a group is invalid."""

    code = "config"


class UnknownName(UsageError):
    """Nothing has that name."""

    code = "not-found"


class WorkspaceError(KnapperError):
    """The workspace's folder, files or lock are not as required."""

    code = "workspace"


class NoWorkspace(WorkspaceError):
    """The folder is no workspace."""


class AgentBusy(WorkspaceError):
    """Another process runs this agent; `is_stopped` if that is known to be suspended."""

    code = "agent-busy"
    is_stopped = False


class StaleFile(WorkspaceError):
    """A file has changed since the writer read it, so it was not overwritten."""

    code = "stale-file"


class StorageError(KnapperError):
    """The state file cannot be read or written."""

    code = "storage"


class ForeignState(StorageError):
    """The state file does not have this user's seal, so it is neither opened nor moved."""

    code = "foreign-state"


class ModelError(KnapperError):
    """The endpoint, or its answer, cannot be used."""

    code = "model"


class NoModel(ModelError):
    """No endpoint is configured and none was found, or the weights of a local model are missing."""

    code = "no-model"


class Unavailable(ModelError):
    """Error raised when the endpoint cannot answer now but may later."""


class ContextOverflow(ModelError):
    """The endpoint reports that the request is longer than its window."""

    code = "context-overflow"


class NothingLeft(ModelError):
    """A cap on spending, or a pause of what runs by itself, keeps a request from being sent.

    `is_paused` tells the pause from a cap.
    """

    code = "nothing-left"

    def __init__(self, message: str, *, fix: str = "", is_paused: bool = False) -> None:
        super().__init__(message, fix=fix)
        self.is_paused = is_paused


class TurnError(KnapperError):
    """A turn ended without a reply."""

    code = "turn"


class IntegrityError(KnapperError):
    """A download or a stored file does not match its hash."""

    code = "integrity"


class LostLease(BaseException):
    """Another runner has taken over this turn: stop at once and write nothing more."""
