"""A full disk, a read-only folder, a locked file: a clear message, and nothing lost."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_core.base.errors import StorageError
from agent_core.storage import open_store
from agent_core.storage.sqlite import connection
from tests.storage import cramped
from tests.storage.support import ManualClock, begin, texts, user

ROOM = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
SMALL_DISK = 'mount -t tmpfs -o size=2m none "$0" && exec "$@"'


@cache
def _can_mount() -> bool:
    return (
        subprocess.run(
            [*ROOM, "mount -t tmpfs none /mnt"], check=False, capture_output=True
        ).returncode
        == 0
    )


def report(what: str, folder: Path) -> dict[str, Any]:  # Any: JSON
    if not _can_mount():
        pytest.skip("no user namespace may be made here")
    program = [sys.executable, "-m", cramped.__name__, what, str(folder)]
    done = subprocess.run(
        [*ROOM, SMALL_DISK, str(folder), *program], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)  # Any: JSON
    return found


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        pytest.param(
            "full_disk",
            "is full. The change in progress is not saved; everything before it is. Free",
            id="disk",
        ),
        pytest.param("size_limit", "limits on file size", id="limit", marks=pytest.mark.slow),
    ],
)
def test_without_room_nothing_acknowledged_is_lost_and_work_goes_on(
    tmp_path: Path, what: str, expected: str
) -> None:
    found = report(what, tmp_path)
    assert expected in found["message"]
    assert str(tmp_path / "state.db") in found["message"]
    assert found["readable"] == found["acknowledged"] - 1
    assert found["stored"] == found["acknowledged"] > 10
    assert found["finding"] is None


@pytest.mark.parametrize(
    "what", [pytest.param("read_only_from_start", marks=pytest.mark.slow), "read_only_with_file"]
)
def test_a_folder_that_cannot_be_written_is_told_with_what_to_do(tmp_path: Path, what: str) -> None:
    message = report(what, tmp_path)["message"]
    assert f"The state file `{tmp_path / 'state.db'}` cannot be" in message
    assert "Make its folder writable for you, or work in another folder." in message


def test_a_state_file_below_what_is_no_folder_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageError, match="cannot be opened"):
        open_store(tmp_path / "file" / "state.db", clock=ManualClock())


async def test_a_locked_file_is_told_and_the_append_works_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_MS", 30)
    async with open_store(tmp_path / "state.db", clock=ManualClock()) as store:
        turn, other = await begin(store), apsw.Connection(str(tmp_path / "state.db"))
        other.execute("begin immediate")
        with pytest.raises(StorageError, match=r"kept locked by another process.*try again"):
            await store.append(turn.id, 1, 0, [user("later")])
        other.execute("rollback")
        other.close()
        await store.append(turn.id, 1, 0, [user("later")])
        assert texts(await store.load(turn.id)) == ["later"]


async def test_a_closed_store_says_that_it_is_closed(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state.db", clock=ManualClock())
    await store.close()
    await store.close()
    with pytest.raises(StorageError, match="is closed already"):
        await store.manifest()
