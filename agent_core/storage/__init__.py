"""Storage: what outlives the process. The only room that knows SQL.

`open_store` gives the embedded store; `Store` is what its users see, so that another backend can
stand in its place. What a method returned is on disk.
"""

from .errors import InboxFull, ManifestConflict
from .folder import NAME as STATE
from .folder import AgentLock, lock_agent, prepare_state_dir
from .sqlite import SqliteStore, open_store
from .store import (
    SAID,
    AgentRow,
    Appended,
    Due,
    Entry,
    Inbound,
    OpenWrite,
    Post,
    ReadingRow,
    Store,
    Turn,
    VersionRow,
    YesRow,
)
from .tallies import CallRow, KindRow, Stats
from .writes import (
    FAILURES,
    BeginWrite,
    DropPending,
    DropReading,
    DropYes,
    EndWrite,
    PinFunction,
    RecordCall,
    ReleaseFunction,
    SavePending,
    SaveReading,
    SaveText,
    SaveVerdict,
    SaveVersion,
    SaveYes,
    SetManifest,
    UnpinFunction,
    Write,
    content_hash,
)

__all__ = [
    "FAILURES",
    "SAID",
    "STATE",
    "AgentLock",
    "AgentRow",
    "Appended",
    "BeginWrite",
    "CallRow",
    "DropPending",
    "DropReading",
    "DropYes",
    "Due",
    "EndWrite",
    "Entry",
    "Inbound",
    "InboxFull",
    "KindRow",
    "ManifestConflict",
    "OpenWrite",
    "PinFunction",
    "Post",
    "ReadingRow",
    "RecordCall",
    "ReleaseFunction",
    "SavePending",
    "SaveReading",
    "SaveText",
    "SaveVerdict",
    "SaveVersion",
    "SaveYes",
    "SetManifest",
    "SqliteStore",
    "Stats",
    "Store",
    "Turn",
    "UnpinFunction",
    "VersionRow",
    "Write",
    "YesRow",
    "content_hash",
    "lock_agent",
    "open_store",
    "prepare_state_dir",
]
