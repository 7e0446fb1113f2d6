"""Runs a row at import time: the import of a package is the attack, in the process from which workers are forked.

The package may write in one folder, which was granted to its function, and asks the host through another to inspect it.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sandbox import Access, FunctionCall, Job, Limits, Outcome, Returned, Sandbox
from sandbox.processes import pool as pools
from tests.attacks.rows import FAMILIES, MISTAKES, Row, code
from tests.attacks.world import World

SHORT_S: Final = 4.0  # for the import of a row that may never end
LONG_S: Final = 60.0
_END_S: Final = 100.0
_LOOK_S: Final = 0.02
_ASKED, _ANSWERED = "asked", "answered"
_CALLER: Final = code(
    "caller", "import struck\n\ndef reached() -> object:\n    return struck.REACHED\n"
)
_PACKAGE: Final = """
import json, os, sys, time, types
WORLD, EXCHANGE = {told!r}, {exchange!r}
functions = sys.modules["functions"] = types.ModuleType("functions")
functions.__path__ = []
from . import hand
sys.modules["functions.hand"] = hand


class Context:
    def call(self, name, **arguments):
        with open(EXCHANGE + "/new", "w") as file:
            json.dump({{"function": name, "arguments": arguments}}, file)
        os.rename(EXCHANGE + "/new", EXCHANGE + "/{asked}")
        for _time in range(1000):
            if os.path.exists(EXCHANGE + "/{answered}"):
                return os.unlink(EXCHANGE + "/{answered}")
            time.sleep(0.01)


os.chdir(os.environ["TMPDIR"])
try:
    from . import {family} as family
    REACHED = family.{name}(Context(), WORLD)
except BaseException as error:
    REACHED = type(error).__name__ + ": " + str(error)
os.chdir("/")
for name in ("functions", "functions.hand"):
    sys.modules.pop(name, None)
"""


@contextmanager
def _package(there: World, row: Row) -> Iterator[tuple[Access, Path]]:
    """Yield the access of the package's function, and the folder through which it asks the host."""
    with tempfile.TemporaryDirectory(prefix="arena-ahead-", ignore_cleanup_errors=True) as name:
        site, granted, exchange = (Path(name, part) for part in ("site", "granted", "exchange"))
        place = site / "struck"
        for folder in (place, granted, exchange):
            folder.mkdir(parents=True)
        Path(name).chmod(0o755)
        there.told |= {"granted": str(granted), "stays_s": 5}
        for module in ("hand", row.family):
            shutil.copy(FAMILIES / f"{module}.py", place)
        text = _PACKAGE.format(
            told=there.told,
            exchange=str(exchange),
            asked=_ASKED,
            answered=_ANSWERED,
            family=row.family,
            name=row.name,
        )
        place.joinpath("__init__.py").write_text(text)
        writable = tuple(map(str, (granted, exchange)))
        packages = (("struck", str(site)),)
        yield (
            Access(writable=writable, packages=packages, preload=("struck",), owner=row.label),
            exchange,
        )


async def strike(sandbox: Sandbox, there: World, row: Row, limits: Limits) -> dict[str, str]:
    """Return what a row reached at import time, and in the first call after it."""
    with _package(there, row) as (access, exchange):
        async with _answering(there, exchange):
            call = sandbox.run(
                Job(
                    {"caller": _CALLER},
                    "caller",
                    FunctionCall("reached", {}),
                    limits=limits,
                    access=access,
                    handler=there.ask,
                )
            )
            try:
                outcome = await asyncio.wait_for(call, _END_S)
            except TimeoutError:
                return {"stays": "neither its import nor its call came to an end"}
            except Exception as error:  # noqa: BLE001 - what else a host does with a hostile package is what is looked for
                return {row.seen: f"the host fell over: {error!r}"}
            return there.breaches(outcome) | _marked(there) | _by_outcome(row, outcome)


@asynccontextmanager
async def _answering(there: World, exchange: Path) -> AsyncIterator[None]:
    """Inspect what the package asks to have inspected."""

    async def answer() -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            with suppress(OSError, ValueError):
                asked = json.loads(exchange.joinpath(_ASKED).read_text())
                exchange.joinpath(_ASKED).unlink()
                await there.ask("call", asked)
                exchange.joinpath(_ANSWERED).touch()

    task = asyncio.ensure_future(answer())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _marked(there: World) -> dict[str, str]:
    """Return files in the granted folder that would run as their owner."""
    lent = [
        path.name
        for path in Path(there.told["granted"]).rglob("*")
        if path.lstat().st_mode & 0o6000
    ]
    return {"changed": f"it runs as its owner: {', '.join(lent)}"} if lent else {}


def _by_outcome(row: Row, outcome: Outcome) -> dict[str, str]:
    reached: Any = outcome.value if isinstance(outcome, Returned) else ""
    if row.seen == "inherent" and isinstance(outcome, Returned):
        return {"inherent": f"{row.name} gave {reached!r}"}
    if isinstance(reached, str) and reached.split(":")[0] in MISTAKES:
        return {"mistake": f"the attempt itself is wrong: {reached}"}
    return {}


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Give imports this long."""
    before, pools.START_S = pools.START_S, seconds
    try:
        yield
    finally:
        pools.START_S = before
