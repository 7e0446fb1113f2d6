"""The check of the journal: each call has one start and one result; anything else is reported."""

import pytest

from agent_core.storage import Entry, JournalReport, Store
from tests.storage.support import begin, user

ASKS = Entry("assistant", {"text": "", "calls": [{"id": "a", "name": "note", "arguments": "{}"}]})
STARTS = Entry("call", {"id": "a", "name": "note"})
ANSWERS = Entry("result", {"call_id": "a", "name": "note", "text": "1", "outcome": "returned"})
SAYS = Entry("assistant", {"text": "done", "calls": []})
OTHER = Entry("result", {"call_id": "b", "name": "note", "text": "1", "outcome": "returned"})
CLIENT = Entry("client", {"text": "", "event": "message"})
TWICE, UNANSWERED = "the call a was started twice", "the call a has no answer"
AFTER, AGAIN = "the call a was started after its answer", "the call a was answered twice"
UNKNOWN = "the call b was answered, and nobody asked for it"


@pytest.mark.parametrize(
    ("entries", "state", "faults"),
    [
        pytest.param([ASKS, STARTS, ANSWERS, SAYS], "done", [], id="whole"),
        pytest.param([ASKS, STARTS, ANSWERS, ASKS, STARTS, ANSWERS], "done", [], id="the-same-id-in-two-steps"),
        pytest.param([ASKS, ANSWERS, SAYS], "interrupted", [], id="answered-before-it-began"),
        pytest.param([ASKS, STARTS], "", [], id="still-running"),
        pytest.param([ASKS, STARTS], "client_calls", [], id="a-client-has-it"),
        pytest.param([ASKS, STARTS, STARTS, ANSWERS], "done", [TWICE], id="twice"),
        pytest.param([ASKS, STARTS, ANSWERS, STARTS, SAYS], "done", [TWICE], id="begun-again-after-its-answer"),
        pytest.param([ASKS, ANSWERS, STARTS, SAYS], "done", [AFTER], id="begun-after-its-answer"),
        pytest.param([ASKS, STARTS, ANSWERS, ANSWERS, SAYS], "done", [AGAIN], id="answered-twice"),
        pytest.param([ASKS, STARTS, ANSWERS, OTHER, SAYS], "done", [UNKNOWN], id="an-answer-that-nobody-asked-for"),
        pytest.param(
            [CLIENT, OTHER, ASKS, ANSWERS, SAYS], "done", [], id="a-client-answers-what-the-turn-before-asked"
        ),
        pytest.param([CLIENT, ASKS, ANSWERS, OTHER, SAYS], "done", [UNKNOWN], id="a-client-asked-for-nothing-since"),
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
