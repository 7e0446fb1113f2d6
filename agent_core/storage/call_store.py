"""Calls in the store: totals of each version, outcomes, the newest calls, and recorded ones, limited in number."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeAlias

from agent_core.base.records import dataclass

from .names import HISTORY
from .subject import Write, dump, is_signed, parse_row, sign
from .tables import SqlSession, Tables, perform, query

MAX_CALLS_KEPT = 100  # of a function, individually
"""The number of calls per function that are kept individually, unless a setting says otherwise."""

CallOwners: TypeAlias = Collection[str] | None
"""The agents with visible calls: a call belongs to the agent of its turn. None means all calls.

That includes calls outside of turns, which belong to no agent.
"""

FAILURES = frozenset({"raised", "timed_out", "killed"})
"""The outcomes that are the function's own fault."""


@dataclass(frozen=True, slots=True)
class RecordCall(Write):
    """One call of a function, for its standing and statistics.

    `outcome` is the published word, or `documented`: it raised an exception that its docstring names. `error` is an
    exception's type; `memory` is the worker's peak in bytes, `cpu` its processor time in seconds.
    """

    function: str
    version: str
    outcome: str
    seconds: float
    turn: str = ""
    error: str = ""
    message: str = ""
    memory: int | None = None
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class ReleaseFunction(Write):
    """Release this version from quarantine, by the user's decision, and reset its counts of failures and returns."""

    function: str
    version: str


@dataclass(frozen=True, slots=True)
class SaveRecorded(Write):
    """Record a call for replay. `data` is JSON that only the recorder interprets."""

    function: str
    outcome: str
    turn: str
    data: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One recorded call, identified by `n`."""

    n: int
    function: str
    outcome: str
    turn: str
    at: float
    data: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of the calls of one version of a function.

    Refused and interrupted calls, and exceptions that the docstring names, count as neither returned nor failed.
    `failing` is the current run of failures, `holding` the current run of returns (since `since`); `worst` is the
    longest run of failures.
    """

    function: str
    version: str
    calls: int
    returned: int
    failed: int
    failing: int
    holding: int
    first_called: float
    last_called: float
    seconds: float
    worst: int = 0
    since: float | None = None
    worked: float | None = None
    longest: float = 0.0
    memory: int | None = None
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class KindRow:
    """The number of times that a version ended in one way other than returning."""

    version: str
    outcome: str
    error: str
    calls: int
    last: float


@dataclass(frozen=True, slots=True)
class CallRow:
    """One stored call."""

    version: str
    turn: str
    outcome: str
    error: str
    message: str
    seconds: float
    memory: int | None
    at: float
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class SaveSeen(Write):
    """The shape of a function's newest result, for one agent, or for all if `agent` is empty; both write and row.

    It replaces the shapes of the function's other versions.
    """

    agent: str
    function: str
    version: str
    shape: Any  # Any: JSON

    def stored_under(self) -> Iterable[str]:
        """Return the agent; nothing, if it is for all."""
        return (self.agent,) if self.agent else ()


NAME_CHARS, MESSAGE_CHARS = 80, 200
MAX_KINDS = 20
OTHERS = "others"
MOST_OF_ONE, MOST = 20, 500
_STATS = (
    "select function, version, calls, returned, failed, failing, holding, first, last, seconds, worst, since, worked,"
    " longest, memory, cpu from call_total"
)
MOST_REQUESTS = 2_000
# Skips from function to function along the primary key, since only the newest calls of each are wanted
_REQUESTS = """
with recursive named(function) as (
    select min(function) from call
    union all
    select (select min(function) from call where function > named.function) from named where named.function is not null
), served as (
    select call.function, call.turn, max(call.at) as last from named join call on call.function = named.function
    and call.n > (select max(n) from call where function = named.function) - ?1
    where call.outcome = 'returned' and call.turn <> '' group by call.function, call.turn order by last desc limit ?2
)
select served.function, (
    select json_extract(entry.payload, '$.text') from entry
    where entry.seq between turn.seq << 20 and (turn.seq + 1) << 20 and entry.kind = 'user' order by entry.seq limit 1
) from served join turn on turn.id = served.turn left join conversation on conversation.line = turn.line
 where (?3 = 1 or turn.agent in (select value from json_each(?4))) and (?5 = 1 or instr(turn.agent, ?6) = 0
 and (instr(coalesce(conversation.origin, ''), '"token":"') = 0 or instr(conversation.origin, '"token":""') > 0))
 order by served.last desc
"""
_REQUESTS_MARK = "select (select count(*) from turn), coalesce(sum(calls), 0), coalesce(max(last), 0.0) from call_total"
_IS_THEIRS = "(?2 = 1 or exists (select 1 from turn where turn.id = {}.turn and turn.agent in"
_IS_THEIRS += " (select value from json_each(?3))))"
_AMONG = "(?4 = '[]' or outcome in (select value from json_each(?4)))"
_RECENT = (
    "select version, turn, outcome, error, message, seconds, memory, at, cpu from call"  # noqa: S608  (our own text)
    f" where function = ?1 and {_IS_THEIRS.format('call')} order by n desc"
)
_RECORDED = "select n, function, outcome, turn, data, at, seal from recorded where "
_ROWS = _RECORDED + _IS_THEIRS.format("recorded")


class CallStore(Tables):
    """The calls of functions."""

    @query
    def seen(self, session: SqlSession) -> list[SaveSeen]:
        """Return the recorded shapes of results."""
        rows = session.all("select agent, function, version, shape from seen")
        return [
            SaveSeen(agent, function, version, parse_row(shape))
            for agent, function, version, shape in rows
        ]

    @query
    def call_stats(self, session: SqlSession, function: str = "") -> list[Stats]:
        """Return the call statistics of each version of each function (or of one), the one called last at the end."""
        query = (
            (f"{_STATS} where function = ? order by last", function)
            if function
            else (f"{_STATS} order by last",)
        )
        return [Stats(*row) for row in session.all(*query)]

    @query
    def call_kinds(self, session: SqlSession, function: str) -> list[KindRow]:
        """Return the kinds of outcomes of a function's calls that did not return, the most frequent first."""
        rows = session.all(
            "select version, outcome, error, calls, last from call_kind where function = ?"
            " order by calls desc, last desc",
            function,
        )
        return [KindRow(*row) for row in rows]

    @query
    def recent_calls(
        self, session: SqlSession, function: str, owners: CallOwners = None
    ) -> list[CallRow]:
        """Return the calls of a function that are kept individually, newest first."""
        rows = session.all(_RECENT, function, *owners_given(owners))
        return [CallRow(*row) for row in rows]

    @query
    def failing(self, session: SqlSession, failures: int) -> frozenset[tuple[str, str]]:
        """Return the functions, with versions, that failed this many times in a row since their release."""
        # The index contains only failing versions.
        rows = session.all(
            "select function, version from call_total where worst > 0 and worst >= ?", failures
        )
        return frozenset((function, version) for function, version in rows)

    @query
    def releases(self, session: SqlSession, function: str) -> list[tuple[str, float]]:
        """Return the versions of a function that the user released, with the times, oldest first."""
        rows = session.all(
            "select version, at from release where function = ? order by seq", function
        )
        return [(version, at) for version, at in rows]

    @query
    def requests_served(
        self,
        session: SqlSession,
        each: int,
        owners: CallOwners = None,
        *,
        with_private: bool = False,
    ) -> list[tuple[str, str]]:
        """Return (function, request) for the turns of each function's newest `each` successful calls, oldest first.

        `with_private` adds those of conversations that are private to a token, which nobody else may be shown.
        """
        given = (*owners_given(owners), int(with_private), HISTORY)
        rows = session.all(_REQUESTS, each, MOST_REQUESTS, *given)
        return [
            (function, text)
            for function, text in reversed(rows)
            if isinstance(text, str) and text.strip()
        ]

    @query
    def requests_mark(self, session: SqlSession) -> str:
        """Return a text that changes whenever the result of `requests_served` may change."""
        return f"{session.all(_REQUESTS_MARK)} {session.generation()}"

    @query
    def recorded_call(
        self, session: SqlSession, n: int, owners: CallOwners = None
    ) -> RecordedRow | None:
        """Return one recorded call; None if there is none with that number that belongs to the owners."""
        return next(
            _own(session, session.all(f"{_ROWS} and n = ?1", n, *owners_given(owners))), None
        )

    @query
    def recorded_calls(
        self,
        session: SqlSession,
        function: str = "",
        outcomes: tuple[str, ...] = (),
        owners: CallOwners = None,
    ) -> list[RecordedRow]:
        """Return recorded calls, newest first: all, those of a function, or those with one of these outcomes."""
        rows = session.all(
            f"{_ROWS} and (?1 = '' or function = ?1) and {_AMONG} order by n desc",
            *(function, *owners_given(owners), dump(outcomes)),
        )
        return [*_own(session, rows)]


def owners_given(owners: CallOwners) -> tuple[int, str]:
    """Return the parameters for a statement's owners: 1 for all, and the agents as JSON."""
    return int(owners is None), dump(sorted(owners or ()))


def _own(
    session: SqlSession, rows: list[tuple[Any, ...]]
) -> Iterator[RecordedRow]:  # Any: columns as SQLite types them
    """Yield the rows that this user's program wrote: readers rely on their shape."""
    for n, function, outcome, turn, data, at, seal in rows:
        if is_signed(session.sealer, seal, "recorded", function, outcome, turn, data):
            yield RecordedRow(n, function, outcome, turn, at, parse_row(data, dict))


@perform.register
def _record_call(record: RecordCall, session: SqlSession) -> None:
    now = session.clock.now()
    returned, failed = int(record.outcome == "returned"), int(record.outcome in FAILURES)
    number = session.all(
        "select coalesce(max(n), 0) + 1 from call where function = ?", record.function
    )[0][0]
    session.all(
        "insert into call (function, n, version, turn, outcome, error, message, seconds, memory, at, cpu)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(record.function, number, record.version, record.turn, record.outcome),
        *(
            record.error[:NAME_CHARS],
            record.message[:MESSAGE_CHARS],
            record.seconds,
            record.memory,
            now,
            record.cpu,
        ),
    )
    session.all(
        "delete from call where function = ? and n <= ?", record.function, number - MAX_CALLS_KEPT
    )
    session.all(
        "insert into call_total as o (function, version, calls, returned, failed, failing, holding, first, last,"
        " seconds, worst, since, worked, longest, memory, cpu)"
        " values (?1, ?2, 1, ?3, ?4, ?4, ?3, ?5, ?5, ?6, ?4, ?9, ?9, ?6, ?7, ?8)"
        " on conflict (function, version) do update set"
        " calls = o.calls + 1, returned = o.returned + ?3, failed = o.failed + ?4,"
        " failing = case when ?3 > 0 then 0 else o.failing + ?4 end,"
        " worst = case when ?4 > 0 then max(o.worst, o.failing + 1) else o.worst end,"
        " holding = case when ?4 > 0 then 0 else o.holding + ?3 end,"
        " since = case when ?4 > 0 then null when ?3 > 0 and o.holding = 0 then ?5 else o.since end,"
        " worked = coalesce(?9, o.worked), last = ?5, seconds = o.seconds + ?6, longest = max(o.longest, ?6),"
        " memory = coalesce(max(o.memory, ?7), o.memory, ?7), cpu = coalesce(o.cpu + ?8, o.cpu, ?8)",
        *(
            record.function,
            record.version,
            returned,
            failed,
            now,
            float(record.seconds),
            record.memory,
            record.cpu,
        ),
        now if returned else None,
    )
    if returned:
        return
    kind = (record.function, record.version, record.outcome)
    error = record.error[:NAME_CHARS]
    # The function chooses the names of its exceptions: they must not fill the table.
    kinds = session.all(
        "select error from call_kind where function = ? and version = ? and outcome = ?", *kind
    )
    if (error,) not in kinds and len(kinds) >= MAX_KINDS:
        error = OTHERS
    session.all(
        "insert into call_kind as o (function, version, outcome, error, calls, last) values (?, ?, ?, ?, 1, ?)"
        " on conflict (function, version, outcome, error) do update set calls = o.calls + 1, last = excluded.last",
        *(*kind, error, now),
    )


@perform.register
def _release(release: ReleaseFunction, session: SqlSession) -> None:
    now = session.clock.now()
    session.all(
        "insert into release (function, version, at) values (?, ?, ?)",
        release.function,
        release.version,
        now,
    )
    session.all(
        "update call_total set worst = 0, failing = 0, holding = 0, since = null where function = ? and version = ?",
        *(release.function, release.version),
    )


@perform.register
def _see(save: SaveSeen, session: SqlSession) -> None:
    session.all("delete from seen where agent = ? and function = ?", save.agent, save.function)
    row = (save.agent, save.function, save.version, dump(save.shape))
    session.all("insert into seen (agent, function, version, shape) values (?, ?, ?, ?)", *row)


@perform.register
def _save(save: SaveRecorded, session: SqlSession) -> None:
    """Store one call and delete the oldest ones beyond the limits."""
    row = (save.function, save.outcome, save.turn, dump(save.data))
    number = session.all(
        "insert into recorded (function, outcome, turn, data, at, seal) values (?, ?, ?, ?, ?, ?) returning n",
        *(*row, session.clock.now(), sign(session.sealer, "recorded", *row)),
    )[0][0]
    session.all("delete from recorded where n <= ?", number - MOST)
    # Good calls and failed ones are counted apart: a fix is measured by both, and one kind must not displace the other.
    session.all(
        "delete from recorded where function = ?1 and (outcome = 'returned') = (?2 = 'returned') and n <= ("
        "select n from recorded where function = ?1 and (outcome = 'returned') = (?2 = 'returned')"
        " order by n desc limit 1 offset ?3)",
        *(save.function, save.outcome, MOST_OF_ONE),
    )
