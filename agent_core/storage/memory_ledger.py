"""Blocks, sections, sources and agents in SQL: the effect of each memory write, inside a transaction of its caller."""

from collections.abc import Callable
from typing import Any

from agent_core.base.errors import StorageError

from . import memory_writes as m
from . import passages, vector_index, word_index
from .connection import SqlSession, dump
from .errors import BlockConflict


def _save_agent(session: SqlSession, write: m.SaveAgent) -> None:
    session.all("insert or replace into agent (name, settings) values (?, ?)", write.agent, dump(write.settings))


def _drop_agent(session: SqlSession, write: m.DropAgent) -> None:
    word_index.remove_agent(session, write.agent)
    for sql in _ALL_OF_AN_AGENT:
        session.all(sql, write.agent)
    vector_index.sweep(session)


_ALL_OF_AN_AGENT = (
    "delete from block where not shared and id in (select block from holding where agent = ?1)"
    " and not exists (select 1 from holding where block = id and agent <> ?1)",
    "delete from holding where agent = ?",
    "delete from section where agent = ?",
    "delete from passage where agent = ?",
    "delete from document where agent = ?",
    "delete from said where agent = ?",
    "delete from lane where agent = ?",
    "delete from pin where agent = ?",
    "delete from question where agent = ?",
    "delete from agent where name = ?",
    "delete from entry where seq in (select e.seq from turn t"
    " join entry e on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1 where t.agent = ?)",
    "update event set turn = null where agent = ?",
    "delete from turn where agent = ?",
    "delete from event where agent = ?",
)


def _save_block(session: SqlSession, write: m.SaveBlock) -> None:
    block, now = write.block, session.clock.now()
    row = session.one("select version from block where id = ?", block.id)
    current = row[0] if row else 0
    if current != block.version - 1:
        raise BlockConflict(block.label, block.version - 1, current)
    if not current:
        _refuse_second(session, write.agent, block.id, block.label)
    value = dump(block.value)
    session.all(
        "insert into block (id, label, value, chars, description, read_only, shared, version, edited)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do update set label = excluded.label,"
        " value = excluded.value, chars = excluded.chars, description = excluded.description,"
        " read_only = excluded.read_only, shared = excluded.shared,"
        " version = excluded.version, edited = excluded.edited",
        *(block.id, block.label, value, block.limit, block.description),
        *(block.read_only, block.shared, block.version, now),
    )
    session.all(
        "insert into block_change (block, version, value, what, by, agent, turn, at) values (?, ?, ?, ?, ?, ?, ?, ?)",
        *(block.id, block.version, value, write.action, write.by, write.agent, write.turn, now),
    )
    place = (block.position, write.agent, block.id)
    if current:
        session.all("update holding set position = ? where agent = ? and block = ?", *place)
    else:
        session.all("insert into holding (position, agent, block, attached) values (?, ?, ?, 1)", *place)


def _refuse_second(session: SqlSession, agent: str, id: str, label: str) -> None:
    """Raise an error for a second block with the same label: the two would hide each other."""
    row = session.one(
        "select b.version from holding h join block b on b.id = h.block"
        " where h.agent = ? and h.attached and b.label = ? and b.id <> ?",
        *(agent, label, id),
    )
    if row:
        raise BlockConflict(label, 0, row[0])


def _attach(session: SqlSession, write: m.AttachBlock) -> None:
    block = session.one("select label, shared from block where id = ?", write.block)
    if block is None:
        raise StorageError(f"There is no block {write.block}.", fix="See which blocks are shared.")
    if not block[1] and session.one("select 1 from holding where block = ? and agent <> ?", write.block, write.agent):
        raise StorageError(f"The block `{block[0]}` is not shared.", fix="Share it first.")
    _refuse_second(session, write.agent, write.block, block[0])
    session.all(
        "insert into holding (agent, block, position, attached) values (?, ?, ?, 1)"
        " on conflict do update set position = excluded.position, attached = 1",
        *(write.agent, write.block, write.position),
    )


def _detach(session: SqlSession, write: m.DetachBlock) -> None:
    session.all("update holding set attached = 0 where agent = ? and block = ?", write.agent, write.block)


def _save_section(session: SqlSession, write: m.SaveSection) -> None:
    section = write.section
    session.all(
        "insert or replace into section (agent, name, position, text, chars, edited) values (?, ?, ?, ?, ?, ?)",
        *(write.agent, section.name, section.position, section.text, section.limit, session.clock.now()),
    )


def _drop_section(session: SqlSession, write: m.DropSection) -> None:
    session.all("delete from section where agent = ? and name = ?", write.agent, write.name)


def _save_document(session: SqlSession, write: m.SaveDocument) -> None:
    document = write.document
    session.all(
        "insert into document (agent, hash, name, kind, at, done, total, complete) values (?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (agent, hash) do update set name = excluded.name, kind = excluded.kind, at = excluded.at,"
        " done = excluded.done, total = excluded.total, complete = excluded.complete",
        *(
            document.agent,
            document.hash,
            document.name,
            document.kind,
            document.at,
            document.done,
            document.total,
            document.complete,
        ),
    )


# Any: each action takes the one class that it is listed under, which a mapping's type cannot say.
ACTIONS: dict[type[object], Callable[[SqlSession, Any], None]] = {
    m.SaveAgent: _save_agent,
    m.DropAgent: _drop_agent,
    m.SaveBlock: _save_block,
    m.AttachBlock: _attach,
    m.DetachBlock: _detach,
    m.SaveSection: _save_section,
    m.DropSection: _drop_section,
    m.SaveDocument: _save_document,
    **passages.ACTIONS,
}
