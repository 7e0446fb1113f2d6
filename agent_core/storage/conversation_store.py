"""Conversations in the store: the lines of turns that an agent has, and which turns of others a branch begins with.

A conversation is named by its line. That of an agent's main conversation is the agent's name, and it has a row only if
it was renamed; that of another is AGENT/ID. A branch keeps no copies: its history is the part of its parent that it
began with, and its own turns.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from agent_core.base.errors import StorageError
from agent_core.base.records import dataclass, replace

from . import search_index
from .names import AgentName, Line, agent_of, is_main, line_named
from .subject import Write, dump, parse_row, rows_of
from .tables import (
    LARGEST_NUMBER,
    Key,
    SqlSession,
    Tables,
    change,
    perform,
    query,
)

MAIN: Final = "main"
"""The id of an agent's main conversation, and its name until it is renamed."""
NAME_CHARS: Final = 60
DEEPEST: Final = 50
"""How many conversations a branch stands on at most."""
_ID_CHARS: Final = 6
_TOKEN_LIMIT: Final = 10_000  # conversations with one agent that one token began
_CALLED: Final = ("name", "user", "window")  # keys of an origin, the first that is set counts
_COLUMNS: Final = "line, name, renamed, began, origin, parent, upto, deleted"
_END_OF: Final = (
    "select max(e.seq) from entry e where e.seq < ?2 and e.turn = (select max(seq) from turn"
    " where line = ?1 and state <> 'open' and n > 0 and seq << 20 < ?2 and case when ?3 = '' then not hidden"
    " else seq not in (select cast(value as integer) from json_each(?3)) end)"
)
_LAST_USED: Final = (
    "select coalesce(ended, started) from turn where line = ? order by seq desc limit 1"
)
_OPEN_TO: Final = (
    "(?4 = '*' or coalesce(json_extract(nullif(c.origin, ''), '$.token'), '') in ('', ?4))"
)
_LAST_USED_FIRST: Final = (
    "select u.line from (select line, max(started) as used, max(seq) as seq from turn where agent = ?1 group by line"  # noqa: S608  (our own text)
    " union all select line, began, 0 from conversation where agent = ?1 and (parent <> '' or renamed)) u"
    f" left join conversation c on c.line = u.line where (?2 or c.deleted is null) and {_OPEN_TO}"
    " group by u.line order by max(u.used) desc, max(u.seq) desc, u.line limit ?3"
)
_MESSAGES: Final = "select count(*) from turn t join event e on e.turn = t.seq where t.line = ? and e.kind = 'message'"
_SAID: Final = "select seq, words from said where line = ? order by seq"
_ANYONE: Final = "*"  # in place of a token
_FINDERS: Final = "select distinct agent from said where line = ?"
_BEGUN_BY: Final = "agent = ? and json_extract(nullif(origin, ''), '$.token') = ?"


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation of an agent. `origin` says what began it, as JSON; a branch has its `parent` up to entry `upto`.

    `used` is the time of its last turn, that of its beginning if it has none; `messages` counts those to it alone.
    """

    line: str
    name: str
    renamed: bool = False
    began: float = 0.0
    origin: str = ""
    parent: str = ""
    upto: int = 0
    deleted: float | None = None
    used: float = 0.0
    messages: int = 0

    @property
    def agent(self) -> AgentName:
        """The agent whose conversation it is."""
        return agent_of(self.line)

    @property
    def id(self) -> str:
        """Its id among those of its agent."""
        return id_of(self.line)

    @property
    def token(self) -> str:
        """The id of the token that began it, which alone may read it; "" if a person of the workspace did."""
        return token_of(self.origin)

    @property
    def user(self) -> str:
        """Whom the program with this token served; "" if it did not say."""
        return str((parse_row(self.origin, dict) if self.origin else {}).get("user") or "")

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return it as it is published."""
        branch = {"conversation": id_of(self.parent), "upto": self.upto} if self.parent else None
        return {
            "id": self.id,
            "agent": self.agent,
            "name": self.name,
            "began": self.began,
            "used": self.used,
            "messages": self.messages,
            "branch_of": branch,
            "origin": parse_row(self.origin, dict) if self.origin else {},
            "deleted": self.deleted,
        }


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a history: the turns of a line before an entry, without the `left_out` ones (JSON); None: those now."""

    line: str
    before: int
    left_out: str | None = None


@dataclass(frozen=True, slots=True)
class TurnSource:
    """Where the entries of a turn belong: the line of their conversation, and the origin of the event that began it."""

    line: str
    origin: str


@dataclass(frozen=True, slots=True)
class SaveDoor(Write):
    """A write that stores what a door keeps of a conversation, as JSON; nothing if the conversation is gone."""

    line: str
    kept: dict[str, Any]  # Any: JSON


def id_of(line: str) -> str:
    """Return the id of a conversation among those of its agent."""
    return line.partition("/")[2] or MAIN


def line_of(agent: str, id: str = MAIN) -> Line:
    """Return the line of an agent's conversation."""
    return Line(agent if id == MAIN else f"{agent}/{id}")


def lines_closed_to(session: SqlSession, agent: str, token: str | None) -> list[str]:
    """Return the lines of the conversations that are private to another token; with None, there are none."""
    asker = _asker(token)
    sql = f"select c.line from conversation c where c.agent = ?1 and not {_OPEN_TO}"  # noqa: S608  (our own text)
    return [line for (line,) in session.all(sql.replace("?4", "?2"), agent, asker)]


def _asker(token: str | None) -> str:
    """Return who asks, as `_OPEN_TO` takes it."""
    return _ANYONE if token is None else token


def sender_of(origin: str) -> str:
    """Return what people call the sender in an origin: a name, or else the kind of window; "" if it says nothing."""
    value = parse_row(origin, dict) if origin else {}
    for key in _CALLED:
        if name := value.get(key):
            return str(name)
    return ""


def token_of(origin: str) -> str:
    """Return the id of the token in an origin; "" if it has none."""
    value = parse_row(origin, dict) if origin else {}
    return str(value.get("token") or "")


class ConversationStore(Tables):
    """The conversations of agents."""

    @query
    def conversation(self, session: SqlSession, line: str) -> ConversationRow | None:
        """Return a conversation by its line; None if there is none. The main one is always there."""
        return _conversation(session, line)

    @query
    def conversations(
        self,
        session: SqlSession,
        agent: str,
        *,
        limit: int = 100,
        with_deleted: bool = False,
        token: str | None = None,
    ) -> list[ConversationRow]:
        """Return the conversations of an agent that were used last, the newest first; not those in which nothing is.

        A branch has something from its beginning, and one that was named is meant to stay. With a `token`, those that
        are private to another one are left out.
        """
        asker = _asker(token)
        rows = session.all(_LAST_USED_FIRST, agent, with_deleted, limit, asker)
        return _listed(session, rows)

    @query
    def conversations_named(
        self,
        session: SqlSession,
        agent: str,
        name: str,
        limit: int = 10,
        *,
        token: str | None = None,
        own: str = "",
    ) -> list[ConversationRow]:
        """Return the conversations of an agent with this id or name, or whose id begins so; the newest first.

        Those that the token `own` began are before others of the same name. With a `token`, those that are private to
        another one are left out.
        """
        rows = session.all(
            f"select line from conversation c where agent = ?1 and deleted is null and {_OPEN_TO}"  # noqa: S608  (our own)
            " and (lower(name) = lower(?2)"
            " or line = ?3 or (length(?2) >= 2 and substr(line, length(?1) + 2, length(?2)) = lower(?2)))"
            " order by line = ?3 desc, lower(name) = lower(?2) desc,"
            " coalesce(json_extract(nullif(c.origin, ''), '$.token'), '') = ?6 desc, began desc limit ?5",
            agent,
            name,
            line_of(agent, name),
            _asker(token),
            limit,
            own,
        )
        return _listed(session, rows)

    @query
    def conversations_of(
        self, session: SqlSession, agent: str, origin: str, name: str, limit: int = 10
    ) -> list[ConversationRow]:
        """Return the conversations of an agent with this origin that were given this name; the newest first."""
        rows = session.all(
            "select line from conversation where agent = ? and deleted is null and renamed and origin = ?"
            " and lower(name) = lower(?) order by began desc limit ?",
            agent,
            origin,
            name,
            limit,
        )
        return _listed(session, rows)

    @query
    def private_conversations(
        self, session: SqlSession, agent: str, limit: int
    ) -> list[ConversationRow]:
        """Return the conversations of an agent that are private to a token, the last used first."""
        rows = session.all(
            "select line from conversation c where agent = ?1 and deleted is null"
            " and json_extract(nullif(origin, ''), '$.token') <> ''"
            " order by (select max(seq) from turn where line = c.line) desc, began desc limit ?2",
            agent,
            limit,
        )
        return _listed(session, rows)

    @query
    def door(self, session: SqlSession, line: str) -> dict[str, Any] | None:  # Any: JSON
        """Return what a door keeps of a conversation; None if there is no such conversation, or it is deleted."""
        return _door(session, line)

    @query
    def doors_with(
        self, session: SqlSession, text: str, agent: str = "", origin: str = "", token: str = ""
    ) -> dict[str, dict[str, Any]]:  # Any: JSON
        """Return what doors keep of conversations that are not deleted, by line, if it contains a text.

        With an `agent` and an `origin`, or the `token` that began them, of those alone: so nobody's request takes
        longer for what others keep. The characters `%` and `_` in the text are wildcards.
        """
        rows = session.all(
            "select line, door from conversation where (?2 = '' or (agent = ?2 and origin = ?3))"
            " and (?4 = '' or json_extract(nullif(origin, ''), '$.token') = ?4)"
            " and deleted is null and door <> '{}' and door like ?1 order by began desc, line",
            f"%{text}%",
            agent,
            origin,
            token,
        )
        found: dict[str, dict[str, Any]] = {}  # Any: JSON
        for line, door in rows:
            with rows_of(agent_of(line)):
                found[line] = parse_row(door, dict)
        return found

    @query
    def named_by(self, session: SqlSession, agent: str, token: str) -> int:
        """Return how many conversations of an agent, of those that are not deleted, a token has named."""
        sql = f"select count(*) from conversation where {_BEGUN_BY} and renamed and deleted is null"  # noqa: S608
        return int(session.all(sql, agent, token)[0][0])

    @query
    def lines(self, session: SqlSession, agent: str, *, token: str | None = None) -> list[str]:
        """Return the lines of all conversations of an agent but the main one, deleted ones, too.

        With a `token`, those that are private to another one are left out.
        """
        closed = {*lines_closed_to(session, agent, token)}
        rows = session.all(
            "select line from conversation where agent = ?1 and line <> ?1 union"
            " select line from turn where agent = ?1 and line <> ?1 union"
            " select line from event where agent = ?1 and line <> ?1 order by 1",
            agent,
        )
        return [line for (line,) in rows if line not in closed]

    @query
    def source_of(self, session: SqlSession, turn: str) -> TurnSource | None:
        """Return the conversation of a turn, and the origin of what began it; None if there is no such turn."""
        row = session.one(
            "select t.line, e.origin from turn t join event e on e.seq = t.event where t.id = ?",
            turn,
        )
        return TurnSource(*row) if row else None

    @query
    def recall_scope(self, session: SqlSession, line: str) -> str:
        """Return the lane in which a conversation's messages are found, and in which it searches."""
        return recall_scope(session, line)

    @query
    def branch_point(self, session: SqlSession, line: str) -> int:
        """Return the number of the last entry of a conversation's last visible turn that has ended; 0 if none has.

        A reply with open calls is never the end of a history.
        """
        for part in reversed(stretches(session, line)):
            row = session.one(_END_OF, part.line, part.before, part.left_out or "")
            if row and row[0]:
                return int(row[0])
        return 0

    @query
    def branched_at(self, session: SqlSession, line: str) -> int:
        """Return the number of the last entry that a branch stands on; 0 for another conversation."""
        earlier = stretches(session, line)[:-1]
        return earlier[-1].before - 1 if earlier else 0

    @change
    def begin_conversation(
        self, session: SqlSession, agent: str, origin: str = "", name: str = ""
    ) -> ConversationRow:
        """Begin an empty conversation of an agent."""
        return add_conversation(session, agent, origin, name)

    @change
    def begin_branch(
        self, session: SqlSession, line: str, upto: int, origin: str = "", name: str = ""
    ) -> ConversationRow:
        """Begin a conversation with what is visible in another, up to an entry.

        Raises:
            StorageError: the conversation has no such entry, or stands on too many others.
        """
        parts = stretches(session, line)
        within = [part for part in parts if upto < part.before and _has(session, part.line, upto)]
        hidden = set[int]().union(*(_left_out(session, part) for part in parts))
        if not within or upto >> 20 in hidden:
            raise StorageError("The conversation has no such message.", fix="Type: knapper log")
        if len(parts) > DEEPEST:
            raise StorageError(
                f"This would be a branch of a branch, {DEEPEST} deep.",
                fix="Branch from an earlier conversation.",
            )
        parent = within[-1]
        hidden = {seq for seq in hidden if seq << 20 <= upto}
        row = add_conversation(session, agent_of(line), origin, name)
        session.all(
            "update conversation set parent = ?, upto = ?, hidden = ? where line = ?",
            parent.line,
            upto,
            dump(sorted(hidden)),
            row.line,
        )
        return _must_be_there(session, row.line)

    @change
    def rename_conversation(self, session: SqlSession, line: str, name: str) -> ConversationRow:
        """Give a conversation a name, which it keeps."""
        line_named(line)
        session.all(
            "insert into conversation (line, name, renamed, began) values (?, ?, true, ?)"
            " on conflict (line) do update set name = excluded.name, renamed = true",
            line,
            name,
            session.clock.now(),
        )
        return _must_be_there(session, line)

    @change
    def delete_conversation(
        self, session: SqlSession, line: str, *, is_deleted: bool = True
    ) -> ConversationRow:
        """Hide a conversation from lists and from search, or bring it back; nothing of it is erased.

        Raises:
            StorageError: it is the main conversation.
        """
        if is_main(line):
            raise StorageError(
                "The main conversation stays.", fix="To erase what was said: knapper memory forget"
            )
        _must_be_there(session, line)
        row = hide_conversation(session, line, is_hidden=is_deleted)
        _move_messages(session, line)
        return row


def _conversation(session: SqlSession, line: str) -> ConversationRow | None:
    row = session.one(f"select {_COLUMNS} from conversation where line = ?", line)  # noqa: S608  (our own names)
    if row is None and not is_main(line):
        return None
    columns = row or (line, MAIN, False, 0.0, "", "", 0, None)
    found = ConversationRow(*columns)
    used = session.one(_LAST_USED, line)
    return replace(
        found,
        renamed=bool(found.renamed),
        used=used[0] if used else found.began,
        messages=session.all(_MESSAGES, line)[0][0],
    )


def _listed(session: SqlSession, rows: Iterable[Sequence[Any]]) -> list[ConversationRow]:
    """Return the conversations whose lines are the first column of rows."""
    found = (_conversation(session, row[0]) for row in rows)
    return [row for row in found if row is not None]


def _must_be_there(session: SqlSession, line: str) -> ConversationRow:
    row = _conversation(session, line)
    if row is None:
        raise StorageError(
            f"There is no conversation {line}.", fix="Type: knapper conversations list"
        )
    return row


def add_conversation(session: SqlSession, agent: str, origin: str, name: str) -> ConversationRow:
    """Store the row of a conversation that begins."""
    if token_of(origin):
        sql = f"select count(*) from conversation where {_BEGUN_BY}"  # noqa: S608  (our own text)
        (count,) = session.one(sql, agent, token_of(origin)) or (0,)
        if count >= _TOKEN_LIMIT:
            raise StorageError(
                f"This token has begun {count:,} conversations with `{agent}`, which is the most.",
                fix="Go on with one of them, or use another token.",
            )
    line = ""
    while not line or session.one("select 1 from conversation where line = ?", line):
        line = line_of(agent, session.clock.new_id().replace("-", "")[-_ID_CHARS:])
    put_conversation(session, ConversationRow(line, name, bool(name), session.clock.now(), origin))
    return _must_be_there(session, line)


def hide_conversation(session: SqlSession, line: str, *, is_hidden: bool) -> ConversationRow:
    """Hide a conversation from lists and from what finds one, or show it again."""
    session.all(
        "update conversation set deleted = ? where line = ?",
        session.clock.now() if is_hidden else None,
        line,
    )
    return _must_be_there(session, line)


def _door(session: SqlSession, line: str) -> dict[str, Any] | None:  # Any: JSON
    sql = "select door from conversation where line = ? and deleted is null"
    row = session.one(sql, line)
    return parse_row(row[0], dict) if row else None


@perform.register
def _save_door(save: SaveDoor, session: SqlSession) -> None:
    session.all("update conversation set door = ? where line = ?", dump(save.kept), save.line)


def put_conversation(session: SqlSession, row: ConversationRow, hidden: str = "[]") -> None:
    """Store the row of a conversation."""
    line_named(row.line)
    session.all(
        f"insert into conversation ({_COLUMNS}, hidden) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        row.line,
        row.name,
        row.renamed,
        row.began,
        row.origin,
        row.parent,
        row.upto,
        row.deleted,
        hidden,
    )


def name_conversation(session: SqlSession, line: str, text: str) -> None:
    """Give a conversation that has no name its first words as one."""
    words = " ".join(text[: 4 * NAME_CHARS].split())
    name = words if len(words) <= NAME_CHARS else f"{words[: NAME_CHARS - 1]}…"
    session.all(
        "update conversation set name = ? where line = ? and name = '' and not renamed", name, line
    )


def stretches(session: SqlSession, line: str, before: int = LARGEST_NUMBER) -> list[Stretch]:
    """Return the parts of a conversation's history before an entry, the oldest first."""
    parts = [Stretch(line, before)]
    row = None if is_main(line) else _parent_of(session, line)
    left_out = dump(parse_row(row[2], [int])) if row else "[]"
    while row is not None and row[0] and len(parts) <= DEEPEST:
        parent, upto, _ = row
        before = min(before, upto + 1)
        parts.append(Stretch(parent, before, left_out))
        row = None if is_main(parent) else _parent_of(session, parent)
    return parts[::-1]


def leave_out(session: SqlSession, line: str, turns: Collection[int]) -> None:
    """Hide turns that a branch began with from this branch alone."""
    row = _parent_of(session, line)
    hidden = {*turns, *(parse_row(row[2], [int]) if row else ())}
    session.all("update conversation set hidden = ? where line = ?", dump(sorted(hidden)), line)


def recall_scope(session: SqlSession, line: str) -> str:
    """Return the lane in which the messages of a conversation are found, and in which it searches.

    All of an agent's conversations share its lane, but each that is deleted, or private to a token, has its own.
    """
    if is_main(line):
        return line
    row = session.one("select origin, deleted from conversation where line = ?", line)
    is_apart = row is not None and (row[1] is not None or bool(token_of(row[0])))
    return line if is_apart else agent_of(line)


def _parent_of(session: SqlSession, line: str) -> tuple[str, int, str] | None:
    row = session.one("select parent, upto, hidden from conversation where line = ?", line)
    return None if row is None else (row[0], row[1], row[2])


def _has(session: SqlSession, line: str, seq: int) -> bool:
    sql = "select 1 from entry e join turn t on t.seq = e.turn where e.seq = ? and t.line = ?"
    return session.one(sql, seq, line) is not None


def _left_out(session: SqlSession, stretch: Stretch) -> set[int]:
    """Return the turns that are hidden in a part of a history."""
    if stretch.left_out is not None:
        return set(parse_row(stretch.left_out, [int]))
    sql = "select seq from turn where line = ? and hidden and seq << 20 < ?"
    return {seq for (seq,) in session.all(sql, stretch.line, stretch.before)}


def _move_messages(session: SqlSession, line: str) -> None:
    """Move the messages of a conversation to the lane in which they are found now; vectors are made again there."""
    scope = recall_scope(session, line)
    rows = session.all(_SAID, line)
    for (finder,) in session.all(_FINDERS, line):
        if finder != scope:
            seqs = [seq for seq, _ in rows]
            search_index.remove_words(session, Key(finder, "recall"), seqs)
            session.index.remove(session, finder, "recall", seqs)
            session.all("update said set agent = ? where line = ?", scope, line)
            search_index.add_words(session, Key(scope, "recall"), rows)
