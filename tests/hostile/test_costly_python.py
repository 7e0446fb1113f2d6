"""Python that is cheap to write and expensive to read stalls no server and fills no memory, wherever it comes in."""

from pathlib import Path

import pytest

from agent_core.base.offload import results_of
from agent_core.base.problem import Place, Problem
from agent_core.functions.gate import ModuleVerdict
from agent_core.functions.service.loader import LoadedFile, heard, said_of
from agent_core.registry.registry import RegistryChange
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from benchmarks.costly import MOST_MIB, MOST_SILENT_S, Cost, cost_apart
from tests.kit.drawing import sampled
from tests.kit.heartbeat import MOST_MS, stall_of
from tests.kit.pace import least_s, time_of

# Each took more than a gigabyte, minutes, or the turn.
COSTLY = [
    ("candidate", "comparisons"),
    ("program", "constants on one line"),
    ("candidate", "one import"),
    ("candidate", "a dotted import"),
    ("candidate", "a long import"),
    ("file", "imports"),
    ("candidate", "a literal type"),
    ("program", "a sum of 400"),
    ("program", "stars"),
    ("candidate", "semicolons alone"),
    ("candidate", "constants on one line"),
    ("candidate", "assignments at the top"),
    ("file", "one import"),
    ("file", "inner classes"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("entry", "shape"), sampled(COSTLY, 5, at=3))
def test_costly_python_stalls_no_server(entry: str, shape: str) -> None:
    costs: list[Cost] = []

    def silent_s() -> float:
        costs.append(cost_apart(shape, entry))
        return costs[-1].silent_s

    assert least_s(MOST_SILENT_S, silent_s) <= MOST_SILENT_S, costs
    assert min(cost.mib for cost in costs) <= MOST_MIB, costs
    assert not costs[-1].answer.startswith("ended with"), costs


def test_what_is_told_of_a_saved_file_reads_it_once(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "many.py").write_text(
        "    return 1  # as long as it may be\n" * 5_000
    )
    rows = range(1, 3_001)
    refusals = tuple(Problem("refused", f"{n}", Place("functions/many.py", n)) for n in rows)
    change = RegistryChange(rejected=refusals)
    assert len(heard(change, tmp_path).lines) == len(rows)
    assert least_s(MOST_SILENT_S, lambda: time_of(lambda: heard(change, tmp_path))) <= MOST_SILENT_S


def test_notes_of_a_saved_file_are_told_of_each_function_in_one_pass() -> None:
    text = "".join(f"def g{n}(a: int) -> int:\n    return a\n" for n in range(2_300))
    reading = read_module(ModuleSource.of("many", text))
    notes = tuple(
        Problem("example-dropped", "gone", Place("functions/many.py", function.line))
        for function in reading.functions
    )
    file = LoadedFile("functions/many.py", verdict=ModuleVerdict(reading, True, notes, ()))
    assert len(said_of([file]).noted) == len(reading.functions)
    assert least_s(MOST_SILENT_S, lambda: time_of(lambda: said_of([file]))) <= MOST_SILENT_S


async def test_work_on_thousands_of_items_goes_on_beside_the_event_loop() -> None:
    async def work(item: int) -> int:
        return sum(range(5_000 + item % 2))  # without a thread: nothing else makes it wait

    async def work_on_all() -> None:
        assert len(await results_of(work, range(4_000), 16)) == 4_000

    assert (await stall_of(work_on_all)).cpu_ms <= MOST_MS
