"""Effects inside the store, as values: they ride on a journal entry or are applied alone.

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
    """The name of a text: the SHA-256 of its UTF-8 form, in hex."""
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
    """What the gate said of one function of one version; a later verdict takes the place of an earlier."""

    version: str
    function: str
    verdict: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class SavePending:
    """Keep a refused candidate for `edit_function` and `confirm_function`."""

    function: str
    candidate: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class DropPending:
    """Forget a candidate that was admitted or given up."""

    function: str


@dataclass(frozen=True, slots=True)
class BeginWrite:
    """A file is about to become `text` (None: to go away) if it still is what `expected` names (None: absent)."""

    path: str
    version: str | None
    text: str | None
    expected: str | None


@dataclass(frozen=True, slots=True)
class EndWrite:
    """The file is as the intent of this path and version says, or the intent was given up."""

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
    """A human lets this version out of quarantine: its failures and returns in a row are counted anew."""

    function: str
    version: str


@dataclass(frozen=True, slots=True)
class SaveReading:
    """Keep what was read from a file: `stamp` is (mtime_ns, size, inode), `reading` is JSON text."""

    path: str
    stamp: tuple[int, int, int]
    version: str
    reading: str


@dataclass(frozen=True, slots=True)
class DropReading:
    """Forget what was read from a file that is gone."""

    path: str


@dataclass(frozen=True, slots=True)
class SaveSketches:
    """Keep what was derived from the texts of functions, by keys that say of which and how."""

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
    """A human's yes to what a function may reach, for the content that the digest names; a later one replaces it.

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
    """Forget every yes to a function, or the one for this content."""

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
