"""The contents of an agent's conversation, in order, across turns and starts."""

from collections.abc import Callable

from agent_core.storage import AgentRow, Entry, Store
from tests.storage.support import ManualClock, begin, say, texts, user


async def test_the_history_is_in_order_across_turns_and_starts(store: Store, open_again: Callable[[], Store]) -> None:
    await say(store, "a", "b")
    await say(store, "c")
    await store.close()
    assert texts(await open_again().history("main")) == ["a", "b", "c"]


async def test_a_stored_entry_tells_its_turn_place_and_time(store: Store, clock: ManualClock) -> None:
    turn = await say(store, "a")
    [entry] = await store.history("main")
    assert (entry.kind, entry.payload, entry.n) == ("user", {"text": "a"}, 0)
    assert (entry.turn, entry.at) == (turn.id, clock.time)


async def test_the_order_follows_the_store_and_not_a_clock_that_goes_back(store: Store, clock: ManualClock) -> None:
    await say(store, "a")
    clock.time -= 3600
    await say(store, "b")
    assert texts(await store.history("main")) == ["a", "b"]


async def test_the_entries_of_an_open_turn_are_part_of_the_history(store: Store) -> None:
    turn = await begin(store)
    await store.append(turn.id, 1, 0, [user("now")])
    assert texts(await store.history("main")) == ["now"]


async def test_one_agent_does_not_see_what_another_one_said(store: Store) -> None:
    await say(store, "mine")
    await say(store, "theirs", agent="other")
    await say(store, "mine, too")
    assert texts(await store.history("main")) == ["mine", "mine, too"]
    whole = await store.read_agent("main")
    assert whole
    assert [texts([*turn.entries]) for turn in whole.turns] == [["mine"], ["mine, too"]]


async def test_nothing_comes_after_the_highest_numbers(store: Store) -> None:
    await say(store, "a")
    assert [await store.history("main", since=(1 << bits) - 1) for bits in (31, 63)] == [[], []]


async def test_the_history_since_a_place_starts_right_after_it(store: Store) -> None:
    await say(store, "a", "b")
    await say(store, "c", "d")
    entries = await store.history("main")
    for place, entry in enumerate(entries):
        assert await store.history("main", since=entry.seq) == entries[place + 1 :]


async def test_what_explains_a_step_is_kept_and_not_part_of_the_conversation(store: Store) -> None:
    turn = await begin(store)
    await store.append(turn.id, 1, 0, [user("a"), Entry("request", {"functions": ["f"]})])
    assert [entry.kind for entry in await store.history("main")] == ["user"]
    assert [entry.kind for entry in await store.history("main", kinds={"request"})] == ["request"]
    assert [entry.kind for entry in await store.load(turn.id)] == ["user", "request"]


async def test_a_hidden_turn_leaves_the_history_and_stays_in_the_record(store: Store) -> None:
    await say(store, "a")
    last = await say(store, "b", "c")
    assert texts(await store.hide_last_turn("main")) == ["b", "c"]
    assert texts(await store.history("main")) == ["a"]
    assert texts(await store.load(last.id)) == ["b", "c"]


async def test_hiding_again_takes_the_turn_before_and_then_nothing(store: Store) -> None:
    await say(store, "a")
    await say(store, "b")
    hidden = [texts(await store.hide_last_turn("main")) for _ in range(3)]
    assert hidden == [["b"], ["a"], []]


async def test_all_turns_of_one_agent_can_be_hidden_at_once_and_stay_in_the_record(store: Store) -> None:
    first = await say(store, "a")
    await say(store, "b")
    await say(store, "c", agent="other")
    assert [await store.hide_turns("main") for _ in range(2)] == [2, 0]
    await say(store, "d")
    assert (texts(await store.history("main")), texts(await store.history("other"))) == (["d"], ["c"])
    assert texts(await store.load(first.id)) == ["a"]


async def test_a_turn_that_still_runs_is_not_hidden(store: Store) -> None:
    await say(store, "before")
    turn = await begin(store)
    await store.append(turn.id, 1, 0, [user("running")])
    await store.hide_last_turn("main")
    assert texts(await store.history("main")) == ["running"]


async def test_the_agents_are_listed_with_their_turns_and_times(store: Store, clock: ManualClock) -> None:
    await say(store, "a", agent="zoe")
    await say(store, "a", agent="adam")
    clock.time += 5
    await say(store, "b", agent="adam")
    assert await store.agents() == [AgentRow("adam", 2, clock.time, 0), AgentRow("zoe", 1, clock.time - 5, 0)]


async def test_a_summary_is_no_part_of_the_conversation_and_is_found_by_its_kind(store: Store) -> None:
    for number in range(3):
        turn = await begin(store)
        await store.append(turn.id, 1, 0, [user(f"m{number}"), Entry("summary", {"text": f"s{number}"})])
        await store.finish(turn.id, 1)
    await say(store, "theirs", agent="other")
    summaries = await store.history("main", kinds={"summary"})
    assert (texts(await store.history("main")), texts(summaries)) == (["m0", "m1", "m2"], ["s0", "s1", "s2"])
    assert await store.history("main", kinds=("summary",), since=summaries[0].seq) == summaries[1:]
    both = await store.history("main", kinds=("summary", "user"), since=summaries[1].seq)
    assert texts(both) == ["m2", "s2"]
    await store.hide_last_turn("main")
    assert await store.history("main", kinds={"summary"}) == summaries[:2]
