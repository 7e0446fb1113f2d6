"""The contents of memory, read from SQL: blocks, sections, messages and passages by number, position or time."""

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from .connection import SqlSession
from .lanes import Key, lane, numbers
from .memory_store import Counts
from .memory_writes import BlockChange, BlockRow, DocumentRow, PassageRow, RecallMessage, SectionRow, Shelf, Value
from .rows import SETTINGS, TEXTS, parse_row

_BLOCKS = (
    "select b.id, b.label, b.value, b.chars, b.description, b.read_only, b.shared, h.position, b.version, b.edited"
    " from holding h join block b on b.id = h.block where h.agent = ? and h.attached order by h.position, b.seq"
)
_HOW_MANY = "select count(*) from said"
_SAID = "select seq, agent, n, text, words, at, speaker, session, length, asks, timed, turn from said"
_PASSAGES = "select id, agent, text, words, at, tags, source, place, document, n, seq from passage"
_TEXTS = {"recall": "select seq, text from said as r", "archival": "select seq, text from passage as r"}
_AMONG = "in (select value from json_each(?))"
FEW_IDS = 10


def agent_settings(session: SqlSession, agent: str) -> dict[str, Any] | None:  # Any: JSON
    """Return the saved settings."""
    row = session.one("select settings from agent where name = ?", agent)
    return parse_row(row[0], SETTINGS) if row else None


def blocks(session: SqlSession, agent: str) -> list[BlockRow]:
    """Return the attached blocks."""
    return [_block(row) for row in session.all(_BLOCKS, agent)]


def versions(session: SqlSession, agent: str) -> dict[str, int]:
    """Return the versions of the shared blocks."""
    rows = session.all(
        "select b.id, b.version from holding h join block b on b.id = h.block"
        " where h.agent = ? and h.attached and b.shared",
        agent,
    )
    return dict(rows)


def shared_blocks(session: SqlSession) -> list[BlockRow]:
    """Return every shared block, by label."""
    rows = session.all(
        "select id, label, value, chars, description, read_only, shared, 0, version, edited from block where shared"
        " order by label, seq"
    )
    return [_block(row) for row in rows]


def block_history(session: SqlSession, block: str) -> list[BlockChange]:
    """Return the lines of a block's history."""
    rows = session.all(
        "select block, version, value, what, by, agent, turn, at from block_change where block = ? order by version",
        block,
    )
    return [BlockChange(id, version, _value(value), *columns) for id, version, value, *columns in rows]


def block_ids(session: SqlSession, agent: str) -> dict[str, str]:
    """Return the labels of all blocks that the agent has or had."""
    rows = session.all(
        "select b.id, b.label from holding h join block b on b.id = h.block where h.agent = ? order by b.seq", agent
    )
    return dict(rows)


def sections(session: SqlSession, agent: str) -> list[SectionRow]:
    """Return the sections in order."""
    rows = session.all(
        "select name, position, text, chars, edited from section where agent = ? order by position, name", agent
    )
    return [SectionRow(*row) for row in rows]


def counts(session: SqlSession, agent: str) -> Counts:
    """Return the counts from the lanes, which count as they grow."""
    lanes = [lane(session, Key(agent, shelf)) for shelf in ("recall", "archival")]
    messages, passages = (lane_row.rows if lane_row else 0 for lane_row in lanes)
    edited = session.all(
        "select coalesce(max(b.edited), 0.0) from holding h join block b on b.id = h.block"
        " where h.agent = ? and h.attached and b.version > 1",
        agent,
    )[0][0]
    return Counts(messages, passages, edited)


def said(session: SqlSession, agent: str, seqs: Collection[int]) -> list[RecallMessage]:
    """Return messages by `seq`."""
    # The plus keeps the planner from walking through all rows of the agent.
    rows = session.all(f"{_SAID} where seq {_AMONG} and +agent = ? order by seq", numbers([*seqs]), agent)
    return [_said_of(row) for row in rows]


def said_beside(session: SqlSession, agent: str, places: Collection[int]) -> list[RecallMessage]:
    """Return messages by position."""
    rows = session.all(f"{_SAID} where agent = ? and n {_AMONG} order by n, seq", agent, numbers([*places]))
    return [_said_of(row) for row in rows]


def said_between(
    session: SqlSession, agent: str, span: tuple[float, float], offset: int, limit: int
) -> tuple[int, list[RecallMessage]]:
    """Return messages by time."""
    where = "where agent = ? and at >= ? and at < ?"
    total = session.all(f"{_HOW_MANY} {where}", agent, *span)[0][0]
    rows = session.all(f"{_SAID} {where} order by at, seq limit ? offset ?", agent, *span, limit, offset)
    return total, [_said_of(row) for row in rows]


def last_said(session: SqlSession, agent: str) -> RecallMessage | None:
    """Return the message with the highest `seq`: positions are assigned in this order."""
    row = session.one(f"{_SAID} where agent = ? order by n desc, seq desc limit 1", agent)
    return _said_of(row) if row else None


def passages(session: SqlSession, seqs: Collection[int]) -> list[PassageRow]:
    """Return passages by `seq`."""
    return [_passage(row) for row in session.all(f"{_PASSAGES} where seq {_AMONG} order by seq", numbers([*seqs]))]


def passages_beside(session: SqlSession, agent: str, places: Collection[tuple[str, int]]) -> list[PassageRow]:
    """Return passages by document and position."""
    among = "(document, n) in (select value ->> 0, value ->> 1 from json_each(?))"
    rows = session.all(
        f"{_PASSAGES} where agent = ? and document <> '' and {among} order by document, n, seq",
        *(agent, json.dumps([*places])),
    )
    return [_passage(row) for row in rows]


def list_passages(session: SqlSession, agent: str, tag: str, offset: int, limit: int) -> tuple[int, list[PassageRow]]:
    """Return passages, newest first."""
    if not tag:
        rows = session.all(f"{_PASSAGES} where agent = ? order by seq desc limit ? offset ?", agent, limit, offset)
        return counts(session, agent).passages, [_passage(row) for row in rows]
    total = session.all("select count(*) from tag where agent = ? and tag = ?", agent, tag)[0][0]
    chosen = "select passage from tag where agent = ? and tag = ? order by passage desc limit ? offset ?"
    rows = session.all(f"{_PASSAGES} where seq in ({chosen}) order by seq desc", agent, tag, limit, offset)
    return total, [_passage(row) for row in rows]


def passage_ids(session: SqlSession, agent: str, begins: str) -> list[str]:
    """Return a few ids with this prefix."""
    rows = session.all(
        "select id from passage where agent = ? and id >= ? and substr(id, 1, length(?)) = ? order by id limit ?",
        *(agent, begins, begins, begins, FEW_IDS),
    )
    return [row[0] for row in rows]


def documents(session: SqlSession, agent: str) -> list[DocumentRow]:
    """Return documents, oldest first."""
    rows = session.all(
        "select hash, agent, name, kind, at, done, total, complete from document where agent = ? order by seq", agent
    )
    return [_document(row) for row in rows]


def unembedded(session: SqlSession, shelf: Shelf, space: str, limit: int) -> list[tuple[int, str]]:
    """Return rows without a vector, for each agent that has fewer vectors than rows."""
    rows: list[tuple[int, str]] = []
    short = (
        "select w.agent, w.rows - coalesce(v.rows, 0) as missing, v.id from lane w left join lane v"
        " on v.agent = w.agent and v.shelf = w.shelf and v.space = ? where w.shelf = ? and w.space = '' and missing > 0"
    )
    for agent, missing, vectors in session.all(short, space, shelf):
        rows += _missing(session, _TEXTS[shelf], agent, vectors, min(missing, limit))
    return sorted(rows)[:limit]


def _missing(session: SqlSession, texts: str, agent: str, vectors: int | None, count: int) -> list[tuple[int, str]]:
    """Return the rows after the last with a vector; if these are too few, search all rows."""
    last = session.all("select coalesce(max(seq), 0) from vector where lane = ?", vectors)[0][0]
    rows = session.all(f"{texts} where agent = ? and seq > ? order by seq limit ?", agent, last, count)
    if len(rows) < count:
        without = "not exists (select 1 from vector where lane = ? and seq = r.seq)"
        rows = session.all(f"{texts} where agent = ? and {without} order by seq limit ?", agent, vectors, count)
    return [(seq, text) for seq, text in rows]


def _block(row: tuple[Any, ...]) -> BlockRow:  # Any: columns as SQLite types them
    id, label, value, limit, description, read_only, shared, *columns = row
    return BlockRow(id, label, _value(value), limit, description, bool(read_only), bool(shared), *columns)


def _value(text: str) -> Value:
    value = parse_row(text, TEXTS)
    return value if isinstance(value, str) else tuple(value)


def _said_of(row: tuple[Any, ...]) -> RecallMessage:  # Any: columns as SQLite types them
    message = RecallMessage(*row)
    return replace(message, asks=bool(message.asks), timed=bool(message.timed))


def _document(row: tuple[Any, ...]) -> DocumentRow:  # Any: columns as SQLite types them
    document = DocumentRow(*row)
    return replace(document, complete=bool(document.complete))


def _passage(row: tuple[Any, ...]) -> PassageRow:  # Any: columns as SQLite types them
    id, agent, text, words, at, tags, *columns = row
    return PassageRow(id, agent, text, words, at, tuple(parse_row(tags, [str])), *columns)
