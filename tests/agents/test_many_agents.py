"""Figures of many agents: kills lose nothing, and a circle is detected at once."""

import time
from pathlib import Path

import pytest

from agent_core.storage import CircleError, SendMessage, Store, open_store
from benchmarks import agents
from tests.storage.support import ManualClock


async def refused(store: Store, number: int) -> float:
    """Ask so that a circle of twenty would close; return the seconds until the rejection."""
    began = time.perf_counter()
    with pytest.raises(CircleError, match="`a19` → `a0` → `a1`"):
        await store.apply(
            [SendMessage(f"closing-{number}", "ask", "a19", "a0", "?", "t", f"turn-{number}")]
        )
    return time.perf_counter() - began


async def test_a_circle_of_twenty_is_refused_within_ten_milliseconds(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state.db", clock=ManualClock())
    for number in range(19):
        text = f"{number * 7919} {'abcdefghijklmnopqrs'[number] * 20}"
        await store.apply(
            [
                SendMessage(
                    f"m{number}", "ask", f"a{number}", f"a{number + 1}", text, "t", f"turn{number}"
                )
            ]
        )
    assert min([await refused(store, number) for number in range(30)]) < 0.010
    assert len(await store.asks()) == 19
    await store.close()


@pytest.mark.parametrize(
    ("many", "messages", "seconds"),
    [
        pytest.param(4, 4, 2.5, id="some"),
        pytest.param(200, 20, 30, id="many", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
async def test_agents_lose_nothing_when_their_process_is_killed(
    many: int, messages: int, seconds: float
) -> None:
    _kills, wrong = await agents.after_kills(many, messages, seconds)
    assert wrong == {}, "each message that was lost, doubled, out of order or left unanswered"
