"""The origin of a secret: a variable `KNAPPER_SECRET_<NAME>`, or else the user's file.

The file is in the user's own configuration folder, which nobody else may read, and never in a workspace. It is opened
without following links, in a folder that belongs to the user. A file that others could read is rejected, with a command
that fixes it.
"""

import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.base import folders, machine
from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.base.matching import did_you_mean
from agent_core.base.own_environment import environment as own_environment
from agent_core.base.records import dataclass
from agent_core.base.settings import SECRET as VARIABLE
from agent_core.base.user_folders import NoHome, config_folder, home
from sandbox.wire.strict_json import Malformed, read_toml

from .masks import unfit

if TYPE_CHECKING:
    from .masks import Pair


FILE = "secrets.toml"
_BESIDE = f".{FILE}.new"
_LARGEST = 1 << 20
_HEAD = "# Secrets for functions, written by `knapper secrets`. Only you may read this file.\n"


class Unsafe(WorkspaceError):
    """Error raised when the file of secrets, or its folder, cannot be trusted; nothing is read from it."""


def shown(path: Path) -> str:
    """Return a path to type, short if it is below the user's home folder."""
    if (base := home()) is not None and path.is_relative_to(base):
        return f"~/{shlex.quote(str(path.relative_to(base)))}"
    return shlex.quote(str(path))


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    descriptor = folders.hold(path, follows=False)
    try:
        status = folders.status(descriptor)
        _check_owner(status, path)
        if machine.grants_others(status, 0o022):
            message = f"{shown(path)} can be changed by others, so no secret is taken from there."
            raise Unsafe(message, fix=f"Type: chmod 700 {shown(path)}")
        yield descriptor
    finally:
        os.close(descriptor)


def _read(folder: int, path: Path) -> Mapping[str, str]:
    with os.fdopen(folders.open_in(FILE, folder, machine.LOOKING), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            raise Unsafe(
                f"{shown(path)} is not a file of secrets.",
                fix="Move it elsewhere, and set the secrets again.",
            )
        _check_owner(status, path)
        if machine.grants_others(status, 0o077):
            message = f"{shown(path)} can be read by others, so no secret is taken from it."
            raise Unsafe(message, fix=f"Type: chmod 600 {shown(path)}")
        data = file.read(_LARGEST)
    try:
        values = read_toml(data, most=_LARGEST)
        if all(isinstance(value, str) for value in values.values()):
            return values
    except Malformed:  # its message may contain a secret, so it is not passed on
        pass
    raise Unsafe(
        f'{shown(path)} is not understood: it has lines such as NAME = "value", and nothing else.'
    )


def _write(folder: int, values: Mapping[str, str]) -> None:
    quoted = ((name, json.dumps(values[name], ensure_ascii=False)) for name in sorted(values))
    text = _HEAD + "".join(f"{name} = {value}\n" for name, value in quoted).replace(
        "\x7f", "\\u007f"
    )
    with suppress(FileNotFoundError):
        folders.remove(_BESIDE, folder)
    with os.fdopen(
        folders.open_in(_BESIDE, folder, machine.MAKING, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    folders.replace(_BESIDE, FILE, folder)
    folders.save(folder)


def _check_owner(status: os.stat_result, path: Path) -> None:
    if status.st_uid != machine.user_id():
        raise Unsafe(
            f"{shown(path)} is not yours, so no secret is taken from there.", fix="Move it away."
        )


def _unusable(path: Path, error: OSError) -> Unsafe:
    is_link = path.is_symlink() or path.parent.is_symlink()
    why = (
        "is reached through a link, which is not followed"
        if is_link
        else f"cannot be used: {error.strerror}"
    )
    return Unsafe(f"{shown(path)} {why}.", fix="Put the file itself there." if is_link else "")


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
    def path(self) -> Path:
        """The path of the file, whether or not it exists.

        Raises:
            Unsafe: there is no home folder, or the path is inside the workspace.
        """
        try:
            folder = config_folder()
        except NoHome as error:
            raise Unsafe(error.message, fix=error.fix) from error
        if self.workspace is not None and folder.resolve().is_relative_to(self.workspace.resolve()):
            message = (
                f"Secrets are never kept in a workspace, but {shown(folder)} is inside this one."
            )
            raise Unsafe(
                message,
                fix="Set XDG_CONFIG_HOME to a folder outside, or use KNAPPER_SECRET_… variables.",
            )
        return folder / FILE

    def stored(self) -> Mapping[str, str]:
        """Return the secrets in the file by name; empty if there is no file.

        Raises:
            Unsafe: others could read it, it is not the user's, or it is invalid.
        """
        path = self.path
        try:
            with _folder(path.parent) as folder:
                return _read(folder, path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _unusable(path, error) from error

    def _change(self, different: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        """Rewrite the file with changed secrets, under a lock.

        Raises:
            WorkspaceError: the file cannot be trusted or written.
        """
        path = self.path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _folder(path.parent) as folder, machine.locked_folder(path.parent):
                with suppress(FileNotFoundError):
                    return _write(folder, different(_read(folder, path)))
                _write(folder, different({}))
        except OSError as error:
            raise _unusable(path, error) from error

    def value(self, name: str) -> str:
        """Return a secret's value.

        Raises:
            NoSecret: it is not set, or cannot be masked.
            Unsafe: it may be in the file, which cannot be trusted.
        """
        value = self._variables().get(name) or self.stored().get(name)
        how = f"knapper secrets set {name}"
        if not value:
            message = f"The secret `{name}` is not set."
            raise NoSecret(
                message, fix=f"Set it at a terminal: {how} (or with the variable {VARIABLE}{name})."
            )
        if why := refusal(value):
            raise NoSecret(
                f"The secret `{name}` is not given: {why}.", fix=f"Set another at a terminal: {how}"
            )
        return value

    def is_set(self, name: str) -> bool:
        """Check whether a secret is set anywhere. One that may be in a file that cannot be trusted counts as set."""
        with suppress(Unsafe):
            return name in self._variables() or name in self.stored()
        return True

    def pairs(self, names: Iterable[str]) -> frozenset["Pair"]:
        """Return the secrets with these names that are set anywhere, with their values, for masking."""
        variables, stored = self._variables(), dict[str, str]()
        with suppress(Unsafe):
            stored = {**self.stored()}
        pairs = (
            (name, values[name])
            for name in names
            for values in (variables, stored)
            if name in values
        )
        return frozenset((name, value) for name, value in pairs if not refusal(value))

    def places(self) -> dict[str, str]:
        """Return every secret that is set, with its origin.

        Raises:
            Unsafe: the file cannot be trusted.
        """
        stored = self.stored()
        places = dict.fromkeys(stored, shown(self.path)) if stored else {}
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
                f"`{name}` is not set: {why}.",
                fix="Give a longer one, or keep it where it need not be secret.",
            )
        self._change(lambda values: {**values, name: value})

    def remove(self, name: str) -> None:
        """Remove a secret from the user's file.

        Raises:
            NoSecret: it is not there.
            WorkspaceError: the file cannot be trusted or written.
        """
        check_name(name)
        if name not in self.stored():
            is_set = name in self._variables()
            near = did_you_mean(name, self.stored(), "See: knapper secrets list")
            fix = f"It comes from the variable {VARIABLE}{name}." if is_set else near
            raise NoSecret(f"There is no secret `{name}` in {shown(self.path)}.", fix=fix)
        self._change(lambda values: {key: value for key, value in values.items() if key != name})

    def _variables(self) -> dict[str, str]:
        environment = own_environment() if self.environment is None else self.environment
        secrets = {
            name.removeprefix(VARIABLE): value
            for name, value in environment.items()
            if name.startswith(VARIABLE)
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
        raise UsageError(
            "A secret's name is made of letters, digits and _, and begins with no digit."
        )


def refusal(value: str) -> str:
    """Return the reason why a value cannot be a secret; "" if it can."""
    return f"it has more than {_LONGEST} characters" if len(value) > _LONGEST else unfit(value)
