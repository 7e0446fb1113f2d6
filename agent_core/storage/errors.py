"""What storage refuses, beyond the errors that every room shares.

`LostLease` is in `agent_core.errors`: it passes through every room. These are answers that a
caller acts on: read again and try again, or tell the sender to wait.
"""

from ..errors import StorageError


class ManifestConflict(StorageError):
    """Somebody else changed this module in the meantime: nothing of the transaction was written."""

    code = "manifest-conflict"

    def __init__(self, module: str, expected: str | None, found: str | None) -> None:
        what = f"`{module}` changed meanwhile: expected {_name(expected)}, found {_name(found)}."
        super().__init__(what, mend="Read the module again and repeat the change on what is there now.")
        self.module, self.expected, self.found = module, expected, found


class BlockConflict(ManifestConflict):
    """Somebody else changed this block in the meantime: nothing of the transaction was written. 0 is no block."""

    code = "block-conflict"

    def __init__(self, label: str, expected: int, found: int) -> None:
        what = f"The block `{label}` changed meanwhile: expected version {expected}, found {found}."
        StorageError.__init__(self, what, mend="Read the block again and repeat the change on what is there now.")
        self.module, self.expected, self.found = label, str(expected), str(found)


class InboxFull(StorageError):
    """The agent has too many events waiting: this one was not taken."""

    code = "inbox-full"

    def __init__(self, agent: str, limit: int) -> None:
        super().__init__(f"Agent `{agent}` already has {limit} events waiting.", mend="Send it again later.")
        self.agent, self.limit = agent, limit


def _name(version: str | None) -> str:
    return f"version {version[:12]}" if version else "no such module"
