"""A turn has one writer, which knows its attempt and its position; all others are rejected."""

import asyncio
from collections.abc import Callable

import pytest

from agent_core.base.errors import LostLease
from agent_core.storage import AGAIN, Appended, ClaimedTurn, Post, Store
from tests.storage.support import begin, texts, user


async def test_an_append_returns_the_place_of_the_next_one(store: Store) -> None:
    turn = await begin(store)
    first = await store.append(turn.id, 1, 0, [user("a"), user("b")])
    second = await store.append(turn.id, 1, 2, [user("c")])
    written = await store.load(turn.id)
    assert (first.n, second.n, first.cancelled) == (2, 3, False)
    assert [entry.n for entry in written] == [0, 1, 2]
    assert [first.last, second.last] == [entry.seq for entry in written[1:]]


async def test_a_writer_with_a_wrong_attempt_or_place_is_refused(store: Store) -> None:
    turn = await begin(store)
    await store.append(turn.id, 1, 0, [user("first")])
    # an attempt before, one that was never claimed, a place already written, a place too far, no place, no turn
    for name, attempt, n in [(turn.id, *at) for at in ((0, 1), (2, 1), (1, 0), (1, 2), (1, -1))] + [
        ("nowhere", 1, 0)
    ]:
        with pytest.raises(LostLease):
            await store.append(name, attempt, n, [user("stale")])
    assert texts(await store.load(turn.id)) == ["first"]


async def test_a_take_over_continues_and_locks_out_the_first(
    store: Store, open_again: Callable[[], Store]
) -> None:
    turn = await begin(store)
    await store.append(turn.id, 1, 0, [user("before")])
    successor = await open_again().next("main", "there")
    assert successor == ClaimedTurn(turn.id, "main", 2, 1, "open", turn.event)
    with pytest.raises(LostLease):
        await store.append(turn.id, 1, 1, [user("zombie")])
    with pytest.raises(LostLease):
        await store.finish(turn.id, 1)
    await store.append(turn.id, 2, 1, [user("after")])
    assert texts(await store.load(turn.id)) == ["before", "after"]


async def test_a_finished_turn_takes_nothing_more(store: Store) -> None:
    turn = await begin(store)
    await store.finish(turn.id, 1, "stopped")
    with pytest.raises(LostLease):
        await store.append(turn.id, 1, 0, [user("late")])
    with pytest.raises(LostLease):
        await store.finish(turn.id, 1)


async def test_the_text_of_a_reply_that_is_written_or_was_taken_over_is_not_kept(
    store: Store, open_again: Callable[[], Store]
) -> None:
    async def shown() -> list[str]:
        return texts(await store.streamed("main"))

    turn = await begin(store)
    await store.keep_streamed(turn.id, 1, 0, "It ra")
    assert await shown() == ["It ra"]
    await store.append(turn.id, 1, 0, [user("It rains.")])
    await store.keep_streamed(turn.id, 1, 0, "It rains.")
    assert await shown() == []
    await open_again().next("main", "there")
    await store.keep_streamed(turn.id, 1, 1, "zombie")
    assert await shown() == []
    await store.keep_streamed(turn.id, 2, 1, "It sn")
    assert await shown() == ["It sn"]


async def test_a_race_of_append_and_claim_hides_no_row(
    store: Store, open_again: Callable[[], Store]
) -> None:
    other = open_again()
    for number in range(16):
        turn = await begin(store, f"agent-{number}")
        append = store.append(turn.id, 1, 0, [user("old")])
        moves = (
            [append, other.next(turn.agent, "there")]
            if number % 2
            else [other.next(turn.agent, "there"), append]
        )
        outcomes = await asyncio.gather(*moves, return_exceptions=True)
        written = sum(isinstance(outcome, Appended) for outcome in outcomes)
        claims = [outcome.n for outcome in outcomes if isinstance(outcome, ClaimedTurn)]
        assert claims == [written] == [len(await store.load(turn.id))], outcomes


async def test_of_two_writers_at_one_place_exactly_one_is_kept(
    store: Store, open_again: Callable[[], Store]
) -> None:
    other, turn = open_again(), await begin(store)
    for place in range(16):
        both = (handle.append(turn.id, 1, place, [user("x")]) for handle in (store, other))
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Appended", "LostLease"]
    assert len(await store.load(turn.id)) == 16


async def test_a_cancel_is_reported_to_every_append_and_successor_but_not_to_the_next_turn(
    store: Store,
) -> None:
    turn = await begin(store)
    await store.cancel(turn.id)
    assert (await store.append(turn.id, 1, 0, [user("x")])).cancelled
    assert await store.append(turn.id, 1, 1, []) == Appended(1, cancelled=True)
    successor = await store.next("main", "there")
    assert successor is not None
    assert successor.cancelled
    await store.finish(turn.id, 2)
    await store.cancel(turn.id)
    assert not (await begin(store)).cancelled


async def test_a_waiter_that_is_cancelled_leaves_only_when_its_append_is_settled(
    store: Store,
) -> None:
    turn = await begin(store)
    task = asyncio.ensure_future(store.append(turn.id, 1, 0, [user("x")]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await store.load(turn.id)) == 1


async def test_an_event_is_in_the_turn_that_goes_on_with_the_one_that_was_cut_off(
    store: Store,
) -> None:
    event = await store.post(Post("main", "message", {"text": "hello"}))
    assert await store.turn_of(event) is None
    first = await store.next("main", "one")
    assert first
    assert [await store.turn_of(event, agent) for agent in ("", "main", "other")] == [
        first.id,
        first.id,
        None,
    ]
    await store.finish(
        first.id, 1, "interrupted", posts=[Post("main", AGAIN, {}, key=f"again:{first.id}")]
    )
    assert await store.turn_of(event) is None
    second = await store.next("main", "two")
    assert second
    assert await store.turn_of(event) == second.id
