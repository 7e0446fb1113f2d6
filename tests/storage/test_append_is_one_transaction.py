"""The entries, posts, writes and takes of one append happen together or not at all, and are on the disk then."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from agent_core.base.errors import LostLease, StorageError
from agent_core.storage import (
    Entry,
    InboxFull,
    ManifestConflict,
    Post,
    SavePending,
    SaveReading,
    SaveText,
    SetManifest,
    Store,
    content_hash,
    open_store,
    turn_store,
)
from tests.storage.support import ManualClock, begin, saving, user


async def test_everything_of_an_append_is_there_when_it_returns(store: Store) -> None:
    turn = await begin(store)
    await store.append(
        turn.id,
        1,
        0,
        [user("x")],
        posts=[Post("other", "note", {})],
        writes=saving("text", "x = 1\n"),
    )
    assert len(await store.load(turn.id)) == 1
    assert len(await store.waiting("other")) == 1
    assert await store.manifest() == {"text": content_hash("x = 1\n")}


async def _nothing_happened(store: Store, turn: str) -> bool:
    traces = (
        await store.load(turn),
        await store.waiting("other"),
        await store.pending("f"),
        await store.manifest(),
    )
    return not any(traces)


async def test_a_manifest_conflict_takes_the_entries_and_posts_back_with_it(store: Store) -> None:
    turn = await begin(store)
    writes = [SavePending("f", {}), *saving("text", "x = 1\n", expected="0" * 64)]
    with pytest.raises(ManifestConflict) as caught:
        await store.append(
            turn.id, 1, 0, [user("x")], posts=[Post("other", "note", {})], writes=writes
        )
    assert (caught.value.module, caught.value.expected, caught.value.found) == (
        "text",
        "0" * 64,
        None,
    )
    assert await _nothing_happened(store, turn.id)
    await store.append(turn.id, 1, 0, [user("the place is still free")])


async def test_a_full_inbox_of_another_takes_the_append_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await begin(store)
    monkeypatch.setattr(turn_store, "INBOX_LIMIT", 20)
    many = [Post("crowded", "note", {}) for _ in range(21)]
    with pytest.raises(InboxFull):
        await store.append(turn.id, 1, 0, [user("x")], posts=[Post("other", "note", {}), *many])
    assert await _nothing_happened(store, turn.id)
    assert await store.waiting("crowded") == []


async def test_a_payload_without_a_json_form_is_refused_and_nothing_is_kept(store: Store) -> None:
    turn = await begin(store)
    for value in (object(), {1, 2}, 10**5000):
        with pytest.raises(StorageError, match="cannot be stored as JSON"):
            await store.append(turn.id, 1, 0, [user("good"), Entry("result", {"value": value})])
    assert await store.load(turn.id) == []


async def test_the_posts_of_a_finish_arrive_with_it_and_not_without_it(store: Store) -> None:
    turn = await begin(store)
    with pytest.raises(LostLease):
        await store.finish(turn.id, 9, posts=[Post("other", "timer", {})])
    assert await store.waiting("other") == []
    await store.finish(turn.id, 1, posts=[Post("other", "timer", {})])
    assert len(await store.waiting("other")) == 1


async def test_writes_outside_of_a_turn_are_one_transaction_too(store: Store) -> None:
    reading = SaveReading("functions/text.py", (1, 2, 3), "v", "{}")
    with pytest.raises(ManifestConflict):
        await store.apply([SaveText("kept?"), reading, SetManifest("text", "0" * 64, None)])
    assert await store.text(content_hash("kept?")) is None
    assert await store.readings() == {}


class CountingDisk(apsw.VFS):
    """The files of the system, which count how often SQLite waits until they are on the disk."""

    def __init__(self) -> None:
        self.system, self.syncs = apsw.vfs_names()[0], 0
        super().__init__("counting", self.system, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return CountingFile(self, name, flags)


class CountingFile(apsw.VFSFile):
    def __init__(
        self, disk: CountingDisk, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk = disk
        super().__init__(disk.system, name, flags)

    def xSync(self, flags: int) -> None:
        self._disk.syncs += 1
        super().xSync(flags)


@pytest.fixture
def disk() -> Iterator[CountingDisk]:
    counting = CountingDisk()
    yield counting
    counting.unregister()


async def test_an_append_waits_for_the_disk_and_what_is_streamed_not(
    tmp_path: Path, disk: CountingDisk
) -> None:
    async with open_store(tmp_path / "state.db", clock=ManualClock()) as store:
        turn = await begin(store)
        waited = []
        for writing in (
            store.append(turn.id, 1, 0, [user("x")]),
            store.keep_streamed(turn.id, 1, 1, "y"),
            store.append(turn.id, 1, 1, [user("y")]),
        ):
            disk.syncs = 0
            await writing
            waited.append(disk.syncs > 0)
    assert waited == [True, False, True]
