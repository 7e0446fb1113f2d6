"""Limits of one call, as plain values."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call, with sizes in bytes and times in seconds.

    `wall_s` is the host's clock and the main limit; `cpu_s` is the kernel's backstop.
    """

    wall_s: float = 10.0
    cpu_s: int = 60
    memory: int = 512 * MIB
    file_size: int = 16 * MIB
    scratch: int = 64 * MIB
    output: int = 64 * 1024
    result: int = 1 * MIB  # of one value that goes in a frame
    value: int = 64 * MIB  # of one that goes through a file
    open_files: int = 64
    requests: int = 10_000
