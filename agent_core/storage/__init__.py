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
    Stats,
    Store,
    Turn,
    VersionRow,
)
from .writes import (
    BeginWrite,
    DropPending,
    DropReading,
    EndWrite,
    PinFunction,
    RecordCall,
    SavePending,
    SaveReading,
    SaveText,
    SaveVerdict,
    SaveVersion,
    SetManifest,
    UnpinFunction,
    Write,
    content_hash,
)

__all__ = [
    "SAID",
    "STATE",
    "AgentLock",
    "AgentRow",
    "Appended",
    "BeginWrite",
    "DropPending",
    "DropReading",
    "Due",
    "EndWrite",
    "Entry",
    "Inbound",
    "InboxFull",
    "ManifestConflict",
    "OpenWrite",
    "PinFunction",
    "Post",
    "ReadingRow",
    "RecordCall",
    "SavePending",
    "SaveReading",
    "SaveText",
    "SaveVerdict",
    "SaveVersion",
    "SetManifest",
    "SqliteStore",
    "Stats",
    "Store",
    "Turn",
    "UnpinFunction",
    "VersionRow",
    "Write",
    "content_hash",
    "lock_agent",
    "open_store",
    "prepare_state_dir",
]
