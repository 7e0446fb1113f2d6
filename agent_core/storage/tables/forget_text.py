"""A text taken out of every table: replaced where somebody said it, dropped with what was derived from it.

The tables are listed here, column by column: a table that is not listed holds no words of anybody.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from ..forget_store import Redaction, Words
from ..subject import content_hash, dump, parse_row, sign
from ..turn_store import SUMMARY
from .lanes import numbers
from .session import SqlSession

Change: TypeAlias = Callable[[Redaction, str], str]
_LINES: Final = "select {} from {}"


def _json(redaction: Redaction, text: str) -> str:
    return dump(redaction.json(parse_row(text)))


def _free(redaction: Redaction, text: str) -> str:
    return redaction.mention.without(text)


def _named(redaction: Redaction, text: str) -> str:
    return str(redaction.json(text, "speaker"))


def _value(redaction: Redaction, text: str) -> str:
    return dump(redaction.value(parse_row(text)))


def _short(redaction: Redaction, text: str) -> str:
    return redaction.mention.shortened(text)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a table that hold words, and how each is changed; `seal` names what the seal of a row covers."""

    place: str
    table: str
    key: tuple[str, ...]
    columns: dict[str, Change]
    seal: bool = False


_CHANGED: Final = (
    _Columns("inbox", "event", ("seq",), {"payload": _json, "key": _free}),
    _Columns("replies that were cut off", "turn", ("seq",), {"streamed": _free}),
    _Columns("messages between agents", "message", ("seq",), {"text": _free, "answer": _free}),
    _Columns("reasons of threads", "thread", ("id",), {"why": _free}),
    _Columns("reasons of pauses", "paused", ("agent",), {"why": _free}),
    _Columns("memory blocks", "block", ("seq",), {"value": _value, "description": _short}),
    _Columns("earlier texts of blocks", "block_change", ("block", "version"), {"value": _value, "what": _free}),
    _Columns("sections of the system message", "section", ("agent", "name"), {"text": _short}),
    _Columns("sources", "document", ("seq",), {"name": _free}),
    _Columns("messages of failed calls", "call", ("function", "n"), {"message": _free}),
    _Columns("reasons of versions", "change", ("seq",), {"reason": _free}),
    _Columns("reasons of versions", "tended", ("n",), {"note": _free}),
    _Columns("states of functions", "state", ("n",), {"value": _json}),
    _Columns("rejected candidates", "pending", ("function",), {"candidate": _json}, seal=True),
    _Columns("verdicts", "verdict", ("version", "function"), {"verdict": _json}, seal=True),
)
_DROPPED: Final = (
    ("recorded calls", "recorded", "n", ("data",)),
    ("questions about grants", "question", "seq", ("question", "decision")),
    ("approvals of grants", "yes", "seq", ("content", "grants")),
    ("readings of files", "reading", "path", ("reading",)),
    ("shapes of results", "seen", "function", ("shape",)),
)
_PLACES: Final = {"call": "calls and answers", "result": "calls and answers", "request": "records of requests"} | {
    SUMMARY: "summaries"
}
_SEARCHED: Final[tuple[tuple[str, str, str, dict[str, Change]], ...]] = (
    ("recall", "recall", "said", {"text": _free, "speaker": _named}),
    ("passages", "archival", "passage", {"text": _free, "source": _free, "place": _free}),
)
_VECTORS: Final = (
    "delete from vector where lane in (select id from lane where shelf = ?)"
    " and seq in (select cast(value as integer) from json_each(?)) returning 1"
)
_MORE: Final = {"said": "at, '[]'", "passage": "case when document = '' then at end, tags"}
"""The time and the tags that belong to the words of a row."""


def forget_text(session: SqlSession, redaction: Redaction, words: Words) -> Counter[str]:
    """Take a text out of all tables; return how many rows of which place it was in."""
    counts = Counter[str]()
    redaction = replace(redaction, hashes=_texts(session, redaction, counts))
    _entries(session, redaction, counts)
    for spec in _CHANGED:
        counts[spec.place] += _changed(session, redaction, spec)
    for place, shelf, table, columns in _SEARCHED:
        seqs = _searched(session, redaction, words, table, columns)
        counts[place] += len(seqs)
        counts["vectors"] += drop_vectors(session, shelf, seqs)
    for place, dropped, key, texts in _DROPPED:
        counts[place] += _dropped(session, redaction, dropped, key, texts)
    return counts


def _texts(session: SqlSession, redaction: Redaction, counts: Counter[str]) -> dict[str, str]:
    """Rewrite what is stored by its hash: earlier versions of functions, long answers, instructions.

    What is in force in a file stays: it would be read from there again.
    """
    hashes: dict[str, str] = {}
    versions = {row[0] for row in session.all("select distinct version from change")}
    rows = session.all("select hash, text from text where hash not in (select version from manifest)")
    for name, text in rows:
        is_source = name in versions
        without = redaction.mention.without(text, *(["forgotten"] if is_source else []))
        if without != text:
            hashes[name] = content_hash(without)
            counts["earlier versions of functions" if is_source else "long texts"] += 1
            session.all("insert into text (hash, text) values (?, ?) on conflict do nothing", hashes[name], without)
            session.all("update change set version = ? where version = ?", hashes[name], name)
            session.all("delete from text where hash = ?", name)
    return hashes


def _entries(session: SqlSession, redaction: Redaction, counts: Counter[str]) -> None:
    for seq, kind, text in session.all("select seq, kind, payload from entry"):
        is_sealed = kind == "assistant" and '"reasoning"' in text  # nobody sees whether the text is in it
        if not (redaction.hashes or is_sealed or redaction.mention.within(text)):
            continue
        payload = parse_row(text, dict)
        without = redaction.summary(payload) if kind == SUMMARY else redaction.json(payload)
        counts[_PLACES.get(kind, "messages")] += without != payload
        if is_sealed:
            without.pop("reasoning", None)
        if without != payload:
            session.all("update entry set payload = ? where seq = ?", dump(without), seq)


def _changed(session: SqlSession, redaction: Redaction, spec: _Columns) -> int:
    count, key = 0, " and ".join(f"{name} = ?" for name in spec.key)
    for row in session.all(_LINES.format(", ".join((*spec.key, *spec.columns)), spec.table)):
        place, values = row[: len(spec.key)], row[len(spec.key) :]
        new = [_with(change, redaction, text) for change, text in zip(spec.columns.values(), values, strict=True)]
        if new == list(values):
            continue
        count += 1
        names = [*spec.columns, *(["seal"] if spec.seal else [])]
        seals = [sign(session.sealer, spec.table, *map(str, (*place, *new)))] if spec.seal else []
        sets = ", ".join(f"{name} = ?" for name in names)
        session.all(f"update {spec.table} set {sets} where {key}", *new, *seals, *place)  # noqa: S608  (names of ours)
    return count


def _with(change: Change, redaction: Redaction, text: str | None) -> str | None:
    """Return a changed text; the same if the text to forget does not occur in it, whatever its form."""
    return change(redaction, text) if text and (redaction.mention.within(text) or redaction.hashes) else text


def _searched(
    session: SqlSession, redaction: Redaction, words: Words, table: str, columns: Mapping[str, Change]
) -> list[int]:
    """Change rows that are searched, with their words; return their numbers."""
    seqs: list[int] = []
    sql = f"select seq, agent, {_MORE[table]}, {', '.join(columns)} from {table}"  # noqa: S608  (names of ours)
    for seq, agent, at, tags, *values in session.all(sql):
        new = [_with(change, redaction, text) for change, text in zip(columns.values(), values, strict=True)]
        remaining = parse_row(str(_with(_json, redaction, tags)), [str])
        if new == values and remaining == parse_row(tags):
            continue
        seqs.append(seq)
        sets = ", ".join(f"{name} = ?" for name in columns)
        indexed = words(str(new[0]), at, remaining)
        session.all(f"update {table} set {sets}, words = ? where seq = ?", *new, indexed, seq)  # noqa: S608  (names of ours)
        if table == "passage":
            session.all("update passage set tags = ? where seq = ?", dump(remaining), seq)
            session.all("delete from tag where passage = ?", seq)
            for tag in set(remaining):
                session.all("insert into tag (agent, tag, passage) values (?, ?, ?)", agent, tag, seq)
    return seqs


def drop_vectors(session: SqlSession, shelf: str, seqs: Sequence[int]) -> int:
    """Delete the vectors of rows; the index of their signs is made anew."""
    return len(session.all(_VECTORS, shelf, numbers(seqs)))


def _dropped(session: SqlSession, redaction: Redaction, table: str, key: str, columns: Sequence[str]) -> int:
    """Delete rows that are of no use in part, or are made anew."""
    rows: list[tuple[Any, ...]] = session.all(_LINES.format(", ".join((key, *columns)), table))
    ids = [id for id, *texts in rows if any(text and redaction.mention.within(text) for text in texts)]
    session.many(f"delete from {table} where {key} = ?", [(id,) for id in ids])  # noqa: S608  (names of ours)
    return len(ids)
