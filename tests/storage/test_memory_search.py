"""Searches by words and by meaning: exact, per agent, and current to the last write."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.base.errors import StorageError
from agent_core.storage import (
    DropAgent,
    DropPassages,
    DropVectors,
    SaveSaid,
    SaveVectors,
    Store,
    open_store,
)
from agent_core.storage.sqlite.search_index import EXACT
from tests.kit.drawing import drawn
from tests.storage.memory_support import floats, found, insert, message, rarity
from tests.storage.support import ManualClock


async def by_words(store: Store, *words: str, agent: str = "main", limit: int = 100) -> list[str]:
    return await found(store, await store.search_words("archival", agent, words, limit))


async def by_vector(store: Store, *vector: float, space: str = "v", limit: int = 100) -> list[str]:
    return await found(
        store, await store.search_vector("archival", "main", space, floats(*vector), limit)
    )


async def embed(store: Store, vectors: dict[int, bytes], space: str = "v") -> None:
    await store.apply([SaveVectors("archival", space, tuple(vectors.items()))])


async def test_words_find_what_holds_any_of_them(store: Store) -> None:
    await insert(store, "cherries pie", "pies", "cherry tree in the garden", "cafe")
    for asked, expected in (
        (["cherry"], ["p2", "p0"]),  # endings are left out, on both sides
        (["PIES", "zebra"], ["p1", "p0"]),
        (["café"], ["p3"]),
        (["cherry-pies!", '"*'], ["p0", "p2", "p1"]),  # marks are no language
        (["nothing"], []),
        (["", "…"], []),
    ):
        assert await by_words(store, *asked) == expected, asked


async def test_scores_say_how_rare_the_words_are_that_a_row_holds(store: Store) -> None:
    chance = random.Random(1)
    rows = [" ".join(chance.choices("abcdefgh", k=chance.randint(1, 12))) for _ in range(300)]
    await insert(store, *rows)
    expected = rarity(rows, ["a", "c", "h"])
    hits = await store.search_words("archival", "main", ["a", "c", "h", "a"], 300)
    assert {hit.seq - 1: hit.score for hit in hits} == pytest.approx(expected, rel=1e-5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[:7] == await store.search_words("archival", "main", ["a", "c", "h"], 7)


async def test_one_agent_never_finds_nor_weighs_what_is_another_ones(store: Store) -> None:
    await insert(store, "pie pie", "apple")
    alone = await store.search_words("archival", "main", ["pie"], 5)
    await insert(store, *["pie"] * 300, agent="other")
    newest = await by_words(store, "pie", agent="other", limit=3)
    assert newest == ["p299", "p298", "p297"]
    assert await store.search_words("archival", "main", ["pie"], 5) == alone
    assert len(await by_words(store, "apple", agent="other")) == 0


async def test_messages_and_passages_are_searched_apart(store: Store) -> None:
    await insert(store, "pie")
    await store.apply([SaveSaid((message(77, "pie"), message(78, "other")))])
    assert [hit.seq for hit in await store.search_words("recall", "main", ["pie"], 5)] == [77]
    assert await by_words(store, "pie") == ["p0"]


@pytest.mark.usefixtures("comparing")
async def test_a_search_knows_what_another_process_changed(
    store: Store, open_again: Callable[[], Store]
) -> None:
    other = open_again()
    await insert(store, "pie one", "pie two")
    await embed(store, {1: floats(1, 0), 2: floats(0, 1)})
    assert (await by_words(store, "pie"), await by_vector(store, 1, 0)) == (
        ["p1", "p0"],
        ["p0", "p1"],
    )
    await insert(other, "pie", prefix="new")
    await embed(other, {2: floats(1, 0.1), 3: floats(0, 1)})
    await other.apply([DropPassages("main", ("p0",))])
    assert (await by_words(store, "pie"), await by_vector(store, 1, 0)) == (
        ["new0", "p1"],
        ["p1", "new0"],
    )


@pytest.mark.usefixtures("comparing")
async def test_passages_that_come_one_by_one_are_all_found(
    store: Store, open_again: Callable[[], Store]
) -> None:
    other, looked = open_again(), {0: 11, 1: 40}
    for number in range(45):
        await insert(store, "pie", prefix=f"{number}-")
        await embed(store, {number + 1: floats(1, number)})
        for place, handle in enumerate((store, other)):
            if number % looked[place] == 0:
                assert len(await by_words(handle, "pie")) == number + 1
                assert len(await by_vector(handle, 1, 0)) == number + 1
    assert await by_vector(other, 1, 0) == (await by_words(store, "pie"))[::-1]


async def test_what_was_not_committed_or_is_of_a_deleted_agent_is_not_found(store: Store) -> None:
    await insert(store, "pie")
    await by_words(store, "pie")
    with pytest.raises(StorageError):
        await store.apply([DropPassages("main", ("p0",)), SaveVectors("archival", "", ())])
    assert await by_words(store, "pie") == ["p0"]
    await store.apply([DropAgent("main")])
    assert await by_words(store, "pie") == []
    await insert(store, "pie new", prefix="q")
    assert await by_words(store, "pie") == ["q0"]


@pytest.mark.usefixtures("comparing")
async def test_vectors_find_the_nearest_by_angle_and_tell_the_cosine(store: Store) -> None:
    await insert(store, "a", "b", "c", "d")
    await embed(store, {1: floats(3, 0), 2: floats(1, 1), 3: floats(-1, 0)})
    hits = await store.search_vector("archival", "main", "v", floats(2, 0), 9)
    assert [hit.seq for hit in hits] == [1, 2, 3]
    assert [hit.score for hit in hits] == pytest.approx([1, 0.5**0.5, -1])
    cosines = await store.cosines("archival", "main", "v", floats(2, 0), [2, 3, 4, 99])
    assert cosines == pytest.approx({2: 0.5**0.5, 3: -1})


@pytest.mark.slow
@pytest.mark.usefixtures("comparing")
async def test_among_many_vectors_the_nearest_are_those_of_an_exact_search(
    store: Store, address: str
) -> None:
    many = (
        EXACT + 1000 if address.endswith(".db") else 600
    )  # PostgreSQL compares all, whatever their number
    chance = random.Random(3)
    centres = [[chance.gauss(0, 1) for _ in range(32)] for _ in range(40)]
    vectors = {
        n: [x + chance.gauss(0, 0.7) for x in chance.choice(centres)] for n in range(1, many + 1)
    }
    await insert(store, *["x"] * many)
    await embed(store, {n: floats(*vector) for n, vector in vectors.items()})
    for _ in range(5):
        asked = [x + chance.gauss(0, 0.5) for x in chance.choice(centres)]
        exact = await store.cosines("archival", "main", "v", floats(*asked), [*vectors])
        best = sorted(exact, key=exact.__getitem__, reverse=True)[:10]
        hits = await store.search_vector("archival", "main", "v", floats(*asked), 10)
        assert len({hit.seq for hit in hits} & {*best}) >= 9


@pytest.mark.usefixtures("comparing")
async def test_a_later_vector_takes_the_place_and_other_spaces_can_be_forgotten(
    store: Store,
) -> None:
    await insert(store, "a", "b")
    await embed(store, {1: floats(1, 0), 2: floats(0, 1)})
    await embed(store, {1: floats(-1, 0)})
    await embed(store, {2: floats(1, 0, 0)}, "w")
    assert (await by_vector(store, 1, 0), await by_vector(store, 1, 0, 0, space="w")) == (
        ["p1", "p0"],
        ["p1"],
    )
    await store.apply([DropVectors("archival", "w")])
    assert (await by_vector(store, 1, 0), len(await by_vector(store, 1, 0, 0, space="w"))) == (
        [],
        1,
    )


@pytest.mark.usefixtures("comparing")
async def test_a_vector_that_cannot_be_compared_is_refused(store: Store) -> None:
    await insert(store, "a", "b")
    await embed(store, {1: floats(1, 0)})
    for vector in (floats(1, 2, 3), b"", floats(1, float("nan"))):
        with pytest.raises(StorageError):
            await embed(store, {1: vector})
    assert await by_vector(store, 1, 0) == ["p0"]


async def test_rows_without_a_vector_are_told_until_each_has_one(store: Store) -> None:
    await insert(store, "a", "b", "c")
    await insert(store, "d", agent="other")
    await store.apply([SaveSaid((message(1),))])
    assert await store.unembedded("archival", "v", 2) == [(1, "text: a"), (2, "text: b")]
    await embed(store, {3: floats(1, 0), 99: floats(1, 0)})
    assert [seq for seq, _ in await store.unembedded("archival", "v", 9)] == [1, 2, 4]
    await embed(store, {seq: floats(1, 0) for seq in (1, 2, 4)})
    assert (
        await store.unembedded("archival", "v", 9),
        len(await store.unembedded("recall", "v", 9)),
    ) == ([], 1)


STEP = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 40), st.sampled_from("abcd")),
    st.tuples(st.just("drop"), st.integers(0, 200), st.just("")),
    st.tuples(st.just("embed"), st.integers(0, 200), st.just("")),
)


@settings(max_examples=drawn(40))
@given(steps=st.lists(STEP, max_size=25))
async def test_whatever_two_processes_do_both_find_exactly_what_is_there(
    steps: list[tuple[str, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path, made = tmp_path_factory.mktemp("s") / "state.db", 0
    there: dict[int, tuple[str, str]] = {}
    vectors: set[int] = set()
    async with (
        open_store(path, clock=ManualClock()) as one,
        open_store(path, clock=ManualClock()) as two,
    ):
        for place, (what, number, word) in enumerate(steps):
            store = (one, two)[place % 2]
            if what == "add":
                await insert(store, *[word] * number, prefix=f"{made}-")
                there |= {made + n + 1: (f"{made}-{n}", word) for n in range(number)}
                made += number
            elif what == "drop" and number in there:
                await store.apply([DropPassages("main", (there.pop(number)[0],))])
                vectors.discard(number)
            elif what == "embed" and number in there:
                await embed(store, {number: floats(1, 0)})
                vectors.add(number)
            for handle in (one, two):
                hits = await handle.search_words("archival", "main", ["a", "b"], 999)
                assert {hit.seq for hit in hits} == {
                    n for n, (_, word) in there.items() if word in "ab"
                }
                near = await handle.search_vector("archival", "main", "v", floats(1, 0), 999)
                assert {hit.seq for hit in near} == vectors
                assert (await handle.memory_counts("main")).passages == len(there)
