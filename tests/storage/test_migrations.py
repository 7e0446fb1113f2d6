"""Migrations run once, in order, each completely or not at all."""

from pathlib import Path

import apsw
import pytest

from agent_core.storage import RecordCall, Stats, adopt, open_store
from agent_core.storage.block_store import BlockAccess
from agent_core.storage.sqlite.connection import MIGRATIONS, NEWEST, migrate, schema_digest
from tests.storage.support import ManualClock, say


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
    assert numbers == list(range(1, len(numbers) + 1))
    schemas = []
    for upto in (0, *numbers):
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


OLD_CALLS = [
    ("f", "v1", kind, s) for kind, s in (("returned", 0.5), ("raised", 0.1), ("returned", 0.9))
]
OLD_CALLS += [("g", "w", "killed", 2)]


async def test_calls_of_the_first_schema_go_on_counting_in_the_newest(tmp_path: Path) -> None:
    path, old = tmp_path / "state.db", tmp_path / "old.db"
    db = at_schema(1, tmp_path / "first", old)
    insert = "insert into call (function, version, turn, outcome, seconds, at) values (?, ?, 't', ?, ?, ?)"
    db.executemany(insert, [(*call, 1000.0 + at) for at, call in enumerate(OLD_CALLS)])
    totals = [
        ("f", "v1", 3, 2, 1, 0, 1, 1000.0, 1002.0, 1.5),
        ("g", "w", 1, 0, 1, 1, 0, 1003.0, 1003.0, 2.0),
    ]
    db.executemany(f"insert into call_total values ({', '.join('?' * 10)})", totals)
    db.close()
    adopt(path, old.name, ManualClock())
    async with open_store(path, clock=ManualClock(2000.0)) as store:
        await store.apply([RecordCall("f", "v1", "returned", 0.2, "t2")])
        f, g = await store.call_stats("f"), await store.call_stats("g")
        assert f == [Stats("f", "v1", 4, 3, 1, 0, 2, 1000.0, 2000.0, 1.7, 0, 1002.0, 2000.0, 0.9)]
        assert g == [Stats("g", "w", 1, 0, 1, 1, 0, 1003.0, 1003.0, 2.0, 1, None, None, 2.0)]
        outcomes = [call.outcome for call in await store.recent_calls("f")]
        assert outcomes == ["returned", "returned", "raised", "returned"]
        assert [(kind.outcome, kind.calls) for kind in await store.call_kinds("f")] == [
            ("raised", 1)
        ]
        assert await store.failing(1) == {("g", "w")}


async def test_conversations_of_the_fifth_schema_go_on_in_the_newest(tmp_path: Path) -> None:
    path, old = tmp_path / "state.db", tmp_path / "old.db"
    db = at_schema(5, tmp_path / "fifth", old)
    db.execute("insert into event values (1, 'e', 'main', null, 'user', '{}', 0, 0, 0, null)")
    db.execute("insert into turn values (1, 't', 'main', 1, 'done', 1, 2, 'o', 0, 0, 0, 0)")
    for n in range(2):
        db.execute(
            "insert into entry (seq, kind, payload, attempt, at) values (?, 'user', ?, 1, 5)",
            (1 << 20 | n, f'{{"text": "{n}"}}'),
        )
    db.close()
    adopt(path, old.name, ManualClock())
    async with open_store(path, clock=ManualClock()) as store:
        await say(store, "2")
        entries = await store.history("main")
        assert [(entry.payload["text"], entry.n) for entry in entries] == [
            ("0", 0),
            ("1", 1),
            ("2", 0),
        ]
        assert await store.check() is None


async def test_blocks_of_an_earlier_schema_belong_to_the_agent_that_made_them(
    tmp_path: Path,
) -> None:
    path, old = tmp_path / "state.db", tmp_path / "old.db"
    db = at_schema(21, tmp_path / "earlier", old)
    for id, limits in (
        ("open", ()),
        ("limited", ('["bob"]', "[]", "")),
        ("copied", ('["bob"]', "[]", "eve")),
    ):
        db.execute("insert into block values (null, ?, ?, '\"x\"', 9, '', 0, 1, 2, 0)", (id, id))
        for version, agent in ((1, "ada"), (2, "bob")):
            db.execute(
                "insert into block_change values (?, ?, '\"x\"', '', '', ?, '', 0)",
                (id, version, agent),
            )
        if limits:
            db.execute("insert into block_access values (?, ?, ?, ?)", (id, *limits))
    db.close()
    adopt(path, old.name, ManualClock())
    async with open_store(path, clock=ManualClock()) as store:
        owners = [await store.block_access(id) for id in ("open", "limited", "copied")]
        assert owners == [
            BlockAccess("ada"),
            BlockAccess("ada", ("bob",), ()),
            BlockAccess("eve", ("bob",), ()),
        ]
