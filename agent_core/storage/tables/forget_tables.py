"""Forgetting in the tables: a text everywhere, turns whole, the words of one message."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from agent_core.base.matching import MARK, Mention

from ..forget_store import Erasure, MessageGone, Redaction, Said, TurnsGone
from ..subject import dump, parse_row
from ..turn_store import SAID, SUMMARY
from .forget_text import drop_vectors, forget_text
from .lanes import numbers
from .session import SqlSession
from .tables import Tables, query
from .turn_tables import N_BITS, entries_of

_FORM: Final = ("call_id", "name", "outcome", "version", "speaker")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_LAST: Final = (
    "select t.seq, e.seq, e.kind, e.payload, e.at from turn t join entry e"
    " on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1"
    " where t.agent = ?1 and t.seq = coalesce(?2, t.seq) and e.n = coalesce(?3, e.n)"
    " and e.kind in ('user', 'assistant', 'notice', 'result') order by e.kind = 'user' desc,"
    " e.seq desc limit 1"
)
_OF_TURNS: Final = (
    "seq in (select e.seq from turn t join entry e on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1"
    " where t.seq in (select cast(value as integer) from json_each(?1)))"
)
_IN_TURNS: Final = "turn in (select id from turn where seq in (select cast(value as integer) from json_each(?1)))"
_REPLACED: Final = "version < (select max(version) from block_change c where c.block = block_change.block)"
_GONE: Final = (
    ("messages", "delete from entry where OF_TURNS and kind in ('user', 'assistant', 'notice') returning 1"),
    ("summaries", "delete from entry where OF_TURNS and kind = 'summary' returning 1"),
    ("calls and answers", "delete from entry where OF_TURNS and kind in ('call', 'result') returning 1"),
    ("records of requests", "delete from entry where OF_TURNS returning 1"),
    ("recorded calls", "delete from recorded where IN_TURNS returning 1"),
    ("records of requests", "delete from exposure where IN_TURNS returning 1"),
    ("states of functions", "delete from state where IN_TURNS returning 1"),
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
    "update event set turn = null, key = 'forgotten-' || seq where turn in NUMBERS",
    "delete from turn where seq in (select cast(value as integer) from json_each(?1))",
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
    " where t.seq in (select cast(value as integer) from json_each(?2))"
    " and passage.at between t.started and coalesce(t.ended, 1e12)))"
)
_DROP: Final = {
    "recall": "delete from said where seq in (select cast(value as integer) from json_each(?)) returning 1",
    "archival": "delete from passage where seq in (select cast(value as integer) from json_each(?)) returning 1",
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
        if row is None:
            return None
        turn_seq, seq, kind, payload, at = row
        said = parse_row(payload, dict)
        return Said(turn_seq, seq, said.get("speaker") or kind, said.get("text") or "", at)

    @query
    def turns_before(self, session: SqlSession, agent: str, at: float) -> list[int]:
        """Return turns by their beginning."""
        rows = session.all("select seq from turn where agent = ? and started < ? order by seq", agent, at)
        return [row[0] for row in rows]

    @query
    def rehearse(self, session: SqlSession, erasure: Erasure) -> dict[str, int]:
        """Do it in a transaction that is rolled back."""
        with session.rehearsal():
            return erased(session, erasure)


def erased(session: SqlSession, erasure: Erasure) -> dict[str, int]:
    """Take it out, inside a transaction of the caller; return how much was taken out of where."""
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
    session.all(_sql(_OUT[0]), turns)
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
    text = text.replace("NUMBERS", "(select cast(value as integer) from json_each(?1))")
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
        hashes -= _hashes(session.all("select payload from entry"))
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
