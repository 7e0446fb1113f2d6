"""Migrations run once, in order, each completely or not at all."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from agent_core.base.errors import StorageError
from agent_core.storage import adopt, open_store
from agent_core.storage.sqlite.connection import MIGRATIONS, NEWEST, migrate, schema_digest
from tests.storage.support import ManualClock, say

FIRST = 23
"""The schema that the first migration makes whole: programs of 3f560781 left it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_first.sql").write_text(
        "create table a(x);\ninsert into a values ('first');\n", encoding="utf-8"
    )
    return folder


@pytest.fixture
def db(tmp_path: Path) -> apsw.Connection:
    return apsw.Connection(str(tmp_path / "x.db"))


# A statement that returns rows is in the middle: apsw stops there unless the rows are read.
SECOND = "alter table a add column y;\nselect x from a;\ninsert into a values ('second', 2);\n"


def add_second(folder: Path, sql: str = SECOND) -> None:
    (folder / "0002_second.sql").write_text(sql, encoding="utf-8")


def test_each_migration_runs_once_and_a_file_gets_only_what_it_lacks(
    db: apsw.Connection, folder: Path
) -> None:
    migrate(db, folder)
    migrate(db, folder)
    assert list(db.execute("select x from a")) == [("first",)]
    add_second(folder)
    migrate(db, folder)
    assert list(db.execute("select x, y from a")) == [("first", None), ("second", 2)]
    assert db.pragma("user_version") == 2


def test_a_migration_that_fails_in_the_middle_leaves_nothing_behind(
    db: apsw.Connection, folder: Path
) -> None:
    migrate(db, folder)
    add_second(folder, "insert into a values ('half');\ninsert into nowhere values (1);\n")
    with pytest.raises(apsw.SQLError, match="nowhere"):
        migrate(db, folder)
    assert list(db.execute("select x from a")) == [("first",)]
    assert db.pragma("user_version") == 1


def at_schema(number: int, folder: Path, path: Path) -> apsw.Connection:
    """Return a database with the first migrations alone."""
    folder.mkdir()
    for file in sorted(MIGRATIONS.glob("*.sql"))[:number]:
        (folder / file.name).write_text(file.read_text("utf-8"), "utf-8")
    db = apsw.Connection(str(path))
    migrate(db, folder)
    return db


def test_every_shipped_version_reaches_the_newest_schema(tmp_path: Path) -> None:
    numbers = [int(file.name[:4]) for file in sorted(MIGRATIONS.glob("*.sql"))]
    assert numbers == list(range(FIRST, FIRST + len(numbers)))
    schemas = []
    for upto in range(len(numbers) + 1):
        db = at_schema(upto, tmp_path / f"upto-{upto}", tmp_path / f"{upto}.db")
        migrate(db)
        schemas.append(
            sorted(
                str(row[0])
                for row in db.execute("select sql from sqlite_schema where sql is not null")
            )
        )
    assert all(schema == schemas[0] for schema in schemas)
    assert schema_digest(db) == NEWEST, f"write {schema_digest(db)} into `NEWEST`"


def names_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


@pytest.mark.parametrize("number", [1, FIRST - 1])
async def test_a_file_older_than_the_first_migration_is_left_alone_and_says_who_upgrades_it(
    tmp_path: Path, number: int
) -> None:
    path = tmp_path / "state.db"
    await open_store(path, clock=ManualClock()).close()
    before = names_in(tmp_path)
    with closing(apsw.Connection(str(path))) as db:
        db.pragma("user_version", number)
    with pytest.raises(StorageError, match=rf"has schema {number}, and .* from {FIRST} on") as told:
        open_store(path, clock=ManualClock())
    assert "earlier version of the program" in told.value.fix
    with closing(apsw.Connection(str(path))) as db:
        assert db.pragma("user_version") == number
    assert names_in(tmp_path) == before


async def test_a_conversation_of_the_first_schema_goes_on_in_the_newest(tmp_path: Path) -> None:
    path, old = tmp_path / "state.db", tmp_path / "old.db"
    db = at_schema(1, tmp_path / "first", old)
    assert db.pragma("user_version") == FIRST
    db.execute("insert into event values (1, 'e', 'main', null, 'user', '{}', 0, 0, 0, null)")
    turn = "insert into turn values (1, 't', 'main', 1, 'done', 1, 2, 'o', 0, 0, 0, 0, '')"
    db.execute(turn)
    for n in range(2):
        db.execute(
            "insert into entry (seq, kind, payload, attempt, at) values (?, 'user', ?, 1, 5)",
            (1 << 20 | n, f'{{"text": "{n}"}}'),
        )
    db.execute("insert into said values (1048576, 'main', 0, '0', '0', 5, 'user', 0, 1, 0, 0, 't')")
    db.close()
    adopt(path, old.name, ManualClock())
    async with open_store(path, clock=ManualClock()) as store:
        last = await store.last_message("main")
        assert last is not None
        assert (last.text, last.line, last.agent) == ("0", "main", "main")
        branch = await store.begin_branch("main", 1 << 20)
        assert [entry.payload["text"] for entry in await store.history(branch.line)] == ["0"]
        assert {row.line for row in await store.conversations("main")} == {branch.line, "main"}
        await say(store, "2")
        entries = await store.history("main")
        assert [(entry.payload["text"], entry.n) for entry in entries] == [
            ("0", 0),
            ("1", 1),
            ("2", 0),
        ]
        assert await store.check() is None
