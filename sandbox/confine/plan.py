"""The start configuration of a zygote: visible paths, preloaded packages, confinement layers.

Host and zygote share this value; it is sent as JSON, once, before any call.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

from ..access import NOTHING, Access

THREADS: Final = 1024  # for all workers of a zygote together
LAYERS: Final = ("namespaces", "landlock", "seccomp", "limits", "privileges")


@dataclass(frozen=True, slots=True)
class Rlimits:
    """The part of `policy.Limits` that the kernel enforces; spare workers have the default ones."""

    cpu_s: int
    memory: int
    file_size: int
    open_files: int


@dataclass(frozen=True, slots=True)
class ZygotePlan:
    """The plan of one zygote. `packages` maps importable names outside the standard library to their folders."""

    readable: tuple[str, ...]
    hidden: tuple[str, ...]
    packages: dict[str, str]
    preload: tuple[str, ...]
    layers: tuple[str, ...]
    slots: int
    scratch: int
    scratch_folder: str  # parent of the scratch slots when there is no private root
    user: int | None  # user to switch to if the host is root
    access: Access = NOTHING
    guarded: tuple[str, ...] = ()  # paths that are never writable, whatever is granted
    owner: tuple[int, int] | None = (
        None  # user and group to switch to instead: the owner of granted files
    )
    ceiling: Rlimits | None = None  # limits of all its processes, if it imports packages
    covers: bool = False  # without Landlock: each worker mounts its scratch over that of the others
    tolerant: bool = False  # continue without a layer that fails; only for the host's override

    @property
    def has_outer(self) -> bool:
        """True if the zygote has an outer process: its parent, which ends all processes that it leaves behind."""
        return "namespaces" in self.layers or bool(self.access.packages)

    def to_json(self) -> dict[str, Any]:  # JSON
        """Return the JSON for the zygote."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ZygotePlan":  # JSON, from the host
        """Return the plan in the host's JSON."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
        }
        values["owner"] = tuple(data["owner"]) if data["owner"] else None
        values["ceiling"] = Rlimits(**data["ceiling"]) if data["ceiling"] else None
        return cls(**(values | {"access": Access.from_json(data["access"])}))
