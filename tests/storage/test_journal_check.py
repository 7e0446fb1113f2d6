"""The check of the journal: each call has one start and one answer, and whatever else is there is told."""

import pytest

from agent_core.storage import Entry, JournalReport, Store
from tests.storage.support import begin, user

ASKS = Entry("assistant", {"text": "", "calls": [{"id": "a", "name": "note", "arguments": "{}"}]})
STARTS = Entry("call", {"id": "a", "name": "note"})
ANSWERS = Entry("result", {"call_id": "a", "name": "note", "text": "1", "outcome": "returned"})
SAYS = Entry("assistant", {"text": "done", "calls": []})
TWICE, UNANSWERED = "the call a was started twice", "the call a has no answer"


@pytest.mark.parametrize(
    ("entries", "state", "faults"),
    [
        pytest.param([ASKS, STARTS, ANSWERS, SAYS], "done", [], id="whole"),
        pytest.param([ASKS, STARTS, ANSWERS, ASKS, STARTS, ANSWERS], "done", [], id="the-same-id-in-two-steps"),
        pytest.param([ASKS, ANSWERS, SAYS], "interrupted", [], id="answered-before-it-began"),
        pytest.param([ASKS, STARTS], "", [], id="still-running"),
        pytest.param([ASKS, STARTS], "client_calls", [], id="a-client-has-it"),
        pytest.param([ASKS, STARTS, STARTS, ANSWERS], "done", [TWICE], id="twice"),
        pytest.param([ASKS, STARTS], "interrupted", [UNANSWERED], id="cut-off"),
        pytest.param([ASKS], "done", [UNANSWERED], id="never-begun"),
        pytest.param([ASKS, SAYS], "done", [UNANSWERED], id="passed-over"),
    ],
)
async def test_calls_that_cannot_be_as_they_are_are_told(
    store: Store, entries: list[Entry], state: str, faults: list[str]
) -> None:
    turn = await begin(store)
    await store.append(turn.id, turn.attempt, turn.n, [user("go"), *entries])
    if state:
        await store.finish(turn.id, turn.attempt, state)
    told = tuple(f"turn {turn.id} of main: {fault}" for fault in faults)
    assert await store.check_journal() == JournalReport(1, 1 + len(entries), 0, told)


async def test_a_turn_that_was_taken_over_is_whole(store: Store) -> None:
    turn = await begin(store)
    await store.append(turn.id, turn.attempt, turn.n, [user("go"), ASKS, STARTS])
    again = await store.next("main", "there")
    assert again is not None
    await store.append(again.id, again.attempt, again.n, [ANSWERS])
    await store.finish(again.id, again.attempt)
    assert await store.check_journal() == JournalReport(1, 4, 0, ())


async def test_many_turns_are_read(store: Store) -> None:
    for number in range(210):
        turn = await begin(store, f"a{number % 3}")
        await store.append(turn.id, turn.attempt, turn.n, [user("go")])
        await store.finish(turn.id, turn.attempt)
    assert await store.check_journal() == JournalReport(210, 210, 0, ())
