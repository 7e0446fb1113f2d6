"""Threads in the store: messages between agents, their waits for each other, spending, and paused agents.

A message is an event in its recipient's inbox, and a permanent row. An ask parks the turn that sent it: the turn ends,
and the last answer to its asks is an event for its agent, which begins the turn that continues.
"""

import re
from collections.abc import Collection
from difflib import SequenceMatcher
from typing import Any, Final, TypeAlias

from agent_core.base.errors import UsageError
from agent_core.base.events import Usage
from agent_core.base.limits import NAMES, Allowance, SpendingLimits
from agent_core.base.records import dataclass, field

from .call_store import CallOwners, owners_given
from .journal import read_as
from .names import agent_of
from .subject import Entry, Misfit, Removal, Write, dump, parse_row
from .tables import SqlSession, Tables, change, perform, query
from .turn_store import (
    BETWEEN,
    IMPORTED,
    PAUSED_EVENT,
    SCHEDULED,
    AnswerAsk,
    Due,
    Post,
    WakeAsker,
    post_event,
)

Amounts: TypeAlias = dict[str, int | float]

LIMITS_FROM: Final = "[runner] of knapper.toml"
BEAT: Final = "heartbeat"
"""The kind of event that wakes an agent without a message."""
FROM_USER: Final = ("message", "login", "notice", BEAT)
"""The kinds of events that come from the user, or from the program for the user."""


class CircleError(UsageError):
    """An ask would make agents wait for each other in a circle."""

    code = "circle"


class ThreadStopped(UsageError):
    """A thread accepts no further messages: because of a limit, no progress, or a person's decision."""

    code = "thread-stopped"


class NoProgress(ThreadStopped):
    """An agent sends another one nearly the same text for the third time: a person must decide."""

    code = "no-progress"


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message between agents. `state` is sent; for an ask it is open, answered, failed, timed_out or stopped."""

    id: str
    thread: str
    kind: str
    sender: str
    recipient: str
    text: str
    turn: str
    hops: int
    owes: str
    state: str
    answer: str
    at: float
    due: float | None
    ended: float | None


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A thread with its limits, and what each agent spent in it. `state` is open, stopped or stuck."""

    id: str
    agent: str
    limits: Amounts
    state: str
    why: str
    started: float
    spent: dict[str, Amounts] = field(default_factory=dict)

    def allowance(self, **more: int | float) -> Allowance:
        """Return the remainder of the thread's limits; `more` replaces some spent amounts."""
        limits: dict[str, Any] = {
            name: self.limits.get(name) for name in NAMES
        }  # Any: the fields that are numbers
        return Allowance(
            SpendingLimits(**limits, where=LIMITS_FROM), spent={**self.total(), **more}
        )

    def total(self) -> Amounts:
        """Return the sum of all agents' spending; for hops, the maximum."""
        total: Amounts = {}
        for amounts in self.spent.values():
            for name, amount in amounts.items():
                before = total.get(name, 0)
                total[name] = max(before, amount) if name == "hops" else before + amount
        return total


@dataclass(frozen=True, slots=True)
class OpenWork:
    """The open work in a conversation: a turn that is open, or an event that is due. `kind` is that of the event."""

    line: str
    is_running: bool
    kind: str
    thread: str
    since: float

    @property
    def agent(self) -> str:
        """The agent whose work it is."""
        return agent_of(self.line)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of due events that wait for a turn, and how long the oldest has been due."""

    waiting: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class SendMessage(Write):
    """A write that sends a note, an ask or a handoff; a repeated key is the same message. It may start its thread.

    The same transaction checks whether it may be sent: see `ThreadStore`.
    """

    id: str
    kind: str
    sender: str
    recipient: str
    text: str
    thread: str
    turn: str
    hops: int = 1
    owes: str = ""
    due: float | None = None
    key: str | None = None
    limits: Amounts = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)  # Any: JSON; that of the sender's turn


@dataclass(frozen=True, slots=True)
class RouteAsk(Write):
    """A write that forwards an open ask to another agent; the first answer counts, no matter who gives it."""

    ask: str
    to: str


@dataclass(frozen=True, slots=True)
class SpendInThread(Write):
    """A write that adds to an agent's spending in a thread, if the thread exists."""

    thread: str
    agent: str
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class SetThread(Write):
    """A write that stops a thread (`stopped`, or `stuck` until a person decides), or opens it again.

    Stopping drops the thread's waiting events, asks its turns to end, and closes its open asks.
    """

    thread: str
    state: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class PauseAgent(Write):
    """A write that makes runners skip an agent; its inbox still accepts events."""

    agent: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class ResumeAgent(Removal):
    """A write that makes runners run an agent again."""

    agent: str


@dataclass(frozen=True, slots=True)
class SetBeat(Write):
    """A write that sets when an agent wakes by itself; it replaces an earlier time, unless it `stays`."""

    agent: str
    due: float
    payload: dict[str, Any]  # Any: JSON
    stays: bool = False


_AGENT_ORIGIN: Final = '{"window":"agent"}'
SAME_TIMES: Final = 3
_SAME: Final = 0.9
_COMPARED: Final = 2_000  # characters
_MESSAGE: Final = (
    "id, thread, kind, sender, recipient, text, turn, hops, owes, state, answer, at, due, ended"
)
_AMOUNTS: Final = ", ".join(NAMES)
_THREAD: Final = "coalesce(json_extract(e.payload, '$.thread'), '')"
_OWES: Final = "json_extract(payload, '$.owes') = ?3"
_OPEN_WORK: Final = (
    f"select t.line, 1, e.kind, {_THREAD}, t.started, t.seq from turn t join event e on e.seq = t.event"  # noqa: S608
    f" where t.state = 'open' union all select e.line, 0, e.kind, {_THREAD}, e.due, e.seq from event e"
    " where e.turn is null and (e.due <= ? or not e.timed) order by 2 desc, 5, 6"
)
_BACKLOG: Final = (
    "select count(*), min(max(due, at)) from event where turn is null and (due <= ?1 or not timed)"
    " and agent not in (select agent from paused) and (?2 = 1 or agent in (select value from json_each(?3)))"
)
_USED_LAST: Final = (
    "select t.agent, e.payload from turn t join entry e on e.turn = t.seq"
    " where e.kind = 'usage' and e.attempt <> ? and t.seq in (select max(seq) from turn group by agent)"
)
_DUE: Final = (
    "select t.line, 1, 0.0, t.seq from turn t join event e on e.seq = t.event where t.state = 'open'{of_turn}"
    " and e.kind in (select value from json_each(?1)) and t.agent not in (select agent from paused){turn_free}"
    " union all select line, 0, min(due), min(seq) from event where turn is null{of_event}"
    " and (due <= ?2 or not timed) and kind in (select value from json_each(?1))"
    " and agent not in (select agent from paused){event_free}"
    " and not {is_paused}"
    " and line not in (select line from turn where state = 'open') group by line"
    " order by 2 desc, 3, 4 limit ?3"
)


class ThreadStore(Tables):
    """Threads. `SendMessage` fails, and nothing of its transaction is written, with one of these errors:

    CircleError: the recipient waits for the sender, directly or through others.
    ThreadStopped: the thread is stopped, a limit is reached, or nearly the same was sent for the third time.
    InboxFull: too many events wait for the recipient.
    """

    @query
    def work(
        self,
        session: SqlSession,
        kinds: Collection[str] = (*BETWEEN, BEAT),
        limit: int = 100,
        *,
        line: str | None = None,
    ) -> list[Due]:
        """Return the conversations with an open turn or a due event of these kinds, except those of paused agents.

        While all is paused that runs by itself, events of that sort do not count. With a `line`, only that one is
        considered.
        """
        values: tuple[object, ...] = (dump([*kinds]), session.clock.now(), limit)
        conditions = dict.fromkeys(("of_turn", "of_event", "turn_free", "event_free"), "")
        conditions["is_paused"] = PAUSED_EVENT
        if line is not None:
            conditions |= {"of_turn": " and t.line = ?4", "of_event": " and line = ?4"}
            values += (line,)
        if others := self._of_others():
            conditions |= {
                "turn_free": f" and t.line not in ({others})",
                "event_free": f" and line not in ({others})",
            }
        rows = session.all(_DUE.format(**conditions), *values)
        return [Due(line, bool(is_takeover)) for line, is_takeover, _, _ in rows]

    @query
    def next_due(self, session: SqlSession) -> float | None:
        """Return the time when the next timed event or the end of the next wait is due; None if there is none."""
        row = session.one(
            "select min(due) from (select min(due) as due from event where turn is null and timed and due > ?"
            " union all select min(due) from message where state = 'open') as times",
            session.clock.now(),
        )
        return row[0] if row else None

    @change
    def expire(self, session: SqlSession) -> list[MessageRow]:
        """Answer the overdue asks with the reason why there is no answer, and return them."""
        late = _messages(session, "state = 'open' and due <= ? order by due", session.clock.now())
        for ask in late:
            _answer(session, AnswerAsk(ask.id, _reason(session, ask), "timed_out"))
        return late

    @query
    def thread(self, session: SqlSession, id: str) -> ThreadRow | None:
        """Return one thread."""
        return _thread(session, id)

    @query
    def threads(self, session: SqlSession) -> list[ThreadRow]:
        """Return all threads, the oldest first."""
        rows = session.all("select id from thread order by started, id")
        return [thread for (id,) in rows if (thread := _thread(session, id)) is not None]

    @query
    def letters(self, session: SqlSession, thread: str) -> list[MessageRow]:
        """Return the messages of a thread, in order."""
        return _messages(session, "thread = ? order by seq", thread)

    @query
    def asks(self, session: SqlSession) -> list[MessageRow]:
        """Return the asks that are open, the oldest first."""
        return _messages(session, "state = 'open' order by seq")

    @query
    def paused(self, session: SqlSession) -> dict[str, str]:
        """Return the agents that are paused, with the reasons."""
        return dict(session.all("select agent, why from paused order by agent"))

    @query
    def spent_last(self, session: SqlSession) -> dict[str, dict[str, int]]:
        """Return the steps and tokens of each agent's last turn, if it asked a model here."""
        spent: dict[str, dict[str, int]] = {}
        for agent, payload in session.all(_USED_LAST, IMPORTED):
            try:
                used = read_as(Usage, Entry(Usage.kind, parse_row(payload, dict)))
            except Misfit:  # the agent says so itself; what the others spent is known
                continue
            if used is None:  # a stranger's file has other types in it
                continue
            total = spent.setdefault(agent, {"steps": 0, "tokens": 0})
            total["steps"] += 1
            total["tokens"] += used.prompt_tokens + used.completion_tokens
        return spent

    @query
    def backlog(self, session: SqlSession, owners: CallOwners = None) -> Backlog:
        """Return the backlog of all agents, or of the `owners`, except paused ones."""
        now = session.clock.now()
        row = session.all(_BACKLOG, now, *owners_given(owners))[0]
        return Backlog(row[0], max(now - row[1], 0.0) if row[0] else 0.0)

    @query
    def open_work(self, session: SqlSession) -> list[OpenWork]:
        """Return the open turns, and the due events of agents, the oldest first."""
        rows = session.all(_OPEN_WORK, session.clock.now())
        return [
            OpenWork(line, bool(runs), kind, thread, since)
            for line, runs, kind, thread, since, _ in rows
        ]


@perform.register
def _send(send: SendMessage, session: SqlSession) -> None:
    key = f"{send.sender}:{send.key}" if send.key else send.id
    if session.one("select 1 from event where line = ? and key = ?", send.recipient, key):
        return
    session.all(
        "insert into thread (id, agent, limits, started) values (?, ?, ?, ?) on conflict do nothing",
        *(send.thread, send.sender, dump(send.limits), session.clock.now()),
    )
    thread = _thread(session, send.thread)
    assert thread is not None
    if thread.state != "open":
        raise ThreadStopped(
            f"This thread was stopped: {thread.why}", fix="Reply with what you have."
        )
    if why := thread.allowance(hops=send.hops - 1).broken("hops", "messages"):
        raise ThreadStopped(f"The message was not sent. {why}", fix="Reply with what you have.")
    if send.kind == "ask":
        _check_circle(session, send.sender, send.recipient)
    rows = session.all(
        "select text from message where thread = ? and sender = ? and recipient = ? order by seq desc limit ?",
        *(send.thread, send.sender, send.recipient, SAME_TIMES - 1),
    )
    texts = [send.text, *(text for (text,) in rows)]
    said, *earlier = (" ".join(re.findall(r"\w+", text[:_COMPARED].casefold())) for text in texts)
    if len(earlier) == SAME_TIMES - 1 and all(
        said == other or SequenceMatcher(None, said, other, autojunk=False).ratio() >= _SAME
        for other in earlier
    ):
        message = f"`{send.sender}` says nearly the same to `{send.recipient}` for the third time."
        raise NoProgress(message, fix="Say something new, or reply with what you have.")
    state = "open" if send.kind == "ask" else "sent"
    session.all(
        "insert into message (id, thread, kind, sender, recipient, text, turn, hops, owes, state, at, due)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(
            send.id,
            send.thread,
            send.kind,
            send.sender,
            send.recipient,
            send.text,
            send.turn,
            send.hops,
        ),
        *(send.owes, state, session.clock.now(), send.due),
    )
    owed = send.id if send.kind == "ask" else send.owes if send.kind == "handoff" else ""
    payload = {
        "text": send.text,
        "from": send.sender,
        "thread": send.thread,
        "hops": send.hops,
        "owes": owed,
    }
    payload |= {"policy": send.policy} if send.policy else {}
    post_event(session, Post(send.recipient, send.kind, payload, key=key, origin=_AGENT_ORIGIN))
    _spend(session, send.thread, send.sender, {"messages": 1, "hops": send.hops})


def _check_circle(session: SqlSession, sender: str, recipient: str) -> None:
    """Raise an error if the recipient waits for the sender, directly or through others."""
    ways: list[tuple[str, ...]] = [(sender, recipient)]
    known = {recipient}
    while ways:
        way = ways.pop()
        if way[-1] == sender:
            circle = " → ".join(f"`{name}`" for name in way)
            message = (
                f"Nobody was asked: {circle} would be a circle in which all wait for each other."
            )
            raise CircleError(message, fix="Answer what you were asked, with what you have.")
        rows = session.all(
            "select distinct recipient from message where sender = ? and state = 'open'", way[-1]
        )
        ways += [(*way, name) for (name,) in rows if name == sender or name not in known]
        known.update(name for (name,) in rows)


@perform.register
def _answer_ask(answer: AnswerAsk, session: SqlSession) -> None:
    _answer(session, answer)


def _answer(session: SqlSession, answer: AnswerAsk) -> None:
    row = session.one(
        "update message set state = ?, answer = ?, ended = ? where id = ? and state = 'open'"
        " returning turn, thread, recipient",
        *(answer.state, answer.text, session.clock.now(), answer.ask),
    )
    if row is not None:
        _drop_waiting(session, f"agent = ?2 and {_OWES}", row[2], answer.ask)
        _spend(session, row[1], row[2], {"messages": 1})
        _wake(session, row[0])


@perform.register
def _wake_asker(wake: WakeAsker, session: SqlSession) -> None:
    _wake(session, wake.turn)


def _wake(session: SqlSession, turn: str) -> None:
    """Post the answers to the asks of a turn, once the turn has ended and all answers have arrived."""
    asks = _messages(session, "turn = ? and kind = 'ask' order by seq", turn)
    is_open = session.one("select 1 from turn where id = ? and state = 'open'", turn)
    if not asks or is_open or any(ask.state in ("open", "stopped") for ask in asks):
        return
    first = asks[0]
    answers = [{"from": ask.recipient, "text": ask.answer, "state": ask.state} for ask in asks]
    asker = session.one("select sender from message where id = ?", first.owes)
    payload = {"thread": first.thread, "hops": first.hops, "owes": first.owes, "answers": answers}
    payload["from"] = asker[0] if asker else ""
    # To the conversation that asked, which waits for it, with the policy of its turn.
    asked_in = session.one(
        "select turn.line, event.payload from turn join event on event.seq = turn.event"
        " where turn.id = ?",
        turn,
    )
    line = asked_in[0] if asked_in else first.sender
    began = parse_row(asked_in[1], dict) if asked_in else {}
    payload |= {"policy": began["policy"]} if began.get("policy") else {}
    answer = Post(line, "answer", payload, key=f"answers:{turn}", origin=_AGENT_ORIGIN)
    post_event(session, answer, is_limited=False)


def _reason(session: SqlSession, message_row: MessageRow) -> str:
    """Return the reason for a missing answer: the state of the asked agent, or the number of messages ahead."""
    minutes = (session.clock.now() - message_row.at) / 60
    begun = f"`{message_row.recipient}` has not answered within {minutes:,.0f} minutes"
    if row := session.one("select why from paused where agent = ?", message_row.recipient):
        return f"{begun}: it is paused{f' ({row[0]})' if row[0] else ''}."
    waits = session.all(
        "select distinct recipient from message where sender = ? and state = 'open'",
        message_row.recipient,
    )
    if waits:
        return f"{begun}: it waits for {', '.join(f'`{name}`' for (name,) in waits)}."
    before = session.all(
        "select count(*) from event where agent = ? and turn is null and seq <"
        " (select seq from event where agent = ?1 and key = ? and turn is null)",
        *(message_row.recipient, message_row.id),
    )[0][0]
    return f"{begun}: {before} messages were before this one." if before else f"{begun}."


@perform.register
def _route(route: RouteAsk, session: SqlSession) -> None:
    rows = _messages(session, "id = ? and state = 'open'", route.ask)
    if not rows:
        return
    ask = rows[0]
    _check_circle(session, ask.sender, route.to)
    _drop_waiting(session, f"agent = ?2 and {_OWES}", ask.recipient, ask.id)
    session.all("update message set recipient = ? where id = ?", route.to, ask.id)
    payload = {
        "text": ask.text,
        "from": ask.sender,
        "thread": ask.thread,
        "hops": ask.hops,
        "owes": ask.id,
    }
    post = Post(route.to, "ask", payload, key=f"{ask.id}:{route.to}", origin=_AGENT_ORIGIN)
    post_event(session, post)


@perform.register
def _spend_in_thread(spend: SpendInThread, session: SqlSession) -> None:
    if session.one("select 1 from thread where id = ?", spend.thread):
        _spend(session, spend.thread, spend.agent, spend.amounts)


def _spend(session: SqlSession, thread: str, agent: str, amounts: dict[str, int | float]) -> None:
    session.all(
        "insert into spending (thread, agent) values (?, ?) on conflict do nothing", thread, agent
    )
    for name in NAMES:
        if amount := amounts.get(name):
            new = f"max({name}, ?)" if name == "hops" else f"{name} + ?"
            session.all(
                f"update spending set {name} = {new} where thread = ? and agent = ?",  # noqa: S608  (our own names)
                amount,
                thread,
                agent,
            )


@perform.register
def _set_thread(thread: SetThread, session: SqlSession) -> None:
    session.all(
        "update thread set state = ?, why = ? where id = ?", thread.state, thread.why, thread.thread
    )
    if thread.state != "stopped":
        return
    session.all(
        "update message set state = 'stopped', ended = ? where thread = ? and state = 'open'",
        *(session.clock.now(), thread.thread),
    )
    _drop_waiting(session, "json_extract(payload, '$.thread') = ?2", thread.thread)
    session.all(
        "update turn set cancelled = true where state = 'open' and (id = ?1 or event in"
        " (select seq from event where json_extract(payload, '$.thread') = ?1))",
        thread.thread,
    )


@perform.register
def _set_beat(beat: SetBeat, session: SqlSession) -> None:
    where = "from event where line = ? and turn is null and key like 'beat:%'"
    if beat.stays and session.one(f"select 1 {where}", beat.agent):
        return
    session.all(f"delete {where}", beat.agent)
    key = f"beat:{session.clock.new_id()}"
    post = Post(beat.agent, BEAT, beat.payload, key, beat.due, origin=SCHEDULED)
    post_event(session, post, is_limited=False)


@perform.register
def _pause(pause: PauseAgent, session: SqlSession) -> None:
    session.all(
        "insert into paused (agent, why, at) values (?, ?, ?)"
        " on conflict (agent) do update set why = excluded.why, at = excluded.at",
        *(pause.agent, pause.why, session.clock.now()),
    )


@perform.register
def _resume(resume: ResumeAgent, session: SqlSession) -> None:
    session.all("delete from paused where agent = ?", resume.agent)


def leave_threads(session: SqlSession, agent: str) -> None:
    """Remove a deleted agent from all threads, and notify the agents that wait for it."""
    for (ask,) in session.all(
        "select id from message where recipient = ? and state = 'open'", agent
    ):
        _answer(session, AnswerAsk(ask, f"`{agent}` was deleted.", "failed"))
    session.all("delete from thread where agent = ?", agent)
    session.all("delete from message where sender = ?1 or recipient = ?1", agent)
    session.all("delete from paused where agent = ?", agent)


def _drop_waiting(session: SqlSession, where: str, *values: str) -> None:
    kinds = "kind in (select value from json_each(?1))"
    session.all(
        f"delete from event where turn is null and {kinds} and {where}",  # noqa: S608  (our own conditions)
        dump([*BETWEEN]),
        *values,
    )


def _messages(session: SqlSession, where: str, *values: object) -> list[MessageRow]:
    sql = f"select {_MESSAGE} from message where {where}"  # noqa: S608  (our own conditions)
    return [MessageRow(*row) for row in session.all(sql, *values)]


def _thread(session: SqlSession, id: str) -> ThreadRow | None:
    row = session.one("select agent, limits, state, why, started from thread where id = ?", id)
    if row is None:
        return None
    agent, limits, state, why, started = row
    spent = session.all(f"select agent, {_AMOUNTS} from spending where thread = ?", id)  # noqa: S608
    spending = {spender: dict(zip(NAMES, amounts, strict=True)) for spender, *amounts in spent}
    return ThreadRow(id, agent, parse_row(limits, dict), state, why, started, spending)
