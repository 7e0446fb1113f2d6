"""What one function may reach beyond the sandbox itself: files, folders and packages, as plain values.

The host decides what is granted; here it is only a value that workers are told apart by.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Access:
    """Files and folders, seen at their own paths, and packages; empty is the default and nothing at all."""

    readable: tuple[str, ...] = ()  # real absolute paths
    writable: tuple[str, ...] = ()
    packages: tuple[tuple[str, str], ...] = ()  # import name → folder that it is imported from
    preload: tuple[str, ...] = ()  # names that the zygote imports ahead


NOTHING: Final = Access()
