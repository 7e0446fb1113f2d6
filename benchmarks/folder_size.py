"""`python -m benchmarks.folder_size [FEW MANY] [--rounds N] [--json]`: the cost of a large folder against a small one.

For 500 and 5,000 modules with one function each: the first start, which judges every file; a start with nothing
changed; the time from a save until its functions are callable; and the filter of `/functions`. A ratio is the growth.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agent_core.workspace.workspace import Workspace

from .measure import Row, show, timed
from .reload import TEXT, saves

_STARTS = 3


def main() -> None:
    given = options(sys.argv[1:])
    show(asyncio.run(bench(given.rounds, *given.modules)), as_json=given.json)


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command-line options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.folder_size", description=__doc__)
    parser.add_argument("modules", nargs="*", type=int, help="how many there are, in two folders")
    parser.add_argument("--rounds", type=int, default=20, help="how often each is timed")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    given.modules = given.modules or [500, 5_000]
    if len(given.modules) != 2:
        parser.error("say two numbers of modules, or none")
    return given


async def bench(rounds: int, few: int, many: int) -> list[Row]:
    """Return the rows of both folders; those of the larger one have their growth."""
    small, large = await _taken(few, rounds), await _taken(many, rounds)
    rows = []
    for name in small:
        rows.append(Row(f"{name}, {few:,} modules", small[name] * 1000))
        rows.append(Row(f"{name}, {many:,} modules", large[name] * 1000, f"{few:,}", large[name] / small[name]))
    return rows


async def _taken(modules: int, rounds: int) -> dict[str, float]:
    """Return the seconds of each, the median of all rounds."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()) as folder:  # a disk, not a memory disk
        root = Path(folder)
        (root / "functions").mkdir()
        for n in range(modules):
            (root / "functions" / f"hotel_{n}.py").write_text(TEXT.format(n=n, edit=0))
        first = await timed(_open(root))
        again = [await timed(_open(root)) for _ in range(_STARTS)]
        saved = await saves(root, rounds)
        async with Workspace.open(root) as workspace:
            filtered = [await timed(workspace.functions.list(f"book_{n}")) for n in range(rounds)]
    return {
        "first start": first,
        "start": statistics.median(again),
        "file saved → callable": statistics.median(saved),
        "`/functions` with a filter": statistics.median(filtered),
    }


async def _open(root: Path) -> None:
    async with Workspace.open(root) as workspace:
        assert len(workspace.functions.names()) == len(list((root / "functions").glob("*.py")))


if __name__ == "__main__":
    main()
