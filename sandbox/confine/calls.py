"""The numbers of system calls on the known machines, and the table of this machine."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Final

from . import calls_aarch64, calls_x86_64


@dataclass(frozen=True, slots=True)
class SyscallTable:
    """One machine's table. `first_x32` is the first number of another kind of calls, if there are any."""

    architecture: int
    first_x32: int | None
    checked: Mapping[str, int]
    free: Mapping[str, int]
    ahead: Mapping[str, int]
    checked_ahead: Mapping[str, int]
    setup: Mapping[str, int]
    canaries: Mapping[str, int]

    @classmethod
    def of(cls, table: ModuleType) -> "SyscallTable":
        """Return the table that a module defines."""
        return cls(**{field.name: getattr(table, field.name.upper()) for field in fields(cls)})


TABLES: Final = {"x86_64": SyscallTable.of(calls_x86_64), "aarch64": SyscallTable.of(calls_aarch64)}
NEVER_RUN: Final = frozenset({"aarch64"})  # written and compared, but no machine of that kind was at hand


def native_calls() -> SyscallTable:
    """Return the table of this machine. Raise OSError if there is none."""
    machine = os.uname().machine
    if machine not in TABLES:
        raise OSError(f"the system calls of {machine} are not known")
    return TABLES[machine]


def number(name: str) -> int:
    """Return a call's number on this machine."""
    table = native_calls()
    return {**table.setup, **table.canaries}[name]
