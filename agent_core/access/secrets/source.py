"""The origin of a secret: a variable `KNAPPER_SECRET_<NAME>`, or else the user's file."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.base.errors import UsageError
from agent_core.base.matching import did_you_mean
from agent_core.base.own_environment import environment as own_environment
from agent_core.base.settings import SECRET as VARIABLE

from .forms import unfit
from .vault import Unsafe, Vault, shown

if TYPE_CHECKING:
    from .masks import Pair

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LONGEST = 16 * 1024


class NoSecret(UsageError):
    """Error raised when there is no secret of that name, or it cannot be given."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """The user's secrets, as a workspace may use them; if `environment` is None, this process's own is used."""

    workspace: Path | None = None
    environment: Mapping[str, str] | None = None

    @property
    def vault(self) -> Vault:
        """The file of secrets."""
        return Vault(self.workspace)

    def value(self, name: str) -> str:
        """Return a secret's value.

        Raises:
            NoSecret: it is not set, or cannot be masked.
            Unsafe: it may be in the file, which cannot be trusted.
        """
        value = self._variables().get(name) or self.vault.read().get(name)
        how = f"knapper secrets set {name}"
        if not value:
            message = f"The secret `{name}` is not set."
            raise NoSecret(message, fix=f"A human sets it with: {how} (or with the variable {VARIABLE}{name}).")
        if why := refusal(value):
            raise NoSecret(f"The secret `{name}` is not given: {why}.", fix=f"A human sets another with: {how}")
        return value

    def pairs(self, names: Iterable[str]) -> frozenset["Pair"]:
        """Return the secrets with these names that are set anywhere, with their values, for masking."""
        variables, stored = self._variables(), dict[str, str]()
        with suppress(Unsafe):
            stored = {**self.vault.read()}
        pairs = ((name, values[name]) for name in names for values in (variables, stored) if name in values)
        return frozenset((name, value) for name, value in pairs if not refusal(value))

    def places(self) -> dict[str, str]:
        """Return every secret that is set, with its origin.

        Raises:
            Unsafe: the file cannot be trusted.
        """
        stored = self.vault.read()
        places = dict.fromkeys(stored, shown(self.vault.path)) if stored else {}
        return places | self.variables()

    def variables(self) -> dict[str, str]:
        """Return every secret that a variable sets, with the variable."""
        return {name: f"{VARIABLE}{name}" for name in self._variables()}

    def put(self, name: str, value: str) -> None:
        """Store a secret in the user's file.

        Raises:
            UsageError: the name or the value is not valid for a secret.
            WorkspaceError: the file cannot be trusted or written.
        """
        check_name(name)
        if why := refusal(value):
            raise UsageError(
                f"`{name}` is not set: {why}.", fix="Give a longer one, or keep it where it need not be secret."
            )
        self.vault.change(lambda values: {**values, name: value})

    def remove(self, name: str) -> None:
        """Remove a secret from the user's file.

        Raises:
            NoSecret: it is not there.
            WorkspaceError: the file cannot be trusted or written.
        """
        check_name(name)
        if name not in self.vault.read():
            is_set = name in self._variables()
            near = did_you_mean(name, self.vault.read(), "See: knapper secrets list")
            fix = f"It comes from the variable {VARIABLE}{name}." if is_set else near
            raise NoSecret(f"There is no secret `{name}` in {shown(self.vault.path)}.", fix=fix)
        self.vault.change(lambda values: {key: value for key, value in values.items() if key != name})

    def _variables(self) -> dict[str, str]:
        environment = own_environment() if self.environment is None else self.environment
        secrets = {
            name.removeprefix(VARIABLE): value for name, value in environment.items() if name.startswith(VARIABLE)
        }
        return {name: value for name, value in secrets.items() if value and _NAME.fullmatch(name)}


def is_name(text: object) -> bool:
    """Check whether a text is a valid name for a secret."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def check_name(text: str) -> None:
    """Check that a text is a valid name for a secret.

    Raises:
        UsageError: it is not.
    """
    if not is_name(text):
        raise UsageError("A secret's name is made of letters, digits and _, and begins with no digit.")


def refusal(value: str) -> str:
    """Return the reason why a value cannot be a secret; "" if it can."""
    return f"it has more than {_LONGEST} characters" if len(value) > _LONGEST else unfit(value)
