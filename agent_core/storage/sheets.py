"""What a search looks through, on disk: a lane of numbered rows, kept in sheets that are only ever added to.

A sheet is what came at once; small ones are joined as they become many, by putting them end to end. What went is
noted beside, and a lane of which most went is made anew, under another number, by whoever can.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack
from typing import NamedTuple, TypeAlias

from .connection import Session

MANY = 32  # so many sheets of about one size are joined
LARGEST_JOINED = 1  # a size, see `_size`: what is larger is few already, and would be long to write anew
FEW_GONE = 1000
SEQ, SIZE = "<q", "<H"
MOST_ITEMS = 0xFFFF

Row: TypeAlias = tuple[int, int, bytes]
"""A row's `seq`, how many items it has, and the items."""


class Key(NamedTuple):
    """Which lane; `space` is empty for words."""

    agent: str
    shelf: str
    space: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane as it stands: `rows` ever came, `gone` of them went."""

    id: int
    rows: int
    gone: int

    @property
    def live(self) -> int:
        """How many rows are there."""
        return self.rows - self.gone


def lane(session: Session, key: Key) -> Lane | None:
    """The lane, if anything was ever in it."""
    row = session.one("select id, rows, gone from lane where agent = ? and shelf = ? and space = ?", *key)
    return Lane(*row) if row else None


def extend(session: Session, key: Key, rows: Sequence[Row]) -> int:
    """Add rows at the end; the lane's number."""
    session.all("insert into lane (agent, shelf, space) values (?, ?, ?) on conflict do nothing", *key)
    id, first = session.all(
        "update lane set rows = rows + ? where agent = ? and shelf = ? and space = ? returning id, rows",
        *(len(rows), *key),
    )[0]
    seqs = b"".join(pack(SEQ, seq) for seq, _, _ in rows)
    sizes = b"".join(pack(SIZE, size) for _, size, _ in rows)
    sheet = (id, first - len(rows), len(rows), seqs, sizes, b"".join(body for _, _, body in rows))
    _add(session, sheet)
    _join(session, id, len(rows))
    return int(id)


def _add(session: Session, sheet: tuple[object, ...]) -> None:
    session.all("insert into sheet (lane, first, count, seqs, sizes, body) values (?, ?, ?, ?, ?, ?)", *sheet)


def _join(session: Session, id: int, added: int) -> None:
    """The sheets at the end that are not larger than what was added become one, when they are many."""
    ends = session.all("select first, count from sheet where lane = ? order by first desc limit ?", id, MANY)
    size = _size(added)
    if size > LARGEST_JOINED or len(ends) < MANY or any(_size(count) > size for _, count in ends):
        return
    parts = session.all(
        "delete from sheet where lane = ? and first >= ? returning first, count, seqs, sizes, body", id, ends[-1][0]
    )
    first, counts, seqs, sizes, bodies = zip(*sorted(parts), strict=True)
    _add(session, (id, first[0], sum(counts), b"".join(seqs), b"".join(sizes), b"".join(bodies)))
    _join(session, id, sum(counts))


def _size(count: int) -> int:
    """0 below 32, 1 below 1,024, 2 below 32,768, …"""
    return (count.bit_length() - 1) // 5


def forget(session: Session, lane: Lane, seqs: Sequence[int]) -> bool:
    """Note that these rows, each of which is there, went; False where so many went that it has to be made anew."""
    gone = lane.gone + len(seqs)
    if gone > FEW_GONE and gone * 2 > lane.rows:
        return False
    session.db.executemany(
        "insert into gone (lane, n, seq, upto) values (?, ?, ?, ?)",
        [(lane.id, n, seq, lane.rows) for n, seq in enumerate(seqs, lane.gone)],
    )
    session.all("update lane set gone = ? where id = ?", gone, lane.id)
    return True


def spaces(session: Session, agent: str, shelf: str) -> list[tuple[Key, Lane]]:
    """The lanes of vectors on a shelf of an agent."""
    rows = session.all(
        "select space, id, rows, gone from lane where agent = ? and shelf = ? and space <> ''", agent, shelf
    )
    return [(Key(agent, shelf, space), Lane(*lane)) for space, *lane in rows]


def numbers(values: Sequence[int]) -> str:
    """As SQL takes many of them at once: `in (select value from json_each(?))`."""
    return json.dumps([*values])
