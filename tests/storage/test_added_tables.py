"""What extensions keep in the state: stored, moved, forgotten, and kept where the extension is not here."""

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from agent_core.base.errors import StorageError
from agent_core.base.matching import Mention
from agent_core.storage import Erasure, Store, open_store
from agent_core.storage.transfer import copy_store
from tests.kit.beside import extension
from tests.storage.support import ManualClock

NOTES = """
from agent_core.storage.added_store import AddedSubject


def forget(value, mention):
    if not mention.within(value["text"]):
        return value
    return {**value, "text": mention.without(value["text"])} if value["kept"] else None


SUBJECTS = {"notes": AddedSubject(forget)}
"""
ROWS = {
    "a": {"text": "Zorblax likes tea.", "kept": True},
    "b": {"text": "Of Zorblax, too.", "kept": False},
    "c": {"text": "Ada.", "kept": True},
}


def erasure(text: str) -> Erasure:
    """Return the request to forget a text."""
    return Erasure(Mention(text), lambda *_: "", lambda payload, _: payload, lambda _: "")


async def keep(store: Store) -> None:
    """Store the rows."""
    for id, value in ROWS.items():
        await store.save_added("notes", id, {"text": "earlier", "kept": True})
        await store.save_added("notes", id, value)


async def test_rows_are_kept_read_and_dropped_and_survive_the_next_opening(
    open_again: Callable[[], Store], tmp_path: Path
) -> None:
    with extension("noting", NOTES, tmp_path):
        store = open_again()
        assert await store.added("notes") == {}
        await store.drop_added("notes", "a")
        await keep(store)
        assert await open_again().added("notes") == ROWS
        await store.drop_added("notes", "b")
        assert [*await store.added("notes")] == ["a", "c"]
        for name in ("other", "Notes", "notes; drop table turn", ""):
            with pytest.raises(StorageError, match="No extension here keeps"):
                await store.save_added(name, "a", {})


async def test_a_text_is_forgotten_as_the_extension_says(store: Store, tmp_path: Path) -> None:
    with extension("noting", NOTES, tmp_path):
        await keep(store)
        assert (await store.rehearse(erasure("Zorblax")))["ext_notes"] == 2
        assert (await store.forget(erasure("Zorblax")))["ext_notes"] == 2
        left = await store.added("notes")
        assert ([*left], left["c"]) == (["a", "c"], ROWS["c"])
        assert "Zorblax" not in str(left)
        assert await store.unread_tables() == []


async def test_without_the_extension_its_rows_stay_and_are_told(
    open_again: Callable[[], Store], tmp_path: Path
) -> None:
    with extension("noting", NOTES, tmp_path):
        await keep(open_again())
    store = open_again()
    assert "ext_notes" not in await store.forget(erasure("Zorblax"))
    assert await store.unread_tables() == ["ext_notes"]
    with pytest.raises(StorageError, match="No extension here keeps"):
        await store.added("notes")
    with extension("noting", NOTES, tmp_path):
        assert await store.added("notes") == ROWS


async def test_the_rows_are_moved_with_the_rest_whether_the_extension_is_here_or_not(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with (
        open_store(tmp_path / "one.db", clock=clock) as first,
        open_store(tmp_path / "two.db", clock=clock) as second,
    ):
        with extension("noting", NOTES, tmp_path):
            await keep(first)
        assert (await copy_store(first, second))["ext_notes"] == 3
        with extension("noting", NOTES, tmp_path):
            assert await second.added("notes") == ROWS


FORGED = {
    "another form": "create table ext_notes (id text primary key, value text not null, more text)",
    "an index": "create table ext_notes (id text primary key, value text not null);"
    " create index ext_i on ext_notes (value)",
    "a trigger": "create table ext_notes (id text primary key, value text not null);"
    " create trigger ext_t after insert on ext_notes begin delete from turn; end",
    "a view": "create view ext_notes as select 1 as id, 2 as value",
    "a virtual table": "create virtual table ext_notes using fts5(id, value)",
    "another name": "create table exts (id text primary key, value text not null)",
}


@pytest.mark.parametrize("sql", FORGED.values(), ids=FORGED)
async def test_no_other_table_passes_for_one_of_an_extension(
    sql: str, tmp_path: Path, clock: ManualClock
) -> None:
    path = tmp_path / "state.db"
    async with open_store(path, clock=clock):
        pass
    db = apsw.Connection(str(path))
    list(db.execute(sql))
    db.close()
    async with open_store(path, clock=clock) as store:
        assert store.recovered is not None
        assert await store.unread_tables() == []
