"""A day's cap holds for all processes at one database: it is never exceeded by more than one reply."""

from pathlib import Path

import pytest

from agent_core.storage import Post
from agent_core.storage.inbox import ALONE
from tests.kit import Repeat, Say, scripted
from tests.kit.waiting import until

from .workers import cluster

_PROCESSES = 4
_TAKES = (3_400, 100)  # tokens of a request, and of its reply


@pytest.mark.parametrize(
    ("turns", "cap"),
    [(40, 100_000), pytest.param(1_000, 3_000_000, marks=pytest.mark.slow)],
)
async def test_the_cap_of_a_day_is_exceeded_by_at_most_one_reply(
    tmp_path: Path, database: str, turns: int, cap: int
) -> None:
    environment = {
        "KNAPPER_SPENDING_DAY_TOKENS": str(cap),
        "KNAPPER_MODEL_MAX_TOKENS": str(_TAKES[1]),
        "KNAPPER_ZONE": "Pacific/Kiritimati",
    }
    with scripted([Repeat(Say("Yes.", usage=_TAKES))]) as model:
        async with cluster(database, model) as workers:
            for _ in range(_PROCESSES):
                workers.start(tmp_path, environment=environment)
            await workers.at_work(_PROCESSES)
            store = workers.store
            for n in range(turns):
                payload = {"text": f"Number {n}?", ALONE: True}
                await store.post(Post(f"a{n % 16}", "message", payload))
            agents = [f"a{n}" for n in range(16)]

            async def ended() -> int:
                rows = [await store.ended_turns(agent, 0) for agent in agents]
                return sum(map(len, rows))

            await until(ended, lambda count: count == turns, most_s=turns + 60.0)
            spent = sum(row.prompt + row.completion for row in await store.requests())
    assert cap <= spent <= cap + sum(_TAKES)
