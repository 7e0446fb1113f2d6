"""Python that is cheap to write and expensive to read stalls no server and fills no memory, wherever it comes in."""

import pytest

from benchmarks.costly import MOST_MIB, MOST_SILENT_S, Cost, cost_apart
from tests.kit.drawing import sampled
from tests.kit.pace import least_s

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
