"""The errors of the program, as one tree.

    KnapperError
    ├── UsageError            the caller asked for what cannot be (exit code 2)
    │   ├── SettingsError     a setting is unknown, malformed or out of range
    │   ├── ConfigError       a file of an agent, a helper or a group is not as it must be
    │   └── UnknownName       nothing has that name
    ├── WorkspaceError        the folder, its files or its lock are not as needed
    │   ├── NoWorkspace       the folder is no workspace
    │   ├── AgentBusy         another process runs this agent
    │   └── StaleFile         a file is no longer what the writer read
    ├── StorageError          the state file cannot be read or written
    ├── ModelError            the endpoint cannot be used, or its answer cannot
    │   ├── NoModel           nothing is configured and nothing was found, or its weights are not here
    │   └── ContextOverflow   the endpoint says that the request is too long
    ├── TurnError             a turn ended without a reply
    └── IntegrityError        a download or a stored file is not what its hash says
    LostLease (BaseException) this runner is no longer the owner of its turn: nothing swallows it

What is expected and comes in numbers is a value instead: `problem.Problem`.
"""


class KnapperError(Exception):
    """The root of everything that a caller may want to catch.

    `fix` says what to do next, as a sentence or a command to type; `code` is stable.
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
    """A file that describes an agent, a helper or a group is not as it must be."""

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
    """Another process runs this agent."""

    code = "agent-busy"


class StaleFile(WorkspaceError):
    """A file has changed since the writer read it, so it was not overwritten."""

    code = "stale-file"


class StorageError(KnapperError):
    """The state file cannot be read or written."""

    code = "storage"


class ForeignState(StorageError):
    """The state file does not carry this user's seal, so it is not opened; it stays where it is."""

    code = "foreign-state"


class ModelError(KnapperError):
    """The endpoint, or its answer, cannot be used."""

    code = "model"


class NoModel(ModelError):
    """No endpoint is configured and none was found, or the weights of a local model are not here."""

    code = "no-model"


class ContextOverflow(ModelError):
    """The endpoint reports that the request is longer than its window."""

    code = "context-overflow"


class TurnError(KnapperError):
    """A turn ended without a reply."""

    code = "turn"


class IntegrityError(KnapperError):
    """A download or a stored file does not match its hash."""

    code = "integrity"


class LostLease(BaseException):
    """Another runner has taken over this turn: stop at once and write nothing more."""
