"""Errors of storage, beyond those that every package shares.

`LostLease` is in `agent_core.base.errors`: it passes through every room. These are answers that a
caller acts on: read again and try again, or tell the sender to wait.
"""

from agent_core.base.errors import StorageError


class ManifestConflict(StorageError):
    """Error raised when someone else changed this module meanwhile: nothing of the transaction was written."""

    code = "manifest-conflict"

    def __init__(self, module: str, expected: str | None, actual: str | None) -> None:
        message = f"`{module}` changed meanwhile: expected {_name(expected)}, found {_name(actual)}."
        super().__init__(message, fix="Read the module again and repeat the change on what is there now.")
        self.module, self.expected, self.found = module, expected, actual


class BlockConflict(ManifestConflict):
    """Error raised when someone else changed this block meanwhile: nothing was written. Version 0 means no block."""

    code = "block-conflict"

    def __init__(self, label: str, expected: int, actual: int) -> None:
        message = f"The block `{label}` changed meanwhile: expected version {expected}, found {actual}."
        StorageError.__init__(self, message, fix="Read the block again and repeat the change on what is there now.")
        self.module, self.expected, self.found = label, str(expected), str(actual)


class InboxFull(StorageError):
    """Error raised when the agent has too many events waiting: this one was not accepted."""

    code = "inbox-full"

    def __init__(self, agent: str, limit: int) -> None:
        super().__init__(f"Agent `{agent}` already has {limit} events waiting.", fix="Send it again later.")
        self.agent, self.limit = agent, limit


def _name(version: str | None) -> str:
    return f"version {version[:12]}" if version else "no such module"
