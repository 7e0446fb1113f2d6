"""Each row without its layers, where it must work: `python -m tests.attacks.control [rows]`, as root.

It runs in a separate jail (processes, mounts, names, network), because the attacks really happen. `--find` prints, for
every row of the sandbox's layers, the smallest set of layers that must be removed.
"""

import asyncio
import fcntl
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from sandbox import Attempt, Attempts, Evaluation, Job, Returned, Sandbox
from sandbox.processes.pool import Pool
from tests.attacks.naive import believe
from tests.attacks.rows import HOST, SANDBOX, Row, modules, rows
from tests.attacks.session import LIMITS, attack, limits_of, sandbox_without
from tests.attacks.world import REPOSITORY, SECRET, VARIABLE, World, heed_signals, world

JAIL: Final = (
    *(
        "unshare",
        "--fork",
        "--pid",
        "--mount",
        "--mount-proc",
        "--uts",
        "--ipc",
        "--net",
        "--kill-child",
    ),
    *(sys.executable, "-B", "-m", "tests.attacks.control"),
)
_STILL_S: Final = 1.0
_UNCAPPED: Final = {
    "output": replace(LIMITS, output=1 << 30),
    "result": replace(LIMITS, result=1 << 28),
    "requests": replace(LIMITS, requests=1 << 20),
}


class Grounds:
    """Sandboxes by the layers removed from them, each started once."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._made: dict[tuple[str, ...], tuple[Sandbox, Pool]] = {}

    async def without(self, layers: tuple[str, ...]) -> tuple[Sandbox, Pool]:
        """Return the sandbox without these layers."""
        if layers not in self._made:
            self._made[layers] = await self._stack.enter_async_context(sandbox_without(*layers))
        return self._made[layers]


async def control(grounds: Grounds, row: Row) -> dict[str, str]:
    """Return what a row reaches without its layers."""
    (kind, *_others) = row.layers
    sandbox, pool = await grounds.without(() if kind in HOST else row.layers)
    with world("core" if "namespaces" in row.layers else "full", pool) as there:
        if kind == "clock":
            return await _without_clock(sandbox, there, row)
        if kind == "reader":
            found = await believe(pool, there, row)
            misled = found.get("misled", "")
            return found | {"claims": misled, "amount": misled} | there.breaches(_NOTHING)
        if kind == "worker":
            return await _in_one_worker(sandbox, there, row)
        return await attack(sandbox, there, row, _UNCAPPED.get(kind) or limits_of(row))


_NOTHING: Final = Returned(None, "", "", 0.0)


async def _without_clock(sandbox: Sandbox, there: World, row: Row) -> dict[str, str]:
    task = asyncio.ensure_future(attack(sandbox, there, row, replace(LIMITS, wall_s=60, cpu_s=60)))
    done, _waiting = await asyncio.wait({task}, timeout=_STILL_S)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return {} if done else {"stays": "it goes on"}


async def _in_one_worker(sandbox: Sandbox, there: World, row: Row) -> dict[str, str]:
    """Run the row and then an inspection in one worker, as if calls shared workers."""
    look = Attempt(Evaluation(("from functions.hand import state",), "state()"))
    act = Attempt(Evaluation((), f"{row.name}({there.told!r})"))
    found = await sandbox.attempt(
        Job(modules(), row.family, Attempts(row.name, [look, act, look], 10), limits=LIMITS)
    )
    first, _act, last = (getattr(outcome, "value", repr(outcome)) for outcome in found)
    return {} if first == last else {"next": f"{last}"}


async def _run(wanted: Sequence[str]) -> dict[str, dict[str, str]]:
    results = {}
    async with AsyncExitStack() as stack:
        grounds = Grounds(stack)
        for row in _of(wanted):
            if row.layers:
                results[row.label] = await control(grounds, row)
                if (
                    row.seen not in results[row.label]
                ):  # the machine may be busy: working once is enough
                    results[row.label] |= await control(grounds, row)
    return results


def _of(wanted: Sequence[str]) -> list[Row]:
    return [
        row
        for row in rows()
        if not row.is_apart and (not wanted or row.label in wanted or row.family in wanted)
    ]


async def _find(wanted: Sequence[str]) -> None:
    async with AsyncExitStack() as stack:
        grounds = Grounds(stack)
        for row in _of(wanted):
            if not set(row.layers) & set(HOST):
                print(row.label, *await _fewest(grounds, row), flush=True)


async def _fewest(grounds: Grounds, row: Row) -> tuple[str, ...]:
    if row.seen not in await control(grounds, replace(row, layers=SANDBOX)):
        return ("never", str(await control(grounds, replace(row, layers=SANDBOX))))
    for layers in _subsets():
        if row.seen in await control(grounds, replace(row, layers=layers)):
            return layers
    return ("never",)


def _subsets() -> Iterator[tuple[str, ...]]:
    for size in range(1, len(SANDBOX) + 1):
        yield from itertools.combinations(SANDBOX, size)


def in_jail(*words: str) -> dict[str, dict[str, str]]:
    """Return the control runs of these rows or families, or of all."""
    around = {**os.environ, VARIABLE: SECRET}
    done = subprocess.run(
        [*JAIL, *words], capture_output=True, text=True, cwd=REPOSITORY, env=around, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


def _furnish() -> None:
    """Set up a network that reaches itself; writes to the library or to this repository do not persist."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
    cover = tempfile.mkdtemp(prefix="arena-cover-")
    subprocess.run(["mount", "-t", "tmpfs", "none", cover], check=True)
    for number, folder in enumerate((Path(os.__file__).parent, REPOSITORY / "sandbox")):
        upper, work = Path(cover, f"upper{number}"), Path(cover, f"work{number}")
        upper.mkdir()
        work.mkdir()
        options = f"lowerdir={folder.resolve()},upperdir={upper},workdir={work}"
        subprocess.run(
            ["mount", "-t", "overlay", "none", str(folder.resolve()), "-o", options], check=True
        )


def main(words: Sequence[str]) -> None:
    """Run the command inside the jail; if started outside of it, enter it first."""
    if os.getpid() != 1:
        sys.exit(
            subprocess.call([*JAIL, *words], cwd=REPOSITORY, env={**os.environ, VARIABLE: SECRET})
        )
    heed_signals()
    _furnish()
    wanted = [word for word in words if not word.startswith("-")]
    if "--find" in words:
        asyncio.run(_find(wanted))
    else:
        signal.alarm(550)
        print(json.dumps(asyncio.run(_run(wanted))))


if __name__ == "__main__":
    main(sys.argv[1:])
