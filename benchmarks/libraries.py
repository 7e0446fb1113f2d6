"""How much of a library is admitted: `python -m benchmarks.libraries PATH… [--half shown|held] [--seed N] [--json]`.

PATH is what `functions import` takes: a .py file, a folder or an archive. Nothing is written. With `--half`, only the
functions of one half of the modules are reported. The seed picks the halves, so that rules can be written against the
rejections of one half and measured on the other. The held-back half is counted, not listed.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agent_core
from knapper_ext.exchange.library import ImportedFunction, ImportRequest, import_library

HALVES = ("shown", "held")
_LONGEST_LINE = 240


@dataclass(frozen=True, slots=True)
class Taken:
    """The outcome for the functions of one library, and how long it took."""

    library: str
    functions: tuple[ImportedFunction, ...]
    seconds: float
    unread: int = 0  # files that could not be read: their functions are not counted

    @property
    def refused(self) -> list[ImportedFunction]:
        """The functions that would not be admitted."""
        return [function for function in self.functions if function.outcome == "refused"]


async def taken(path: Path) -> Taken:
    """Judge every function of a library, in an empty workspace."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        async with agent_core.Workspace.open(folder) as workspace:
            request = ImportRequest(path, dry_run=True)
            report = await import_library(
                workspace.functions, request, lambda _: None, lambda _: None
            )
    unread = sum(file.code != "passed-over" for file in report.files)
    return Taken(path.name, tuple(report.functions), time.perf_counter() - began, unread)


def modules_of(half: str, seed: int, modules: Iterable[str]) -> set[str]:
    """Return the modules of one half; if the number is odd, the shown half has one fewer."""
    drawn = sorted(set(modules))
    random.Random(seed).shuffle(drawn)
    count = len(drawn) // 2
    return set(drawn[:count] if half == "shown" else drawn[count:])


def halved(all_taken: list[Taken], half: str, seed: int) -> list[Taken]:
    """Return the libraries with the functions of one half of all their modules."""
    names = {(item.library, function.module) for item in all_taken for function in item.functions}
    chosen = modules_of(half, seed, (f"{library}:{module}" for library, module in names))
    return [
        Taken(
            item.library,
            tuple(
                function
                for function in item.functions
                if f"{item.library}:{function.module}" in chosen
            ),
            item.seconds,
            item.unread,
        )
        for item in all_taken
    ]


def summary(all_taken: list[Taken], *, is_listed: bool) -> dict[str, Any]:  # Any: JSON
    """Return the figures as one JSON document."""
    functions = tuple(function for item in all_taken for function in item.functions)
    whole = Taken(
        "all",
        functions,
        sum(item.seconds for item in all_taken),
        sum(item.unread for item in all_taken),
    )
    refused = [function for item in all_taken for function in item.refused]
    return {
        "libraries": [_figures(item) for item in [*all_taken, whole]],
        "causes": dict(
            Counter(code for function in refused for code in _codes(function)).most_common()
        ),
        "refused": [
            {"name": function.name, "from": function.from_, "problems": list(_problems(function))}
            for function in refused
            if is_listed
        ],
    }


def _figures(item: Taken) -> dict[str, Any]:  # Any: JSON
    standings = Counter(function.standing for function in item.functions)
    count, joined = len(item.functions), len(item.functions) - len(item.refused)
    figures = {
        "library": item.library,
        "functions": count,
        "joined": joined,
        "refused": count - joined,
    }
    share = round(joined / count, 4) if count else None
    return {
        **figures,
        "trial": standings["trial"],
        "draft": standings["draft"],
        "share": share,
        "unread_files": item.unread,
        "seconds": round(item.seconds, 1),
    }


def _codes(function: ImportedFunction) -> set[str]:
    return {problem.code for problem in function.problems if problem.severity == "refuses"}


def _problems(function: ImportedFunction) -> Iterator[str]:
    return (str(problem) for problem in function.problems if problem.severity == "refuses")


def show(result: dict[str, Any]) -> None:  # Any: JSON
    """Print the figures as a table, then the causes, then each rejection."""
    print(
        f"{'library':<24}{'functions':>10}{'joined':>8}{'':>8}{'trial':>7}{'draft':>7}{'refused':>9}{'unread':>8}"
    )
    for row in result["libraries"]:
        share = f"{row['share']:.1%}" if row["share"] is not None else "-"
        cells = (
            f"{row['functions']:>10}{row['joined']:>8}{share:>8}"
            f"{row['trial']:>7}{row['draft']:>7}{row['refused']:>9}"
        )
        print(f"{row['library']:<24}{cells}{row['unread_files']:>8}")
    print("\nrefused because of")
    print("\n".join(f"  {code:<28}{count:>5}" for code, count in result["causes"].items()))
    for function in result["refused"]:
        print(f"\n{function['name']}  {function['from']}")
        print("\n".join(f"  {problem[:_LONGEST_LINE]}" for problem in function["problems"]))


async def _all_taken(paths: list[Path]) -> list[Taken]:
    return [await taken(path) for path in paths]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.libraries", description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="a library")
    parser.add_argument("--half", choices=HALVES, help="only the modules of this half")
    parser.add_argument("--seed", type=int, default=15, help="of the split into halves")
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    options = parser.parse_args()
    all_taken = asyncio.run(_all_taken([path.resolve() for path in options.paths]))
    all_taken = halved(all_taken, options.half, options.seed) if options.half else all_taken
    result = summary(all_taken, is_listed=options.half != "held")
    if options.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        show(result)


if __name__ == "__main__":
    main()
