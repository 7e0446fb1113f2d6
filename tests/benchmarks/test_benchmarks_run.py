"""The benchmarks run to the end with tiny settings; their figures do not matter here."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from benchmarks import __main__ as bench
from benchmarks import bulk, create, fetch, passing, prompt_latency, reload, turn
from benchmarks.measure import Row, show
from tests.kit.drawing import sampled
from tests.kit.program import python

TINY = [
    pytest.param(lambda: turn.bench(1, calls=2), 8, id="turn"),
    pytest.param(lambda: reload.bench(1, modules=6), 3, id="reload"),
    pytest.param(lambda: create.bench(1), 2, id="create"),
    pytest.param(lambda: bulk.bench(1, count=2), 2, id="bulk"),
    pytest.param(lambda: fetch.bench(1), 1, id="fetch"),
    pytest.param(lambda: passing.bench([10_000]), 3, id="passing"),
    pytest.param(
        lambda: asyncio.to_thread(prompt_latency.bench, 1, 3, 0.5), 4, id="prompt_latency"
    ),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("run", "count"), sampled(TINY, len(TINY), at=1))
async def test_a_bench_gives_rows_that_can_be_printed_as_json(
    run: Callable[[], Awaitable[list[Row]]], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = await run()
    assert (len(rows), all(row.ms > 0 for row in rows)) == (count, True)
    assert any(row.is_met is not None for row in rows)
    show(rows, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["rows"]) == count


@pytest.mark.slow
@pytest.mark.parametrize("words", ["sandbox --rounds 1", "startup --rounds 1", "storage --rows 10"])
def test_figures_of_every_other_bench_become_rows_of_the_table(words: str) -> None:
    name, *options = words.split()
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *options]
    figures = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    assert all(row.ms > 0 and row.ratio for row in bench.BENCHES[name](figures))


REFUSED = {
    "stalls --rounds 3": "unrecognized arguments: --rounds",
    "memory_edits FILE --threads 1": "are for a real model",
    "memory_edits FILE": "holds no case",
    "memory_edits FILE --model local/qwen2.5-coder-1.5b": "is not available, so nothing was measured",
    "local_requests --only 999": "not 999",
    "local_helpers": "is not available, so nothing was measured",
    "gate FILE --documented --kind stub": "leave --kind out",
}


def test_what_cannot_be_measured_gives_no_figure_but_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (empty := tmp_path / "none.jsonl").touch()
    for words, says in REFUSED.items():
        name, *options = words.replace("FILE", str(empty)).split()
        done = python(f"benchmarks.{name}", *options, cwd=Path(__file__).parents[2])
        assert (done.returncode != 0, done.stdout, says in done.stderr) == (True, "", True), (
            words,
            done.stderr,
        )
        assert "Traceback" not in done.stderr
