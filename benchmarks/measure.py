"""Shared by the benchmarks: interleaved timing, so that a busy moment affects all, and the rows of a table."""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from agent_core.base.errors import KnapperError

T = TypeVar("T")
Act = Callable[[], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure; `aim` applies to the ratio to the reference from the same run if there is one, else to the figure."""

    what: str
    ms: float
    reference: str = ""
    ratio: float | None = None
    aim: float | None = None
    unit: str = "ms"

    @property
    def is_met(self) -> bool | None:
        """Whether the aim is reached; None if there is no aim."""
        return (
            None
            if self.aim is None
            else (self.ms if self.ratio is None else self.ratio) <= self.aim
        )


def ran_with(model: str, work: Coroutine[Any, Any, T]) -> T:  # Any: what a coroutine may be sent
    """Return what the work measured; exit if the model is unavailable, so no figure is reported for it."""
    try:
        return asyncio.run(work)
    except KnapperError as error:
        sys.exit(f"{model} is not available, so nothing was measured: {error}")


async def timed(act: Awaitable[object]) -> float:
    """Return the seconds that the awaitable takes."""
    began = time.perf_counter()
    await act
    return time.perf_counter() - began


async def in_turn(acts: Mapping[str, Act], rounds: int, warm_up: int = 1) -> dict[str, list[float]]:
    """Return the seconds that each act reports, round by round, without the warm-up rounds."""
    taken: dict[str, list[float]] = {name: [] for name in acts}
    for number in range(warm_up + rounds):
        for name, act in acts.items():
            seconds = await act()
            if number >= warm_up:
                taken[name].append(seconds)
    return taken


def median_ms(seconds: list[float]) -> float:
    """Return the median in milliseconds."""
    return statistics.median(seconds) * 1000


def ratio(taken: Mapping[str, list[float]], name: str, reference: str) -> float:
    """Return the median ratio of neighboring measurements: each pair met the same machine."""
    return statistics.median(
        ours / theirs for ours, theirs in zip(taken[name], taken[reference], strict=True)
    )


def options(description: str | None, rounds: int | None) -> argparse.Namespace:
    """Parse the options common to all benchmarks; `--rounds` exists only with a default."""
    parser = argparse.ArgumentParser(description=description)
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds, help="how often each is timed")
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    return parser.parse_args()


def show(rows: list[Row], *, as_json: bool) -> None:
    """Print the rows."""
    if as_json:
        print(
            json.dumps(
                {"rows": [{**asdict(row), "met": row.is_met} for row in rows]}, ensure_ascii=False
            )
        )
        return
    for row in rows:
        print(line(row))


def line(row: Row) -> str:
    """Return a row as text."""
    beside = "" if row.ratio is None else f"{row.ratio:6.2f} × {row.reference}"
    aim = (
        "" if row.aim is None else f"≤ {row.aim:g}{'' if row.ratio is not None else f' {row.unit}'}"
    )
    met = {None: "", True: "met", False: "NOT MET"}[row.is_met]
    figure = f"{row.ms:10.3f} ms " if row.unit == "ms" else f"{row.ms:10g} {row.unit}"
    return f"{row.what:48} {figure} {beside:42} {aim:9} {met}".rstrip()
