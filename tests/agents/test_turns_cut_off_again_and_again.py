"""An interrupted message is retried as often as needed; one that ends every process that runs it is given up."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core.runtime.session import AgentSession, settle
from agent_core.storage import AnswerAsk, ClaimedTurn, Entry, Post, SendMessage, Store, open_store
from tests.storage.support import ManualClock

ASKED = Entry(
    "assistant",
    {"text": "", "calls": [{"id": "c1", "name": "note", "arguments": "{}"}], "thought": ""},
)
STARTED = Entry("call", {"id": "c1", "name": "note", "arguments": "{}", "step": 1})
ANSWERED = Entry(
    "result",
    {
        "call_id": "c1",
        "name": "note",
        "text": "1",
        "outcome": "returned",
        "seconds": 0.1,
        "detail": {},
    },
)
HEARD = Entry("user", {"text": "go"})
LONGEST_S = 60.0


class Doomed:
    """An agent whose processes die in the middle of its turns."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock

    async def begin(self, agent: str = "a0") -> ClaimedTurn | None:
        """Claim the next turn if it is due."""
        return await self.store.next(agent, "gone")

    async def cut_off(self, *entries: Entry, agent: str = "a0") -> float | None:
        """Begin the next turn, write something, and end; the next claim settles it. Return the delay of the retry."""
        began = await self.begin(agent)
        assert began is not None
        await self.store.append(began.id, began.attempt, began.n, [HEARD, *entries])
        taken = await self.store.next(agent, "next")
        assert taken is not None
        await settle(self.store, taken, AgentSession(agent, self.store), restarts=True)
        waits = await self.store.next_due()
        if waits is None:
            return None
        waited = waits - self.clock.now()
        self.clock.time += LONGEST_S
        return waited


@pytest.fixture
async def doomed(tmp_path: Path) -> AsyncIterator[Doomed]:
    clock = ManualClock()
    async with open_store(str(tmp_path / "state.db"), clock=clock) as store:
        await store.post(Post("a0", "message", {"text": "go"}))
        yield Doomed(store, clock)


@pytest.mark.parametrize(
    "entries", [(), (ASKED,), (ASKED, STARTED)], ids=["nothing", "reply", "call"]
)
async def test_six_times_in_a_row_without_an_answer_are_enough(
    doomed: Doomed, entries: tuple[Entry, ...]
) -> None:
    for _ in range(6):
        await doomed.cut_off(*entries)
    assert await doomed.begin() is None
    notices = [
        entry.payload["text"] for entry in await doomed.store.history("a0", kinds=("notice",))
    ]
    assert "given up" in notices[-1]
    assert ["given up" in text for text in notices[:-1]] == [False] * 5


async def test_a_turn_that_gets_further_each_time_goes_on(doomed: Doomed) -> None:
    for _ in range(20):
        assert await doomed.cut_off(ASKED, STARTED, ANSWERED) is None
    assert await doomed.begin() is not None


async def test_even_who_gets_further_is_given_up_after_fifty_times(doomed: Doomed) -> None:
    for _ in range(51):
        await doomed.cut_off(ASKED, STARTED, ANSWERED)
    assert await doomed.begin() is None


async def test_who_asked_is_told_that_it_was_given_up(doomed: Doomed) -> None:
    await doomed.store.apply([SendMessage("m1", "ask", "main", "a1", "How many?", "t", "turn1")])
    for _ in range(6):
        await doomed.cut_off(agent="a1")
    [told] = await doomed.store.waiting("main")
    assert "cut off 6 times in a row" in told.answers[0].text


async def test_it_goes_on_with_the_policy_of_its_message(doomed: Doomed) -> None:
    kept = {"policy": {"mode": "plan", "growth": "off"}, "expects": {"read": ["data/"]}}
    await doomed.store.post(Post("a1", "message", {"text": "go", **kept}))
    for _ in range(3):
        await doomed.cut_off(agent="a1")
    again = await doomed.begin("a1")
    assert again is not None
    assert {"policy": again.event.policy, "expects": again.event.expects} == kept


async def test_what_answers_an_agent_has_the_policy_of_the_turn_that_asked(doomed: Doomed) -> None:
    policy = {"policy": {"mode": "plan", "growth": "off"}}
    await doomed.store.post(Post("main", "message", {"text": "go", **policy}))
    turn = await doomed.store.next("main", "here")
    assert turn is not None
    ask = SendMessage("m1", "ask", "main", "a1", "How many?", "t", turn.id)
    await doomed.store.apply([ask])
    await doomed.store.finish(turn.id, turn.attempt, "parked")
    await doomed.store.apply([AnswerAsk("m1", "42")])
    answer = await doomed.store.next("main", "here")
    assert answer is not None
    assert (answer.event.kind, answer.event.policy) == ("answer", policy["policy"])


async def test_from_the_second_time_in_a_row_on_it_waits_longer_and_longer(doomed: Doomed) -> None:
    waits = [await doomed.cut_off() for _ in range(5)]
    assert waits[0] is None
    assert [
        2**number / 2 <= (wait or 0) <= 2**number * 1.5 for number, wait in enumerate(waits[1:], 1)
    ] == [True] * 4
