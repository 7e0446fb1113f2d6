"""`python -m benchmarks.stalls`: the longest time that hostile input blocks the event loop, for each entry point.

CPU time of the loop's thread between two heartbeats, which load hardly affects; `--json` also has wall-clock time. Each
row is the worst input of its entry point, of all in `tests/hostile`.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from agent_core.base.errors import KnapperError
from agent_core.functions.gate import Candidate, Gate
from agent_core.functions.gate.gate import STAGES
from agent_core.registry.registry import Snapshot
from sandbox import Sandbox
from tests.hostile import entries
from tests.hostile.forge import FORGE, packed
from tests.hostile.texts import candidates, function, plain
from tests.kit import Repeat, Say, scripted
from tests.kit.desk import VOWELS, Desk, desk
from tests.kit.heartbeat import MOST_MS, heartbeat

from .measure import Row, options, show

Act = Callable[[], Awaitable[object]]
_LINES = 5_000


@dataclass(frozen=True, slots=True)
class Case:
    """One input at one entry point."""

    entry: str
    text: str
    size: int
    act: Act


@dataclass(frozen=True, slots=True)
class Worst:
    """The input of an entry point that blocks the loop longest."""

    entry: str
    text: str
    size: int
    cpu_ms: float
    wall_ms: float

    @property
    def row(self) -> Row:
        """The result as a row of the table."""
        return Row(f"{self.entry}: {self.text} ({self.size:,})", self.cpu_ms, aim=MOST_MS)


def main() -> None:
    given = options(__doc__, rounds=None)
    found = asyncio.run(bench())
    if given.json:
        rows = [{**asdict(one.row), "met": one.row.is_met, "wall_ms": one.wall_ms} for one in found]
        print(json.dumps({"rows": rows}, ensure_ascii=False))
    else:
        show([one.row for one in found], as_json=False)


async def bench() -> list[Worst]:
    """Return the worst input of each entry point, the longest stall first."""
    worst: dict[str, Worst] = {}
    async with AsyncExitStack() as stack:
        root = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()))
        )
        model = stack.enter_context(scripted([Repeat(Say("done"))]))
        here = await stack.enter_async_context(desk(root, model))
        async for case in _cases(here):
            async with heartbeat() as stall:
                with suppress(KnapperError):
                    await case.act()
            one = Worst(case.entry, case.text, case.size, stall.cpu_ms, stall.wall_ms)
            if case.entry not in worst or one.cpu_ms > worst[case.entry].cpu_ms:
                worst[case.entry] = one
    return sorted(worst.values(), key=lambda one: -one.cpu_ms)


async def _cases(here: Desk) -> AsyncIterator[Case]:
    here.put("letters.py", VOWELS)
    here.put("forge.py", FORGE)
    for lines in (
        [f"#{n % 128}" for n in range(_LINES)],
        [f"#{n % 128}" for n in range(_LINES, 0, -1)],
    ):
        here.put("long.py", function([*lines, "return a"]))
        await here.workspace.functions.reload()
    for case in (*_values(here), *_texts(), *_past(here), *_calls(here)):
        yield case


def _values(here: Desk) -> Iterator[Case]:
    shop = here.workspace.functions
    for name, value in entries.hostile_values().items():
        raw = packed(value)
        tag, size = name.partition(":")[0], len(json.dumps(value))
        yield Case(f"value {tag}", name, size, partial(shop.call, "claim", raw))
    for name, arguments in entries.REQUESTS.items():
        raw = packed([name, arguments])
        size = len(json.dumps(arguments))
        yield Case(f"request {name}", "hostile arguments", size, partial(shop.call, "ask", raw))


def _texts() -> Iterator[Case]:
    until = [stage.name for stage in STAGES].index("import")
    gate = Gate(
        Sandbox.__new__(Sandbox), stages=STAGES[:until]
    )  # none of these stages uses a worker
    for name, text in candidates().items():
        candidate = Candidate("f", text, "lib")
        yield Case("candidate", name, len(text), partial(gate.judge, candidate, Snapshot.empty()))


def _past(here: Desk) -> Iterator[Case]:
    past = here.workspace.functions.history
    size = len(here.workspace.functions.registry.snapshot().modules["long"].text)
    for name, look in (("history", past.of), ("diff", past.diff)):
        yield Case(f"functions {name}", "cyclic lines", size, partial(look, "f"))


def _calls(here: Desk) -> Iterator[Case]:
    for name, host in sorted(entries.host_functions(here.agent).items()):
        for shown, text in plain().items():
            for parameter, arguments in entries.hostile_arguments(host.function.parameters, text):
                raw = json.dumps(arguments)
                act = partial(entries.called, here.agent, name, raw)
                yield Case(name, f"{parameter} of {shown}", len(raw), act)


if __name__ == "__main__":
    main()
