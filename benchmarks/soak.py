"""`make soak-cluster`: workers at one database for an hour, with random faults.

Twelve agents always have a turn of several sandboxed calls to do. Every few seconds a worker is killed, paused for six
seconds, or asked to stop, and every few minutes the database is restarted or crashes. One worker is spared, so its
memory and files can be observed over the whole time. At the end the whole journal is read.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import random
import resource
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent_core.base.errors import StorageError
from agent_core.storage import Post
from tests.agents.workers import Cluster
from tests.kit.postgres import Server
from tests.kit.program import Program

from .workers import BLOWS, Hits, at_work, calling, family, journal_figures

_AGENTS: Final = 12
_CALLS: Final = 5
_TURNS: Final = (
    6  # per agent, before another one takes its place: its conversation would grow for an hour
)
_HIT_S: Final = (4.0, 12.0)
_RESTART_S: Final = (120.0, 240.0)
_DOWN_S: Final = (0.0, 3.0)
_SAMPLE_S: Final = 10.0
_SETTLE_S: Final = 180.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_CONNECTIONS: Final = "select count(*) from pg_stat_activity where application_name = 'knapper'"

_GIVEN_UP: Final = (
    "select count(*) from knapper.turn t where t.state = 'interrupted'"
    " and not exists (select 1 from knapper.event e where e.agent = t.agent and e.key = 'again:' || t.id)"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=3, help="that are hit; one more is spared")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # keeps the output of each worker
    print(json.dumps(asyncio.run(_soaked(parser.parse_args()))), flush=True)


async def _soaked(given: argparse.Namespace) -> dict[str, Any]:
    async with at_work(given.workers + 1, calling(lambda _: _CALLS)) as (made, server, root):
        spared, soak = made.programs[0], Soak(made, server, root)
        end = time.monotonic() + given.minutes * 60
        tasks = [
            asyncio.create_task(work)
            for work in (soak.talk(end), soak.hit(end, spared), soak.restart(end))
        ]
        tasks.append(asyncio.create_task(soak.sample(end, spared)))
        await asyncio.gather(*tasks)
        await soak.settle()
        return await soak.report(spared)


@dataclass(frozen=True)
class Sample:
    """The spared worker and its sandbox at a moment, and the database connections of all processes."""

    minute: float
    mb: float
    sandbox_mb: float
    processes: int
    files: int
    connections: int

    @classmethod
    def of(cls, minute: float, pid: int, connections: int) -> "Sample":
        """Take a sample now."""
        below = family(pid)
        files = len([*Path(f"/proc/{pid}/fd").iterdir()])
        memory = round(_resident_mb(pid), 1), round(sum(map(_resident_mb, below)), 1)
        return cls(minute, *memory, len(below), files, connections)


class Soak:
    """The concurrent tasks of the soak, and their observations."""

    def __init__(self, made: Cluster, server: Server, root: Path) -> None:
        self._made = made
        self._server = server
        self._root = root
        self._hits = Hits(dict.fromkeys(BLOWS, 1 << 30))
        self._said: Counter[str] = Counter()
        self._samples: list[Sample] = []
        self._database = asyncio.Lock()
        self._troubles: Counter[str] = Counter()

    async def talk(self, end: float) -> None:
        """Post the next message to each agent once it has finished its previous one."""
        rounds = [0] * _AGENTS
        while time.monotonic() < end:
            try:
                busy = {due.line for due in await self._made.store.due(1_000)}
                for place in [
                    place
                    for place in range(_AGENTS)
                    if _agent(place, rounds[place] - 1) not in busy
                ]:
                    agent, key = _agent(place, rounds[place]), str(rounds[place])
                    await self._made.store.post(
                        Post(agent, "message", {"text": f"go {key}"}, key=key)
                    )
                    rounds[place] += 1
                    self._said[agent] += 1
            except StorageError as error:
                self._troubles[f"talk: {error.code}"] += 1
            await asyncio.sleep(0.5)

    async def hit(self, end: float, spared: Program) -> None:
        """Hit a worker now and then, and replace those that ended."""
        due = time.monotonic()
        while time.monotonic() < end:
            await asyncio.sleep(0.5)
            self._hits.wake()
            self._hits.start_again(self._made, self._root)
            if time.monotonic() > due:
                self._hits.hit([worker for worker in self._made.programs if worker is not spared])
                due = time.monotonic() + random.uniform(*_HIT_S)
        self._hits.wake(is_over=True)

    async def restart(self, end: float) -> None:
        """Restart the database now and then, or let it crash."""
        for mode in iter(lambda: random.choice(("fast", "immediate")), ""):
            await asyncio.sleep(min(random.uniform(*_RESTART_S), max(end - time.monotonic(), 0)))
            if time.monotonic() >= end:
                return
            async with self._database:
                self._hits.counts[f"database {mode}"] += 1
                await asyncio.to_thread(self._server.stop, mode)
                await asyncio.sleep(random.uniform(*_DOWN_S))
                await asyncio.to_thread(self._server.start)

    async def sample(self, end: float, spared: Program) -> None:
        """Sample the spared worker and the connections of all; print the progress regularly."""
        begun = time.monotonic()
        while time.monotonic() < end:
            async with self._database:
                connections = (await asyncio.to_thread(self._server.execute, _CONNECTIONS))[0][0]
            minute = round((time.monotonic() - begun) / 60, 2)
            if spared.poll() is None:
                self._samples.append(Sample.of(minute, spared.pid, connections))
            if len(self._samples) % 6 == 1:
                said = dataclasses.asdict(self._samples[-1])
                print(
                    json.dumps({**said, "messages": self._said.total(), **self._hits.counts}),
                    flush=True,
                )
            await asyncio.sleep(_SAMPLE_S)

    async def settle(self) -> None:
        """Wait until nothing is due; restart workers that have ended in the meantime."""
        end = time.monotonic() + _SETTLE_S
        while await self._made.store.due() and time.monotonic() < end:
            self._hits.start_again(self._made, self._root)
            await asyncio.sleep(1)

    async def report(self, spared: Program) -> dict[str, Any]:
        """Return the overall result."""
        figures = await journal_figures(self._made.store, self._server, [*self._said])
        return {
            "messages": self._said.total(),
            **figures,
            "given_up": self._server.execute(_GIVEN_UP)[0][0],
            "faults": dict(self._hits.counts),
            "troubles": dict(self._troubles),
            "spared": {"exit": spared.poll(), **_trend(self._samples)},
            "processes": len(await self._made.store.workers()),
        }


def _agent(place: int, number: int) -> str:
    """Return the agent that gets the message of this number."""
    return f"a{place}-{number // _TURNS}"


def _trend(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Return the median of each of six equal parts of the run."""
    parts = [
        samples[len(samples) * part // 6 : len(samples) * (part + 1) // 6] for part in range(6)
    ]
    names = [field.name for field in dataclasses.fields(Sample)]
    return {
        name: [statistics.median(getattr(one, name) for one in part) for part in parts if part]
        for name in names
    }


def _resident_mb(pid: int) -> float:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 1e6
    return 0.0  # it has just ended


if __name__ == "__main__":
    main()
