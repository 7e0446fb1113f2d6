"""What workers report: `--metrics` to Prometheus, and `--spans`, which continue wherever a turn runs, to each call."""

import os
import re
import signal
from pathlib import Path

import httpx2
import pytest

from agent_core.storage import Post
from tests.agents.test_workers import calls, in_a_call, slow, with_wait
from tests.agents.workers import Cluster, cluster
from tests.kit import Ask, Repeat, Say, Seen, Step, Wanted, scripted
from tests.kit.collector import attributes, collector
from tests.kit.desk import VOWELS
from tests.kit.numbers import numbers
from tests.kit.program import knapper
from tests.kit.waiting import until

TRACE, SENDER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


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


async def test_what_a_killed_worker_did_another_goes_on_with_and_counts_it(
    database: str, tmp_path: Path
) -> None:
    with scripted([Repeat(slow)]) as model:
        async with cluster(database, model) as made:
            worker = await in_a_call(made, tmp_path, "--metrics", "127.0.0.1:0")
            assert sorted(one["knapper_agents_held"] for one in await told(made)) == [0, 1]
            assert len(await told(made, "application/openmetrics-text; version=abc")) == 2
            os.kill(worker.pid, signal.SIGKILL)
            await made.replied("a0", "went on")
            assert await calls(made) == ["unknown"]
            (left,) = await until(
                lambda: told(made), lambda found: "knapper_turns_total:replied" in found[0]
            )
            assert left["knapper_take_overs_total"] == left["knapper_lost_leases_total"] == 1
            assert left["knapper_turns_total:replied"] == 1
            assert left["knapper_events_waiting"] == 0
            assert left["knapper_store_up"] == 1


def test_a_place_that_is_none_is_refused(tmp_path: Path, database: str) -> None:
    (tmp_path / "knapper.toml").touch()
    for place in ("9700", "127.0.0.1:99999"):
        environment = {"KNAPPER_STORAGE_URL": database}
        done = knapper("worker", "--metrics", place, cwd=tmp_path, environment=environment)
        assert (done.returncode, "is not HOST:PORT" in done.stderr) == (2, True), done.stderr


def play(seen: Seen) -> Step:
    return Say("done") if seen.answers else Ask(Wanted("count_vowels", {"text": "queueing"}))


async def test_a_trace_goes_on_in_the_worker_that_runs_the_turn_down_to_the_call(
    database: str, tmp_path: Path
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(VOWELS)
    with scripted([Repeat(play)]) as model, collector() as heard:
        async with cluster(database, model) as made:
            worker = made.start(
                tmp_path, "--spans", environment={"OTEL_EXPORTER_OTLP_ENDPOINT": heard.url}
            )
            await made.at_work(1)
            await made.store.post(
                Post("a0", "message", {"text": "hello", "trace": f"00-{TRACE}-{SENDER}-01"})
            )
            await made.replied("a0", "done")
            os.kill(worker.pid, signal.SIGTERM)
            assert worker.wait(30) == 0
    call, turn = heard.spans
    assert (turn.name, call.name) == ("turn", "call count_vowels")
    assert {span.trace_id.hex() for span in heard.spans} == {TRACE}
    assert turn.parent_span_id.hex() == SENDER
    assert call.parent_span_id == turn.span_id
    assert (
        turn.start_time_unix_nano
        <= call.start_time_unix_nano
        < call.end_time_unix_nano
        <= turn.end_time_unix_nano
    )
    assert attributes(call)["knapper.outcome"] == "returned"
    about = attributes(turn)
    assert (about["knapper.agent"], about["knapper.outcome"], about["knapper.steps"]) == (
        "a0",
        "replied",
        2,
    )
    assert "queueing" not in str(heard.spans)


@pytest.mark.slow
async def test_a_trace_goes_on_in_the_next_worker_when_one_is_told_to_stop(
    database: str, tmp_path: Path
) -> None:
    with_wait(tmp_path)
    with scripted([Repeat(slow)]) as model, collector() as heard:
        async with cluster(database, model) as made:
            environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": heard.url}
            for _ in range(2):
                made.start(tmp_path, "--spans", "--grace", "0.2", environment=environment)
            await made.at_work(2)
            await made.store.post(
                Post("a0", "message", {"text": "wait", "trace": f"00-{TRACE}-{SENDER}-01"})
            )
            first = await made.who_has("a0")
            await until(lambda: made.store.history("a0", kinds=("call",)), bool)
            os.kill(first.pid, signal.SIGTERM)
            assert first.wait(30) == 0
            await made.replied("a0", "went on")
            assert len(await calls(made)) == 1
            (second,) = (worker for worker in made.programs if worker is not first)
            os.kill(second.pid, signal.SIGTERM)
            assert second.wait(30) == 0
    turns = [attributes(span)["knapper.outcome"] for span in heard.spans if span.name == "turn"]
    assert turns == ["interrupted", "replied"]
    assert {span.trace_id.hex() for span in heard.spans} == {TRACE}
