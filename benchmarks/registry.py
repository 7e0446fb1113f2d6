"""The registry's speed as ratios within one run: `python -m benchmarks.registry [--json]`.

A cold schema from source is compared with the import of the same module plus the fastest way to a schema from live
objects that the standard library and `docstring-parser` allow (`inspect`, `get_type_hints`): the published generators
are not dependencies of this project. Times are CPU seconds, best of five passes.
"""

import importlib
import inspect
import json
import shutil
import sys
import tempfile
import time
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docstring_parser

from agent_core.registry import arguments
from agent_core.registry.folder_access import scan
from agent_core.registry.function import ModuleReading
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource, parse, read_file
from benchmarks.measure import options

COUNT = 1_000
PASSES = 5
TEMPLATE = '''"""Module {n} of the benchmark."""

from typing import Literal


def book_{n}(
    name: str,
    nights: int,
    price: float,
    breakfast: bool,
    guests: list[str],
    prices: dict[str, float],
    room: Literal["single", "double"] = "single",
    note: str | None = None,
) -> str:
    """Book a room in hotel number {n}.

    The booking is kept until noon, and a note goes to the desk.

    Args:
        name: Who books.
        nights: How many nights.
        price: Price of a night.
        breakfast: Whether breakfast is included.
        guests: Names of all guests.
        prices: Price of each extra.
        room: Kind of the room.
        note: What the desk should know.

    Returns:
        The booking's number.
    """
    total = nights * price + sum(prices.values())
    return f"{{name}}-{{room}}-{{len(guests)}}-{{total}}-{{breakfast}}-{{note}}"
'''
_NAMES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}


def best(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the fastest pass."""
    times = []
    for _ in range(PASSES):
        start, rounds = time.process_time(), 0
        while not rounds or time.process_time() == start:  # the clock of some kernels is coarse
            work()
            rounds += 1
        times.append((time.process_time() - start) / rounds)
    return min(times)


def from_live_object(function: Callable[..., Any]) -> dict[str, Any]:
    """Build the reference: a schema from an imported function, with as little work as the task allows."""
    hints = typing.get_type_hints(function)
    documented = {
        one.arg_name: one.description
        for one in docstring_parser.google.parse(function.__doc__ or "").params
    }
    properties, required = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        kind = typing.get_origin(hint) or hint
        properties[name] = {"type": _NAMES.get(kind, "string"), "description": documented.get(name)}
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    return {
        "name": function.__name__,
        "parameters": {"properties": properties, "required": required},
    }


def import_and_describe(folder: Path) -> None:
    """Re-import every module of the folder and describe its function."""
    for name in [name for name in sys.modules if name.startswith("bench_")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    for path in sorted(folder.glob("*.py")):
        module = importlib.import_module(path.stem)
        from_live_object(vars(module)[f"book_{path.stem.removeprefix('bench_')}"])


_ARGUMENTS = {
    "name": "a",
    "nights": "2",
    "price": 3,
    "breakfast": True,
    "guests": "b",
    "prices": {"tea": 1},
    "room": "single",
}


def measure(folder: Path) -> dict[str, float]:
    """Return the microseconds for one function or module, and the promised ratios."""
    for n in range(COUNT):
        (folder / f"bench_{n}.py").write_text(TEMPLATE.format(n=n))
    sys.path.insert(0, str(folder))
    paths = sorted(folder.glob("*.py"))
    sources = [
        source for path in paths if isinstance(source := read_file(folder, path), ModuleSource)
    ]
    readings = [read_module(source) for source in sources]
    cached = [json.dumps(reading.to_json()) for reading in readings]
    snapshot = Snapshot.empty()
    for reading in readings:
        snapshot = snapshot.with_module(reading)
    arguments_json, parameters = json.dumps(_ARGUMENTS), readings[0].functions[0].parameters
    stamps = scan(folder, {}).stamps

    def load() -> None:
        for text, source in zip(cached, sources, strict=True):
            ModuleReading.from_json(json.loads(text), source)

    def replace_each() -> None:
        for (
            reading
        ) in readings:  # one at a time: a thousand live snapshots would distort the measurement
            snapshot.with_module(reading)

    times = {
        "read files": best(lambda: [read_file(folder, path) for path in paths]),
        "parse": best(lambda: [parse(source) for source in sources]),
        "schema from source": best(lambda: [read_module(source) for source in sources]),
        "import and describe (reference)": best(lambda: import_and_describe(folder)),
        "load from cache": best(load),
        "replace one module of 1,000": best(replace_each),
        "read arguments": best(
            lambda: [arguments.read(arguments_json, parameters) for _ in range(COUNT)]
        ),
        "scan 1,000 files (each)": best(lambda: scan(folder, stamps)),
    }
    each = {name: seconds / COUNT * 1e6 for name, seconds in times.items()}
    whole = each["read files"] + each["schema from source"]
    return {
        **each,
        "ratio: read + schema / import and describe (≤ 1)": whole
        / each["import and describe (reference)"],
        "ratio: load from cache / parse (≤ 0.5)": each["load from cache"] / each["parse"],
    }


def main() -> None:
    given = options(__doc__, rounds=None)
    folder = Path(tempfile.mkdtemp(prefix="bench-registry-"))
    try:
        figures = measure(folder)
    finally:
        shutil.rmtree(folder)
    if given.json:
        print(
            json.dumps(
                {"benchmark": "registry", "unit": "microseconds each, ratios as named", **figures}
            )
        )
        return
    for name, value in figures.items():
        print(f"{name:55} {value:10.2f}")


if __name__ == "__main__":
    main()
