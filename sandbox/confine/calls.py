"""The numbers of system calls on the machines that are known, and which of them is this one."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Final

from . import calls_aarch64, calls_x86_64


@dataclass(frozen=True, slots=True)
class Calls:
    """One machine's table; `first_x32` is where the numbers of another kind of calls begin, if there are any."""

    architecture: int
    first_x32: int | None
    checked: Mapping[str, int]
    free: Mapping[str, int]
    ahead: Mapping[str, int]
    checked_ahead: Mapping[str, int]
    setup: Mapping[str, int]
    canaries: Mapping[str, int]

    @classmethod
    def of(cls, table: ModuleType) -> "Calls":
        """The table that a module writes down."""
        return cls(**{each.name: getattr(table, each.name.upper()) for each in fields(cls)})


TABLES: Final = {"x86_64": Calls.of(calls_x86_64), "aarch64": Calls.of(calls_aarch64)}
NEVER_RUN: Final = frozenset({"aarch64"})  # written and compared, but no machine of that kind was at hand


def here() -> Calls:
    """The table of this machine; OSError where there is none."""
    machine = os.uname().machine
    if machine not in TABLES:
        raise OSError(f"the system calls of {machine} are not known")
    return TABLES[machine]


def number(name: str) -> int:
    """A call's number on this machine."""
    table = here()
    return {**table.setup, **table.canaries}[name]
