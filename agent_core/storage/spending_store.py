"""Spending in the store: what each request to a model took, the user's caps, and the pause of all that runs by itself.

A request is reserved before it is sent, in a transaction that sees what all processes have spent and reserved, and
settled with what it took. One whose process shows no sign of life any more counts with its estimate.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeVar

from agent_core.base.caps import Payer
from agent_core.base.records import dataclass, field, replace

from .call_store import owners_given
from .inbox import Inbound
from .names import agent_of, paying_line
from .subject import Removal, Write, dump, is_signed, parse_row, sign
from .tables import SqlSession, Tables, change, perform, query

T = TypeVar("T")
BEAT_S: Final = 10.0
"""How often a request that is under way shows a sign of life."""
_DEAD_S: Final = 60.0
_WHERE: Final[Mapping[str, str]] = {
    "turn": "turn = ?2",
    "conversation": "line = ?2",
    "agent": "agent = ?2",
    "day": "at >= ?2",
    "unattended": "at >= ?2 and unattended",
}
_SUMS: Final = (
    "select model, coalesce(beat > ?1, false), count(*), cast(sum(prompt) as integer),"
    " cast(sum(cached) as integer), cast(sum(completion) as integer),"
    " cast(sum(most_in) as integer), cast(sum(most_out) as integer) from spent where {} group by 1, 2"
)
_SEEN: Final = (
    "(?1 = 1 or agent in (select value from json_each(?2)))"
    " and (?3 = 1 or line in (select value from json_each(?4)))"
)
_USES: Final = (
    "model, count(*), cast(sum(prompt) as integer), cast(sum(cached) as integer),"
    f" cast(sum(completion) as integer) from spent where {_SEEN}"
)
_LAST_KEYS: Final = (
    " and {key} in (select {key} from spent where {seen} group by {key} order by min(seq) desc limit ?5)"
    " group by {key}, model order by min(seq)"
)
_MOMENTS: Final = "select at from spent where"
_NEWEST: Final = f"{_MOMENTS} {_SEEN} and at < ?5 order by at desc limit 1"
_TEXT_CHARS: Final = 200  # of what began a turn
_KEYS: Final[Mapping[str, str]] = {"agent": "agent", "conversation": "line", "turn": "turn"}
_ROWS: Final = (
    "select turn, line, unattended, model, at, prompt, cached, completion from spent where at >= ?"
    " and (?2 = '' or agent = ?2) order by seq"
)


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What requests to one model took. Of those that are `open`, the `most_` tokens are reserved."""

    model: str
    is_open: bool
    requests: int
    prompt: int
    cached: int
    completion: int
    most_in: int = 0
    most_out: int = 0


@dataclass(frozen=True, slots=True)
class SpentRow:
    """One request: its estimate while it is under way, and then what it took."""

    id: str
    payer: Payer
    model: str
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    most_in: int = 0
    most_out: int = 0
    at: float = 0.0

    @property
    def agent(self) -> str:
        """The agent whose turn it was of; "" if none."""
        return agent_of(paying_line(self.payer.line))


@dataclass(frozen=True, slots=True)
class SpentScope:
    """The requests that are counted: those of these agents, in these conversations; None: of all."""

    agents: Collection[str] | None = None
    lines: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class SpendingRules:
    """What this user said about spending: caps by name (None lifts one), and why all that runs by itself is paused."""

    caps: Mapping[str, float | None] = field(default_factory=dict)
    pause: str | None = None


@dataclass(frozen=True, slots=True)
class SetCap(Write):
    """A write of this user's own cap; None lifts the program's."""

    name: str
    amount: float | None


@dataclass(frozen=True, slots=True)
class DropCap(Removal):
    """A write that takes a cap of this user back; the settings hold again."""

    name: str


@dataclass(frozen=True, slots=True)
class PauseAll(Write):
    """A write that stops everything that runs by itself, in all processes, until it is resumed."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class ResumeAll(Removal):
    """A write that lets everything run again that runs by itself."""


Total = Callable[[str], Sequence[ModelUse]]
"""Returns what was spent in a scope, by model."""


class SpendingStore(Tables):
    """What was spent on models, and what may be."""

    @query
    def spending_rules(self, session: SqlSession) -> SpendingRules:
        """Return what this user said about spending; rows that are not this user's do not count."""
        rows = session.all("select name, amount, seal from cap order by name")
        caps = dict[str, float | None]()
        for name, amount, seal in rows:
            if is_signed(session.sealer, seal, "cap", name, repr(amount)):
                caps[name] = amount
        pause = session.one("select why from pause order by at desc limit 1")
        return SpendingRules(caps, None if pause is None else pause[0])

    @query
    def is_paused(self, session: SqlSession) -> bool:
        """Return whether everything is paused that runs by itself."""
        return session.one("select 1 from pause") is not None

    @change
    def reserve(
        self,
        session: SqlSession,
        row: SpentRow,
        since: Callable[[float], float],
        decide: Callable[[Total], tuple[bool, T]],
    ) -> tuple[T, bool]:
        """Reserve a request if `decide` says so, from the totals of scopes; nobody else spends or reserves meanwhile.

        Return what else `decide` says, and whether this is the first request that nobody watches. `since` returns when
        the day of a moment began.
        """
        now = session.clock.now()
        is_first = row.payer.is_unattended and not session.one(
            "select 1 from spent where unattended limit 1"
        )
        goes, said = decide(lambda scope: _sums(session, scope, row.payer, since(now)))
        if goes:
            _insert(session, replace(row, at=now), beat=now)
        return said, is_first

    @query
    def settle_request(
        self,
        session: SqlSession,
        row: SpentRow,
        since: Callable[[float], float],
        scopes: Collection[str] = (),
    ) -> dict[str, Sequence[ModelUse]]:
        """Store what a request took, whether it was reserved or not, and return the new totals of these scopes."""
        now = session.clock.now()
        with session.unsynced():
            known = session.one(
                "update spent set model = ?, prompt = ?, cached = ?, completion = ?, most_in = 0, most_out = 0,"
                " beat = null where id = ? returning at",
                row.model,
                row.prompt,
                row.cached,
                row.completion,
                row.id,
            )
            if known is None:
                _insert(session, replace(row, at=now), beat=None)
            begun = since(known[0] if known else now)
            return {scope: _sums(session, scope, row.payer, begun) for scope in scopes}

    @query
    def spent(
        self,
        session: SqlSession,
        payer: Payer,
        since: Callable[[float], float],
        scopes: Collection[str],
    ) -> dict[str, Sequence[ModelUse]]:
        """Return the totals of these scopes, as far as the payer is in them."""
        begun = since(session.clock.now())
        return {scope: _sums(session, scope, payer, begun) for scope in scopes}

    @query
    def keep_reserved(self, session: SqlSession, id: str) -> None:
        """Show that a request is still under way."""
        with session.unsynced():
            session.all(
                "update spent set beat = ? where id = ? and beat is not null",
                session.clock.now(),
                id,
            )

    @change
    def settle_requests(self, session: SqlSession, turn: str) -> None:
        """Count the open requests of a turn whose process has ended by their estimates."""
        session.all(
            "update spent set most_in = 0, most_out = 0, beat = null where turn = ? and beat is not null",
            turn,
        )

    @query
    def requests(self, session: SqlSession, since: float = 0.0, agent: str = "") -> list[SpentRow]:
        """Return the requests since a time, of all agents or of one, the oldest first."""
        return [
            SpentRow(
                "", Payer(turn, line, bool(unattended)), model, prompt, cached, completion, at=at
            )
            for turn, line, unattended, model, at, prompt, cached, completion in session.all(
                _ROWS, since, agent
            )
        ]

    @query
    def spenders(self, session: SqlSession) -> list[str]:
        """Return the agents whose turns asked a model."""
        return [agent for (agent,) in session.all("select distinct agent from spent")]

    @query
    def spent_by(
        self, session: SqlSession, key: str, last: int, scope: SpentScope
    ) -> list[tuple[str, ModelUse]]:
        """Return what was spent by each of the `last` agents, conversations or turns, by model, in the order in which
        they began.
        """
        column = _KEYS[key]
        rows = session.all(
            f"select {column}, {_USES}{_LAST_KEYS.format(key=column, seen=_SEEN)}",
            *_seen_by(scope),
            last,
        )
        return [(name, ModelUse(model, False, *amounts)) for name, model, *amounts in rows]

    @query
    def spent_by_day(
        self, session: SqlSession, last: int, scope: SpentScope, since: Callable[[float], float]
    ) -> list[tuple[float, ModelUse]]:
        """Return what was spent on each of the `last` days, by model, the oldest first, each with its beginning.

        `since` returns when the day of a moment began.
        """
        seen = _seen_by(scope)
        uses = list[tuple[float, ModelUse]]()
        end = math.inf
        for _ in range(last):
            newest = session.one(_NEWEST, *seen, end)
            if newest is None:
                break
            begun = min(since(newest[0]), newest[0])
            rows = session.all(
                f"select {_USES} and at >= ?5 and at < ?6 group by 1", *seen, begun, end
            )
            uses += [(begun, ModelUse(model, False, *amounts)) for model, *amounts in rows]
            end = begun
        return sorted(uses, key=lambda use: use[0])

    @query
    def spent_together(self, session: SqlSession, scope: SpentScope) -> list[ModelUse]:
        """Return what was spent in all, by model."""
        rows = session.all(f"select {_USES} group by 1", *_seen_by(scope))
        return [ModelUse(model, False, *amounts) for model, *amounts in rows]

    @query
    def turn_texts(self, session: SqlSession, turns: Sequence[str]) -> dict[str, str]:
        """Return the beginning of what began each of these turns, by its id, as far as it is still on record."""
        rows = session.all(
            "select t.id, e.payload, e.kind from turn t join event e on e.seq = t.event"
            " where t.id in (select value from json_each(?))",
            dump([*turns]),
        )
        began = [Inbound.of(id, kind, parse_row(payload, dict)) for id, payload, kind in rows]
        return {inbound.id: (inbound.text or inbound.kind)[:_TEXT_CHARS] for inbound in began}


def _seen_by(scope: SpentScope) -> tuple[int, str, int, str]:
    """Return the parameters of `_SEEN`."""
    return (*owners_given(scope.agents), *owners_given(scope.lines))


def _sums(session: SqlSession, scope: str, payer: Payer, begun: float) -> list[ModelUse]:
    """Return what was spent in a scope that this payer is in."""
    line = paying_line(payer.line)
    key = {"turn": payer.turn, "conversation": line, "agent": agent_of(line)}.get(scope, begun)
    if key == "":
        return []
    alive = session.clock.now() - _DEAD_S
    return [
        ModelUse(model, bool(is_open), *amounts)
        for model, is_open, *amounts in session.all(_SUMS.format(_WHERE[scope]), alive, key)
    ]


def _insert(session: SqlSession, row: SpentRow, *, beat: float | None) -> None:
    payer = row.payer
    session.all(
        "insert into spent (id, at, turn, line, unattended, model, prompt, cached, completion, most_in, most_out, beat)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do nothing",
        row.id,
        row.at,
        payer.turn,
        paying_line(payer.line),
        payer.is_unattended,
        row.model,
        row.prompt,
        row.cached,
        row.completion,
        row.most_in,
        row.most_out,
        beat,
    )


@perform.register
def _set_cap(cap: SetCap, session: SqlSession) -> None:
    amount = None if cap.amount is None else float(cap.amount)
    session.all(
        "insert into cap (name, amount, at, seal) values (?, ?, ?, ?) on conflict (name)"
        " do update set amount = excluded.amount, at = excluded.at, seal = excluded.seal",
        cap.name,
        amount,
        session.clock.now(),
        sign(session.sealer, "cap", cap.name, repr(amount)),
    )


@perform.register
def _drop_cap(cap: DropCap, session: SqlSession) -> None:
    session.all("delete from cap where name = ?", cap.name)


@perform.register
def _pause_all(pause: PauseAll, session: SqlSession) -> None:
    session.all("delete from pause")
    session.all("insert into pause (at, why) values (?, ?)", session.clock.now(), pause.why)


@perform.register
def _resume_all(_: ResumeAll, session: SqlSession) -> None:
    session.all("delete from pause")
