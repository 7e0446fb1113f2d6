"""Confirmation of an address that only a workspace's settings file names; before that, nothing is sent to it.

The file travels with the folder, perhaps from someone else, who could then read the messages. An address from the
user's own environment or from a flag needs no confirmation. A confirmation is for the address as written: a different
path is a different address.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from agent_core.base.errors import ModelError
from agent_core.base.own_environment import environment
from agent_core.base.seal import Sealer
from agent_core.base.settings import FILE_NAME, Settings, address_of_file

from .record import GrantRecord

CONFIRM = "knapper configure --confirm-address"
_PURPOSE = "address"


class UnconfirmedAddress(ModelError):
    """Raised if only the workspace's file names the address, so nothing is sent there."""

    code = "unconfirmed-address"

    def __init__(self, url: str) -> None:
        self.url = url
        message = (
            f"{FILE_NAME} names {shown(url)}, which you did not confirm here, so no key and no message is sent to it."
        )
        why = "If you say yes, the conversation and a key in your environment are sent there."
        super().__init__(f"{message} {why}", fix=f"If you trust it: {CONFIRM} (or export KNAPPER_MODEL_BASE_URL={url})")


def unconfirmed(settings: Settings, around: Mapping[str, str] | None = None) -> str | None:
    """Return the address that only the file names, unless this user has confirmed it in this workspace."""
    named = address_of_file(settings, environment() if around is None else around)
    return named[1] if named and not is_confirmed(*named) else None


def is_confirmed(root: Path, url: str) -> bool:
    """Return whether this user confirmed the address in this workspace."""
    statements, sealer = GrantRecord(root).read(), Sealer(root)
    return statements.is_trusted and any(sealer.holds(seal, _PURPOSE, _plain(url)) for seal in statements.confirmed)


def confirm(root: Path, url: str) -> None:
    """Allow requests to this address from this workspace from now on.

    Raises:
        WorkspaceError: that cannot be stored.
    """
    if not is_confirmed(root, url):
        GrantRecord(root).confirm(Sealer(root).seal(_PURPOSE, _plain(url)))


def shown(url: str) -> str:
    """Return an address with all but printable ASCII escaped, and with its host if it contains an `@`."""
    text = url.encode("ascii", "backslashreplace").decode()
    text = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    if "@" not in url:
        return text
    try:
        host = (urlsplit(url).hostname or "none").encode("ascii", "backslashreplace").decode()
    except ValueError:
        host = "none"
    return f"{text} (the host is {host})"


def _plain(url: str) -> str:
    return url.rstrip("/")
