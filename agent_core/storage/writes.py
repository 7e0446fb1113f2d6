"""Store mutations as values: they are attached to a journal entry or applied alone.

All writes of one `append` or `apply` are one transaction: every one of them happens, or none.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .memory_writes import MemoryWrite
from .recorded import SaveRecorded

Author: TypeAlias = Literal["human", "agent"]

FAILURES = frozenset({"raised", "timed_out", "killed"})
"""The outcomes that are a function's own fault."""


def content_hash(text: str) -> str:
    """Return the name of a text: the SHA-256 of its UTF-8 form, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SaveText:
    """Keep a text once under its content hash (instructions, a list of functions shown, …)."""

    text: str


@dataclass(frozen=True, slots=True)
class SaveVersion:
    """Keep a module's source once by its hash, and add a line to the module's history."""

    module: str
    version: str
    text: str
    by: Author = "human"
    turn: str = ""
    reason: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class SetManifest:
    """Compare-and-set: `expected` None means that the module is new, `version` None removes it.

    A removal is a line in the module's history too, with `by`, `turn` and `reason`.
    """

    module: str
    expected: str | None
    version: str | None
    by: Author = "human"
    turn: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SaveVerdict:
    """The gate's verdict on one function of one version. A later verdict replaces an earlier one."""

    version: str
    function: str
    verdict: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class SavePending:
    """Keep a rejected candidate for `edit_function` and `confirm_function`."""

    function: str
    candidate: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class DropPending:
    """Delete a candidate that was admitted or given up."""

    function: str


@dataclass(frozen=True, slots=True)
class BeginWrite:
    """Announce that a file is to become `text` (None: be deleted) if it still matches `expected` (None: absent)."""

    path: str
    version: str | None
    text: str | None
    expected: str | None


@dataclass(frozen=True, slots=True)
class EndWrite:
    """Note that the file matches the intent of this path and version, or that the intent was given up."""

    path: str
    version: str | None


@dataclass(frozen=True, slots=True)
class RecordCall:
    """One call of a function, for its standing and statistics.

    `outcome` is the published word, or `documented`: it raised what its docstring names. `error` is an exception's
    type; `memory` is the worker's peak in bytes, `cpu` its seconds of processor time.
    """

    function: str
    version: str
    outcome: str
    seconds: float
    turn: str = ""
    error: str = ""
    message: str = ""
    memory: int | None = None
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class ReleaseFunction:
    """Release this version from quarantine by the user's decision. Its failures and returns in a row count anew."""

    function: str
    version: str


@dataclass(frozen=True, slots=True)
class SaveReading:
    """Store the reading of a file: `stamp` is (mtime_ns, size, inode), `reading` is JSON text."""

    path: str
    stamp: tuple[int, int, int]
    version: str
    reading: str


@dataclass(frozen=True, slots=True)
class DropReading:
    """Delete the reading of a file that no longer exists."""

    path: str


@dataclass(frozen=True, slots=True)
class SaveSketches:
    """Store data derived from the texts of functions, by keys that identify the text and the kind of derivation."""

    sketches: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PinFunction:
    """Always show this function to this agent."""

    agent: str
    function: str


@dataclass(frozen=True, slots=True)
class UnpinFunction:
    """Show this function to this agent only when it is found."""

    agent: str
    function: str


@dataclass(frozen=True, slots=True)
class SaveYes:
    """The user's approval of what a function may reach, for the content that the digest names. A later one replaces it.

    `content` and `grants` are JSON text; `seal` proves that this user gave it here.
    """

    function: str
    digest: str
    content: str
    grants: str
    by: str
    seal: str


@dataclass(frozen=True, slots=True)
class DropYes:
    """Delete every approval of a function, or the one for this content."""

    function: str
    digest: str = ""


Write: TypeAlias = (
    SaveText
    | SaveVersion
    | SetManifest
    | SaveVerdict
    | SavePending
    | DropPending
    | BeginWrite
    | EndWrite
    | RecordCall
    | ReleaseFunction
    | SaveReading
    | DropReading
    | SaveSketches
    | PinFunction
    | UnpinFunction
    | SaveYes
    | DropYes
    | SaveRecorded
    | MemoryWrite
)
