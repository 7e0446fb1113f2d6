"""The start configuration of a zygote: visible paths, packages imported ahead, layers applied.

A value that both sides share; it crosses as JSON, once, before any call.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

from ..access import NOTHING, Access

THREADS: Final = 1024  # of all workers of a zygote together
LAYERS: Final = ("namespaces", "landlock", "seccomp", "limits", "privileges")


@dataclass(frozen=True, slots=True)
class Rlimits:
    """The part of `policy.Limits` that the kernel enforces. Workers forked ahead are distinguished by it."""

    cpu_s: int
    memory: int
    file_size: int
    open_files: int


@dataclass(frozen=True, slots=True)
class ZygotePlan:
    """One zygote. `packages` maps importable names outside the standard library to their folders."""

    readable: tuple[str, ...]
    hidden: tuple[str, ...]
    packages: dict[str, str]
    preload: tuple[str, ...]
    layers: tuple[str, ...]
    slots: int
    scratch: int
    scratch_folder: str  # where slots are made when there is no root of our own
    user: int | None  # whom to become, where the host is root
    access: Access = NOTHING
    guarded: tuple[str, ...] = ()  # what is never writable, whatever is granted around it
    owner: tuple[int, int] | None = None  # user and group to become instead, where granted files are theirs
    ceiling: Rlimits | None = None  # what no process of it exceeds, where it imports packages
    covers: bool = False  # in place of Landlock each worker has mounts of its own, which cover the others' scratch
    tolerant: bool = False  # go on without a layer that cannot be put on: the host's override alone

    @property
    def has_outer(self) -> bool:
        """True if an outer process surrounds the zygote: its parent, which ends what it leaves."""
        return "namespaces" in self.layers or bool(self.access.packages)

    def to_json(self) -> dict[str, Any]:  # JSON
        """Return the form that is sent to the zygote."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ZygotePlan":  # JSON, from the host
        """Return the plan sent by the host."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
        }
        values["owner"] = tuple(data["owner"]) if data["owner"] else None
        values["ceiling"] = Rlimits(**data["ceiling"]) if data["ceiling"] else None
        return cls(**(values | {"access": Access.from_json(data["access"])}))
