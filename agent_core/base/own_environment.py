"""The environment of this process; the program removes keys and secrets from it when it starts.

They are kept here, and handed to what needs one by name. So whatever a library starts, and whatever that starts,
inherits none; nor does `/proc` show them. A program that embeds Knapper keeps its own environment as it is.
"""

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_SECRET = re.compile(
    r"KEY(?!BOARD|MAP|RING)|SECRET|TOKEN|PASSW|PASSPHRASE|PGPASS|CREDENTIAL|COOKIE|AUTH(?!OR|_SOCK)|_PAT$|_PWD$", re.I
)
_LOGIN = re.compile(r"://[^/\s]+@")
_PROXY = re.compile(r"\w+_proxy", re.I)  # read from the environment by whatever connects
_SETTING, _GIVEN, _TOKEN = "KNAPPER_", "KNAPPER_SECRET_", "KNAPPER_TOKEN"
_START_FIELD = 47  # of `/proc/self/stat`, behind the name of the program: where its first environment lies

_OWN = str(Path(__file__).parents[2])

_removed: dict[str, str] = {}


def environment() -> Mapping[str, str]:
    """Return the variables of this process, including those that it removed from its environment."""
    return {**_removed, **os.environ}


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that neither their name nor a login in their value marks as a key or a secret."""
    return {name: value for name, value in variables.items() if not _is_secret(name, value)}


def absolute(path: str) -> str:
    """Return a search path without the entries that mean the current folder, or one below it."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())


def places() -> list[str]:
    """Return the folders in which this process looks for modules, without the current one unless this package is
    there.
    """
    folder = str(Path.cwd())
    return [entry for entry in sys.path if entry == _OWN or (Path(entry).is_absolute() and entry != folder)]


def enter() -> None:
    """Initialize the process as a program: remove secrets from the environment and the current folder from searches.

    A stranger's folder may be the current one. Where `PATH` or Python's own path has an entry that means it, a file
    in it would be executed, or imported as a module of ours.
    """
    sys.path[:] = places()
    if "PATH" in os.environ:
        os.environ["PATH"] = absolute(os.environ["PATH"]) or os.defpath  # an empty one means the current folder, too
    secrets = {name: value for name, value in os.environ.items() if _is_secret(name, value)}
    _removed.update({name: value for name, value in secrets.items() if not _PROXY.fullmatch(name)})
    for name in _removed.keys() & os.environ.keys():
        del os.environ[name]
    if _removed and sys.platform == "linux":
        with suppress(OSError):  # a `/proc` that cannot be read shows nothing either
            _wipe({os.fsencode(name) for name in _removed})


def _is_secret(name: str, value: str) -> bool:
    if name.startswith(_SETTING):
        return name.startswith(_GIVEN) or name == _TOKEN
    return bool(_SECRET.search(name) or _LOGIN.search(value))


def _wipe(names: set[bytes]) -> None:
    """Overwrite the values where the kernel put them: `/proc/PID/environ` shows them to the user's processes."""
    stat = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    place, block = int(stat[_START_FIELD]), Path("/proc/self/environ").read_bytes()
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        for entry in block.split(b"\0"):
            name, sign, value = entry.partition(b"=")
            if sign and name in names:
                memory.seek(place + len(name) + 1)
                memory.write(bytes(len(value)))
            place += len(entry) + 1
