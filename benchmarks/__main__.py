"""`make bench`, or `python -m benchmarks [NAME …] [--json]`: run the benchmarks in turn and print one table.

Every ratio is to a reference measured in the same run. A missed target is reported but fails nothing.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .measure import Row, show

Figures: TypeAlias = dict[str, Any]  # Any: JSON, in the shape of each bench
LAST_LINES = 3


def main() -> None:
    given = options(sys.argv[1:])
    rows, broken = [], False
    for name in given.names:
        print(f"{name} …", file=sys.stderr, flush=True)
        figures = run(name)
        broken |= figures is None
        rows += BENCHES[name](figures) if figures is not None else []
    show(rows, as_json=given.json)
    sys.exit(1 if broken else 0)


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the benchmarks to run (all if none is named) and the output options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", default=[*BENCHES], help=", ".join(BENCHES)
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.names if name not in BENCHES]:
        parser.error(f"there is no bench {unknown[0]!r}; there are {', '.join(BENCHES)}")
    return given


def run(name: str) -> Figures | None:
    """Return what a benchmark prints, run in a subprocess; None, and a message, if it failed."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--json"], capture_output=True, text=True
    )
    try:
        figures: Figures = json.loads(done.stdout)
    except ValueError:
        print(
            f"{name} broke:", *done.stderr.splitlines()[-LAST_LINES:], sep="\n  ", file=sys.stderr
        )
        return None
    return figures


def _own_rows(figures: Figures) -> list[Row]:
    return [
        Row(**{key: value for key, value in row.items() if key not in ("met", "wall_ms")})
        for row in figures["rows"]
    ]


def _sandbox_rows(figures: Figures) -> list[Row]:
    shown = ("plain", "hardened", "spare", "fresh python")
    times, ratios, aims = figures["milliseconds"], figures["ratios"], figures["targets"]
    whole = ("reach", "package")
    rows = [
        Row(f"sandboxed add: {name}", times[name], "plain fork", ratios[name], aims.get(name))
        for name in shown
    ]
    return rows + [
        Row(f"whole call: {name}", times[name], "whole plain call", ratios[name], aims[name])
        for name in whole
    ]


def _registry_rows(figures: Figures) -> list[Row]:
    schema, cached = (
        figures["read files"] + figures["schema from source"],
        figures["load from cache"],
    )
    imported, parsed = figures["import and describe (reference)"], figures["parse"]
    return [  # each in microseconds
        Row(
            "schema of one function from source, cold",
            schema / 1000,
            "import and describe",
            schema / imported,
            1,
        ),
        Row("reading of one unchanged module", cached / 1000, "parsing it", cached / parsed, 0.5),
    ]


def _storage_rows(figures: Figures) -> list[Row]:
    found = figures["storage"]
    names = {
        "append": "append of one entry",
        "append_with_record": "append of an answer with its record",
    }
    return [
        Row(text, found[f"{name}_p50_ms"], "bare insert", found[f"{name}_ratio"])
        for name, text in names.items()
    ]


BENCHES: dict[str, Callable[[Figures], list[Row]]] = {
    "turn": _own_rows,
    "context": _own_rows,
    "registry": _registry_rows,
    "reload": _own_rows,
    "sandbox": _sandbox_rows,
    "fetch": _own_rows,
    "passing": _own_rows,
    "create": _own_rows,
    "gate_stages": _own_rows,
    "bulk": _own_rows,
    "startup": _own_rows,
    "storage": _storage_rows,
    "passages": _own_rows,
    "debugging": _own_rows,
    "searches": _own_rows,
    "prompt_latency": _own_rows,
    "stalls": _own_rows,
    "walk": _own_rows,
    "agents": _own_rows,
    "server": _own_rows,
    "mcp_doors": _own_rows,
}

if __name__ == "__main__":
    main()
