"""The benchmarks run to the end with tiny settings; their figures do not matter here."""

import asyncio
import json
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import __main__ as bench
from benchmarks import bulk, choices, create, fetch, folder_size, memory_edits, prompt_latency, registry, reload, turn
from benchmarks.measure import Row, in_turn, ratio, show
from tests.kit.drawing import sampled

TINY = [
    pytest.param(lambda: turn.bench(1, calls=2), 8, id="turn"),
    pytest.param(lambda: reload.bench(1, modules=6), 3, id="reload"),
    pytest.param(lambda: create.bench(1), 2, id="create"),
    pytest.param(lambda: bulk.bench(1, count=2), 2, id="bulk"),
    pytest.param(lambda: fetch.bench(1), 1, id="fetch"),
    pytest.param(lambda: asyncio.to_thread(prompt_latency.bench, 1, 3, 0.5), 4, id="prompt_latency"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("run", "count"), sampled(TINY, 3))
async def test_a_bench_gives_rows_that_can_be_printed_as_json(
    run: Callable[[], Awaitable[list[Row]]], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = await run()
    assert len(rows) == count
    assert all(row.ms > 0 for row in rows)
    assert any(row.is_met is not None for row in rows)
    show(rows, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["rows"]) == count


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "options"),
    sampled(
        [
            pytest.param("sandbox", ["--rounds", "1"], id="sandbox"),
            pytest.param("startup", ["--rounds", "1"], id="startup"),
            pytest.param("storage", ["--rows", "10"], id="storage"),
        ],
        3,
    ),
)
def test_figures_of_every_other_bench_become_rows_of_the_table(name: str, options: list[str]) -> None:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *options]
    figures = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    rows = bench.BENCHES[name](figures)
    assert all(row.ms > 0 and row.ratio for row in rows)


def test_figures_of_the_registry_become_rows_with_aims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "COUNT", 3)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the benchmark adds the folder that it measures
    rows = bench.BENCHES["registry"](registry.measure(tmp_path))
    assert [row.aim for row in rows] == [1, 0.5]
    assert all(row.is_met is not None for row in rows)


async def test_things_take_turns_and_the_first_round_is_not_counted() -> None:
    order: list[str] = []

    async def act(name: str) -> float:
        order.append(name)
        return len(order)

    taken = await in_turn({"a": lambda: act("a"), "b": lambda: act("b")}, 2)
    assert order == ["a", "b"] * 3
    assert taken == {"a": [3, 5], "b": [4, 6]}
    assert ratio(taken, "b", "a") == pytest.approx((4 / 3 + 6 / 5) / 2)


def test_an_aim_is_held_to_the_ratio_where_there_is_one() -> None:
    cases: list[tuple[Row, bool | None]] = [
        (Row("a", 5), None),  # no aim
        (Row("a", 5, aim=4), False),  # too long
        (Row("a", 5, "b", 0.4, 0.5), True),  # a ratio is what counts
    ]
    for row, met in cases:
        assert row.is_met is met, row


def test_a_bench_that_breaks_is_said_and_is_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.run("no_such_bench") is None
    assert "no_such_bench broke" in capsys.readouterr().err


async def test_a_larger_folder_stands_beside_a_small_one() -> None:
    rows = await folder_size.bench(1, 2, 4)
    assert [row.ratio is None for row in rows] == [True, False] * 4
    assert all(row.ms > 0 for row in rows)


async def test_the_right_function_is_called_and_shown_where_all_are_shown(tmp_path: Path) -> None:
    tools = [
        {"kind": "tool", "id": f"a:{noun}", "set": "a", "name": f"book_{noun}", "parameters": []}
        | {"description": f"Book a {noun}."}
        for noun in ("hotel", "flight", "table")
    ]
    queries = [
        {"kind": "query", "id": f"{tool['id']}{n}", "set": "a", "gold": [tool["id"]]}
        | {"query": f"I need a {str(tool['id'])[2:]}, {n} of them"}
        for tool in tools
        for n in range(3)
    ]
    path = tmp_path / "tools.jsonl"
    path.write_text("\n".join(map(json.dumps, [*tools, *queries])), encoding="utf-8")
    rows = {row.what: row for row in await choices.bench(path)}
    assert rows["right function called, 3, prediction"].ms == 9
    assert rows["right function shown, 3, neither"].ms == 9


def test_a_name_that_is_no_bench_is_refused_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.options(["nosuch"])
    assert "there are turn, context, registry" in capsys.readouterr().err


def test_a_bench_whose_reader_went_away_ends_quietly() -> None:
    for flags in ([], ["-u"]):  # with a buffer; without one
        command = [sys.executable, *flags, "-m", "benchmarks.nearest", "--embedding", "none"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            running.stdout.close()
            assert running.stderr.read() == "", flags


FACTS = ["Ann plays chess.", "Bob sails.", "Ann and Bob live in Oslo."]
NEW = {"update": "Ann lives in Rome, while Bob lives in Oslo.", "superseded_facts": [2]}


def _file(tmp_path: Path, *rows: dict[str, object]) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return path


def test_reads_and_updates_by_the_script_all_come_out_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"facts": FACTS, "question": "Where does Ann live?", "answer": "Oslo"}
    read: dict[str, object] = {"id": "r/1", "task": "core_memory_read", **asked}
    updated: dict[str, object] = {**read, "id": "u/1", "task": "core_memory_update", **NEW}
    memory_edits.main([str(_file(tmp_path, read, updated)), "--json"])
    figures = json.loads(capsys.readouterr().out)
    assert {task: (one["cases"], one["right"]) for task, one in figures.items()} == {
        "core_memory_read": (1, 1),
        "core_memory_update": (1, 1),
    }


def test_a_chain_of_keys_is_followed_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = [str(uuid.UUID(int=n << 64 | 7919 * n)) for n in range(1, 31)]
    records = [*pairwise(keys[:5]), *zip(keys[5:17], keys[17:29], strict=True)]
    row = {"id": "kv/1", "hops": 4, "records": records, "ask": keys[0], "answer": keys[4]}
    memory_edits.main([str(_file(tmp_path, row))])
    assert "nested_kv, 4 hops: cases 1, right 1" in capsys.readouterr().out
