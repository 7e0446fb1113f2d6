"""The cost of the sandbox: a call of `add(a, b)` with no layer, with every layer, and with a spare worker.

All ways are interleaved in one run and use the same code; only the layers and the spare differ. The ratios matter:
`hardened / plain` and `spare / plain`, from medians. Also whole calls through `Sandbox.run`: `add` itself, with a
granted folder, with a package that is slow to import. With `--portable`, the same for level
`portable` against a spare worker of this machine's own level: a start, a call, loading the compiled component, and the
private memory of an idle host. `--build` rebuilds the component.
"""

import argparse
import asyncio
import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from agent_core.base.extensions import LEVELS, offers
from agent_core.base.user_folders import data_folder
from knapper_ext.portable.component import find_or_build
from knapper_ext.portable.level import ChildPlan, ChildPool, PoolPortion
from sandbox import Access, Code, FunctionCall, Job, Limits, Returned, Sandbox
from sandbox.beside import LevelsBeside
from sandbox.processes.ends import WorkerPool
from sandbox.processes.pool import Pool
from sandbox.processes.sessions import WorkerReply, run
from sandbox.processes.startup import plan_at, plan_for
from sandbox.wire.protocol import Frame

_TEXT = "def add(a: int, b: int) -> int:\n    return a + b\n"
_USING = "from slow import table\n\ndef add(a: int, b: int) -> int:\n    return table.add(a, b)\n"
_TARGETS = {"hardened": 1.25, "spare": 0.35}
_WHOLE_TARGETS = {"reach": 1.25, "package": 2.0}  # relative to a whole plain call
_SLOW_MODULES, _SLOW_CLASSES = 60, 40  # about as many as a data frame library imports
_PORTABLE_AIMS = {"cold call": 80.0, "stored code": 5.0, "build": 60_000.0, "memory at rest": 40.0}
_TIMES_SPARE = 4.0  # for a call in an instance
_PAUSE_S = 0.006  # time for a spare to get ready; every way gets it


def levels_in(store: Path) -> LevelsBeside:
    """Return the levels beside the sandbox, with this folder for what they build."""
    return LevelsBeside(partial(offers, LEVELS), store)


def _code(text: str) -> Code:
    return Code(
        "calculate", text, "functions/calculate.py", hashlib.sha256(text.encode()).hexdigest()
    )


_CODE = _code(_TEXT)


def _make_slow(folder: Path) -> None:
    """Create a package of many modules and classes; the last one can add."""
    folder.joinpath("slow").mkdir()
    classes = "\n".join(
        f"@dataclass\nclass Row{number}:\n    a: int\n    b: str = ''\n"
        for number in range(_SLOW_CLASSES)
    )
    for number in range(_SLOW_MODULES):
        folder.joinpath(f"slow/part{number}.py").write_text(
            f"from dataclasses import dataclass\n{classes}"
        )
    imports = "\n".join(f"from . import part{number}" for number in range(_SLOW_MODULES))
    folder.joinpath("slow/__init__.py").write_text(imports)
    folder.joinpath("slow/table.py").write_text("def add(a, b):\n    return a + b\n")


@dataclass(frozen=True)
class Way:
    """One way to run the call."""

    name: str
    act: Callable[[], Awaitable[object]]


async def _refuse(_frame: Frame) -> Frame:
    return {"kind": "absent"}


async def _job(pool: WorkerPool) -> Frame:
    asked = {"kind": "compile", "module": _CODE.module, "path": _CODE.path, "text": _CODE.text}
    told = await run(pool, asked, Limits(), _refuse)
    assert isinstance(told, WorkerReply)
    message = {"kind": "code", "path": _CODE.path, "code": told.reply["code"]}
    call = {
        "kind": "call",
        "module": _CODE.module,
        "function": "add",
        "arguments": {"a": 1, "b": 2},
    }
    return call | {"modules": {_CODE.module: message}}


def _caller(pool: WorkerPool, job: Frame) -> Callable[[], Awaitable[object]]:
    async def act() -> None:
        told = await run(pool, job, Limits(), _refuse)
        assert isinstance(told, WorkerReply)
        assert told.reply["value"] == 3

    return act


async def _measure(ways: list[Way], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(rounds + 5):
        for way in ways:
            await asyncio.sleep(_PAUSE_S)
            began = time.perf_counter()
            await way.act()
            if number >= 5:
                times[way.name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) * 1000 for name, taken in times.items()}


async def _fresh_python() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-I", "-S", "-c", "1 + 2")
    await process.wait()


async def _bubblewrap() -> None:
    confined = (
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--tmpfs",
        "/tmp",
        "--unshare-all",
        "--die-with-parent",
    )
    process = await asyncio.create_subprocess_exec(
        *confined, sys.executable, "-I", "-S", "-c", "1 + 2"
    )
    assert await process.wait() == 0


async def _works(act: Callable[[], Awaitable[object]]) -> bool:
    try:
        await act()
    except (OSError, AssertionError):  # it is not installed, or cannot create a namespace here
        return False
    return True


async def bench(rounds: int) -> dict[str, float]:
    """Return the median milliseconds per call, by way; `start` is the start of a sandbox with its self-test."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        async with await Sandbox.start() as sandbox:
            started = (time.perf_counter() - began) * 1000
            plan = plan_at(sandbox.level, plan_for({}, slots=2, scratch_folder=f"{folder}/scratch"))
            pools = {
                "plain": Pool(replace(plan, layers=(), covers=False, user=None), spare=False),
                "hardened": Pool(plan, spare=False),
                "spare": Pool(plan),
            }
            job = await _job(pools["hardened"])
            whole = _whole_calls(sandbox, Path(folder))
            began = time.perf_counter()
            await whole["package"]()
            first = (time.perf_counter() - began) * 1000
            ways = [Way(name, _caller(pool, job)) for name, pool in pools.items()]
            ways += [Way(name, act) for name, act in whole.items()]
            ways += [Way("fresh python", _fresh_python)]
            ways += [Way("bubblewrap", _bubblewrap)] if await _works(_bubblewrap) else []
            taken = await _measure(ways, rounds)
        for pool in pools.values():
            await pool.aclose()
    return taken | {"start": started, "package, first call": first}


async def bench_portable(rounds: int, *, builds: bool) -> dict[str, float]:
    """Return the median milliseconds at level `portable`, and of spare workers of this machine's own level.

    `cold call` is a child's start, one call in it, and its end. `memory at rest` is in MB: the private memory of a host
    and its children after a call, in excess of that at the machine's own level.
    """
    with tempfile.TemporaryDirectory() as anew:
        store = Path(anew if builds else data_folder(), "portable")
        began = time.perf_counter()
        code = find_or_build(
            store,
            lambda text: print(f"{time.perf_counter() - began:5.1f} s {text}", file=sys.stderr),
        )
        built = {"build": (time.perf_counter() - began) * 1000} if builds else {}
        async with (
            await Sandbox.start() as native,
            await Sandbox.start(
                level="portable", packages=(), beside=levels_in(store.parent)
            ) as portable,
        ):
            spare = Pool(
                plan_at(native.level, plan_for({}, slots=2, scratch_folder=f"{anew}/scratch"))
            )
            children = ChildPool(ChildPlan(code, None), slots=2)
            pool = PoolPortion(children, Limits().scratch)
            job = await _job(pool)
            ways: dict[str, Callable[[], Awaitable[object]]] = {
                "spare": _caller(spare, await _job(spare)),
                "call": _caller(pool, job),
                "whole spare": partial(_call, native, _CODE),
                "whole call": partial(_call, portable, _CODE),
            }
            taken = await _measure([Way(name, act) for name, act in ways.items()], rounds)
            await children.aclose()
            await spare.aclose()
        cold = Way("cold call", partial(_cold_call, ChildPlan(code, None), job))
        taken |= await _measure([cold], max(10, rounds // 10))
        taken["stored code"] = statistics.median(
            [await _printed(_LOAD, str(code.path)) for _ in range(10)]
        )
        resting = [
            await _printed(_REST, level, str(store.parent)) for level in ("portable", "auto")
        ]
    return taken | built | {"memory at rest": resting[0] - resting[1]}


async def _cold_call(plan: ChildPlan, job: Frame) -> None:
    pool = ChildPool(plan, slots=2)
    await _caller(PoolPortion(pool, Limits().scratch), job)()
    await pool.aclose()


_LOAD = """
import sys
import time
from wasmtime import Engine
from wasmtime.component import Component
from knapper_ext.portable.runner import config
engine = Engine(config())
began = time.perf_counter()
Component.deserialize_file(engine, sys.argv[1])
print((time.perf_counter() - began) * 1000)
"""
_REST = """
import asyncio
import os
import sys
from pathlib import Path
from benchmarks.sandbox import _CODE, _call, levels_in
from sandbox import Sandbox

def private(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own = sum(int(line.split()[1]) for line in lines if line.startswith("Private"))
    return own + sum(map(private, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))

async def main():
    async with await Sandbox.start(packages=(), level=sys.argv[1], beside=levels_in(Path(sys.argv[2]))) as sandbox:
        await _call(sandbox, _CODE)
        await asyncio.sleep(1)
        print(private(os.getpid()) / 1000)

asyncio.run(main())
"""


async def _printed(program: str, *arguments: str) -> float:
    """Return the number that a subprocess prints."""
    command = ["-c", program, *arguments]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[1]
    )
    printed, _none = await process.communicate()
    return float(printed)


def _whole_calls(sandbox: Sandbox, folder: Path) -> dict[str, Callable[[], Awaitable[object]]]:
    _make_slow(folder)
    package = Access(packages=(("slow", str(folder)),), preload=("slow",))
    return {
        "whole": partial(_call, sandbox, _CODE),
        "reach": partial(_call, sandbox, _CODE, access=Access(readable=(str(folder / "slow"),))),
        "package": partial(_call, sandbox, _code(_USING), access=package),
    }


async def _call(sandbox: Sandbox, code: Code, **options: Any) -> None:  # Any: terms of a Job
    outcome = await sandbox.run(
        Job({code.module: code}, code.module, FunctionCall("add", {"a": 1, "b": 2}), **options)
    )
    assert isinstance(outcome, Returned), outcome


def show_portable(taken: dict[str, float]) -> bool:
    """Print the figures of level `portable` with their targets. Return whether all are met."""
    times = {f"{way}call": _TIMES_SPARE * taken[f"{way}spare"] for way in ("", "whole ", "kept ")}
    aims = _PORTABLE_AIMS | times
    for name, figure in taken.items():
        aim = (
            f"≤ {aims[name]:.2f} {'met' if figure <= aims[name] else 'MISSED'}"
            if name in aims
            else ""
        )
        print(f"{name:19} {figure:10.2f} {'MB' if 'memory' in name else 'ms'}   {aim}")
    return all(taken[name] <= aim for name, aim in aims.items() if name in taken)


def main() -> int:
    """Print the table, or JSON; exit with 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--portable", action="store_true", help="what level `portable` costs")
    parser.add_argument("--build", action="store_true", help="with it, the component is built anew")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.portable:
        return (
            0
            if show_portable(asyncio.run(bench_portable(options.rounds, builds=options.build)))
            else 1
        )
    taken = asyncio.run(bench(options.rounds))
    ratios = {
        name: taken[name] / taken["whole" if name in _WHOLE_TARGETS else "plain"] for name in taken
    }
    targets = _TARGETS | _WHOLE_TARGETS
    met = {name: ratios[name] <= target for name, target in targets.items()}
    if options.json:
        print(json.dumps({"milliseconds": taken, "ratios": ratios, "targets": targets, "met": met}))
        return 0 if all(met.values()) else 1
    for name, milliseconds in taken.items():
        target = f"≤ {targets[name]:.2f} {'met' if met[name] else 'MISSED'}" if name in met else ""
        reference = "whole" if name in _WHOLE_TARGETS else "plain"
        print(f"{name:19} {milliseconds:8.2f} ms   {ratios[name]:6.2f} × {reference}   {target}")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
