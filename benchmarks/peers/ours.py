"""Our part of `make bench-peers`, with the protocol of `frameworks.py`: the whole loop, as it always runs.

Every step is written to disk (synced commits), and `add` is called in a sandboxed worker.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

from .frameworks import say

_BEGAN: Final = time.perf_counter()
CALLS: Final = 50
_ADD: Final = '''\
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: First number.
        b: Second number.
    """
    return a + b
'''


def open_workspace(
    root: Path, url: str, calls: int
) -> Any:  # Any: a context manager that gives a Workspace
    """Open a workspace with the function `add` and the endpoint as its model."""
    from agent_core.workspace.workspace import Workspace  # noqa: PLC0415 - schemas need none

    (root / "functions").mkdir()
    (root / "functions" / "sums.py").write_text(_ADD)
    flags = {
        "model.base_url": url,
        "model.name": "fake",
        "model.stream": False,
        "model.context_tokens": 128_000,
    }
    return Workspace.open(root, flags={**flags, "turn.max_steps": calls + 10})


async def our_turn(workspace: Any, names: Iterator[int], calls: int) -> float:  # Any: a Workspace
    """Return the seconds that a turn with this many calls takes."""
    agent = await workspace.agent(
        f"agent{next(names)}"
    )  # a fresh conversation, as in the SDK's loop
    await workspace.sandbox_level()
    await agent.model_session.line()
    events: list[Any] = []
    began = time.perf_counter()
    await _listen(agent.turn("go"), events)
    seconds = time.perf_counter() - began
    assert [event.outcome for event in events if event.type == "answer"] == ["returned"] * calls
    assert events[-1].reason == "replied"
    return seconds


async def _listen(turn: AsyncIterator[object], events: list[Any]) -> None:
    events.extend([event async for event in turn])


async def _turns(url: str) -> None:
    with tempfile.TemporaryDirectory(
        prefix="bench-", dir=Path.cwd()
    ) as folder:  # a disk, not a memory disk
        async with open_workspace(Path(folder), url, CALLS) as workspace:
            agent = await workspace.agent("first")
            await workspace.sandbox_level()
            await agent.model_session.line()
            say({"ready": True})
            names = count()
            for _line in sys.stdin:
                say({"seconds": await our_turn(workspace, names, CALLS), "calls": CALLS})


def _schemas(folder: Path) -> None:
    from agent_core.registry.schema import read_module  # noqa: PLC0415 - the import is measured
    from agent_core.registry.source import ModuleSource, read_file  # noqa: PLC0415 - this one, too

    functions: list[object] = []
    for path in sorted(folder.glob("*.py")):
        source = read_file(folder, path)
        assert isinstance(source, ModuleSource)
        functions += read_module(source).functions
    say({"seconds": time.perf_counter() - _BEGAN, "functions": len(functions)})


def main() -> None:
    work, place = sys.argv[1:]
    if work == "turn":
        asyncio.run(_turns(place))
    else:
        _schemas(Path(place))


if __name__ == "__main__":
    main()
