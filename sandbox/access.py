"""The files, folders and packages that one function may reach beyond the sandbox itself, as plain values.

The host decides what is granted; here it is only a value that distinguishes workers.
"""

import os
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from .errors import SandboxError

Identities: TypeAlias = tuple[tuple[int, int] | None, ...]  # device and inode of each path, None where it is missing


class AccessRefused(SandboxError):
    """A granted path is no longer what was granted, or cannot be given."""


@dataclass(frozen=True, slots=True)
class Access:
    """Files and folders, seen at their own paths, and packages. The default is empty: nothing at all."""

    readable: tuple[str, ...] = ()  # real absolute paths
    writable: tuple[str, ...] = ()
    packages: tuple[tuple[str, str], ...] = ()  # import name → folder that it is imported from
    preload: tuple[str, ...] = ()  # names that the zygote imports ahead
    home: str = ""  # where the worker stands, instead of in its scratch folder
    owner: str = ""  # the only function that uses the zygote: what it imported ahead may keep what its workers have

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file and folder, those for writing first."""
        return (*self.writable, *self.readable)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that hold the packages."""
        return tuple(dict.fromkeys(folder for _name, folder in self.packages))

    @property
    def identities(self) -> Identities:
        """The identities of the files at the paths now: a running zygote does not show a new file of the same name."""
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
