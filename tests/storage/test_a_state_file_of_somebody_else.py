"""A state file that came with a foreign folder is not opened; a tampered one has no effect."""

import os
import re
import shutil
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.base.errors import ForeignState, StorageError, WorkspaceError
from agent_core.storage import (
    DropApproval,
    SaveApproval,
    TokenRow,
    adopt,
    open_store,
    prepare_state_dir,
    set_aside,
)
from agent_core.storage.sqlite import SqliteStore, connection
from tests.storage.support import ManualClock, say, texts

lists_locks = pytest.mark.skipif(
    not Path("/proc/locks").exists(), reason="this kernel does not tell who holds a lock"
)

NOBODY = 65534
PAGE = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return prepare_state_dir(tmp_path) / "state.db"


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Make all further files another user's, or this user's again."""
    own = os.environ.get("XDG_DATA_HOME", "")

    def become(is_stranger: bool) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "theirs") if is_stranger else own)

    return become


async def fill(path: Path, clock: ManualClock, text: str = "mine") -> None:
    async with open_store(path, clock=clock) as store:
        await say(store, text)


async def history(path: Path, clock: ManualClock) -> tuple[str, list[str]]:
    async with open_store(path, clock=clock) as store:
        return store.recovered or "", texts(await store.history("main"))


def change(path: Path, sql: str) -> None:
    with sqlite3.connect(path) as db:
        db.executescript(sql)
    db.close()


def content(path: Path) -> bytes:
    return path.read_bytes()


def plant(path: Path, data: bytes, mode: int = 0o644) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def open_to_others(path: Path) -> list[Path]:
    return [file for file in path.parent.glob("state.db*") if file.stat().st_mode & 0o077]


def put_aside(path: Path, reason: str) -> list[Path]:
    return list(path.parent.glob(f"state.db.{reason}-*"))


def hot_journal(path: Path, victim: Path) -> bytes:
    """Return a rollback journal that makes an older SQLite delete the victim as its super-journal."""
    name, magic = bytes(victim), bytes.fromhex("d9d505f920a163d7")
    head = magic + struct.pack(">IIIII", 0, 1, path.stat().st_size // PAGE, 512, PAGE)
    lock = (0x40000000 // PAGE) + 1
    tail = (
        struct.pack(">I", lock)
        + name
        + struct.pack(">II", len(name), sum(name) & 0xFFFFFFFF)
        + magic
    )
    return head.ljust(512, b"\0") + tail


@lists_locks
async def test_a_file_that_a_process_with_another_key_has_open_stays_where_it_is(
    path: Path, clock: ManualClock, stranger: Callable[[bool], None]
) -> None:
    async with open_store(path, clock=clock) as store:
        await say(store, "before")
        stranger(True)
        for move in (lambda: open_store(path, clock=clock), lambda: set_aside(path, clock)):
            with pytest.raises(StorageError, match=f"Process {os.getpid()} has the state file"):
                move()
        stranger(False)
        await say(store, "after")
    assert await history(path, clock) == ("", ["before", "after"])


async def test_a_foreign_journal_is_put_aside_unread(
    path: Path, clock: ManualClock, tmp_path: Path
) -> None:
    await fill(path, clock)
    victim = plant(tmp_path / "years-of-work", b"all of it")
    journal = plant(Path(f"{path}-journal"), hot_journal(path, victim))
    planted = content(journal)
    told, said = await history(path, clock)
    assert said == ["mine"]
    assert "state.db-journal" in told
    assert content(victim) == b"all of it"
    assert [content(file) for file in put_aside(path, "foreign")] == [planted]


async def test_a_file_that_another_user_made_stays_unopened_until_its_human_sets_it_aside(
    path: Path, clock: ManualClock, stranger: Callable[[bool], None]
) -> None:
    stranger(True)
    await fill(path, clock, "theirs")
    before = content(path)
    stranger(False)
    with pytest.raises(ForeignState, match="does not carry your seal") as refused:
        open_store(path, clock=clock)
    assert "knapper state set-aside" in refused.value.fix
    assert (content(path), put_aside(path, "foreign")) == (before, [])
    name = set_aside(path, clock)
    (aside,) = put_aside(path, "foreign")
    assert (aside.name, content(aside)) == (name, before)
    assert await history(path, clock) == ("", [])
    assert set_aside(path, clock) == "", "one's own stays"


@lists_locks
async def test_what_was_put_aside_goes_on_when_its_human_says_so_and_no_process_has_the_state_open(
    path: Path, clock: ManualClock, stranger: Callable[[bool], None]
) -> None:
    stranger(True)
    await fill(path, clock, "theirs")
    stranger(False)
    name = set_aside(path, clock)
    async with open_store(path, clock=clock) as store:
        await say(store, "mine")
        with pytest.raises(StorageError, match=f"Process {os.getpid()} has the state file"):
            adopt(path, name, clock)
        await say(store, "still mine")
    assert await history(path, clock) == ("", ["mine", "still mine"])
    adopt(path, name, clock)
    assert await history(path, clock) == ("", ["theirs"])
    assert len(put_aside(path, "replaced")) == 1


async def test_ones_own_folder_may_be_moved_or_copied(
    path: Path, clock: ManualClock, tmp_path: Path
) -> None:
    await fill(path, clock)
    shutil.copytree(path.parent, tmp_path / "restored")
    shutil.move(path.parent, tmp_path / "moved")
    for folder in (tmp_path / "moved", tmp_path / "restored"):
        assert await history(folder / "state.db", clock) == ("", ["mine"])


async def test_a_strangers_file_has_no_seal_in_ones_own_place(
    path: Path, clock: ManualClock, tmp_path: Path
) -> None:
    await fill(path, clock)
    other = tmp_path / "other.db"
    await fill(other, clock, "theirs")
    shutil.copy(other, path)  # as `git pull` overwrites ignored files
    told, said = await history(path, clock)
    assert said == []
    assert "was replaced by another" in told


async def test_a_log_that_was_put_next_to_ones_own_file_is_not_read_into_it(
    path: Path, clock: ManualClock
) -> None:
    await fill(path, clock)
    planted = plant(Path(f"{path}-wal"), b"from a checkout")
    with pytest.raises(ForeignState):
        open_store(path, clock=clock)
    assert content(planted) == b"from a checkout"
    set_aside(path, clock)
    assert await history(path, clock) == ("", [])


IGNORING = "create trigger t before delete on approval begin select raise(ignore); end;"
ABORTING = "create trigger t before insert on entry begin select raise(abort, '✓'); end;"
VIEW = "drop table manifest; create view manifest as"
ENDLESS = "with recursive c(x) as (select 1 union all select x + 1 from c)"
TAMPERED = {
    "a trigger that keeps a yes": IGNORING,
    "a view without end": f"{VIEW} {ENDLESS} select 'm' || x as module, 'v' as version from c;",
    "a large value": f"{VIEW} select 'm' as module, hex(zeroblob(400000000)) as version;",
    "tables that are missing": "drop table recorded; drop table entry;",
    "a table without its columns": "drop table approval; create table approval(a);",
    "statistics": "analyze;",
}


@pytest.mark.parametrize("sql", [pytest.param(sql, id=name) for name, sql in TAMPERED.items()])
async def test_a_schema_that_is_not_this_programs_counts_as_damage(
    path: Path, clock: ManualClock, sql: str
) -> None:
    await fill(path, clock)
    change(path, sql)
    told, said = await history(path, clock)
    assert "was damaged" in told
    assert said == []


async def test_no_trigger_runs_that_comes_while_the_file_is_open(
    path: Path, clock: ManualClock
) -> None:
    async with open_store(path, clock=clock) as store:
        await store.apply([SaveApproval("f", "d", "[]", "{}", "me", "s")])
        change(path, IGNORING)
        await store.apply([DropApproval("f")])
        assert await store.approvals() == []


@pytest.mark.parametrize(
    "change_of",
    [
        "id = 'other'",
        "name = 'other'",
        "digest = 'other'",
        'scopes = \'["read", "admin"]\'',
        "agents = '[]'",
        "expires = null",
        "expires = 9e9",
    ],
)
async def test_a_token_that_somebody_changed_in_the_file_is_none(
    path: Path, clock: ManualClock, change_of: str
) -> None:
    async with open_store(path, clock=clock) as store:
        for name in ("mine", "changed"):
            row = TokenRow(name, name, "digest", ("read",), ("main",), clock.time + 60)
            assert await store.add_token(row)
    change(path, f"update token set {change_of} where id = 'changed';")
    async with open_store(path, clock=clock) as store:
        assert [row.id for row in await store.tokens()] == ["mine"]
        assert [await store.token(id) for id in ("changed", "other")] == [None, None]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("name", ["", "state.db"])
def test_a_state_folder_or_file_of_another_owner_is_refused_by_name(
    tmp_path: Path, name: str
) -> None:
    theirs = prepare_state_dir(tmp_path) / name
    if name:
        theirs.touch()
    os.chown(theirs, NOBODY, NOBODY)
    with pytest.raises(
        WorkspaceError, match=rf"{re.escape(theirs.name)}` belongs to nobody \(65534\)"
    ):
        prepare_state_dir(tmp_path)


async def test_a_state_file_is_readable_by_its_owner_alone_whatever_the_umask(
    path: Path, clock: ManualClock
) -> None:
    before = os.umask(0)
    try:
        async with open_store(path, clock=clock) as store:
            await say(store, "secret")
            assert open_to_others(path) == []
    finally:
        os.umask(before)


async def test_an_endless_statement_is_ended(
    path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PATIENCE_S", 0.2)
    async with SqliteStore.open(path, clock) as store:
        with pytest.raises(StorageError, match="took longer than"):
            await store._read(lambda session: session.all(f"{ENDLESS} select count(*) from c"))
        assert await store.manifest() == {}


async def test_half_a_character_in_a_row_of_somebody_else_is_read_as_a_whole_one(
    tmp_path: Path, clock: ManualClock
) -> None:
    path = tmp_path / "state.db"
    await fill(path, clock)
    change(path, """update entry set payload = '{"text": "a\\ud800"}' where kind = 'user'""")
    assert (await history(path, clock))[1] == ["a\ufffd"]
