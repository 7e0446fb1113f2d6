"""Copies a whole store into another, of the same kind or not, and compares both row by row.

Rows are copied in the order of their keys, one batch per transaction: an interrupted copy continues after the last
copied row. Derived data (indexes, forms of functions, readings of files) is created again where it is used.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from agent_core.base.errors import StorageError
from agent_core.base.records import dataclass

from .store import Store
from .tables import Key, Row, SqlSession, Tables

BATCH: Final = 1_000
_FLAGS: Final = frozenset(
    {
        "timed",
        "cancelled",
        "hidden",
        "read_only",
        "shared",
        "attached",
        "complete",
        "asks",
        "masked",
        "undone",
        "renamed",
        "unattended",
    }
)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table with its key, which defines its order, and its other columns."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    is_numbered: bool = False

    @property
    def all(self) -> tuple[str, ...]:
        """All columns, the key first."""
        return (*self.key, *self.columns)


def _table(name: str, key: str, columns: str, *, numbered: bool = False) -> _Table:
    return _Table(name, tuple(key.split()), tuple(columns.split()), numbered)


# Referenced tables come first. An event refers to the turn that took it, and the turn to the event that began it: which
# turn took an event is copied after all tables.
_TABLES: Final = (
    _table("text", "hash", "text"),
    _table("manifest", "module", "version"),
    _table("change", "seq", "module version by turn model reason at kept_out", numbered=True),
    _table("verdict", "version function", "verdict at seal"),
    _table("pending", "function", "candidate at seal"),
    _table("intent", "seq", "path version text expected at tended seal", numbered=True),
    _table("call", "function n", "version turn outcome error message seconds memory at cpu"),
    _table("call_kind", "function version outcome error", "calls last"),
    _table(
        "call_total",
        "function version",
        "calls returned failed failing holding first last seconds worst since worked longest memory cpu",
    ),
    _table("release", "seq", "function version at", numbered=True),
    _table("own_set", "agent function", ""),
    _table("pin", "pattern", "holds at"),
    _table("made", "agent code", "seal"),
    _table("approval", "seq", "function digest content grants by seal at", numbered=True),
    _table("recorded", "n", "function outcome turn at data seal", numbered=True),
    _table("tended", "n", "run function kind before after note at undone", numbered=True),
    _table("exposure", "n", "turn function version masked model kind is_right draw", numbered=True),
    _table("seen", "agent function", "version shape"),
    _table("state", "n", "function turn value at", numbered=True),
    _table(
        "question",
        "seq",
        "id agent turn question asked_at seal decision answered_at answer_seal",
        numbered=True,
    ),
    _table("agent", "name", "settings"),
    _table(
        "block",
        "seq",
        "id label value chars description read_only shared version edited",
        numbered=True,
    ),
    _table("holding", "agent block", "position attached"),
    _table("block_change", "block version", "value what by agent turn at"),
    _table("block_access", "block", "readers writers owner"),
    _table("section", "agent name", "position text chars edited"),
    _table("passage", "seq", "id agent text words at tags source place document n", numbered=True),
    _table("tag", "agent tag passage", ""),
    _table("document", "seq", "agent hash name kind at done total complete", numbered=True),
    _table("said", "seq", "agent n text words at speaker session length asks timed turn line"),
    _table("conversation", "line", "name renamed began origin parent upto hidden deleted door"),
    _table("thread", "id", "agent limits state why started"),
    _table("spending", "thread agent", "hops messages steps tokens cost seconds helpers depth"),
    _table(
        "message",
        "seq",
        "id thread kind sender recipient text turn hops owes state answer at due ended",
        numbered=True,
    ),
    _table("paused", "agent", "why at"),
    _table("pause", "at", "why"),
    _table("cap", "name", "amount at seal"),
    _table(
        "spent",
        "seq",
        "id at turn line unattended model prompt cached completion most_in most_out beat",
        numbered=True,
    ),
    _table("token", "id", "name digest scopes agents expires added_at seal"),
    _table("event", "seq", "id line key kind payload due timed at origin", numbered=True),
    _table(
        "turn",
        "seq",
        "id line event state attempt n owner cancelled hidden started ended streamed",
        numbered=True,
    ),
    _table("entry", "seq", "kind payload attempt at"),
)
_TAKEN: Final = "select turn, seq from event where turn is not null order by seq"
_LANES: Final = (
    "select agent, shelf, space from lane where space <> '' order by agent, shelf, space"
)
_VECTORS: Final = (
    "select v.seq, v.vector from vector v join lane l on l.id = v.lane"
    " where l.agent = ? and l.shelf = ? and l.space = ? and v.seq > ? order by v.seq limit ?"
)


async def copy_store(
    source_store: Store, target_store: Store, *, resume: bool = False
) -> dict[str, int]:
    """Copy all of a store into an empty one, compare them, and return how many rows each table has.

    `resume` continues an interrupted copy. No other process may write meanwhile.

    Raises:
        StorageError: the target is not empty, or the two differ afterwards.
    """
    if not resume and any((await row_counts(target_store)).values()):
        raise StorageError(
            "The target is not empty.", fix="Name an empty one, or go on with a copy: --resume"
        )
    for table in _TABLES:
        await _copy_table(source_store, target_store, table)
    taken = await source_store._read(lambda session: session.all(_TAKEN))
    for start in range(0, len(taken), BATCH):
        part = taken[start : start + BATCH]
        await target_store._write(
            lambda session: session.many("update event set turn = ? where seq = ?", part)  # noqa: B023 awaited at once
        )
    for lane in await source_store._read(lambda session: session.all(_LANES)):
        last = 0
        while rows := await source_store._read(
            lambda session: session.all(_VECTORS, *lane, last, BATCH)  # noqa: B023 awaited at once
        ):
            await target_store._write(lambda session: session.index.save(session, Key(*lane), rows))  # noqa: B023 as above
            last = rows[-1][0]
    await target_store._write(lambda session: session.index.rebuild(session))
    names = (*(table.name for table in _TABLES), "taken events", "vectors")
    # All sums of one side at one moment: what others write meanwhile does not come between two tables.
    sums = await source_store._read(lambda session: {name: _sum(session, name) for name in names})
    for name, (count, digest) in sums.items():
        other = await target_store._read(lambda session: _sum(session, name))  # noqa: B023 awaited at once
        if (count, digest) != other:
            message = f"`{name}` differs: {count} rows there, {other[0]} rows here."
            raise StorageError(
                message,
                fix="Empty the target and copy again, with no program at work in the source.",
            )
    return {name: count for name, (count, _) in sums.items()}


async def row_counts(store: Store) -> dict[str, int]:
    """Return how many rows each table has."""
    return await store._read(
        lambda session: {
            table.name: int(session.all(f"select count(*) from {table.name}")[0][0])  # noqa: S608  (our own table)
            for table in _TABLES
        }
    )


async def _copy_table(tables: Tables, other_tables: Tables, table: _Table) -> None:
    order = ", ".join(f"{name} desc" for name in table.key)
    newest = f"select {', '.join(table.key)} from {table.name} order by {order} limit 1"  # noqa: S608  (our own names)
    insert = f"insert into {table.name} ({', '.join(table.all)}) values ({', '.join('?' * len(table.all))})"  # noqa: S608  (our own names)
    is_flag = [name in _FLAGS for name in table.all]
    last = await other_tables._read(lambda session: session.one(newest))
    while rows := await tables._read(lambda session: _batch(session, table, last)):  # noqa: B023 awaited at once
        values = [
            [bool(value) if flag else value for value, flag in zip(row, is_flag, strict=True)]
            for row in rows
        ]
        await other_tables._write(lambda session: session.many(insert, values))  # noqa: B023 awaited at once
        last = rows[-1][: len(table.key)]
    if table.is_numbered:
        await other_tables._write(lambda session: session.number_on(table.name, table.key[0]))


def _batch(session: SqlSession, table: _Table, last: Row | None) -> list[Row]:
    key = ", ".join(table.key)
    after = f"where ({key}) > ({', '.join('?' * len(table.key))})" if last is not None else ""
    sql = f"select {', '.join(table.all)} from {table.name} {after} order by {key} limit {BATCH}"  # noqa: S608  (our own names)
    return session.all(sql, *(last or ()))


def _sum(session: SqlSession, name: str) -> tuple[int, str]:
    """Return the number of rows and a hash of them, which is the same in both databases."""
    count, digest = 0, hashlib.sha256()
    for row in _rows(session, name):
        count += 1
        digest.update(
            repr([int(value) if isinstance(value, bool) else value for value in row]).encode()
        )
    return count, digest.hexdigest()


def _rows(
    session: SqlSession, name: str
) -> Iterator[Sequence[Any]]:  # Any: columns as the database types them
    if name == "taken events":
        yield from session.all(_TAKEN)
    elif name == "vectors":
        for lane in session.all(_LANES):
            yield from ((*lane, *row) for row in session.all(_VECTORS, *lane, 0, 1 << 62))
    else:
        table, last = next(table for table in _TABLES if table.name == name), None
        while rows := _batch(session, table, last):
            yield from rows
            last = rows[-1][: len(table.key)]
