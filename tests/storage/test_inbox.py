"""Events are posted once, wait in order, and are claimed once."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.errors import StorageError
from agent_core.storage import Backlog, Due, Inbound, InboxFull, PauseAgent, Post, Store
from agent_core.storage.inbox import EventAnswer
from tests.storage.support import ManualClock, begin, user


def event(text: str, key: str | None = None, due: float | None = None) -> Post:
    return Post("main", "user", {"text": text}, key, due)


@pytest.mark.parametrize("key", ["message 1", ""])
async def test_a_repeated_post_returns_the_first_id_and_adds_nothing_for_that_agent(
    store: Store, key: str
) -> None:
    first = await store.post(event("one", key=key))
    assert await store.post(event("one", key=key)) == first
    assert len(await store.waiting("main")) == 1
    await store.next("main", "here")
    assert await store.post(event("one", key=key)) == first
    assert await store.waiting("main") == []
    assert await store.post(Post("other", "user", {}, key=key)) != first


async def test_events_are_taken_in_order_although_the_clock_goes_back(
    store: Store, clock: ManualClock
) -> None:
    for text in ("one", "two", "three"):
        await store.post(event(text))
        clock.time -= 3600
    assert await store.due() == [Due("main", is_takeover=False)]
    assert [event.text for event in await store.waiting("main")] == [
        "one",
        "two",
        "three",
    ]
    seen = []
    while turn := await store.next("main", "here"):
        seen.append(turn.event.text)
        await store.finish(turn.id, turn.attempt)
    assert seen == ["one", "two", "three"]


async def test_a_timed_event_blocks_nothing_and_is_due_when_its_time_has_come(
    store: Store, clock: ManualClock
) -> None:
    await store.post(event("later", due=clock.time + 60))
    assert await store.due() == []
    await store.post(event("now"))
    turn = await store.next("main", "here")
    assert turn is not None
    assert turn.event.text == "now"
    await store.finish(turn.id, turn.attempt)
    assert await store.next("main", "here") is None
    clock.time += 61
    assert await store.due() == [Due("main", is_takeover=False)]


async def test_only_an_event_of_its_own_that_waits_is_taken_in_mid_turn(store: Store) -> None:
    turn = await begin(store)
    await store.post(event("meanwhile"))
    [meanwhile] = await store.waiting("main")
    for taken in (
        turn.event.id,
        await store.post(Post("other", "user", {})),
    ):  # taken twice, and not its own
        with pytest.raises(StorageError, match="does not wait"):
            await store.append(turn.id, 1, 0, [user("x")], takes=[taken])
    assert await store.load(turn.id) == []
    await store.append(turn.id, 1, 0, [user("meanwhile")], takes=[meanwhile.id])
    await store.finish(turn.id, 1)
    assert await store.next("main", "here") is None


async def test_open_turns_are_due_before_events_that_wait(store: Store) -> None:
    await store.post(Post("early", "user", {}))
    await begin(store, "running")
    await store.post(Post("running", "user", {}))
    assert await store.due() == [Due("running", is_takeover=True), Due("early", is_takeover=False)]
    assert await store.due(limit=1) == [Due("running", is_takeover=True)]


async def test_what_waits_is_counted_with_its_age_but_not_of_paused_agents(
    store: Store, clock: ManualClock
) -> None:
    clock.time = round(await store.now())  # a database uses its own clock
    assert await store.backlog() == Backlog(0, 0.0)
    early = replace(
        event("first", due=0.0), line="early"
    )  # it goes before all others, and waits since its post
    await store.post(early)
    clock.time += 20
    found = await store.backlog(["early"])
    assert (found.waiting, round(found.oldest_s, -1)) == (1, 20)
    await store.apply([PauseAgent("early", "")])
    await store.post(Post("paused", "user", {}))
    clock.time += 400
    await store.post(event("one"))
    await store.post(event("later", due=clock.time + 150))
    await store.post(event("two", due=clock.time + 60))
    clock.time += 90
    await store.apply([PauseAgent("paused", "")])
    found = await store.backlog()
    assert (found.waiting, round(found.oldest_s, -1)) == (2, 90)
    assert [
        (await store.backlog(owners)).waiting for owners in (["main"], ["other", "paused"], [])
    ] == [2, 0, 0]
    assert await store.next("main", "here")
    found = await store.backlog()
    assert (found.waiting, round(found.oldest_s, -1)) == (1, 30)


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_a_post_that_fails_does_not_take_those_with_it_that_came_at_once(
    store: Store,
) -> None:
    wrong = replace(event("wrong"), due=object())  # type: ignore[arg-type]  # a fault of the program
    unfit = replace(event("broken"), payload={"text": object()})
    posts = [event("one"), unfit, event("two"), wrong, event("k", key="k"), event("l", key="k")]
    one, broken, two, failed, three, again = await asyncio.gather(
        *map(store.post, posts), return_exceptions=True
    )
    assert isinstance(broken, StorageError)
    assert isinstance(failed, TypeError)
    assert three == again
    assert [row.id for row in await store.waiting("main")] == [one, two, three]


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_posts_at_once_wait_in_order_and_beyond_a_full_inbox_are_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_core.storage.turn_store.INBOX_LIMIT", 50)
    posts = [store.post(event(str(number))) for number in range(60)]
    kept = await asyncio.gather(*posts, return_exceptions=True)
    assert sum(isinstance(result, InboxFull) for result in kept) == 10
    waiting = [row.text for row in await store.waiting("main")]
    assert waiting == [str(number) for number in range(50)]


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_posts_that_wait_for_the_disk_are_committed_together(
    store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "state.db-wal"
    before = log.stat().st_size
    for number in range(50):
        await store.post(event(str(number)))
    alone = log.stat().st_size - before
    await asyncio.gather(*(store.post(event(str(number))) for number in range(50)))
    together = log.stat().st_size - before - alone
    assert together < alone / 3


async def test_a_post_tells_the_last_number_before_it(store: Store) -> None:
    assert (await store.post_after(event("first"))).after == 0
    turn = await store.next("main", "here")
    assert turn is not None
    last = (await store.append(turn.id, 1, 0, [user("first")])).last
    posted = await store.post_after(event("second"))
    assert posted.after == last == await store.last_seq("main")
    assert [row.id for row in await store.waiting("main")] == [posted.event]


async def test_an_agent_is_there_as_soon_as_anything_waits_for_it(store: Store) -> None:
    assert not await store.has_agent("main")
    await store.post(event("hello"))
    assert await store.has_agent("main")
    assert await store.agent_names() == ["main"]


POSTED = [
    (
        {"text": "hi", "hops": 2, "from": "ann", "last": 3},
        {"text": "hi", "hops": 2, "from_": "ann", "last": 3},
    ),
    ({"text": 5, "hops": "many", "alone": 1, "policy": [], "answers": "yes", "kind": "stop"}, {}),
    (
        {"text": None, "client": {"a": 1}, "expects": {"b": 2}},
        {"client": {"a": 1}, "expects": {"b": 2}},
    ),
    (
        {"answers": [{"id": "c", "text": "t"}, "yes", {"from": 5, "state": "answered"}]},
        {"answers": (EventAnswer(id="c", text="t"), EventAnswer(state="answered"))},
    ),
    ({"only": ["ann", 5]}, {"only": ("ann",)}),
    ({"only": []}, {}),
]


@pytest.mark.parametrize(("payload", "read"), POSTED, ids=lambda row: "-".join(row))
async def test_what_an_event_holds_is_read_and_what_is_of_another_type_has_its_default(
    store: Store, payload: dict[str, object], read: dict[str, Any]
) -> None:
    id = await store.post(Post("main", "message", payload, origin='{"window":"page"}'))
    assert await store.waiting("main") == [Inbound(id, "message", '{"window":"page"}', **read)]


@pytest.mark.parametrize("only", ["ann", [5], {"ann": 1}, True])
async def test_a_limit_that_cannot_be_read_lets_the_sender_use_no_agent(
    store: Store, only: object
) -> None:
    await store.post(Post("main", "message", {"only": only}))
    assert [event.only for event in await store.waiting("main")] == [("",)]
