"""What was worked out of functions once is not worked out again by the next process, unless a text is another."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core.base.clock import Clock
from agent_core.functions.gate.clones import MAKERS, PROGRAM, Alike, code_hash, sketch
from agent_core.registry.snapshot import Snapshot
from agent_core.storage import SaveSketches
from agent_core.storage.sqlite import SqliteStore
from agent_core.storage.tables.function_tables import MOST_SKETCHES

from .support import ADD, snapshot_of

TWICE = ADD.replace("add", "twice_added").replace("a + b", "a + b + b")
LIBRARY = snapshot_of(sums=ADD, other=TWICE)
ONE = sketch("plus", ADD.replace("add", "plus"))
LEANING = "def one(a):\n    return two(a)\n\n\ndef two(a):\n    return a + {}\n"
SAME = sketch("one", "def one(b):\n    return two(b)\n", module=LEANING.format(1))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(tmp_path / "state.db", Clock()) as store:
        yield store


async def copies(shelf: SqliteStore, snapshot: Snapshot) -> list[str]:
    """What a fresh index says."""
    alike = Alike(shelf)
    assert await alike.see(snapshot) == 0
    return alike.copies(ONE)


async def kept(store: SqliteStore) -> dict[str, str]:
    keys = await store._read(lambda session: [row[0] for row in session.all("select key from sketch")])
    return await store.sketches(keys)


async def test_the_next_index_takes_what_is_kept_and_says_the_same(store: SqliteStore) -> None:
    assert await copies(store, LIBRARY) == ["add"]
    rows = await kept(store)
    assert len(rows) == 2
    assert await copies(store, LIBRARY) == ["add"]
    other = {key: json.dumps([{**json.loads(text)[0], "digest": "another"}, ""]) for key, text in rows.items()}
    await store.apply([SaveSketches(other)])
    assert await copies(store, LIBRARY) == []  # so it was not made anew


@pytest.mark.parametrize("damage", ["", "{}", "[{}, 1]", '[{"digest": 1}, ""]', '[{"digest": 1, "size": []}, ""]'])
async def test_what_cannot_be_read_is_made_anew(store: SqliteStore, damage: str) -> None:
    assert await copies(store, LIBRARY) == ["add"]
    await store.apply([SaveSketches(dict.fromkeys(await kept(store), damage))])
    assert await copies(store, LIBRARY) == ["add"]


async def test_of_very_many_the_oldest_go_and_what_is_used_still_is_made_anew(store: SqliteStore) -> None:
    await copies(store, LIBRARY)
    await store.apply([SaveSketches({f"old{number}": "" for number in range(MOST_SKETCHES)})])
    rows = await kept(store)
    assert (len(rows), "old0" in rows) == (MOST_SKETCHES, True)
    assert all(key.startswith("old") for key in rows)
    assert await copies(store, LIBRARY) == ["add"]
    assert not {"old0", "old1"} & (await kept(store)).keys()


async def test_a_function_that_leans_on_another_is_looked_at_again_with_it(store: SqliteStore) -> None:
    for number, expected in ((1, ["one"]), (2, []), (1, ["one"])):
        alike = Alike(store)
        await alike.see(snapshot_of(lib=LEANING.format(number)))
        assert alike.copies(SAME) == expected


async def test_an_index_for_which_time_is_up_goes_on_at_the_next_look() -> None:
    alike = Alike()
    assert [await alike.see(LIBRARY, 0) for _ in range(2)] == [1, 0]
    assert alike.copies(ONE) == ["add"]


@pytest.mark.parametrize("changed", MAKERS)
def test_forms_are_made_anew_once_the_code_that_makes_them_changes(changed: str, tmp_path: Path) -> None:
    for maker in MAKERS:
        (tmp_path / maker).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / maker).write_bytes((PROGRAM / maker).read_bytes())
    assert (before := code_hash(tmp_path)) == code_hash(PROGRAM)
    with (tmp_path / changed).open("a") as file:
        file.write("# another line\n")
    assert code_hash(tmp_path) != before
