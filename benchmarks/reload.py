"""`python -m benchmarks.reload`: the time from a save until its functions are callable, and of an unchanged start.

The workspace has 1,000 modules. A save is an atomic rename, as editors do it; when the clock stops, the file has been
read, imported in a worker, recorded and added to the registry.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path

from agent_core.access.grants import GrantStore
from agent_core.access.packages import Environment
from agent_core.base.clock import Clock
from agent_core.functions.gate import Gate
from agent_core.functions.service.grant_service import PackageGrants
from agent_core.functions.service.loader import Loader
from agent_core.registry.registry import Registry, RegistryChange, Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import MODULE_LIMIT, ModuleSource, read_file
from agent_core.storage import STATE, Store, only_writer, open_store
from agent_core.workspace.workspace import Workspace
from sandbox import Sandbox

from .measure import Row, in_turn, median_ms, options, ratio, show, timed

MODULES = 1_000
SAVE_MS = 10.0
START = 0.5
# Human saves are further apart than this; a spare worker is ready after a few milliseconds.
_PAUSE_S = 0.05
TEXT = '''\
"""Module {n}."""


def book_{n}(name: str, nights: int, price: float, guests: list[str], room: str = "single") -> str:
    """Book a room in hotel {n}.

    Args:
        name: Who books.
        nights: How many nights.
        price: Price of a night.
        guests: Names of all guests.
        room: Kind of the room.

    Returns:
        The booking's number.
    """
    return f"{{name}}-{{room}}-{{len(guests)}}-{{nights * price}}-{edit}"
'''


def main() -> None:
    given = options(__doc__, rounds=40)
    show(asyncio.run(bench(given.rounds)), as_json=given.json)


async def bench(rounds: int, modules: int = MODULES) -> list[Row]:
    """Return the milliseconds from save to callable, and of a warm start compared with parsing everything."""
    with tempfile.TemporaryDirectory(
        prefix="bench-", dir=Path.cwd()
    ) as folder:  # a disk, not a memory disk
        root = Path(folder)
        (root / "functions").mkdir()
        for n in range(modules):
            (root / "functions" / f"hotel_{n}.py").write_text(TEXT.format(n=n, edit=0))
        saved = await saves(root, rounds)
        starts = await _starts(root, max(3, rounds // 4))
    return [
        Row(f"file saved → callable, {modules} modules", median_ms(saved), aim=SAVE_MS),
        Row(f"read, parse and describe {modules} modules", median_ms(starts["parse"])),
        Row(
            f"start with {modules} unchanged modules",
            median_ms(starts["start"]),
            "parse and describe",
            ratio(starts, "start", "parse"),
            START,
        ),
    ]


async def saves(root: Path, rounds: int) -> list[float]:
    async with Workspace.open(root) as workspace:
        await workspace.sandbox_level()
        editor = _Editor(root, workspace.functions.registry)
        taken = await in_turn({"save": editor.save}, rounds, warm_up=5)
    return taken["save"]


class _Editor:
    """Saves one file after another, each with a new text."""

    def __init__(self, root: Path, registry: Registry) -> None:
        self._folder = root / "functions"
        self._edits = count(1)
        self._files = len(registry.snapshot().modules)
        self._changes: asyncio.Queue[RegistryChange] = asyncio.Queue()
        registry.subscribe(self._changes.put_nowait)

    async def save(self) -> float:
        """Return the seconds from the rename to the swap."""
        await asyncio.sleep(_PAUSE_S)
        n = self._write(next(self._edits))
        began = time.perf_counter()
        self._rename(n)
        change = await self._changes.get()
        seconds = time.perf_counter() - began
        assert change.changed == (f"book_{n}",)
        return seconds

    def _write(self, edit: int) -> int:
        n = edit % self._files
        (self._folder / f".hotel_{n}.py.swp").write_text(TEXT.format(n=n, edit=edit))
        return n

    def _rename(self, n: int) -> None:
        (self._folder / f".hotel_{n}.py.swp").replace(self._folder / f"hotel_{n}.py")


async def _starts(root: Path, rounds: int) -> dict[str, list[float]]:
    async with _ground(root) as (store, sandbox):
        acts = {
            "parse": partial(_parse, root),
            "start": partial(_start, root, store, Gate(sandbox)),
        }
        return await in_turn(acts, rounds)


@asynccontextmanager
async def _ground(root: Path) -> AsyncIterator[tuple[Store, Sandbox]]:
    async with (
        open_store(root / ".knapper" / "state.db", clock=Clock()) as store,
        await Sandbox.start() as sandbox,
    ):
        yield store, sandbox


async def _parse(root: Path) -> float:
    return await timed(asyncio.to_thread(_read_all, root / "functions"))


def _read_all(folder: Path) -> None:
    for path in sorted(folder.glob("*.py")):
        source = read_file(folder, path)
        assert isinstance(source, ModuleSource)
        assert read_module(source).functions


async def _no_packages(_names: object, _name: str) -> bool:
    return False


async def _start(root: Path, store: Store, gate: Gate) -> float:
    registry = Registry(Snapshot.empty())
    alone = partial(only_writer, root / STATE)
    packing = PackageGrants(
        Environment(root, alone, _no_packages, (), 1), GrantStore(root, store, alone)
    )
    seconds = await timed(
        Loader(
            root, store, registry, lambda: gate, lambda: packing, limit_bytes=MODULE_LIMIT
        ).start()
    )
    assert len(registry.snapshot().functions) == len(list((root / "functions").glob("*.py")))
    return seconds


if __name__ == "__main__":
    main()
