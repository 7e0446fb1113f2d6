"""The files, folders and packages that one function may reach beyond the sandbox itself, as plain values.

The host decides about grants; for the sandbox, this is only a value that distinguishes workers.
"""

import os
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from .errors import SandboxError

Identities: TypeAlias = tuple[
    tuple[int, int] | None, ...
]  # device and inode of each path, None where it is missing


class AccessRefused(SandboxError):
    """A granted path is missing, was replaced since the grant, or must not be given to a function."""


@dataclass(frozen=True, slots=True)
class Access:
    """Granted files and folders, visible at their real paths, and packages. The default grants nothing."""

    readable: tuple[str, ...] = ()  # real absolute paths
    writable: tuple[str, ...] = ()
    packages: tuple[tuple[str, str], ...] = ()  # import name → folder that it is imported from
    preload: tuple[str, ...] = ()  # names that the zygote preloads
    home: str = ""  # the worker's current folder, in place of scratch
    owner: str = (
        ""  # the only function that uses the zygote, because a preloaded package may keep data
    )

    @property
    def paths(self) -> tuple[str, ...]:
        """All files and folders, writable ones first."""
        return (*self.writable, *self.readable)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that hold the packages."""
        return tuple(dict.fromkeys(folder for _name, folder in self.packages))

    @property
    def identities(self) -> Identities:
        """The current identities of the paths; a running zygote does not see a new file of the same name."""
        return tuple(_identity(path) for path in self.paths)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Access":  # JSON, from the host
        """Return the value sent by the host."""
        values = {key: tuple(data[key]) for key in ("readable", "writable", "preload")}
        packages = tuple((name, folder) for name, folder in data["packages"])
        return cls(**values, packages=packages, home=data["home"], owner=data["owner"])


NOTHING: Final = Access()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        facts = os.lstat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
