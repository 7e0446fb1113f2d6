"""Storage: what outlives the process. The only package that knows SQL.

`open_store` gives the embedded store; `Store` is what its users see, so that another backend can
stand in its place. What a method returned is on disk.
"""

from .errors import BlockConflict, InboxFull, ManifestConflict
from .folder import NAME as STATE
from .folder import STATE_FILE, AgentLock, lock_agent, open_lock, prepare_state_dir
from .memory_store import Counts, Hit, MemoryStore
from .memory_writes import AttachBlock, BlockChange, BlockRow, DetachBlock, DocumentRow, DropAgent, DropDocument, DropPassages, DropSection, DropVectors, PassageRow, RecallMessage, SaveAgent, SaveBlock, SaveDocument, SavePassages, SaveSaid, SaveSection, SaveVectors, SectionRow, Shelf, Value
from .recorded import Recorded, RecordedRow, SaveRecorded
from .recovery import adopt
from .rows import FIX, Misfit, Shape, fitting
from .sqlite import SqliteStore, open_store
from .store import SAID, SUMMARY, AgentRow, Appended, ClaimedTurn, Due, Entry, Inbound, OpenWrite, Post, ReadingRow, Store, VersionRow, YesRow
from .tallies import CallRow, KindRow, Stats
from .writes import FAILURES, BeginWrite, DropPending, DropReading, DropYes, EndWrite, PinFunction, RecordCall, ReleaseFunction, SavePending, SaveReading, SaveSketches, SaveText, SaveVerdict, SaveVersion, SaveYes, SetManifest, UnpinFunction, Write, content_hash

__all__ = [
    "FAILURES",
    "FIX",
    "SAID",
    "STATE",
    "STATE_FILE",
    "SUMMARY",
    "AgentLock",
    "AgentRow",
    "Appended",
    "AttachBlock",
    "BeginWrite",
    "BlockChange",
    "BlockConflict",
    "BlockRow",
    "CallRow",
    "ClaimedTurn",
    "Counts",
    "DetachBlock",
    "DocumentRow",
    "DropAgent",
    "DropDocument",
    "DropPassages",
    "DropPending",
    "DropReading",
    "DropSection",
    "DropVectors",
    "DropYes",
    "Due",
    "EndWrite",
    "Entry",
    "Hit",
    "Inbound",
    "InboxFull",
    "KindRow",
    "ManifestConflict",
    "MemoryStore",
    "Misfit",
    "OpenWrite",
    "PassageRow",
    "PinFunction",
    "Post",
    "ReadingRow",
    "RecallMessage",
    "RecordCall",
    "Recorded",
    "RecordedRow",
    "ReleaseFunction",
    "SaveAgent",
    "SaveBlock",
    "SaveDocument",
    "SavePassages",
    "SavePending",
    "SaveReading",
    "SaveRecorded",
    "SaveSaid",
    "SaveSection",
    "SaveSketches",
    "SaveText",
    "SaveVectors",
    "SaveVerdict",
    "SaveVersion",
    "SaveYes",
    "SectionRow",
    "SetManifest",
    "Shape",
    "Shelf",
    "SqliteStore",
    "Stats",
    "Store",
    "UnpinFunction",
    "Value",
    "VersionRow",
    "Write",
    "YesRow",
    "adopt",
    "content_hash",
    "fitting",
    "lock_agent",
    "open_lock",
    "open_store",
    "prepare_state_dir",
]
