"""The cost of a journal entry compared with a bare insert and commit, and of the reads at a start.

    python -m benchmarks.storage [--json] [--rows N] [--postgresql]

Figures are milliseconds; the ratios are within this run, so they also hold on a busy machine. With `--postgresql`, the
same in a temporary database that does not wait for its disk, against a bare insert there.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path

import apsw
import psycopg

from agent_core.storage import (
    Entry,
    Post,
    RecordCall,
    SaveReading,
    Store,
    Write,
    content_hash,
    open_store,
)
from tests.kit.postgres import Server

PAYLOAD = {
    "id": "call_1",
    "name": "count_vowels",
    "arguments": '{"text": "queueing"}',
    "note": "x" * 150,
}
READING = json.dumps(
    {"functions": [{"name": "f", "description": "d" * 120, "parameters": {"p": "x" * 1800}}]}
)
Figures = dict[str, float]
_INBOXES = 100  # none gets so full that it accepts no more


class _Clock:
    """Real time, and counted names: the cost of a uuid is not measured."""

    def __init__(self) -> None:
        self._names = 0

    def now(self) -> float:
        return time.time()

    def new_id(self) -> str:
        self._names += 1
        return f"name-{self._names}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the store.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--rows", type=int, default=2000, help="appends a measurement")
    parser.add_argument("--postgresql", action="store_true", help="in a database, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(
        dir=Path.cwd()
    ) as folder:  # the disk of the workspace, not a memory disk
        file = _bare(Path(folder) / "bare.db")
        figures = asyncio.run(measure(Path(folder) / "state.db", file, options.rows))
    if options.postgresql:
        server = Server.make()
        try:
            found = asyncio.run(measure(server.url(), _bare_of(server), options.rows))
        finally:
            server.remove()
        figures |= {f"postgresql_{name}": figure for name, figure in found.items()}
    if options.json:
        print(json.dumps({"storage": figures}, indent=2))
        return
    for name, figure in figures.items():
        print(f"{name:34} {figure:8.3f}")


async def measure(place: Path | str, bare: "_Bare", rows: int) -> Figures:
    figures: Figures = {}
    opened = time.perf_counter()
    async with open_store(place, clock=_Clock()) as store:
        figures["open_new_ms"] = (time.perf_counter() - opened) * 1000
        appends = await _appends(store)
        for _ in range(
            rows // 10
        ):  # interleaved, so that both meet the same load and the same checkpoints
            bare.run(10)
            for append in appends:
                await append.run(10)
        for probe in (bare, *appends):
            figures |= probe.figures()
        for append in appends:
            figures[f"{append.name}_ratio"] = append.median() / bare.median()
        figures |= await _reads(store)
    opened = time.perf_counter()
    await open_store(place, clock=_Clock()).close()
    figures["open_old_ms"] = (time.perf_counter() - opened) * 1000
    return figures


class _Times:
    def __init__(self, name: str) -> None:
        self.name = name
        self._times: list[float] = []

    def add(self, since: float) -> None:
        self._times.append((time.perf_counter() - since) * 1000)

    def median(self) -> float:
        return sorted(self._times)[len(self._times) // 2]

    def figures(self) -> Figures:
        worst = sorted(self._times)[int(len(self._times) * 0.99)]
        return {f"{self.name}_p50_ms": self.median(), f"{self.name}_p99_ms": worst}


class _Bare(_Times):
    """The reference: the same database settings, one table, one insert, one commit, no other thread."""

    def __init__(self, insert: Callable[[str], object]) -> None:
        super().__init__("bare")
        self._insert = insert
        self._payload = json.dumps(PAYLOAD)

    def run(self, times: int) -> None:
        for _ in range(times):
            started = time.perf_counter()
            self._insert(self._payload)
            self.add(started)


def _bare(path: Path) -> _Bare:
    db = apsw.Connection(str(path))
    for pragma in ("journal_mode = wal", "synchronous = full"):
        list(db.execute(f"pragma {pragma}"))
    list(db.execute("create table entry (seq integer primary key, payload text)"))

    def insert(payload: str) -> None:
        db.execute("begin immediate")
        db.execute("insert into entry (payload) values (?)", (payload,))
        db.execute("commit")

    return _Bare(insert)


def _bare_of(server: Server) -> _Bare:
    db = psycopg.connect(server.url(), autocommit=True)
    db.execute("create table bare (seq bigserial primary key, payload text)")
    return _Bare(lambda payload: db.execute("insert into bare (payload) values (%s)", (payload,)))


class _Append(_Times):
    def __init__(self, name: str, append: Callable[[], Awaitable[object]]) -> None:
        super().__init__(name)
        self._append = append

    async def run(self, times: int) -> None:
        for _ in range(times):
            started = time.perf_counter()
            await self._append()
            self.add(started)


async def _appends(store: Store) -> list[_Append]:
    call = (Entry("call", PAYLOAD),)
    record, numbers = (RecordCall("count_vowels", content_hash("x"), "returned", 0.01),), count()
    return [
        _Append("append", await _turn(store, "one", call)),
        _Append("append_of_four", await _turn(store, "four", call * 4)),
        _Append("append_with_record", await _turn(store, "record", call, record)),
        _Append(
            "post",
            lambda: store.post(Post(f"to{next(numbers) % _INBOXES}", "user", {"text": "hello"})),
        ),
    ]


async def _turn(
    store: Store, agent: str, entries: tuple[Entry, ...], writes: tuple[Write, ...] = ()
) -> Callable[[], Awaitable[object]]:
    await store.post(Post(agent, "user", {}))
    turn = await store.next(agent, "benchmark")
    assert turn is not None
    places: Iterator[int] = iter(range(0, 10**9, len(entries)))
    return lambda: store.append(turn.id, 1, next(places), entries, writes=writes)


async def _reads(store: Store) -> Figures:
    stamp, version = (1, 2, 3), content_hash("x")
    started = time.perf_counter()
    await store.apply(
        [SaveReading(f"functions/m{n}.py", stamp, version, READING) for n in range(1000)]
    )
    saved = time.perf_counter()
    await store.readings()
    read = time.perf_counter()
    entries = await store.history("one")
    return {
        "save_1000_readings_ms": (saved - started) * 1000,
        "load_1000_readings_ms": (read - saved) * 1000,
        "history_ms_per_1000_entries": (time.perf_counter() - read) * 1e6 / len(entries),
    }


if __name__ == "__main__":
    main()
