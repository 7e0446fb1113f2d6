"""A damaged state file is moved aside and reported, and the program continues."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.base.errors import IntegrityError, StorageError
from agent_core.storage import SaveText, content_hash, open_store
from tests.storage.support import ManualClock, begin, say, texts, user


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


async def fill(path: Path, clock: ManualClock, turns: int = 40) -> None:
    async with open_store(path, clock=clock) as store:
        for number in range(turns):
            await say(store, str(number), "x" * 3000)


def contents(path: Path) -> bytes:
    return path.read_bytes()


def put_garbage(path: Path) -> None:
    path.write_bytes(b"this is no database" * 500)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:9000])


def break_header(path: Path) -> None:
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])


def belong_to_another_program(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("create table theirs(x)")
        db.execute("pragma user_version = 1")
    db.close()


DAMAGES = [
    pytest.param(put_garbage, id="garbage"),
    pytest.param(cut_off, id="cut off", marks=pytest.mark.slow),
    pytest.param(break_header, id="broken header", marks=pytest.mark.slow),
    pytest.param(belong_to_another_program, id="another program's"),
]


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_kept_aside_and_said(
    path: Path, clock: ManualClock, damage: Callable[[Path], None]
) -> None:
    await fill(path, clock)
    damage(path)
    before = contents(path)
    async with open_store(path, clock=clock) as store:
        assert store.recovered is not None
        assert "state.db.corrupt-19700112T134640Z" in store.recovered
        assert texts(await store.history("main")) == []
        await say(store, "we go on")
    assert contents(path.with_name("state.db.corrupt-19700112T134640Z")) == before
    async with open_store(path, clock=clock) as store:
        assert (store.recovered, texts(await store.history("main"))) == (None, ["we go on"])


def put_log(path: Path) -> None:
    Path(f"{path}-wal").write_bytes(b"old log")


async def test_a_damaged_file_goes_aside_with_its_log_beside_others(
    path: Path, clock: ManualClock
) -> None:
    for number in range(2):  # in one second
        put_garbage(path)
        if not number:
            put_log(path)
        async with open_store(path, clock=clock) as store:
            await say(store, "new")
    assert contents(Path(f"{path}.corrupt-19700112T134640Z-wal")) == b"old log"
    kept = [
        contents(file)
        for file in path.parent.glob("*.corrupt-*Z*")
        if not file.name.endswith("-wal")
    ]
    assert [text[:7] for text in kept] == [b"this is"] * 2


def ruin_pages(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: 4096 * 110] + b"\xaa" * (len(whole) - 4096 * 110))


async def test_damage_that_is_met_later_is_told_and_the_store_goes_on(
    path: Path, clock: ManualClock
) -> None:
    await fill(path, clock)
    ruin_pages(path)
    async with open_store(path, clock=clock) as store:
        assert not store.recovered
        assert await store.check() is not None
        with pytest.raises(
            StorageError, match=r"is damaged.*set aside as `state\.db\.corrupt-"
        ) as caught:
            await store.history("main")
        assert caught.value.fix
        assert store.recovered is not None
        await say(store, "we go on")
        assert texts(await store.history("main")) == ["we go on"]
        assert await store.check() is None
    assert len(list(path.parent.glob("*.corrupt-*Z"))) == 1


def change(path: Path, sql: str, *values: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute(sql, values)
    db.close()


@pytest.mark.parametrize(
    "row", ['{"te', "[" * 3000 + "]" * 3000, "9" * 5000], ids=["cut", "deep", "digits"]
)
async def test_a_row_that_is_no_json_any_more_costs_no_other_agent_anything(
    path: Path, clock: ManualClock, row: str
) -> None:
    await fill(path, clock, turns=1)
    change(path, "update entry set payload = ?", row)
    async with open_store(path, clock=clock) as store:
        await say(store, "hello", agent="other")
        with pytest.raises(StorageError, match="The agent `main` cannot be read"):
            await store.history("main")
        assert texts(await store.history("other")) == ["hello"]
        assert store.recovered is None
        whole = await store.read_agent("main")
        assert whole
        assert "An entry was left out" in whole.turns[0].entries[0].payload["text"]
    assert [file.name for file in path.parent.glob("*.corrupt-*")] == []


async def test_a_source_that_no_longer_fits_its_hash_is_never_served(
    path: Path, clock: ManualClock
) -> None:
    async with open_store(path, clock=clock) as store:
        await store.apply([SaveText("x = 1\n")])
    change(path, "update text set text = 'x = 2'")
    async with open_store(path, clock=clock) as store:
        with pytest.raises(IntegrityError, match="not what its hash says"):
            await store.text(content_hash("x = 1\n"))


async def test_a_second_process_notices_that_the_file_was_put_aside(
    path: Path, clock: ManualClock
) -> None:
    await fill(path, clock)
    ruin_pages(path)
    async with open_store(path, clock=clock) as first, open_store(path, clock=clock) as second:
        turn = await begin(second, "other")
        with pytest.raises(StorageError):
            await first.history("main")
        with pytest.raises(StorageError, match="taken away or replaced"):
            await second.append(turn.id, 1, 0, [user("would go into the kept file")])
        await say(second, "both write", agent="other")
        assert texts(await first.history("other")) == ["both write"]
    assert len(list(path.parent.glob("*.corrupt-*Z"))) == 1


async def test_a_file_deleted_while_in_use_is_noticed_before_a_write(
    tmp_path: Path, clock: ManualClock
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    async with open_store(folder / "state.db", clock=clock) as store:
        turn = await begin(store)
        for file in folder.iterdir():
            file.unlink()
        with pytest.raises(StorageError, match="taken away"):
            await store.append(turn.id, 1, 0, [user("lost?")])
        await say(store, "we go on")
    async with open_store(folder / "state.db", clock=clock) as store:
        assert texts(await store.history("main")) == ["we go on"]
        shutil.rmtree(folder)
        for _ in range(2):
            with pytest.raises(StorageError, match="none can be made"):
                await store.manifest()


async def test_a_file_of_a_newer_program_is_left_alone_and_names_the_upgrade(
    path: Path, clock: ManualClock
) -> None:
    await fill(path, clock, turns=1)
    change(path, "pragma user_version = 9999")
    before = contents(path)
    with pytest.raises(
        StorageError, match=r"schema 9999.*Upgrade the program; this copy came from"
    ):
        open_store(path, clock=clock)
    assert contents(path) == before
