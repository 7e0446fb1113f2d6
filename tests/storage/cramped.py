"""A program for a folder that is too small or read-only: prints as JSON what the store reported and kept.

`test_cramped_places.py` starts it in a separate mount namespace, with a small disk on the folder.
"""

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from agent_core.base.errors import StorageError
from agent_core.storage import ClaimedTurn, Store, open_store
from tests.storage.support import ManualClock, begin, user

Report = dict[str, object]


def full_disk(folder: Path) -> Report:
    """Fill the disk, then free space."""
    filler = folder / "filler"
    filler.write_bytes(b"x" * 300_000)
    return asyncio.run(_until_it_fails(folder, filler.unlink))


def size_limit(folder: Path) -> Report:
    """Limit the file size, then lift the limit."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    return asyncio.run(
        _until_it_fails(folder, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, unlimited))
    )


async def _until_it_fails(folder: Path, make_room: Callable[[], None]) -> Report:
    async with open_store(folder / "state.db", clock=ManualClock()) as store:
        turn = await begin(store)
        acknowledged, message = await _fill(store, turn)
        readable = len(await store.load(turn.id))
        make_room()
        acknowledged = (
            await store.append(turn.id, 1, acknowledged, [user("there is room again")])
        ).n
    async with open_store(folder / "state.db", clock=ManualClock(prefix="again")) as store:
        stored, finding = len(await store.load(turn.id)), await store.check()
    return {
        "message": message,
        "readable": readable,
        "acknowledged": acknowledged,
        "stored": stored,
        "finding": finding,
    }


async def _fill(store: Store, turn: ClaimedTurn) -> tuple[int, str]:
    acknowledged = 0
    while True:
        try:
            acknowledged = (await store.append(turn.id, 1, acknowledged, [user("x" * 5000)])).n
        except StorageError as error:
            return acknowledged, str(error)


def read_only_from_start(folder: Path) -> Report:
    """Use a read-only folder without a state file."""
    _make_read_only(folder)
    return _open(folder)


def read_only_with_file(folder: Path) -> Report:
    """Use a read-only folder with a state file."""
    asyncio.run(open_store(folder / "state.db", clock=ManualClock()).close())
    _make_read_only(folder)
    return _open(folder)


def _open(folder: Path) -> Report:
    try:
        open_store(folder / "state.db", clock=ManualClock())
    except StorageError as error:
        return {"message": str(error)}
    return {}


def _make_read_only(folder: Path) -> None:
    subprocess.run(["mount", "--options", "remount,bind,ro", str(folder)], check=True)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
