"""Forgetting: a person removes something from the record, so that its bytes are gone.

A text is replaced everywhere, in all agents; turns are removed whole; one message loses its words. Summaries, memory
blocks and sections lose the sentences with the text; summaries are created again without forgotten turns or messages.
Everything happens in one transaction.
"""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any, Final, TypeAlias

from agent_core.base.events import stored_keys
from agent_core.base.matching import MARK, NAME, Mention
from agent_core.base.records import dataclass, field, replace
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .added_store import forget_added
from .agent_store import HELPER_RUN, DropAgent
from .conversation_store import name_conversation
from .inbox import Inbound
from .journal import SummaryEntry, read_as
from .search_index import numbers
from .subject import Entry, content_hash, dump, parse_row, sign
from .tables import SqlSession, Tables, drop_texts, perform, query, text_hashes
from .turn_store import N_BITS, SAID, SUMMARY, entries_of

Words: TypeAlias = Callable[[str, float | None, Sequence[str]], str]
"""Maps the text, time and tags of a row to the words that the word index stores for it."""
Resummarize: TypeAlias = Callable[[Entry, Sequence[Entry]], Entry | None]
"""Maps a summary's entry and the remaining messages that it covers to a new summary; None if nothing remains."""

_OURS: Final = frozenset(
    (
        *(
            "text",
            "packed",
            "chars",
            "reason",
            "speaker",
            "thought",
            "calls",
            "id",
            "name",
            "arguments",
            "version",
        ),
        *(
            "call_id",
            "whole",
            "outcome",
            "seconds",
            "detail",
            "covers",
            "upto",
            "style",
            "said",
            "by",
            "asked",
            "kind",
        ),
        *(
            "program",
            "model",
            "parameters",
            "instructions",
            "sections",
            "functions",
            "versions",
            "usage",
            "code",
            "context_limit",
            "step",
            "begins",
            "trace",
            "reply",
            "steps",
        ),
        *(
            "prompt_tokens",
            "completion_tokens",
            "cached_tokens",
            "estimated",
            "policy",
            "growth",
            "asks",
            "mode",
            "same_reach",
        ),
    )
).union(stored_keys())
"""The keys that this program writes; they are never replaced."""
_FIXED: Final = frozenset(
    ("version", "outcome", "style", "kind", "program", "hash", "whole", "model")
)
_NAMED: Final = frozenset(
    ("name", "functions", "by", "speaker", "code", "source", "module", "path")
)
_ID: Final = frozenset(("id", "call_id"))
_AUTHOR_NAMES: Final = re.compile(r"(?<=^the agent ).+|^\w+(?=\(\)$)")
_ROLES: Final = frozenset(("user", "assistant"))


@dataclass(frozen=True, slots=True)
class TurnsGone:
    """The numbers of an agent's turns to forget completely; with `before`, also earlier data outside of turns."""

    agent: str
    turns: Sequence[int]
    before: float | None = None


@dataclass(frozen=True, slots=True)
class MessageGone:
    """An agent's message to blank, by the number of its entry."""

    agent: str
    seq: int


@dataclass(frozen=True, slots=True)
class Erasure:
    """A request to forget: the target, how to index and summarize again, and the functions that keep their names.

    `said_by` returns the text that an agent read of an event.
    """

    target: Mention | TurnsGone | MessageGone
    words: Words
    resummarize: Resummarize
    said_by: Callable[[Inbound], str]
    hosted: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """A message that can be forgotten: the numbers of its turn and its entry, and its text."""

    turn: int
    seq: int
    speaker: str
    text: str
    at: float


@dataclass(slots=True)
class Redaction:
    """Replaces a text in the values of rows, but keeps the parts that the program depends on.

    `hashes` maps the hashes of rewritten texts to their new hashes.
    """

    mention: Mention
    hosted: Collection[str] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)

    def json(self, value: Any, key: str = "") -> Any:  # Any: JSON
        """Return a value without the text."""
        match value:
            case str():
                return self._string(value, key)
            case list():
                return [self.json(item, key) for item in value]
            case dict():
                kept = [name for name in value if name in _OURS or name in self.hosted]
                return {
                    name if name in kept else self.mention.without(name, NAME): self.json(
                        item, name
                    )
                    for name, item in value.items()
                }
            case int() | float() if (
                key not in _OURS and not isinstance(value, bool) and self.mention.within(str(value))
            ):
                return MARK
            case _:
                return value

    def summary(self, payload: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
        """Return a summary without the sentences that contain the text."""
        short: dict[str, Any] = {
            key: self.mention.shortened(payload[key]) for key in ("text", "asked") if key in payload
        }
        quotes = [
            quote
            for quote in payload.get("said", ())
            if not self.mention.within(dump(quote["text"]))
        ]
        said = {"said": [self.json(quote) | {"by": self._author(quote["by"])} for quote in quotes]}
        return payload | short | (said if "said" in payload else {})

    def _author(self, by: str) -> str:
        """Return the author of a quote, without the text in names; the words around a name stay."""
        return _AUTHOR_NAMES.sub(lambda match: self.mention.without(match[0], NAME), by)

    def value(self, value: str | list[str]) -> str | list[str]:
        """Return the value of a block without the sentences that contain the text."""
        if isinstance(value, str):
            return self.mention.shortened(value)
        return [short for line in value if (short := self.mention.shortened(line)) or not line]

    def _string(self, text: str, key: str) -> str:
        if text in self.hashes:
            return self.hashes[text]
        if key in _FIXED or text in self.hosted or (key in ("by", "speaker") and text in _ROLES):
            return text
        if key in _ID:
            return (
                self._ids.setdefault(text, f"{NAME}_{len(self._ids)}")
                if self.mention.within(text)
                else text
            )
        if key in _NAMED:
            return self.mention.without(text, NAME)
        return self._arguments(text) if key == "arguments" else self.mention.without(text)

    def _arguments(self, text: str) -> str:
        """Return the arguments of a call; JSON stays valid JSON."""
        if not self.mention.within(text):
            return text
        try:
            value = read_json(text, LOOSE)
        except Malformed:
            return self.mention.without(text)
        return self.mention.without(dump(self.json(value)), NAME)


_FORM: Final = ("call_id", "name", "outcome", "version", "speaker")
_ANSWERED: Final = (
    "select seq, kind, payload from entry where seq between ? and ?"
    " and kind in ('assistant', 'result', 'program', 'inner_call', 'inner_result') order by seq"
)
_LAST: Final = (
    "select t.seq, e.seq, e.kind, e.payload, e.at from turn t join entry e"
    " on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1"
    " where t.agent = ?1 and t.seq = coalesce(?2, t.seq) and e.n = coalesce(?3, e.n)"
    " and e.kind in ('user', 'assistant', 'notice', 'result') order by e.kind = 'user' desc,"
    " e.seq desc limit 1"
)
_MESSAGES: Final = "messages between agents"
_OF_TURNS: Final = (
    "seq in (select e.seq from turn t join entry e on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1"
    " where t.seq in (select cast(value as integer) from json_each(?1)))"
)
_IN_TURNS: Final = (
    "turn in (select id from turn where seq in (select cast(value as integer) from json_each(?1)))"
)
_REPLACED: Final = (
    "version < (select max(version) from block_change c where c.block = block_change.block)"
)
_OF_CALLS: Final = (
    ("recorded calls", "delete from recorded where IN_TURNS returning 1"),
    (
        "messages of failed calls",
        "update call set message = '' where message <> '' and IN_TURNS returning 1",
    ),
    ("questions about grants", "delete from question where IN_TURNS returning 1"),
    (
        _MESSAGES,
        "update message set text = '[forgotten]' where text <> '[forgotten]' and IN_TURNS returning 1",
    ),
)
"""The rows of the turns' calls outside of the conversation."""
_ANSWERS: Final = (
    "update message set answer = '[forgotten]' where answer not in ('', '[forgotten]') and id in"
    " (select json_extract(payload, '$.owes') from event where turn in NUMBERS) returning 1"
)
_HEARD: Final = (
    "update message set text = '[forgotten]' where recipient = ? and text = ? returning 1",
    "update message set answer = '[forgotten]' where sender = ? and answer = ? returning 1",
)
_ROUTE: Final = ("from", "thread", "hops", "owes")


def _of_blocks(condition: str) -> tuple[tuple[str, str], ...]:
    """Return the statements that forget the history of blocks; a note quotes the text before it, too."""
    next_lines = (
        "select c.block, min(c.version) from block_change c join (select block, version from block_change where"  # noqa: S608  (our own conditions)
        f" {condition}) g on g.block = c.block and g.version < c.version group by c.block, g.version"
    )
    return (
        (
            "notes on changes of blocks",
            "update block_change set what = 'forgotten' where what <> 'forgotten'"  # noqa: S608  (our own conditions)
            f" and ({condition} or (block, version) in ({next_lines})) returning 1",
        ),
        (
            "earlier texts of blocks",
            f"delete from block_change where {condition} and REPLACED returning 1",  # noqa: S608
        ),
    )


_GONE: Final = (
    *_OF_CALLS,
    (_MESSAGES, _ANSWERS),
    (
        "messages",
        "delete from entry where OF_TURNS and kind in ('user', 'assistant', 'notice') returning 1",
    ),
    ("summaries", "delete from entry where OF_TURNS and kind = 'summary' returning 1"),
    (
        "calls and answers",
        "delete from entry where OF_TURNS and kind in ('call', 'result') returning 1",
    ),
    ("records of requests", "delete from entry where OF_TURNS returning 1"),
    ("records of requests", "delete from exposure where IN_TURNS returning 1"),
    ("states of functions", "delete from state where IN_TURNS returning 1"),
    (
        "reasons of versions",
        "update change set reason = '' where reason <> '' and IN_TURNS returning 1",
    ),
    *_of_blocks("IN_TURNS"),
)
_OUT: Final = (
    "update event set turn = null, key = 'forgotten-' || seq where turn in NUMBERS",
    "delete from turn where seq in (select cast(value as integer) from json_each(?1))",
    "delete from event where key = 'forgotten-' || seq",
)
_BEFORE: Final = (
    ("inbox", "delete from event where agent = ?1 and turn is null and at < ?2 returning 1"),
    (
        _MESSAGES,
        "update message set text = '[forgotten]' where sender = ?1 and at < ?2 and text <> '[forgotten]' returning 1",
    ),
    *_of_blocks("at < ?2 and block in (select block from block_access where owner = ?1)"),
)
_CALLS: Final = (
    "select t.seq << 20 | t.n, t.hidden, e.seq, e.kind, e.payload, e.attempt, e.at from turn t join entry e"
    " on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1"
    " where t.agent = ? and e.kind in ('assistant', 'result') order by e.seq"
)
_BLANK: Final = "insert into entry (seq, kind, payload, attempt, at) values (?, 'result', ?, ?, ?)"
_STORED: Final = (
    "select seq from passage where agent = ?1 and document = '' and (at < ?3 or exists (select 1 from turn t"
    " where t.seq in (select cast(value as integer) from json_each(?2))"
    " and passage.at between t.started and coalesce(t.ended, 1e12)))"
)
_LINES_OF: Final = "select distinct line from turn where seq in NUMBERS"
_DROP: Final = {
    "recall": "delete from said where seq in (select cast(value as integer) from json_each(?)) returning 1",
    "archival": "delete from passage where seq in (select cast(value as integer) from json_each(?)) returning 1",
}


class ForgetStore(Tables):
    """The methods that remove something from the record."""

    @query
    def last_said(
        self, session: SqlSession, agent: str, turn: int | None = None, entry: int | None = None
    ) -> Said | None:
        """Return the last message of an agent, of a turn, or of an entry in it; None if there is none."""
        row = session.one(_LAST, agent, turn, entry)
        if row is None:
            return None
        turn_seq, seq, kind, payload, at = row
        said = parse_row(payload, dict)
        return Said(turn_seq, seq, said.get("speaker") or kind, said.get("text") or "", at)

    @query
    def turns_before(self, session: SqlSession, agent: str, at: float) -> list[int]:
        """Return the numbers of the turns that began before a time."""
        rows = session.all(
            "select seq from turn where agent = ? and started < ? order by seq", agent, at
        )
        return [row[0] for row in rows]

    @query
    def rehearse(self, session: SqlSession, erasure: Erasure) -> dict[str, int]:
        """Return how much would be removed from each place, without changing anything."""
        with session.rehearsal():
            return erase(session, erasure)

    @abstractmethod
    async def forget(self, erasure: Erasure) -> dict[str, int]:
        """Forget in one transaction, then remove the bytes from the file; return how much was removed from each place.

        If the program ends in between, the next opening of the file removes the bytes.
        """


def erase(session: SqlSession, erasure: Erasure) -> dict[str, int]:
    """Forget, inside a transaction of the caller; return how much was removed from each place."""
    hashes = set[
        str
    ]()  # of texts that may be named no longer: looking for them reads the whole record, so once
    match erasure.target:
        case Mention() as mention:
            counts = forget_text(session, Redaction(mention, erasure.hosted), erasure.words)
            counts.update(forget_added(session, mention))
        case TurnsGone() as gone:
            counts = _forget_turns(session, erasure, gone, hashes)
        case MessageGone() as gone:
            counts = _forget_message(session, erasure, gone, hashes)
    drop_texts(session, hashes)
    return {place: count for place, count in counts.items() if count}


def _forget_turns(
    session: SqlSession, erasure: Erasure, gone: TurnsGone, hashes: set[str]
) -> Counter[str]:
    """Forget turns; add the hashes of the texts that their entries name."""
    turns, counts = numbers(gone.turns), Counter[str]()
    passages = [row[0] for row in session.all(_STORED, gone.agent, turns, gone.before)]
    hashes |= text_hashes(session.all(_sql("select payload from entry where OF_TURNS"), turns))
    said = [row[0] for row in session.all(_sql("select seq from said where OF_TURNS"), turns)]
    _forget_runs(session, erasure, gone.agent, turns, counts, hashes)
    numbered = {*gone.turns}
    counts["kept names"] += _forget_kept_values(
        session, gone.agent, lambda seq: seq >> N_BITS in numbered
    )
    is_client = session.one(
        "select 1 from turn where agent = ? and state = 'client_calls'", gone.agent
    )
    for place, sql in _GONE:
        counts[place] += len(session.all(_sql(sql), turns))
    if is_client:  # a client's answer is in the turn after its call
        lost = _pair_answers(session, gone.agent)
        hashes |= text_hashes(lost)
        counts["calls and answers"] += len(lost)
    lines = [row[0] for row in session.all(_sql(_LINES_OF), turns)]
    session.all(_sql(_OUT[0]), turns)
    session.all(_OUT[1], turns)
    session.all(_OUT[2])
    for place, shelf, seqs in (("recall", "recall", said), ("passages", "archival", passages)):
        counts["vectors"] += drop_vectors(session, shelf, seqs)
        counts[place] += len(session.all(_DROP[shelf], numbers(seqs)))
    if gone.before is not None:
        for place, sql in _BEFORE:
            counts[place] += len(session.all(_sql(sql), gone.agent, gone.before))
    counts["summaries"] += _resummarize(
        session, erasure, gone.agent, min(gone.turns, default=0) << N_BITS
    )
    for line in lines:
        _name_again(session, line)
    return counts


def _forget_runs(
    session: SqlSession,
    erasure: Erasure,
    agent: str,
    turns: str,
    counts: Counter[str],
    hashes: set[str],
    calls: Set[str] | None = None,
) -> None:
    """Delete the runs of helpers that an agent called in turns, or by these calls or within programs of them."""
    ids = {row[0] for row in session.all(_sql("select id from turn where seq in NUMBERS"), turns)}
    for name, text in session.all(
        "select name, settings from agent where substr(name, 1, 8) = ?", HELPER_RUN
    ):
        settings = parse_row(text, dict)
        call = str(settings.get("call"))  # of a program, if a point follows its id
        is_meant = calls is None or not calls.isdisjoint({call, call.rpartition(".")[0]})
        if settings.get("caller") == agent and settings.get("turn") in ids and is_meant:
            run = [row[0] for row in session.all("select seq from turn where agent = ?", name)]
            counts.update(_forget_turns(session, erasure, TurnsGone(name, run), hashes))
            counts["runs of helpers"] += 1
            perform(DropAgent(name), session)


def _forget_kept_values(session: SqlSession, agent: str, is_gone: Callable[[int], bool]) -> int:
    """Remove the values that forgotten programs kept, from their entries and from those of programs after them.

    Return the number of changed entries. A name that a later program gave another value stays.
    """
    sql = (
        "select e.seq, e.payload from turn t join entry e on e.seq between t.seq << 20 and (t.seq + 1 << 20) - 1"
        " where t.agent = ? and e.kind = 'kept' order by e.seq"
    )
    before, gone, count = dict[str, Any](), dict[str, Any](), 0  # Any: JSON
    for seq, text in session.all(sql, agent):
        values = parse_row(text, dict).get("values")
        if not isinstance(values, dict):
            continue  # a foreign row, which programs do not read either
        gone = {name: value for name, value in gone.items() if values.get(name) == value}
        if is_gone(seq):
            gone |= {name: value for name, value in values.items() if before.get(name) != value}
        left, before = (
            {name: value for name, value in values.items() if gone.get(name) != value},
            values,
        )
        if left != values:
            count += 1
            session.all("update entry set payload = ? where seq = ?", dump({"values": left}), seq)
    return count


def _pair_answers(session: SqlSession, agent: str) -> list[tuple[str]]:
    """Delete the answers whose call was forgotten, and return them; give a call whose answer was, a blank one."""
    asked, waiting, lost, place = set[str](), dict[str, str](), list[tuple[str]](), (0, 0, 0.0)
    for end, hidden, seq, kind, payload, attempt, at in session.all(_CALLS, agent):
        said = parse_row(payload, dict)
        if kind == "result":
            if said["call_id"] not in (asked if hidden else waiting):
                session.all("delete from entry where seq = ?", seq)
                lost.append((payload,))
            elif not hidden:
                del waiting[said["call_id"]]
            continue
        calls = {call["id"]: call["name"] for call in said.get("calls", ())}
        asked |= {*calls}
        if not hidden:
            for number, (id, name) in enumerate(waiting.items(), place[0]):
                blank = dump({"call_id": id, "name": name, "text": MARK})
                session.all(_BLANK, number, blank, *place[1:])
                session.all("update turn set n = n + 1 where seq = ?", number >> N_BITS)
            waiting, place = calls, (end, attempt, at)
    return lost


def _sql(text: str) -> str:
    """Return a statement with its conditions filled in."""
    text = text.replace("NUMBERS", "(select cast(value as integer) from json_each(?1))")
    return (
        text.replace("OF_TURNS", _OF_TURNS)
        .replace("IN_TURNS", _IN_TURNS)
        .replace("REPLACED", _REPLACED)
    )


def _forget_message(
    session: SqlSession, erasure: Erasure, gone: MessageGone, hashes: set[str]
) -> Counter[str]:
    """Blank a message, the answers to its calls and the event that brought it: the conversation keeps its form."""
    turn = gone.seq >> N_BITS
    kind, payload = session.all("select kind, payload from entry where seq = ?", gone.seq)[0]
    message = parse_row(payload, dict)
    ids = (
        {message["call_id"]}
        if kind == "result"
        else {call["id"] for call in message.get("calls", ())}
    )
    rows = session.all(_ANSWERED, turn << N_BITS, (turn + 1 << N_BITS) - 1)
    answers, inner = {gone.seq: message}, list[int]()
    for seq, entry_kind, text in rows:
        if entry_kind == "assistant":  # another reply may have used the same ids
            if seq > gone.seq:
                break
            answers, inner = {gone.seq: message}, []
            continue
        entry = parse_row(text, dict)
        id = str(entry.get("call_id", entry.get("id")))
        if entry_kind == "result":
            answers |= {seq: entry} if id in ids else {}
        elif (id if entry_kind == "program" else id.rpartition(".")[0]) in ids:
            inner.append(seq)
    hashes |= text_hashes((dump(answer),) for answer in answers.values())
    for (
        seq,
        answer,
    ) in answers.items():  # only the words go; its calls remain, so that each answer has one
        blank: dict[str, Any] = {key: answer[key] for key in _FORM if key in answer}  # Any: JSON
        blank["text"] = MARK if answer.get("text") or not answer.get("calls") else ""
        if "calls" in answer:
            blank["calls"] = [{**call, "arguments": "{}"} for call in answer["calls"]]
            blank["thought"] = ""
        session.all("update entry set payload = ? where seq = ?", dump(blank), seq)
    session.all(_sql("delete from entry where seq in NUMBERS"), numbers(inner))
    said = session.all(
        "update said set text = ?, words = '' where seq = ? returning seq", MARK, gone.seq
    )
    is_message = kind != "result"
    counts = Counter(
        {
            "messages": int(is_message),
            "calls and answers": len(answers) + len(inner) - is_message,
            "recall": len(said),
            "vectors": drop_vectors(session, "recall", [gone.seq]),
            "kept names": _forget_kept_values(session, gone.agent, lambda seq: seq - 1 in answers)
            if ids
            else 0,
        }
    )
    if ids:
        _forget_runs(session, erasure, gone.agent, numbers([turn]), counts, hashes, ids)
    for place, sql in (
        *(_OF_CALLS if ids else ()),
        *([(_MESSAGES, _ANSWERS)] if kind == "assistant" else []),
    ):
        counts[place] += len(session.all(_sql(sql), numbers([turn])))
    if kind == "user":
        counts[_MESSAGES] += _forget_event(session, erasure, gone.agent, turn, message)
        for (line,) in session.all(_sql(_LINES_OF), numbers([turn])):
            _name_again(session, line)
    counts["summaries"] += _resummarize(session, erasure, gone.agent, gone.seq)
    return counts


def _name_again(session: SqlSession, line: str) -> None:
    """Name a conversation by its first words that are left, unless a person named it."""
    session.all("update conversation set name = '' where line = ? and not renamed", line)
    first = session.one(
        "select payload from event where line = ? and kind = 'message' order by seq limit 1", line
    )
    if first:
        text = Inbound.of("", "message", parse_row(first[0], dict)).text
        name_conversation(session, line, text)


def _forget_event(
    session: SqlSession, erasure: Erasure, agent: str, turn: int, message: Mapping[str, Any]
) -> int:
    """Blank the event that brought a message, and the words of other agents in it; return the number of these."""
    count = 0
    for seq, id, kind, text in session.all(
        "select seq, id, kind, payload from event where turn = ?", turn
    ):
        event = parse_row(text, dict)
        if erasure.said_by(Inbound.of(id, kind, event)) != message.get("text"):
            continue
        given = event.get("answers")
        answers = (
            [answer for answer in given if isinstance(answer, dict)]
            if isinstance(given, list)
            else []
        )
        blank = {key: event[key] for key in _ROUTE if key in event} | {"text": MARK}
        blank |= {"answers": [{**answer, "text": MARK} for answer in answers]} if answers else {}
        session.all("update event set payload = ? where seq = ?", dump(blank), seq)
        for sql, words in zip(_HEARD, ([event], answers), strict=True):
            count += sum(len(session.all(sql, agent, str(each.get("text")))) for each in words)
    return count


def _resummarize(session: SqlSession, erasure: Erasure, agent: str, since: int) -> int:
    """Create the summaries again that cover forgotten entries; return their number."""
    sql = "select e.seq, e.payload, t.line from entry e join turn t on t.seq = e.turn where t.agent = ? and e.kind = ?"
    count = 0
    for seq, text, line in session.all(sql, agent, SUMMARY):
        entry = Entry(SUMMARY, parse_row(text, dict))
        summary = read_as(SummaryEntry, entry)
        if summary is None or summary.upto < since:
            continue
        count += 1
        left = erasure.resummarize(entry, entries_of(session, line, summary.upto, SAID))
        if left is None:
            session.all("delete from entry where seq = ?", seq)
        else:
            session.all("update entry set payload = ? where seq = ?", dump(left.payload), seq)
    return count


# Removal of a text from every table: replaced in original data, dropped with derived data.
# Every table with free text is listed here, column by column.

Change: TypeAlias = Callable[[Redaction, str], str]
_LINES: Final = "select {} from {}"


def _json(redaction: Redaction, text: str) -> str:
    return dump(redaction.json(parse_row(text)))


def _free(redaction: Redaction, text: str) -> str:
    return redaction.mention.without(text)


def _redact_speaker(redaction: Redaction, text: str) -> str:
    return str(redaction.json(text, "speaker"))


def _value(redaction: Redaction, text: str) -> str:
    return dump(redaction.value(parse_row(text)))


def _short(redaction: Redaction, text: str) -> str:
    return redaction.mention.shortened(text)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a table that contain text, and how each is changed; `seal` tells whether its rows are sealed."""

    place: str
    table: str
    key: tuple[str, ...]
    columns: dict[str, Change]
    seal: bool = False


_CHANGED: Final = (
    _Columns("inbox", "event", ("seq",), {"payload": _json, "key": _free}),
    _Columns("replies that were cut off", "turn", ("seq",), {"streamed": _free}),
    _Columns(_MESSAGES, "message", ("seq",), {"text": _free, "answer": _free}),
    _Columns("names of conversations", "conversation", ("line",), {"name": _free, "door": _json}),
    _Columns("reasons of threads", "thread", ("id",), {"why": _free}),
    _Columns("reasons of pauses", "paused", ("agent",), {"why": _free}),
    _Columns("reasons of pauses", "pause", ("at",), {"why": _free}),
    _Columns("memory blocks", "block", ("seq",), {"value": _value, "description": _short}),
    _Columns(
        "earlier texts of blocks",
        "block_change",
        ("block", "version"),
        {"value": _value, "what": _free},
    ),
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
    ("approvals of grants", "approval", "seq", ("content", "grants")),
    ("readings of files", "reading", "path", ("reading",)),
    ("shapes of results", "seen", "function", ("shape",)),
)
_PLACES: Final = {
    "call": "calls and answers",
    "result": "calls and answers",
    "request": "records of requests",
} | {SUMMARY: "summaries"}
_SEARCHED: Final[tuple[tuple[str, str, str, dict[str, Change]], ...]] = (
    ("recall", "recall", "said", {"text": _free, "speaker": _redact_speaker}),
    ("passages", "archival", "passage", {"text": _free, "source": _free, "place": _free}),
)
_VECTORS: Final = (
    "delete from vector where lane in (select id from lane where shelf = ?)"
    " and seq in (select cast(value as integer) from json_each(?)) returning 1"
)
_NUMBERED_AGAIN: Final = (
    "insert into state (function, turn, value, at) select function, turn, value, at from state s where n = ?"
    " and n = (select max(n) from state where function = s.function) returning 1"
)
"""Adds a row that is a function's newest once more, with the next number."""
_MORE: Final = {"said": "at, '[]'", "passage": "case when document = '' then at end, tags"}
"""The time and the tags that belong to the words of a row."""


def forget_text(session: SqlSession, redaction: Redaction, words: Words) -> Counter[str]:
    """Remove a text from all tables; return the number of affected rows by place."""
    counts = Counter[str]()
    # Texts that are stored by hash: earlier versions of functions, long answers, instructions. Sources of current files
    # stay: they would be read from the files again.
    hashes: dict[str, str] = {}
    versions = {row[0] for row in session.all("select distinct version from change")}
    for name, text in session.all(
        "select hash, text from text where hash not in (select version from manifest)"
    ):
        is_source = name in versions
        new_text = redaction.mention.without(text, *(["forgotten"] if is_source else []))
        if new_text != text:
            hashes[name] = content_hash(new_text)
            counts["earlier versions of functions" if is_source else "long texts"] += 1
            session.all(
                "insert into text (hash, text) values (?, ?) on conflict do nothing",
                hashes[name],
                new_text,
            )
            session.all("update change set version = ? where version = ?", hashes[name], name)
            session.all("delete from text where hash = ?", name)
    redaction = replace(redaction, hashes=hashes)
    for seq, kind, text in session.all("select seq, kind, payload from entry"):
        # What goes back to an endpoint is opaque, so it may contain the text.
        is_sealed = kind == "assistant" and ('"reasoning"' in text or '"extra"' in text)
        if not (redaction.hashes or is_sealed or redaction.mention.within(text)):
            continue
        payload = parse_row(text, dict)
        without = redaction.summary(payload) if kind == SUMMARY else redaction.json(payload)
        counts[_PLACES.get(kind, "messages")] += without != payload
        if is_sealed:
            without.pop("reasoning", None)
            for call in without.get("calls", ()):
                call.pop("extra", None)
        if without != payload:
            session.all("update entry set payload = ? where seq = ?", dump(without), seq)
    for spec in _CHANGED:
        changed = _redact_table(session, redaction, spec)
        counts[spec.place] += len(changed)
        if spec.table == "state":  # a call that read the text would otherwise write it back
            moved = [key for key in changed if session.all(_NUMBERED_AGAIN, *key)]
            session.many("delete from state where n = ?", moved)
    for place, shelf, table, columns in _SEARCHED:
        seqs = _redact_searchable(session, redaction, words, table, columns)
        counts[place] += len(seqs)
        counts["vectors"] += drop_vectors(session, shelf, seqs)
    for place, dropped, key, texts in _DROPPED:
        # Rows that are useless in part, or that are created again.
        rows: list[tuple[Any, ...]] = session.all(_LINES.format(", ".join((key, *texts)), dropped))
        ids = [
            id
            for id, *values in rows
            if any(text and redaction.mention.within(text) for text in values)
        ]
        session.many(f"delete from {dropped} where {key} = ?", [(id,) for id in ids])  # noqa: S608  (our own names)
        counts[place] += len(ids)
    return counts


def _redact_table(
    session: SqlSession, redaction: Redaction, spec: _Columns
) -> list[tuple[Any, ...]]:
    """Change the rows of a table; return their keys."""
    changed, key = list[tuple[Any, ...]](), " and ".join(f"{name} = ?" for name in spec.key)
    for row in session.all(_LINES.format(", ".join((*spec.key, *spec.columns)), spec.table)):
        place, values = row[: len(spec.key)], row[len(spec.key) :]
        new = [
            _with(change, redaction, text)
            for change, text in zip(spec.columns.values(), values, strict=True)
        ]
        if new == list(values):
            continue
        changed.append(place)
        names = [*spec.columns, *(["seal"] if spec.seal else [])]
        seals = [sign(session.sealer, spec.table, *map(str, (*place, *new)))] if spec.seal else []
        sets = ", ".join(f"{name} = ?" for name in names)
        session.all(f"update {spec.table} set {sets} where {key}", *new, *seals, *place)  # noqa: S608  (our own names)
    return changed


def _with(change: Change, redaction: Redaction, text: str | None) -> str | None:
    """Return the changed text; the same text if it contains no form of the text to forget."""
    return (
        change(redaction, text)
        if text and (redaction.mention.within(text) or redaction.hashes)
        else text
    )


def _redact_searchable(
    session: SqlSession,
    redaction: Redaction,
    words: Words,
    table: str,
    columns: Mapping[str, Change],
) -> list[int]:
    """Change searchable rows and their words; return their numbers."""
    seqs: list[int] = []
    sql = f"select seq, agent, {_MORE[table]}, {', '.join(columns)} from {table}"  # noqa: S608  (our own names)
    for seq, agent, at, tags, *values in session.all(sql):
        new = [
            _with(change, redaction, text)
            for change, text in zip(columns.values(), values, strict=True)
        ]
        remaining = parse_row(str(_with(_json, redaction, tags)), [str])
        if new == values and remaining == parse_row(tags):
            continue
        seqs.append(seq)
        sets = ", ".join(f"{name} = ?" for name in columns)
        indexed = words(str(new[0]), at, remaining)
        session.all(f"update {table} set {sets}, words = ? where seq = ?", *new, indexed, seq)  # noqa: S608  (our own names)
        if table == "passage":
            session.all("update passage set tags = ? where seq = ?", dump(remaining), seq)
            session.all("delete from tag where passage = ?", seq)
            for tag in set(remaining):
                session.all(
                    "insert into tag (agent, tag, passage) values (?, ?, ?)", agent, tag, seq
                )
    return seqs


def drop_vectors(session: SqlSession, shelf: str, seqs: Sequence[int]) -> int:
    """Delete the vectors of rows; the index of their signs is created again."""
    return len(session.all(_VECTORS, shelf, numbers(seqs)))
