"""`python -m benchmarks.workers`: workers at one database, killed and stopped while they work.

First: the cost of a turn to the worker, the database and its disk, and the cost of an idle worker. Then: the delay from
a message to its turn, and how many turns the workers finish in a second. Then: turns of several sandboxed calls while,
each second, a worker is killed, paused for six seconds, or asked to stop; each is started again. At the end the journal
is read: no call twice, none without a result, one turn of an agent at a time.

`--parts whole --workers 4 --turns 5` is all of that in one run of 200 turns, and three restarts of the database.
`--parts backlog` has messages wait for workers that start later: 10,000 agents with one each, and ten with 500 each.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import random
import re
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agent_core.storage import Store, WorkerRow
from tests.agents.workers import Cluster, cluster
from tests.kit import Ask, Repeat, Say, Seen, Step, Wanted, scripted
from tests.kit.postgres import Server
from tests.kit.program import Program
from tests.kit.waiting import until

NOTE = '''\
def note(self, number: int) -> int:
    """Give a number back.

    Args:
        number: The number.
    """
    import time

    time.sleep(0.1)
    return number
'''
STILL_S = 6.0
_WARM_UP = 8  # messages
_IDLE = 20  # agents
_STATISTICS_S = 2.0  # until the database has updated its statistics
_IDLE_S = 30.0
_WHOLE = {"kill": 30, "stop": 10, "term": 30, "database": 3}
_DOWN_S = 2.0
_LOOKS = 20
_BACKLOG_S = 60.0  # maximum wait for the rest
_DATABASE_S = 20.0  # between restarts
BLOWS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=40, help="with a turn each")
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--turns", type=int, default=1, help="of each agent, one after another")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--hits", type=int, default=15)
    parser.add_argument("--parts", default="cost,wake,kill,stop,term")
    given = parser.parse_args()
    for part in given.parts.split(","):
        parts = {"cost": _costs, "wake": _wakes, "backlog": _backlogs}
        work = parts.get(part) or partial(_hits, part=part)
        figures = asyncio.run(work(given))
        print(json.dumps({"part": part, **figures}), flush=True)


async def _wakes(given: argparse.Namespace) -> dict[str, Any]:
    """Measure the delay of messages to idle agents; then turns of one request each, all at once.

    The messages come one after another; the first to each agent also creates it.
    """
    async with at_work(given.workers, lambda _: Say("ok")) as (made, server, _):
        for number in range(_WARM_UP + 3 * _IDLE):
            await made.say(f"w{number}" if number < _WARM_UP else f"a{number % _IDLE}", "hello")
            await until(made.store.due, lambda due: not due, _BACKLOG_S)
        begun = "select (t.started - e.at) * 1000 from knapper.turn t join knapper.event e on e.seq = t.event"
        waits = [float(row[0]) for row in server.execute(f"{begun} order by t.seq")][_WARM_UP:]
        wakes = {"wake_ms_first": spread(waits[:_IDLE]), "wake_ms": spread(waits[_IDLE:])}
        start = time.perf_counter()
        for number in range(40):
            await made.say(f"b{number}", "hello")
        await until(made.store.due, lambda due: not due, _BACKLOG_S)
        return {**wakes, "turns_per_s": round(40 / (time.perf_counter() - start), 1)}


async def _backlogs(given: argparse.Namespace) -> dict[str, Any]:
    """Measure messages that wait before any worker runs: to post them, to look for work, and to finish turns."""
    found: dict[str, Any] = {}
    for name, agents, each in (
        ("10,000 agents, one message each", 10_000, 1),
        ("10 agents, 500 messages each", 10, 500),
    ):
        async with at_work(0, lambda _: Say("ok")) as (made, server, root):
            start = time.perf_counter()
            for number in range(agents * each):
                await made.say(f"a{number % agents}", "hello")
            posted = time.perf_counter() - start
            looks = []
            for _ in range(_LOOKS):
                start = time.perf_counter()
                await made.store.due(1)
                looks.append((time.perf_counter() - start) * 1000)
            start = time.perf_counter()
            for _ in range(given.workers):
                made.start(root, "--grace", "2")
            waiting = "select count(*) from knapper.event where turn is null"
            while (  # noqa: ASYNC110  (another process sends no notification)
                server.execute(waiting)[0][0] and time.perf_counter() - start < _BACKLOG_S
            ):
                await asyncio.sleep(0.5)
            turns = server.execute("select count(*) from knapper.turn where state = 'done'")[0][0]
            spent = time.perf_counter() - start
            left = server.execute(waiting)[0][0]
            found[name] = {
                "post_ms": round(1000 * posted / agents / each, 2),
                "look_ms": spread(looks),
                "seconds_with_start_of_workers": round(spent, 1),
                "turns": turns,
                "left": left,
                "messages_a_second": round((agents * each - left) / spent, 1),
            }
    return found


async def _costs(given: argparse.Namespace) -> dict[str, Any]:
    """Measure turns without a call and with ten, of agents that had one before; then half a minute of idling."""
    found: dict[str, Any] = {}
    async with at_work(
        given.workers, calling(lambda seen: 10 if "calls" in _last(seen) else 0)
    ) as (made, server, _):
        for name, text in (
            ("first turn", "hello"),
            ("turn", "hello"),
            ("turn of ten calls", "calls"),
        ):
            before = _Spent.now(made, server)
            for number in range(given.agents):
                await made.say(f"a{number}", text)
            while await made.store.due():  # noqa: ASYNC110  (another process sends no notification)
                await asyncio.sleep(0.2)
            await asyncio.sleep(_STATISTICS_S)
            found[name] = _Spent.now(made, server).since(before, given.agents)
        before = _Spent.now(made, server)
        await asyncio.sleep(_IDLE_S)
        found["idle worker, a second"] = _Spent.now(made, server).since(
            before, _IDLE_S * given.workers
        )
    return found


@dataclass(frozen=True)
class _Spent:
    """The resources used up to a moment."""

    worker_ms: float
    database_ms: float
    transactions: float
    wal_kb: float
    table_kb: float

    @classmethod
    def now(cls, made: Cluster, server: Server) -> "_Spent":
        pid = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
        row = server.execute(
            "select xact_commit + xact_rollback, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') / 1000.0,"
            " pg_database_size(current_database()) / 1000.0 from pg_stat_database where datname = current_database()"
        )[0]
        return cls(
            sum(_cpu_ms(worker.pid) for worker in made.programs), _cpu_ms(pid), *map(float, row)
        )

    def since(self, before: "_Spent", times: float) -> dict[str, float]:
        """Return the resources used since then, per repetition."""
        pairs = zip(dataclasses.asdict(self).items(), dataclasses.astuple(before), strict=True)
        return {name: round((value - then) / times, 2) for (name, value), then in pairs}


def _cpu_ms(pid: int) -> float:
    """Return the CPU time of a process, its descendants, and those of them that have ended."""
    ticks = 0
    for one in [pid, *family(pid)]:
        with suppress(OSError):
            ticks += sum(
                map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:15])
            )
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """Return the descendants of a process: its sandbox."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def _last(seen: Seen) -> str:
    """Return the user's last message."""
    return next(
        str(message["content"]) for message in reversed(seen.messages) if message["role"] == "user"
    )


def calling(count: Callable[[Seen], int]) -> Callable[[Seen], Step]:
    """Return a model that requests this many calls, one per step, after the user's last message."""

    def play(seen: Seen) -> Step:
        answered = 0
        for message in reversed(seen.messages):
            if message["role"] == "user":
                break
            answered += message["role"] == "tool"
        return Ask(Wanted("note", {"number": answered})) if answered < count(seen) else Say("done")

    return play


async def _hits(given: argparse.Namespace, part: str) -> dict[str, Any]:
    def play(seen: Seen) -> Step:
        asked = given.calls * len(set(re.findall(r"go \d+", seen.text)))
        answers = sum(message["role"] == "tool" for message in seen.messages)
        return Ask(Wanted("note", {"number": answers})) if answers < asked else Say("done")

    async with at_work(given.workers, play) as (made, server, root):
        hits = Hits(_WHOLE if part == "whole" else {part: given.hits})
        start = time.perf_counter()
        left = {f"a{number}": given.turns for number in range(given.agents)}
        while any(left.values()) or await _is_open(made, server):
            await _say_more(made, server, left)
            await asyncio.sleep(1.0)
            hits.wake()
            hits.start_again(made, root)
            if not await hits.restart(server):
                hits.hit(made.programs, await made.store.workers())
        wall = time.perf_counter() - start
        hits.wake(is_over=True)
        found = await _checked(made, server, given)
        causes = {"gap_s_by_cause": _by_cause(_gaps(server), hits.blows)}
        return {
            "wall_s": round(wall, 1),
            "load": os.getloadavg()[0],
            "hits": dict(hits.counts),
            **found,
            **causes,
        }


async def _is_open(made: Cluster, server: Server) -> bool:
    """Check whether something is due or waits for its time."""
    waiting = "select 1 from knapper.event where turn is null limit 1"
    return bool(await made.store.due(1) or server.execute(waiting))


async def _say_more(made: Cluster, server: Server, left: dict[str, int]) -> None:
    """Send each idle agent its next message: a message sent during a turn would become part of the turn."""
    open_turns = "select agent from knapper.turn where state = 'open'"
    busy = {
        agent
        for (agent,) in server.execute(
            f"{open_turns} union select agent from knapper.event where turn is null"
        )
    }
    for agent in [agent for agent, count in left.items() if count and agent not in busy]:
        await made.say(agent, f"go {left[agent]}")
        left[agent] -= 1


@dataclass(frozen=True)
class _Blow:
    """The kind of a fault, its start and end, and the agents affected; None: all."""

    kind: str
    since: float
    until: float
    agents: frozenset[str] | None


@dataclass(frozen=True)
class _Gap:
    """The period in which a turn that was taken over made no progress."""

    agent: str
    since: float
    until: float


def _gaps(server: Server) -> list[_Gap]:
    rows = server.execute(
        "select t.agent, before, x.at from"
        " (select turn, at, attempt, lag(at) over w before, lag(attempt) over w earlier"
        " from knapper.entry window w as (partition by turn order by seq)) as x"
        " join knapper.turn t on t.seq = x.turn where x.attempt > earlier and earlier > 0"
    )
    return [_Gap(agent, float(since), float(until)) for agent, since, until in rows]


def _by_cause(gaps: Sequence[_Gap], blows: Sequence[_Blow]) -> dict[str, dict[str, float]]:
    """Return how long turns made no progress, by the faults of their workers in that time."""
    found: dict[str, list[float]] = {}
    for gap in gaps:
        met = [one for one in blows if one.since <= gap.until and one.until >= gap.since]
        kinds = [one.kind for one in met if one.agents is None or gap.agent in one.agents]
        cause = (
            "database"
            if "database" in kinds
            else kinds[0]
            if len(kinds) == 1
            else "several"
            if kinds
            else "none"
        )
        found.setdefault(cause, []).append(gap.until - gap.since)
    return {cause: {"count": len(times), **spread(times)} for cause, times in sorted(found.items())}


@dataclass
class Hits:
    """Faults of some kinds, up to a number of each."""

    most: Mapping[str, int]
    counts: Counter[str] = field(default_factory=Counter)
    still: list[tuple[float, Program]] = field(default_factory=list)
    restarted: float = field(default_factory=time.perf_counter)
    blows: list[_Blow] = field(default_factory=list)

    def hit(self, workers: list[Program], rows: Sequence[WorkerRow] = ()) -> None:
        """Hit one of the workers if it is time; at most one worker is paused at once."""
        kinds = [kind for kind in BLOWS if self.counts[kind] < self.most.get(kind, 0)]
        worker, kind = random.choice(workers), random.choice(kinds or [""])
        if not kind or self.still or worker.poll() is not None:
            return
        self.counts[kind] += 1
        whose = [row.agents for row in rows if row.name.startswith(f"process {worker.pid} ")]
        self.blows.append(_Blow(kind, time.time(), time.time(), frozenset(*whose[:1])))
        if kind == "stop":
            self.still.append((time.perf_counter() + STILL_S, worker))
        with suppress(ProcessLookupError):  # the process has just ended
            os.kill(worker.pid, BLOWS[kind])

    async def restart(self, server: Server) -> bool:
        """Restart the database if it is time."""
        is_time = time.perf_counter() > self.restarted + _DATABASE_S
        if not is_time or self.counts["database"] >= self.most.get("database", 0):
            return False
        self.counts["database"] += 1
        since = time.time()
        await asyncio.to_thread(server.stop)
        await asyncio.sleep(_DOWN_S)
        await asyncio.to_thread(server.start)
        self.blows.append(_Blow("database", since, time.time(), None))
        self.restarted = time.perf_counter()
        return True

    def start_again(self, made: Cluster, root: Path) -> None:
        """Replace each worker that has ended."""
        for worker in [worker for worker in made.programs if worker.poll() is not None]:
            self.counts[f"exit {worker.poll()}"] += 1
            made.programs.remove(worker)
            made.start(root, "--grace", "2")

    def wake(self, *, is_over: bool = False) -> None:
        """Resume the workers whose pause is over, or all."""
        for pair in [pair for pair in self.still if is_over or pair[0] < time.perf_counter()]:
            self.still.remove(pair)
            with suppress(ProcessLookupError):
                os.kill(pair[1].pid, signal.SIGCONT)


@asynccontextmanager
async def at_work(
    count: int, play: Callable[[Seen], Step]
) -> AsyncIterator[tuple[Cluster, Server, Path]]:
    """Run workers in one folder, at a temporary server."""
    server = Server.make()
    try:
        with tempfile.TemporaryDirectory() as folder, scripted([Repeat(play)]) as model:
            (Path(folder) / "knapper.toml").touch()
            (Path(folder) / "functions").mkdir()
            (Path(folder) / "functions" / "notes.py").write_text(NOTE)
            async with cluster(server.url(), model) as made:
                for _ in range(count):
                    made.start(Path(folder), "--grace", "2")
                await made.at_work(count)
                yield made, server, Path(folder)
    finally:
        server.remove()


def spread(values: list[float]) -> dict[str, float]:
    if len(values) < 2:
        return {}
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return {"p50": round(cuts[9], 2), "p95": round(cuts[18], 2), "max": round(max(values), 2)}


async def _checked(made: Cluster, server: Server, given: argparse.Namespace) -> dict[str, Any]:
    return await journal_figures(
        made.store, server, [f"a{number}" for number in range(given.agents)]
    )


async def journal_figures(store: Store, server: Server, agents: Sequence[str]) -> dict[str, Any]:
    """Return the figures of the whole journal: call outcomes, impossible states, and the gaps of turns taken over."""
    outcomes: Counter[str] = Counter()
    replies = 0
    for agent in agents:
        for entry in await store.history(agent, kinds=("assistant", "result")):
            replies += entry.kind == "assistant" and not entry.payload["calls"]
            outcomes.update([entry.payload["outcome"]] if entry.kind == "result" else [])
    report = await store.check_journal()
    overlaps = server.execute(
        "select count(*) from (select started, lag(ended) over (partition by agent order by seq) before"
        " from knapper.turn) x where started < before - 0.05"
    )[0][0]
    gaps = _gaps(server)
    return {
        "replies": replies,
        "outcomes": dict(outcomes),
        "journal": dataclasses.asdict(report),
        "overlaps": overlaps,
        "open": len(await store.due()),
        "taken_over": len(gaps),
        "gap_s": spread([gap.until - gap.since for gap in gaps]),
    }


if __name__ == "__main__":
    main()
