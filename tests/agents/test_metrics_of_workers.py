"""`knapper worker --metrics`: each worker reports to Prometheus what it did and what it took over."""

import os
import re
import signal
from pathlib import Path

import httpx2

from tests.agents.test_workers import in_a_call, slow
from tests.agents.workers import Cluster, cluster, until
from tests.kit import Repeat, scripted
from tests.kit.numbers import numbers
from tests.kit.program import knapper


async def told(made: Cluster, accept: str = "text/plain") -> list[dict[str, float]]:
    """Return the metrics of each running worker."""
    found = []
    async with httpx2.AsyncClient() as client:
        for url in re.findall(r"Numbers for Prometheus: (\S+)", made.words()):
            try:
                found.append(numbers((await client.get(url, headers={"accept": accept})).text))
            except httpx2.ConnectError:
                continue
    return found


async def test_what_a_worker_takes_over_from_a_killed_one_is_counted(database: str, tmp_path: Path) -> None:
    with scripted([Repeat(slow)]) as model:
        async with cluster(database, model) as made:
            worker = await in_a_call(made, tmp_path, "--metrics", "127.0.0.1:0")
            assert sorted(one["knapper_agents_held"] for one in await told(made)) == [0, 1]
            assert len(await told(made, "application/openmetrics-text; version=abc")) == 2
            os.kill(worker.pid, signal.SIGKILL)
            await made.replied("a0", "went on")
            (left,) = await until(lambda: told(made), lambda found: "knapper_turns_total:replied" in found[0])
            assert left["knapper_take_overs_total"] == left["knapper_lost_leases_total"] == 1
            assert left["knapper_turns_total:replied"] == 1
            assert left["knapper_events_waiting"] == 0
            assert left["knapper_store_up"] == 1


def test_a_place_that_is_none_is_refused(tmp_path: Path, database: str) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    for place in ("9700", "127.0.0.1:x", "127.0.0.1:99999", ":9700"):
        environment = {"KNAPPER_STORAGE_URL": database}
        done = knapper("worker", "--metrics", place, cwd=tmp_path, environment=environment)
        assert (done.returncode, "is not HOST:PORT" in done.stderr) == (2, True), done.stderr
