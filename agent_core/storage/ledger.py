"""The writes in SQL: what each of `writes.py` does to the tables, inside a transaction of its caller."""

from collections.abc import Callable, Sequence
from typing import Any

from agent_core.base.errors import StorageError

from . import memory_ledger, recorded
from . import writes as w
from .connection import SqlSession, dump
from .errors import ManifestConflict
from .rows import sign

NAME_CHARS, MESSAGE_CHARS = 80, 200
MAX_KINDS = 20
OTHERS = "others"
MOST_SKETCHES = 20_000  # about 20 MB; what is gone is made anew


def apply(session: SqlSession, writes: Sequence[w.Write]) -> None:
    """Apply each write in order."""
    for write in writes:
        _ACTIONS[type(write)](session, write)


def _save_text(session: SqlSession, write: w.SaveText) -> None:
    _keep(session, w.content_hash(write.text), write.text)


def _keep(session: SqlSession, name: str, text: str) -> None:
    session.all("insert into text (hash, text) values (?, ?) on conflict do nothing", name, text)


def _save_version(session: SqlSession, write: w.SaveVersion) -> None:
    if w.content_hash(write.text) != write.version:
        raise StorageError(f"Version {write.version[:12]} of `{write.module}` is not the hash of its source.")
    _keep(session, write.version, write.text)
    session.all(
        "insert into change (module, version, by, turn, model, reason, at) values (?, ?, ?, ?, ?, ?, ?)",
        *(write.module, write.version, write.by, write.turn, write.model, write.reason, session.clock.now()),
    )


def _set_manifest(session: SqlSession, write: w.SetManifest) -> None:
    row = session.one("select version from manifest where module = ?", write.module)
    current = row[0] if row else None
    if current != write.expected:
        raise ManifestConflict(write.module, write.expected, current)
    if write.version is not None:
        _point(session, write.module, write.version)
    elif current is not None:
        session.all("delete from manifest where module = ?", write.module)
        session.all(
            "insert into change (module, version, by, turn, model, reason, at) values (?, null, ?, ?, '', ?, ?)",
            *(write.module, write.by, write.turn, write.reason, session.clock.now()),
        )


def _point(session: SqlSession, module: str, version: str) -> None:
    if not session.one("select 1 from text where hash = ?", version):
        raise StorageError(f"Version {version[:12]} of `{module}` was never saved.", fix="Save the version first.")
    session.all(
        "insert into manifest (module, version) values (?, ?)"
        " on conflict (module) do update set version = excluded.version",
        *(module, version),
    )


def _save_verdict(session: SqlSession, write: w.SaveVerdict) -> None:
    row = (write.version, write.function, dump(write.verdict))
    session.all(
        "insert or replace into verdict (version, function, verdict, at, seal) values (?, ?, ?, ?, ?)",
        *(*row, session.clock.now(), sign(session.sealer, "verdict", *row)),
    )


def _save_pending(session: SqlSession, write: w.SavePending) -> None:
    row = (write.function, dump(write.candidate))
    session.all(
        "insert or replace into pending (function, candidate, at, seal) values (?, ?, ?, ?)",
        *(*row, session.clock.now(), sign(session.sealer, "pending", *row)),
    )


def _drop_pending(session: SqlSession, write: w.DropPending) -> None:
    session.all("delete from pending where function = ?", write.function)


def _begin_write(session: SqlSession, write: w.BeginWrite) -> None:
    session.all(
        "insert or replace into intent (path, version, text, expected, at) values (?, ?, ?, ?, ?)",
        *(write.path, write.version or "", write.text, write.expected, session.clock.now()),
    )


def _end_write(session: SqlSession, write: w.EndWrite) -> None:
    session.all("delete from intent where path = ? and version = ?", write.path, write.version or "")


def _record_call(session: SqlSession, write: w.RecordCall) -> None:
    now = session.clock.now()
    returned, failed = int(write.outcome == "returned"), int(write.outcome in w.FAILURES)
    _keep_call(session, write, now)
    session.all(
        "insert into call_total (function, version, calls, returned, failed, failing, holding, first, last, seconds,"
        " worst, since, worked, longest, memory, cpu)"
        " values (?1, ?2, 1, ?3, ?4, ?4, ?3, ?5, ?5, ?6, ?4, iif(?3, ?5, null), iif(?3, ?5, null), ?6, ?7, ?8)"
        " on conflict do update set"
        " calls = calls + 1, returned = returned + ?3, failed = failed + ?4,"
        " failing = case when ?3 then 0 else failing + ?4 end,"
        " worst = case when ?4 then max(worst, failing + 1) else worst end,"
        " holding = case when ?4 then 0 else holding + ?3 end,"
        " since = case when ?4 then null when ?3 and holding = 0 then ?5 else since end,"
        " worked = iif(?3, ?5, worked), last = ?5, seconds = seconds + ?6, longest = max(longest, ?6),"
        " memory = coalesce(max(memory, ?7), memory, ?7), cpu = coalesce(cpu + ?8, cpu, ?8)",
        *(write.function, write.version, returned, failed, now, write.seconds, write.memory, write.cpu),
    )
    if not returned:
        _count_kind(session, write, now)


def _keep_call(session: SqlSession, write: w.RecordCall, now: float) -> None:
    """Store the call itself, and delete the oldest one."""
    number = session.all(
        "insert into call select ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 from call"
        " where function = ?1 returning n",
        *(write.function, write.version, write.turn, write.outcome),
        *(write.error[:NAME_CHARS], write.message[:MESSAGE_CHARS], write.seconds, write.memory, now, write.cpu),
    )[0][0]
    session.all("delete from call where function = ? and n <= ?", write.function, number - session.keep_calls)


def _count_kind(session: SqlSession, write: w.RecordCall, now: float) -> None:
    kind = (write.function, write.version, write.outcome)
    error = write.error[:NAME_CHARS]
    # The name of an exception is the function's own choice: it must not fill the table with new ones.
    kinds = session.all("select error from call_kind where function = ? and version = ? and outcome = ?", *kind)
    if (error,) not in kinds and len(kinds) >= MAX_KINDS:
        error = OTHERS
    session.all(
        "insert into call_kind values (?, ?, ?, ?, 1, ?) on conflict do update set"
        " calls = calls + 1, last = excluded.last",
        *(*kind, error, now),
    )


def _release(session: SqlSession, write: w.ReleaseFunction) -> None:
    now = session.clock.now()
    session.all("insert into release (function, version, at) values (?, ?, ?)", write.function, write.version, now)
    session.all(
        "update call_total set worst = 0, failing = 0, holding = 0, since = null where function = ? and version = ?",
        *(write.function, write.version),
    )


def _save_reading(session: SqlSession, write: w.SaveReading) -> None:
    seal = sign(session.sealer, "reading", write.path, write.version, write.reading)
    session.all(
        "insert or replace into reading (path, mtime_ns, size, inode, version, reading, seal)"
        " values (?, ?, ?, ?, ?, ?, ?)",
        *(write.path, *write.stamp[:2], str(write.stamp[2]), write.version, write.reading, seal),
    )


def _drop_reading(session: SqlSession, write: w.DropReading) -> None:
    session.all("delete from reading where path = ?", write.path)


def _save_sketches(session: SqlSession, write: w.SaveSketches) -> None:
    for key, text in write.sketches.items():
        session.all("insert or replace into sketch (key, sketch) values (?, ?)", key, text)
    session.all("delete from sketch where n <= (select max(n) from sketch) - ?", MOST_SKETCHES)


def _pin(session: SqlSession, write: w.PinFunction) -> None:
    session.all("insert into pin values (?, ?) on conflict do nothing", write.agent, write.function)


def _unpin(session: SqlSession, write: w.UnpinFunction) -> None:
    session.all("delete from pin where agent = ? and function = ?", write.agent, write.function)


def _save_yes(session: SqlSession, write: w.SaveYes) -> None:
    session.all(
        "insert or replace into yes (function, digest, content, grants, by, seal, at) values (?, ?, ?, ?, ?, ?, ?)",
        *(write.function, write.digest, write.content, write.grants, write.by, write.seal, session.clock.now()),
    )


def _drop_yes(session: SqlSession, write: w.DropYes) -> None:
    session.all("delete from yes where function = ?1 and (digest = ?2 or ?2 = '')", write.function, write.digest)


# Any: each action takes the one class that it is listed under, which a mapping's type cannot say.
_ACTIONS: dict[type[object], Callable[[SqlSession, Any], None]] = {
    w.SaveText: _save_text,
    w.SaveVersion: _save_version,
    w.SetManifest: _set_manifest,
    w.SaveVerdict: _save_verdict,
    w.SavePending: _save_pending,
    w.DropPending: _drop_pending,
    w.BeginWrite: _begin_write,
    w.EndWrite: _end_write,
    w.RecordCall: _record_call,
    w.ReleaseFunction: _release,
    w.SaveReading: _save_reading,
    w.DropReading: _drop_reading,
    w.SaveSketches: _save_sketches,
    w.PinFunction: _pin,
    w.UnpinFunction: _unpin,
    w.SaveYes: _save_yes,
    w.DropYes: _drop_yes,
    recorded.SaveRecorded: recorded.save,
    **memory_ledger.ACTIONS,
}
