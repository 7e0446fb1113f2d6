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


CASES: list[tuple[list[Entry], str, list[str]]] = [
    ([ASKS, STARTS, ANSWERS, SAYS], "done", []),
    ([ASKS, STARTS, ANSWERS, ASKS, STARTS, ANSWERS], "done", []),  # the same id in two steps
    ([ASKS, ANSWERS, SAYS], "interrupted", []),  # answered before it began
    ([ASKS, STARTS], "", []),  # still running
    ([ASKS, STARTS], "client_calls", []),
    ([ASKS, STARTS, STARTS, ANSWERS], "done", [TWICE]),
    ([ASKS, STARTS, ANSWERS, STARTS, SAYS], "done", [TWICE]),
    ([ASKS, ANSWERS, STARTS, SAYS], "done", [AFTER]),
    ([ASKS, STARTS, ANSWERS, ANSWERS, SAYS], "done", [AGAIN]),
    ([ASKS, STARTS, ANSWERS, OTHER, SAYS], "done", [UNKNOWN]),
    (
        [CLIENT, OTHER, ASKS, ANSWERS, SAYS],
        "done",
        [],
    ),  # a client answers what the turn before asked
    ([CLIENT, ASKS, ANSWERS, OTHER, SAYS], "done", [UNKNOWN]),
    ([ASKS, STARTS], "interrupted", [UNANSWERED]),
    ([ASKS], "done", [UNANSWERED]),
    ([ASKS, SAYS], "done", [UNANSWERED]),
]


async def test_calls_that_cannot_be_as_they_are_are_told(store: Store) -> None:
    told: list[str] = []
    for number, (entries, state, faults) in enumerate(CASES):
        turn = await begin(store, f"a{number}")
        await store.append(turn.id, turn.attempt, turn.n, [user("go"), *entries])
        if state:
            await store.finish(turn.id, turn.attempt, state)
        told += [f"turn {turn.id} of a{number}: {fault}" for fault in faults]
    report = await store.check_journal()
    assert sorted(report.faults) == sorted(told)
    assert (report.turns, report.entries, report.missing) == (
        15,
        sum(1 + len(case[0]) for case in CASES),
        0,
    )


async def test_a_turn_that_was_taken_over_is_whole(store: Store) -> None:
    turn = await begin(store)
    await store.append(turn.id, turn.attempt, turn.n, [user("go"), ASKS, STARTS])
    again = await store.next("main", "there")
    assert again is not None
    await store.append(again.id, again.attempt, again.n, [ANSWERS])
    await store.finish(again.id, again.attempt)
    assert await store.check_journal() == JournalReport(1, 4, 0, ())


async def test_many_turns_are_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_core.storage.store._AT_ONCE", 10)
    for number in range(21):
        turn = await begin(store, f"a{number % 3}")
        await store.append(turn.id, turn.attempt, turn.n, [user("go")])
        await store.finish(turn.id, turn.attempt)
    assert await store.check_journal() == JournalReport(21, 21, 0, ())
