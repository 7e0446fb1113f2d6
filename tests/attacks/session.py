"""Runs every row, or some, in one setting: `python -m tests.attacks.session full [rows]` prints what each reached.

The rows after `--ahead` run while a package is imported ahead (`ahead.py`); those after `--programs` each run as a
program that a model wrote instead of a call. No rows: all.

It runs as the user who starts it. Each row has its own world, so several run at once.
"""

import asyncio
import json
import secrets
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sandbox import (
    Code,
    FunctionCall,
    Job,
    Limits,
    Outcome,
    ProgramJob,
    Raised,
    Returned,
    Sandbox,
    SandboxUnavailable,
    TimedOut,
)
from sandbox.confine.plan import ZygotePlan
from sandbox.processes.debugging import CallHooks
from sandbox.processes.pool import Pool
from sandbox.processes.startup import (
    LEVELS,
    Level,
    StartedLevel,
    plan_at,
    plan_for,
    try_level,
    without_root,
)
from tests.attacks import ahead
from tests.attacks.rows import FAMILIES, MISTAKES, Row, code, modules, rows
from tests.attacks.world import MOST_OUTPUT, SECRET, World, heed_signals, world

# Enough for an honest call; a call that never returns is stopped much earlier.
LIMITS: Final = Limits(wall_s=30, cpu_s=20, requests=300, output=MOST_OUTPUT)
_SHORT: Final = replace(LIMITS, wall_s=0.4)
_ALONE: Final = ("disk", "memory")  # they would delay all others
_AT_ONCE: Final = 4
_AFTER: Final = "from functions.hand import state\n\ndef after() -> dict:\n    return state()\n"
_ASKED: Final = {
    "look": ["at", "has"],
    "touch": [],
    "progress": [],
}  # what a program may call, as rows call it
_PROGRAM: Final = """
import json, sys, types
sys.modules["functions"] = functions = types.ModuleType("functions")
functions.__path__ = []
sys.modules["functions.hand"] = hand = types.ModuleType("functions.hand")
exec({hand!r}, vars(hand))

class Context:
    _channel = look._channel

    def call(self, name, **arguments):
        return {{"look": look, "touch": touch, "progress": progress}}[name](**arguments)

    def progress(self, *_arguments):
        progress()

asked = types.ModuleType("asked")
exec({family!r}, vars(asked))
vars(asked)[{name!r}](Context(), json.loads({world!r}))
"""
_NOT_THERE: Final = ("AttributeError", "NameError", "TypeError")
_NEIGHBOUR: Final = """
import time
def keep(text: str) -> str:
    open("note", "w").write(text)
    time.sleep(1)
"""


def limits_of(row: Row) -> Limits:
    """Return the limits of a row's call."""
    if row.is_apart or row.layers[:1] == ("clock",):
        return _SHORT
    return replace(LIMITS, cpu_s=1) if row.family == "clock" else LIMITS


def scratch() -> str:
    """Return a scratch folder that no other call uses."""
    return str(Path(tempfile.gettempdir(), f"arena-scratch-{secrets.token_hex(8)}"))


def bare(plan: ZygotePlan, without: tuple[str, ...]) -> ZygotePlan:
    """Return the plan without some of its layers: possible only here, never by a setting."""
    base = without_root(plan) if "namespaces" in without else plan
    user = None if "privileges" in without else base.user
    return replace(
        base, layers=tuple(layer for layer in base.layers if layer not in without), user=user
    )


@asynccontextmanager
async def sandbox_at(level: Level) -> AsyncIterator[tuple[Sandbox, Pool | None] | str]:
    """Yield a sandbox at exactly this level, or the reason why there is none."""
    if level == "portable":
        from tests.kit.levels import BESIDE

        try:
            started = await Sandbox.start(
                packages=(),
                parallel=_AT_ONCE + 1,
                level=level,
                beside=BESIDE,
            )
        except SandboxUnavailable as error:
            yield str(error)
            return
        async with started as sandbox:
            yield sandbox, None
        return
    plan = plan_for({}, slots=24, scratch_folder=scratch())
    missing: list[str] = []
    ground = await try_level(level, plan_at(level, plan), missing)
    if ground is None:
        yield "; ".join(missing)
        return
    async with Sandbox(ground, _AT_ONCE + 1) as sandbox:
        yield sandbox, ground.pool


@asynccontextmanager
async def sandbox_without(*layers: str) -> AsyncIterator[tuple[Sandbox, Pool]]:
    """Yield a sandbox without these layers."""
    plan = bare(plan_for({}, slots=24, scratch_folder=scratch()), layers)
    pool = Pool(plan)
    async with Sandbox(StartedLevel("none", plan, pool, {}, ()), _AT_ONCE + 1) as sandbox:
        yield sandbox, pool


async def attack(
    sandbox: Sandbox, there: World, row: Row, limits: Limits = LIMITS
) -> dict[str, str]:
    """Return what one row reached; a host that crashes is the worst outcome."""
    work = FunctionCall(row.name, {"world": there.told})
    return await _reached(
        sandbox, there, row, Job(modules(), row.family, work, limits=limits, handler=there.ask)
    )


async def attack_by_program(
    sandbox: Sandbox, there: World, row: Row, limits: Limits = LIMITS
) -> dict[str, str]:
    """Return what one row reached as a program. A value that is not JSON arrives as text and is not an answer."""
    texts = {name: (FAMILIES / f"{name}.py").read_text() for name in ("hand", row.family)}
    text = _PROGRAM.format(
        hand=texts["hand"], family=texts[row.family], name=row.name, world=json.dumps(there.told)
    )

    async def ask(name: str, arguments: dict[str, Any], /) -> Any:
        if name != "inner":
            return await there.ask(name, arguments)
        function, given = str(arguments.get("function")), [*arguments.get("rows", ())]
        for values in given:
            await there.ask("call", {"function": function, "arguments": values})
        return [{"value": None} for _ in given]

    work = ProgramJob(text, _ASKED, {}, 1e9)
    empty, around = {"program": code("program", "")}, CallHooks(1)
    return await _reached(
        sandbox, there, row, Job(empty, "program", work, limits=limits, handler=ask, around=around)
    )


async def _reached(sandbox: Sandbox, there: World, row: Row, job: "Job[Any]") -> dict[str, str]:
    neighbour = asyncio.ensure_future(_keep(sandbox, there, row))
    await asyncio.sleep(0.3 if "neighbours" in row.remark else 0)
    try:
        outcome = await sandbox.run(job)
    except Exception as error:  # noqa: BLE001 - what else a host does with a hostile call is what is looked for
        return {row.seen: f"the host fell over: {error!r}"}
    finally:
        await neighbour
    is_text = isinstance(outcome, Returned) and "'is_shown': True" in repr(outcome.value)
    return there.breaches(outcome) | ({} if is_text else _by_outcome(row, outcome, there))


async def _keep(sandbox: Sandbox, there: World, row: Row) -> None:
    """Run another call at the same time that has a secret in its scratch folder."""
    if "neighbours" not in row.remark:
        return
    if sandbox.level == "portable":  # each instance has its own, with the same name
        there.told["neighbours"] = ["/scratch/note"]
        return
    root = "/scratch" if "namespaces" in sandbox.plan.layers else sandbox.plan.scratch_folder
    there.told["neighbours"] = [f"{root}/{number}/note" for number in range(sandbox.plan.slots)]
    await sandbox.run(
        Job({"n": code("n", _NEIGHBOUR)}, "n", FunctionCall("keep", {"text": SECRET}))
    )


def _by_outcome(row: Row, outcome: Outcome, there: World) -> dict[str, str]:
    if isinstance(outcome, TimedOut) and row.layers != ("clock",) and not row.is_apart:
        return {"stays": "it was still at it when its time was over"}
    if row.seen == "inherent" and isinstance(outcome, Returned):
        return {"inherent": f"{row.name} gave {outcome.value!r}"}
    if row.seen == "misled" and isinstance(outcome, Returned):
        return {"misled": f"the host took {outcome.shown[:80]}"}
    if isinstance(outcome, Raised) and outcome.failure.type in MISTAKES:
        if there.told["level"] == "portable" and outcome.failure.type in _NOT_THERE:
            return {}  # what exists at other levels, such as `os.fork`
        return {
            "mistake": f"the attempt itself is wrong: {outcome.failure.type}: {outcome.failure.message}"
        }
    return {}


async def state_after(sandbox: Sandbox) -> Any:
    """Return the state in which a call finds its worker."""
    around: dict[str, Code] = modules() | {"after": code("after", _AFTER)}
    outcome = await sandbox.run(Job(around, "after", FunctionCall("after", {}), limits=LIMITS))
    return outcome.value if isinstance(outcome, Returned) else repr(outcome)


async def run(
    level: Level, wanted: Mapping[str, Collection[str]]
) -> dict[str, dict[str, dict[str, str]]] | str:
    """Return the breaches by carrier: of its rows, or of all; or why there is no sandbox at this level.

    The carriers are calls (""), the import time of a package (`ahead`) and `programs`.
    """
    async with sandbox_at(level) as found:
        if isinstance(found, str):
            return found
        sandbox, pool = found
        fresh = await state_after(sandbox)
        room = asyncio.Semaphore(_AT_ONCE)

        async def one(carrier: str, row: Row) -> dict[str, str]:
            act = {"": attack, "ahead": ahead.strike, "programs": attack_by_program}[carrier]
            async with room:
                with world(level, pool, starts=row.seen == "process") as there:
                    reached = await act(sandbox, there, row, limits_of(row))
            after = await state_after(sandbox)
            return (
                reached
                if after == fresh
                else reached | {"next": f"the next call finds {after}"[:600]}
            )

        reached_by: dict[str, dict[str, dict[str, str]]] = {}
        for carrier, labels in wanted.items():
            mine = [row for row in rows() if row.label in (labels or {row.label})]
            reached_by[carrier] = {}
            for together, seconds in _batches(
                [row for row in mine if not (carrier == "ahead" and row.not_ahead)]
            ):
                with ahead.patience(seconds):
                    reached = await asyncio.gather(*(one(carrier, row) for row in together))
                reached_by[carrier] |= {
                    row.label: each for row, each in zip(together, reached, strict=True)
                }
    return reached_by


def _batches(wanted: list[Row]) -> Iterator[tuple[list[Row], float]]:
    """Yield the rows that run at once, and the time limit of an import there."""
    yield [row for row in wanted if row.family not in _ALONE and row.seen != "stays"], ahead.LONG_S
    yield [row for row in wanted if row.family not in _ALONE and row.seen == "stays"], ahead.SHORT_S
    yield from (([row], ahead.LONG_S) for row in wanted if row.family in _ALONE)


if __name__ == "__main__":
    signal.alarm(550)
    heed_signals()
    level: Level = next(each for each in (*LEVELS, "portable") if each == sys.argv[1])
    wanted, carrier = dict[str, list[str]](), ""
    for word in sys.argv[2:]:
        carrier = word.removeprefix("--") if word.startswith("--") else carrier
        wanted.setdefault(carrier, []).extend([] if word.startswith("--") else [word])
    print(json.dumps(asyncio.run(run(level, wanted or {"": []}))))
