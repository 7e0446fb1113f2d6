"""`python -m benchmarks.passing [ORDERS …] [--json]`: orders that go through five functions, each in a worker.

The reference is the same program with the same values in one process, without a sandbox. The peaks are the resident
memory that this process, the host, has more than before, and that of the largest worker.
"""

import argparse
import asyncio
import hashlib
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_core.storage import ValueFiles
from sandbox import Code, FunctionCall, Job, Limits, Returned, Sandbox
from sandbox.wire.large import Large

from .measure import Row, show

TEXT = """
def read_orders(count: int) -> list[dict]:
    orders = []
    for n in range(count):
        day, buyer = f"2026-{n % 12 + 1:02}-07", f"buyer {n % 997}"
        orders.append({"id": f"A-{n:07}", "day": day, "cents": n % 9973, "buyer": buyer, "items": [n % 7, n % 11]})
    return orders

def without_doubles(orders: list[dict]) -> list[dict]:
    return list({order["id"]: order for order in orders}.values())

def with_month(orders: list[dict]) -> list[dict]:
    return [{**order, "month": order["day"][:7]} for order in orders]

def paid(orders: list[dict]) -> list[dict]:
    return [order for order in orders if order["cents"]]

def by_month(orders: list[dict]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for order in orders:
        sums[order["month"]] = sums.get(order["month"], 0) + order["cents"]
    return sums
"""
CODE = Code("orders", TEXT, "functions/orders.py", hashlib.sha256(TEXT.encode()).hexdigest())
STEPS = ("without_doubles", "with_month", "paid", "by_month")


def main() -> None:
    given = options(sys.argv[1:])
    show(asyncio.run(bench(given.orders)), as_json=given.json)


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command-line options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passing", description=__doc__)
    parser.add_argument("orders", nargs="*", type=int, help="how many there are")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    given.orders = given.orders or [15_000, 150_000]
    return given


async def bench(counts: Sequence[int]) -> list[Row]:
    """Return the rows of each number of orders."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(
        prefix="bench-", dir=Path.cwd()
    ) as folder:  # a disk, not a memory disk
        async with await Sandbox.start() as sandbox:
            values = ValueFiles(Path(folder))
            await _through(sandbox, values, 10)
            for count in counts:
                before, began = _peak_mib(), time.perf_counter()
                sums, size, worker_mib = await _through(sandbox, values, count)
                taken, host_mib = time.perf_counter() - began, _peak_mib() - before
                began = time.perf_counter()
                assert _alone(count) == sums
                alone = time.perf_counter() - began
                name = f"{count:,} orders ({size / 2**20:.1f} MiB) through five functions"
                rows += [
                    Row(name, taken * 1000, "in one process", taken / alone),
                    Row(f"{name}: host", host_mib, aim=24, unit="MiB"),
                    Row(f"{name}: largest worker", worker_mib, unit="MiB"),
                ]
    return rows


async def _through(
    sandbox: Sandbox, values: ValueFiles, count: int
) -> tuple[dict[str, int], int, float]:
    """Return the result, the size of the largest value, and the memory of the largest worker in MiB."""
    value: Any = None  # Any: what the functions return
    size, worker_mib = 0, 0.0
    for name in ("read_orders", *STEPS):
        arguments = {"count": count} if value is None else {"orders": value}
        job = Job(
            {"orders": CODE},
            "orders",
            FunctionCall(name, arguments),
            Limits(wall_s=600),
            large=values,
        )
        outcome = await sandbox.run(job)
        assert isinstance(outcome, Returned), outcome
        value = outcome.value
        size = max(size, value.size if isinstance(value, Large) else 0)
        worker_mib = max(worker_mib, (outcome.memory or 0) / 2**20)
    return value, size, worker_mib


def _alone(count: int) -> dict[str, int]:
    names: dict[str, Any] = {}
    exec(TEXT, names)
    value = names["read_orders"](count)
    for name in STEPS:
        value = names[name](value)
    sums: dict[str, int] = value
    return sums


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
