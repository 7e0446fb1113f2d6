"""Whatever function a model sends or a human saves, the event loop keeps running while it is judged."""

from functools import partial

import pytest

from agent_core.functions.gate import Candidate, Gate
from agent_core.functions.gate.gate import STAGES
from agent_core.registry.registry import Snapshot
from sandbox import Sandbox
from tests.hostile.texts import candidates
from tests.kit.drawing import sampled
from tests.kit.heartbeat import MOST_MS, stall_of

_TEXT_STAGES = tuple(stage for stage in STAGES if stage.name != "import")[:6]


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate(Sandbox.__new__(Sandbox), stages=_TEXT_STAGES)  # none of these stages uses a worker


@pytest.mark.sampled
@pytest.mark.parametrize("name", [*sampled(candidates(), 9, at=4)])
async def test_no_candidate_holds_up_the_event_loop_while_its_text_is_judged(
    gate: Gate, name: str
) -> None:
    stall = await stall_of(
        partial(gate.judge, Candidate("f", candidates()[name], "lib"), Snapshot.empty())
    )
    assert stall.cpu_ms <= MOST_MS, stall
