"""The work of the processes in the storage tests, until they are killed or done."""

import asyncio
import contextlib
from multiprocessing.connection import Connection
from pathlib import Path

from agent_core.base.errors import LostLease
from agent_core.storage import (
    ClaimedTurn,
    Entry,
    ManifestConflict,
    Post,
    Store,
    content_hash,
    open_store,
)
from tests.kit.crash import own_name
from tests.storage.support import ManualClock, saving

ENTRIES_OF_A_TURN = 7


def source(number: int) -> str:
    return f"x = {number}\n"


def open_here(path: str) -> Store:
    return open_store(path, clock=ManualClock(prefix=own_name()))


def count_up(path: str, reports: Connection) -> None:
    """Run turn after turn of one agent: each entry has the next number and is saved with a version of a module."""
    asyncio.run(_count_up(path, reports))


async def _count_up(path: str, reports: Connection) -> None:
    store = open_here(path)
    await store.post(Post("main", "tick", {}, key="the first"))
    number = len(await store.history("main"))
    while turn := await store.next("main", "child"):
        number = await _one_turn(store, turn, number, reports)


async def _one_turn(store: Store, turn: ClaimedTurn, number: int, reports: Connection) -> int:
    n = turn.n
    while n < ENTRIES_OF_A_TURN:
        before = content_hash(source(number - 1)) if number else None
        writes = saving("counter", source(number), expected=before)
        n = (
            await store.append(
                turn.id, turn.attempt, n, [Entry("user", {"text": str(number)})], writes=writes
            )
        ).n
        reports.send(f"appended {number}")
        number += 1
    await store.finish(
        turn.id, turn.attempt, posts=[Post("main", "tick", {}, key=f"after {turn.id}")]
    )
    reports.send(f"finished {turn.id}")
    return number


def write_beside_others(argument: str, reports: Connection) -> None:
    """Write a hundred entries of a separate agent, and twenty versions of a module that all processes change."""
    path, agent = argument.rsplit(":", 1)
    asyncio.run(_write_beside_others(path, agent, reports))


async def _write_beside_others(path: str, agent: str, reports: Connection) -> None:
    async with open_here(path) as store:
        await store.post(Post(agent, "tick", {}))
        turn = await store.next(agent, agent)
        assert turn is not None
        for n in range(100):
            await store.append(turn.id, 1, n, [Entry("user", {"text": str(n)})])
        for _ in range(20):
            await _step_up(store)
    reports.send("done")


async def _step_up(store: Store) -> None:
    while True:
        found = (await store.manifest()).get("shared")
        row = await store.version(found) if found else None
        number = int(row.text.split("=")[1]) if row else 0
        with contextlib.suppress(ManifestConflict):
            return await store.apply(saving("shared", source(number + 1), expected=found))


def sleep_through_a_take_over(path: str, reports: Connection) -> None:
    """Claim a turn, write, sleep until a file signals the takeover, then write on as if nothing had happened."""
    asyncio.run(_sleep_through_a_take_over(path, reports))


async def _sleep_through_a_take_over(path: str, reports: Connection) -> None:
    async with open_here(path) as store:
        turn = await store.next("main", "sleeper")
        assert turn is not None
        await store.append(turn.id, turn.attempt, 0, [Entry("user", {"text": "sleeper"})])
        reports.send("asleep")
        while not Path(f"{path}.over").exists():  # noqa: ASYNC110, ASYNC240 nothing else runs in this process
            await asyncio.sleep(0.005)
        try:
            await store.append(turn.id, turn.attempt, 1, [Entry("user", {"text": "zombie"})])
        except LostLease:
            reports.send("refused")
