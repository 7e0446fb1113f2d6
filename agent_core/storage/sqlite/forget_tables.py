"""Forgetting in the tables: a text everywhere, turns whole, the words of one message; then the file is written anew.

A deleted row leaves its bytes in the file until something else needs the place. So what is deleted is overwritten, the
file is vacuumed and its log emptied. A mark next to the file says that this is under way: if the program ends in
between, the next opening does it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import apsw

from agent_core.base.errors import StorageError
from agent_core.base.matching import MARK, Mention

from ..forget_store import Erasure, MessageGone, Redaction, Said, TurnsGone
from ..subject import dump, parse_row
from ..turn_store import SAID, SUMMARY
from . import vector_index, word_index
from .connection import SqlSession, bounded
from .forget_text import drop_vectors, forget_text
from .lanes import numbers
from .tables import Tables, query
from .turn_tables import N_BITS, entries_of

SCRUB: Final = ".scrub"
_SCRUB_S: Final = 3_600.0
_FORM: Final = ("call_id", "name", "outcome", "version", "speaker")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_LAST: Final = (
    "select t.seq, e.seq, coalesce(e.payload ->> '$.speaker', e.kind), coalesce(e.payload ->> '$.text', ''), e.at"
    " from turn t join entry e on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1"
    " where t.agent = ?1 and (?2 is null or t.seq = ?2) and (?3 is null or e.n = ?3)"
    " and e.kind in ('user', 'assistant', 'notice', 'result') order by e.kind = 'user' desc,"
    " e.seq desc limit 1"
)
_OF_TURNS: Final = (
    "seq in (select e.seq from turn t join entry e on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1"
    " where t.seq in (select value from json_each(?1)))"
)
_IN_TURNS: Final = "turn in (select id from turn where seq in (select value from json_each(?1)))"
_REPLACED: Final = "version < (select max(version) from block_change c where c.block = block_change.block)"
_GONE: Final = (
    ("messages", "delete from entry where OF_TURNS and kind in ('user', 'assistant', 'notice') returning 1"),
    ("summaries", "delete from entry where OF_TURNS and kind = 'summary' returning 1"),
    ("calls and answers", "delete from entry where OF_TURNS and kind in ('call', 'result') returning 1"),
    ("records of requests", "delete from entry where OF_TURNS returning 1"),
    ("recorded calls", "delete from recorded where IN_TURNS returning 1"),
    ("messages of failed calls", "update call set message = '' where message <> '' and IN_TURNS returning 1"),
    ("reasons of versions", "update change set reason = '' where reason <> '' and IN_TURNS returning 1"),
    ("questions about grants", "delete from question where IN_TURNS returning 1"),
    ("earlier texts of blocks", "delete from block_change where IN_TURNS and REPLACED returning 1"),
    (
        "notes on changes of blocks",
        "update block_change set what = 'forgotten' where what <> 'forgotten' and IN_TURNS returning 1",
    ),
)
_OUT: Final = (
    "update event set turn = null, key = 'forgotten-' || seq where turn in (select value from json_each(?1))",
    "delete from turn where seq in (select value from json_each(?1))",
    "delete from event where key = 'forgotten-' || seq",
)
_BEFORE: Final = (
    ("inbox", "delete from event where agent = ?1 and turn is null and at < ?2 returning 1"),
    (
        "earlier texts of blocks",
        "delete from block_change where at < ?2 and REPLACED and block in"
        " (select block from holding where agent = ?1) returning 1",
    ),
)
_STORED: Final = (
    "select seq from passage where agent = ?1 and document = '' and (at < ?3 or exists (select 1 from turn t"
    " where t.seq in (select value from json_each(?2)) and passage.at between t.started and coalesce(t.ended, 1e12)))"
)
_DROP: Final = {
    "recall": "delete from said where seq in (select value from json_each(?)) returning 1",
    "archival": "delete from passage where seq in (select value from json_each(?)) returning 1",
}
_UNNAMED: Final = (
    "delete from text where hash in (select value from json_each(?)) and hash not in (select version from manifest)"
    " and hash not in (select version from change where version is not null)"
)


class ForgetTables(Tables):
    """The methods that take something out of the record."""

    @query
    def last_said(
        self, session: SqlSession, agent: str, turn: int | None = None, entry: int | None = None
    ) -> Said | None:
        """Return a message by its place."""
        row = session.one(_LAST, agent, turn, entry)
        return Said(*row) if row else None

    @query
    def turns_before(self, session: SqlSession, agent: str, at: float) -> list[int]:
        """Return turns by their beginning."""
        rows = session.all("select seq from turn where agent = ? and started < ? order by seq", agent, at)
        return [row[0] for row in rows]

    @query
    def rehearse(self, session: SqlSession, erasure: Erasure) -> dict[str, int]:
        """Do it in a transaction that is rolled back."""
        with session.rehearsal():
            return _erased(session, erasure)

    @query
    def forget(self, session: SqlSession, erasure: Erasure) -> dict[str, int]:
        """Do it in a transaction, and scrub the file.

        Raises:
            StorageError: it is done, and somebody else's use of the file keeps it from being scrubbed.
        """
        Path(f"{self.path}{SCRUB}").touch(mode=0o600)
        session.all("pragma secure_delete = on")
        with session.transaction():
            counts = _erased(session, erasure)
            word_index.forget(session.db)
            vector_index.forget(session.db)
        try:
            scrub(session.db, self.path)
        except (apsw.BusyError, apsw.LockedError) as error:
            message = f"It is forgotten, but its bytes are still in `{self.path}`, which another process reads."
            raise StorageError(message, fix="End that process: the next command here writes the file anew.") from error
        return counts


def scrub(db: apsw.Connection, path: Path) -> None:
    """Write the file anew, so that nothing is left in it of rows that are gone, and empty its log.

    Readers are waited for, `BUSY_MS` at most: while one reads an earlier state, the log keeps what was forgotten.

    Raises:
        apsw.BusyError: one goes on reading, or writing; the mark stays.
    """
    with bounded(db, _SCRUB_S):
        list(db.execute("vacuum"))
        # A reader is reported in this row, not by an error.
        ((is_busy, _, _),) = db.execute("pragma wal_checkpoint(truncate)")
    if is_busy:
        raise apsw.BusyError("the log is read")
    Path(f"{path}{SCRUB}").unlink(missing_ok=True)


def scrub_if_due(db: apsw.Connection, path: Path) -> None:
    """Scrub a file if that was begun and not ended; one that others use is scrubbed another time."""
    if Path(f"{path}{SCRUB}").exists():
        with suppress(apsw.BusyError, apsw.LockedError):
            scrub(db, path)


def _erased(session: SqlSession, erasure: Erasure) -> dict[str, int]:
    match erasure.target:
        case Mention() as mention:
            counts = forget_text(session, Redaction(mention, erasure.hosted), erasure.words)
        case TurnsGone() as gone:
            counts = _forget_turns(session, erasure, gone)
        case MessageGone() as gone:
            counts = _forget_message(session, erasure, gone)
    return {place: count for place, count in counts.items() if count}


def _forget_turns(session: SqlSession, erasure: Erasure, gone: TurnsGone) -> Counter[str]:
    turns, counts = numbers(gone.turns), Counter[str]()
    passages = [row[0] for row in session.all(_STORED, gone.agent, turns, gone.before)]
    hashes = _hashes(session.all(_sql("select payload from entry where OF_TURNS"), turns))
    said = [row[0] for row in session.all(_sql("select seq from said where OF_TURNS"), turns)]
    for place, sql in _GONE:
        counts[place] += len(session.all(_sql(sql), turns))
    session.all(_OUT[0], turns)
    session.all(_OUT[1], turns)
    session.all(_OUT[2])
    for place, shelf, seqs in (("recall", "recall", said), ("passages", "archival", passages)):
        counts["vectors"] += drop_vectors(session, shelf, seqs)
        counts[place] += len(session.all(_DROP[shelf], numbers(seqs)))
    if gone.before is not None:
        for place, sql in _BEFORE:
            counts[place] += len(session.all(_sql(sql), gone.agent, gone.before))
    _drop_texts(session, hashes)
    counts["summaries"] += _resummarized(session, erasure, gone.agent, min(gone.turns, default=0) << N_BITS)
    return counts


def _sql(text: str) -> str:
    """Return a statement with its conditions."""
    return text.replace("OF_TURNS", _OF_TURNS).replace("IN_TURNS", _IN_TURNS).replace("REPLACED", _REPLACED)


def _forget_message(session: SqlSession, erasure: Erasure, gone: MessageGone) -> Counter[str]:
    """Blank a message, the answers to its calls and the event that brought it: the conversation keeps its form."""
    turn = gone.seq >> N_BITS
    kind, payload = session.all("select kind, payload from entry where seq = ?", gone.seq)[0]
    message = parse_row(payload, dict)
    answers = _answers(session, gone.seq, [call["id"] for call in message.get("calls", ())])
    hashes = _hashes([(payload,), *((dump(answer),) for answer in answers.values())])
    for seq, blanked in {gone.seq: message, **answers}.items():
        session.all("update entry set payload = ? where seq = ?", dump(_blank(blanked)), seq)
    for seq, event in session.all("select seq, payload from event where turn = ?", turn):
        if kind == "user" and parse_row(event, dict).get("text") == message.get("text"):
            session.all("update event set payload = ? where seq = ?", dump({"text": MARK}), seq)
    said = session.all("update said set text = ?, words = '' where seq = ? returning seq", MARK, gone.seq)
    calls = ["delete from recorded where turn in (select id from turn where seq = ?) returning 1"] if answers else []
    counts = Counter(
        {
            "calls and answers" if kind == "result" else "messages": 1,
            "recall": len(said),
            "vectors": drop_vectors(session, "recall", [gone.seq]),
            "recorded calls": sum(len(session.all(sql, turn)) for sql in calls),
        }
    )
    counts["calls and answers"] += len(answers)
    _drop_texts(session, hashes)
    counts["summaries"] += _resummarized(session, erasure, gone.agent, gone.seq)
    return counts


def _answers(session: SqlSession, seq: int, ids: Sequence[str]) -> dict[int, dict[str, Any]]:  # Any: JSON
    """Return the answers to the calls of a message, by the numbers of their entries."""
    end = ((seq >> N_BITS) + 1 << N_BITS) - 1
    rows = session.all("select seq, payload from entry where seq between ? and ? and kind = 'result'", seq + 1, end)
    answers = {number: parse_row(payload, dict) for number, payload in rows}
    return {number: answer for number, answer in answers.items() if answer.get("call_id") in ids}


def _blank(payload: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return an entry without its words; its calls stay calls, so that each answer has one."""
    blank: dict[str, Any] = {key: payload[key] for key in _FORM if key in payload}
    blank["text"] = MARK if payload.get("text") or not payload.get("calls") else ""
    if "calls" in payload:
        blank["calls"] = [{**call, "arguments": "{}"} for call in payload["calls"]]
        blank["thought"] = ""
    return blank


def _hashes(rows: Iterable[Sequence[str]]) -> set[str]:
    return {name for (payload,) in rows for name in _HASH.findall(payload)}


def _drop_texts(session: SqlSession, hashes: set[str]) -> None:
    """Delete the texts of these hashes that nothing names any more."""
    if hashes:
        hashes -= _hashes(session.db.execute("select payload from entry"))
        session.all(_UNNAMED, dump(sorted(hashes)))


def _resummarized(session: SqlSession, erasure: Erasure, agent: str, since: int) -> int:
    """Make the summaries anew that cover what was forgotten; return how many."""
    sql = "select e.seq, e.payload from entry e join turn t on t.seq = e.turn where t.agent = ? and e.kind = ?"
    count = 0
    for seq, text in session.all(sql, agent, SUMMARY):
        payload = parse_row(text, dict)
        if int(payload.get("upto", 0)) < since:
            continue
        count += 1
        summary = erasure.resummarize(payload, entries_of(session, agent, int(payload["upto"]), SAID))
        if summary is None:
            session.all("delete from entry where seq = ?", seq)
        else:
            session.all("update entry set payload = ? where seq = ?", dump(summary), seq)
    return count
