"""The indexes of words and vectors are derived: nothing is lost if they are missing, damaged or foreign."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from agent_core.base.clock import Clock
from agent_core.memory.archival import Archival
from agent_core.memory.embedding import embedder
from agent_core.storage import (
    DropAgent,
    DropPassages,
    SaveVectors,
    Store,
    adopt,
    open_store,
    search_index,
)
from agent_core.storage.sqlite import search_index as sqlite_index
from tests.storage.memory_support import floats, found, insert
from tests.storage.support import ManualClock, say, texts

WIDTH = 8


def vector(number: int) -> bytes:
    return floats(*((number >> place & 7) - 3.5 for place in range(WIDTH)))


async def fill(store: Store, count: int = 100) -> None:
    await insert(store, *["pie"] * count)
    await store.apply(
        [SaveVectors("archival", "v", tuple((seq, vector(seq)) for seq in range(1, count + 1)))]
    )


async def by_words(store: Store, *words: str) -> list[str]:
    return await found(store, await store.search_words("archival", "main", words, 500))


async def by_vector(store: Store, number: int, limit: int = 500) -> list[int]:
    hits = await store.search_vector("archival", "main", "v", vector(number), limit)
    return [hit.seq for hit in hits]


@contextmanager
def raw(path: Path) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(str(path))) as db:
        yield db


def tables(path: Path) -> list[str]:
    with raw(path) as db:
        return [
            name
            for (name,) in db.execute("select name from sqlite_schema where name glob 'bits_*'")
        ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
async def many(
    path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Store]:
    """Yield a store with a limit of a hundred vectors."""
    monkeypatch.setattr(sqlite_index, "EXACT", 50)
    async with open_store(path, clock=clock) as store:
        await fill(store)
        assert len(await by_vector(store, 5)) == 100
        yield store


async def test_many_vectors_are_found_whole_after_each_change(many: Store) -> None:
    await insert(many, "pie", prefix="later")
    await many.apply([SaveVectors("archival", "v", ((101, vector(777)), (5, vector(123))))])
    await many.apply([DropPassages("main", ("p6",))])  # the seventh row
    seqs = await by_vector(many, 777)
    assert (seqs[0], {*seqs}) == (101, {*range(1, 102)} - {7})
    hits = await many.search_vector("archival", "main", "v", vector(123), 200)
    assert 5 in {hit.seq for hit in hits if hit.score > 0.999}


async def test_signs_of_vectors_are_on_disk_for_lanes_with_many_and_go_with_them(
    many: Store, path: Path
) -> None:
    await insert(many, "pie", agent="other")
    await many.apply([SaveVectors("archival", "v", ((101, vector(1)),))])
    await many.search_vector("archival", "other", "v", vector(1), 5)
    assert len([name for name in tables(path) if name.count("_") == 1]) == 1
    await many.apply([DropAgent("main")])
    assert tables(path) == []


async def test_signs_that_are_damaged_are_made_anew_and_every_vector_is_found(
    many: Store, path: Path
) -> None:
    with raw(path) as db:
        (chunks,) = [name for name in tables(path) if name.endswith("vector_chunks00")]
        db.execute(f"update {chunks} set vectors = x'00'")
    assert len(await by_vector(many, 5)) == 100
    assert len(await by_vector(many, 5)) == 100
    assert many.recovered is None


@pytest.mark.parametrize(
    "part", ["passage_words_data where id > 10", "passage_words_config", "passage_words_idx"]
)
async def test_damaged_words_are_indexed_anew_and_nothing_is_lost(
    path: Path, clock: ManualClock, part: str
) -> None:
    async with open_store(path, clock=clock) as store:
        await fill(store)
        await say(store, "hello")
    with raw(path) as db:
        db.execute(f"delete from {part}")
    async with open_store(path, clock=clock) as store:
        assert len(await by_words(store, "pie")) == 100
        await insert(store, "pie", prefix="later")
        assert len(await by_words(store, "pie")) == 101
        assert (texts(await store.history("main")), store.recovered) == (["hello"], None)


def theirs(path: Path) -> Path:
    """Make it another user's file, moved aside, with indexes that must not be read."""
    aside = path.rename(path.with_name("theirs.db"))
    with raw(aside) as db:
        for table in [name for name in tables(aside) if name.endswith("chunks")]:
            db.execute(f"update {table} set validity = zeroblob(9), rowids = zeroblob(9)")
        db.execute("update passage_words_data set block = zeroblob(40)")
        db.execute("update lane set rows = 7, done = 1000")
    return aside


async def test_indexes_of_a_file_that_is_taken_over_are_not_read(
    many: Store, path: Path, clock: ManualClock
) -> None:
    await many.close()
    adopt(path, theirs(path).name, clock)
    assert tables(path) == []
    async with open_store(path, clock=clock) as store:
        assert (len(await by_words(store, "pie")), len(await by_vector(store, 5))) == (100, 100)
        assert (await store.memory_counts("main")).passages == 100


async def test_without_the_extension_words_are_found_and_vectors_come_back_with_it(
    many: Store, path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlite_vec", None)
        async with open_store(path, clock=clock) as store:
            assert (
                "pip install --upgrade --force-reinstall 'sqlite-vec"
                in await store.vector_trouble()
            )
            await store.apply([DropPassages("main", ("p6",))])
            assert (len(await by_words(store, "pie")), await by_vector(store, 5)) == (99, [])
            told = str(
                await Archival(store, "main", embedder("wordllama"), Clock(now=clock.now)).search(
                    "which pies?"
                )
            )
            assert "text: pie" in told
            assert "pip install --upgrade --force-reinstall 'sqlite-vec" in told
    async with open_store(path, clock=clock) as store:
        assert await store.vector_trouble() == ""
        assert {*await by_vector(store, 5)} == {*range(1, 101)} - {7}


async def test_a_question_is_answered_by_its_rarer_words(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "MOST_POSTINGS", 50)
    await insert(store, *["many often"] * 60, "rare often", "rare")
    assert await by_words(store, "many", "often", "rare") == ["p61", "p60"]
    assert len(await by_words(store, "often")) == 61


@pytest.mark.usefixtures("comparing")
async def test_many_alike_vectors_are_found_as_many_as_asked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_index, "EXACT", 50)
    monkeypatch.setattr(sqlite_index, "LOOKED_AT", 16)
    await insert(store, *["pie"] * 300)
    await store.apply(
        [SaveVectors("archival", "v", tuple((seq, vector(1)) for seq in range(1, 301)))]
    )
    assert [len(await by_vector(store, number, 40)) for number in (1, 2)] == [40, 40]
    assert len(await by_vector(store, 3, 5_000)) == 300


@pytest.mark.usefixtures("comparing")
async def test_vectors_of_zeros_and_of_odd_width_are_found_last(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_index, "EXACT", 1)
    await insert(store, "a", "b", "c")
    await store.apply(
        [
            SaveVectors(
                "archival", "v", ((1, floats(0, 0, 0)), (2, floats(1, 0, 0)), (3, floats(2, 1, 0)))
            )
        ]
    )
    hits = await store.search_vector("archival", "main", "v", floats(1, 0, 0), 9)
    assert [(hit.seq, round(hit.score, 2)) for hit in hits] == [(2, 1.0), (3, 0.89), (1, 0.0)]
