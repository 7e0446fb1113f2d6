"""What this user said of one workspace: revocations and confirmed addresses, stored with the key of the seals, outside.

An older state of the folder may be restored, but not these statements: how often a function's approvals were revoked,
which addresses were confirmed, and which folders could be checked when they were approved.

Before an address that only the workspace's settings file names is confirmed, nothing is sent to it: the file travels
with the folder, perhaps from someone else, who could then read the messages. An address from the user's own environment
or from a flag needs no confirmation. A confirmation is for the address as written: a different path is a different
address.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from agent_core.base import machine
from agent_core.base.errors import ModelError, WorkspaceError
from agent_core.base.own_environment import environment
from agent_core.base.plain_files import replace_text
from agent_core.base.records import dataclass, field, replace
from agent_core.base.seal import Sealer, is_private
from agent_core.base.settings import FILE_NAME, USUAL_KEY, Settings, address_of_file
from agent_core.base.user_folders import data_folder
from sandbox.wire.strict_json import read_json

_LARGEST = 1 << 20
_FIX = "Set XDG_DATA_HOME to a folder of yours that you may write to."


@dataclass(frozen=True, slots=True)
class Statements:
    """The contents of the record. If it cannot be trusted, `is_trusted` is false, and no approval counts."""

    taken_back: Mapping[str, int] = field(default_factory=dict)
    confirmed: frozenset[str] = frozenset()
    looked_through: frozenset[str] = frozenset()
    is_trusted: bool = True

    def since(self, function: str) -> tuple[str, ...]:
        """Return the part of a seal that makes approvals from before a revocation invalid."""
        count = self.taken_back.get(function, 0)
        return (f"taken back {count}",) if count else ()

    def to_text(self) -> str:
        """Return the text of the file."""
        sets = {"confirmed": sorted(self.confirmed), "looked_through": sorted(self.looked_through)}
        return json.dumps({"taken_back": dict(self.taken_back), **sets}, indent=1)

    @classmethod
    def from_text(cls, text: bytes) -> Self:
        """Parse the statements from text. Raise ValueError if it is anything else."""
        data: Any = read_json(text, most=_LARGEST)  # Any: JSON
        counts, confirmed, looked = (
            data[name] for name in ("taken_back", "confirmed", "looked_through")
        )
        if not all(
            isinstance(item, str) for group in (counts, confirmed, looked) for item in group
        ):
            raise ValueError("no record")
        return cls(
            {name: int(count) for name, count in counts.items()},
            frozenset(confirmed),
            frozenset(looked),
        )


class GrantRecord:
    """The record of one workspace."""

    def __init__(self, root: Path, folder: Path | None = None) -> None:
        self._name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
        self._folder = folder

    def read(self) -> Statements:
        """Return the statements; empty if there is no record."""
        try:
            descriptor = os.open(self._file(), machine.LOOKING)
        except (FileNotFoundError, RuntimeError):  # no record, or no home folder
            return Statements()
        except OSError:
            return Statements(is_trusted=False)
        with os.fdopen(descriptor, "rb") as file:
            if not is_private(descriptor):
                return Statements(is_trusted=False)
            try:
                return Statements.from_text(file.read(_LARGEST))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                return Statements(is_trusted=False)

    def take_back(self, function: str) -> None:
        """Revoke every earlier approval of a function, including those that are restored later."""
        self._change(
            lambda now: replace(
                now, taken_back={**now.taken_back, function: now.taken_back.get(function, 0) + 1}
            )
        )

    def confirm(self, seal: str) -> None:
        """Store the seal of an address that the user confirmed."""
        self._change(
            lambda statements: replace(statements, confirmed=statements.confirmed | {seal})
        )

    def look_through(self, whole: frozenset[str], large: frozenset[str]) -> None:
        """Record which folders could be checked when approved, and which the user accepted as too large for that."""
        statements = self.read()
        if (statements.looked_through | whole) - large != statements.looked_through:
            self._change(
                lambda now: replace(now, looked_through=(now.looked_through | whole) - large)
            )

    def _file(self) -> Path:
        return (self._folder or data_folder()) / "workspaces" / f"{self._name}.json"

    def _change(self, different: Callable[[Statements], Statements]) -> None:
        try:
            folder = self._file().parent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with machine.locked_folder(folder):
                statements = self.read()
                if not statements.is_trusted:
                    message = f"{self._file()} is not only yours, or is incomplete, so no approval counts here."
                    raise WorkspaceError(
                        message,
                        fix="Remove it; you will be asked again for everything that you confirmed here.",
                    )
                replace_text(self._file(), different(statements).to_text(), 0o600)
        except (OSError, RuntimeError) as error:
            raise WorkspaceError(
                f"What you said here cannot be stored: {error}.", fix=_FIX
            ) from error


CONFIRM = "knapper configure --confirm-address"
_PURPOSE = "address"


class UnconfirmedAddress(ModelError):
    """Raised if only the workspace's file names the address, so nothing is sent there."""

    code = "unconfirmed-address"

    def __init__(self, url: str) -> None:
        self.url = url
        message = (
            f"{FILE_NAME} names {shown(url)}, which you did not confirm here, so no key and "
            f"no message is sent to it."
        )
        why = "If you say yes, the conversation and a key in your environment are sent there."
        super().__init__(
            f"{message} {why}",
            fix=f"If you trust it: {CONFIRM} (or export KNAPPER_MODEL_BASE_URL={url})",
        )


def unconfirmed(settings: Settings, around: Mapping[str, str] | None = None) -> str | None:
    """Return the address that only the file names, unless this user has confirmed it in this workspace."""
    named = address_of_file(settings, environment() if around is None else around)
    return named[1] if named and not is_confirmed(*named, settings.model.key_variable) else None


def is_confirmed(root: Path, url: str, key_variable: str = USUAL_KEY) -> bool:
    """Return whether this user confirmed in this workspace that the key in this variable is sent to the address."""
    statements, sealer, text = (
        GrantRecord(root).read(),
        Sealer(root),
        _confirmed_text(url, key_variable),
    )
    return statements.is_trusted and any(
        sealer.holds(seal, _PURPOSE, text) for seal in statements.confirmed
    )


def confirm(root: Path, url: str, key_variable: str = USUAL_KEY) -> None:
    """Allow requests to this address, with the key in this variable, from this workspace from now on.

    Raises:
        WorkspaceError: that cannot be stored.
    """
    if not is_confirmed(root, url, key_variable):
        GrantRecord(root).confirm(Sealer(root).seal(_PURPOSE, _confirmed_text(url, key_variable)))


def shown(url: str) -> str:
    """Return an address with all but printable ASCII escaped, and with its host if it contains an `@`."""
    text = url.encode("ascii", "backslashreplace").decode()
    text = "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )
    if "@" not in url:
        return text
    try:
        host = (urlsplit(url).hostname or "none").encode("ascii", "backslashreplace").decode()
    except ValueError:
        host = "none"
    return f"{text} (the host is {host})"


def _confirmed_text(url: str, key_variable: str) -> str:
    """Return what a yes is bound to: the address, and the name of any key but the usual one."""
    return url.rstrip("/") if key_variable == USUAL_KEY else f"{url.rstrip('/')} {key_variable}"
