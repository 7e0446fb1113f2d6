"""The environment of this process; the program removes keys and secrets from it when it starts.

They are kept here and passed by name to the code that needs them. So the processes that a library starts do not inherit
them, and `/proc` does not show them. A program that embeds Knapper keeps its own environment unchanged.
"""

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_SECRET = re.compile(
    r"KEY(?!BOARD|MAP|RING)|SECRET|TOKEN|PASSW|PASSPHRASE|PGPASS|CREDENTIAL|COOKIE|AUTH(?!OR|_SOCK)|_PAT$|_PWD$",
    re.I,
)
_LOGIN = re.compile(r"://[^/\s]+@")
_PROXY = re.compile(r"\w+_proxy", re.I)  # every HTTP library reads it from the environment
_SETTING, _GIVEN, _TOKEN = "KNAPPER_", "KNAPPER_SECRET_", "KNAPPER_TOKEN"
_START_FIELD = (
    47  # of `/proc/self/stat`, after the program's name: the address of its initial environment
)

_OWN = str(Path(__file__).parents[2])

_removed: dict[str, str] = {}


def environment() -> Mapping[str, str]:
    """Return the variables of this process, including those that it removed from its environment."""
    return {**_removed, **os.environ}


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without keys and secrets, which their name or a login in their value reveals."""
    return {name: value for name, value in variables.items() if not _is_secret(name, value)}


def absolute(path: str) -> str:
    """Return a search path with only its absolute entries; others refer to the current folder or one below it."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())


def places() -> list[str]:
    """Return the folders that this process imports modules from, without the current one unless it contains this
    package.
    """
    folder = str(Path.cwd())
    return [
        entry
        for entry in sys.path
        if entry == _OWN or (Path(entry).is_absolute() and entry != folder)
    ]


def enter() -> None:
    """Initialize the process as a program: remove secrets from the environment, the current folder from searches.

    The current folder may be a stranger's. If `PATH` or Python's own path had an entry that refers to it, a file in it
    would be executed, or imported as one of our modules.
    """
    sys.path[:] = places()
    # Else pydantic searches every installed package for plugins, which would see the settings.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if "PATH" in os.environ:
        os.environ["PATH"] = (
            absolute(os.environ["PATH"]) or os.defpath
        )  # an empty one would mean the current folder
    secrets = {name: value for name, value in os.environ.items() if _is_secret(name, value)}
    _removed.update({name: value for name, value in secrets.items() if not _PROXY.fullmatch(name)})
    for name in _removed.keys() & os.environ.keys():
        del os.environ[name]
    if _removed and sys.platform == "linux":
        with suppress(OSError):  # a `/proc` that cannot be read reveals nothing
            _wipe({os.fsencode(name) for name in _removed})


def _is_secret(name: str, value: str) -> bool:
    if name.startswith(_SETTING):
        return name.startswith(_GIVEN) or name == _TOKEN
    return bool(_SECRET.search(name) or _LOGIN.search(value))


def _wipe(names: set[bytes]) -> None:
    """Overwrite the values in the kernel's initial block: `/proc/PID/environ` shows them to the user's processes."""
    stat = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    place, block = int(stat[_START_FIELD]), Path("/proc/self/environ").read_bytes()
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        for entry in block.split(b"\0"):
            name, sign, value = entry.partition(b"=")
            if sign and name in names:
                memory.seek(place + len(name) + 1)
                memory.write(bytes(len(value)))
            place += len(entry) + 1
