"""How the gate judges hollow functions and honest look-alikes: `python -m benchmarks.hollow PATH [--policy P] [-v]`.

PATH holds one function a line: `id`, `kind` (`honest`, or how it is hollow), `source` and `name`. Honest functions
should be admitted, all else refused. A doubt is counted as admitted, and so is what lacks a human's yes only.
"""

import argparse
import asyncio
import json
import time
from collections import Counter, defaultdict
from pathlib import Path

from agent_core.functions.gate import Candidate

from .gate import Case, Judged, judge_all

HONEST = "honest"


def cases(path: Path) -> list[Case]:
    """Return every candidate of a data file."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Case(row["id"], row["kind"], Candidate(row["name"], row["source"], "library")) for row in rows]


def show(judged: list[Judged], *, is_verbose: bool) -> None:
    """Print how many of each kind were admitted, then what was judged wrongly."""
    kinds: dict[str, list[Judged]] = defaultdict(list)
    for result in judged:
        kinds[result.case.kind].append(result)
    print(f"{'kind':<14}{'count':>6}{'admitted':>10}{'doubted':>9}{'p50':>9}")
    for kind, results in sorted(kinds.items()):
        print(_row(kind, results))
    hollow = [result for result in judged if result.case.kind != HONEST]
    print(_row("all hollow", hollow))
    for result in judged:
        if is_admitted(result) != (result.case.kind == HONEST) or is_verbose:
            print(_wrong(result, is_verbose=is_verbose))


def is_admitted(result: Judged) -> bool:
    """Check whether a function joins, if need be after the user was asked for its grants."""
    return result.verdict.admitted or result.verdict.lacks_only_grants


def _row(kind: str, results: list[Judged]) -> str:
    admitted = [result for result in results if is_admitted(result)]
    doubted = sum(bool(result.verdict.doubts) for result in admitted)
    middle = sorted(result.seconds for result in results)[len(results) // 2] if results else 0.0
    share = len(admitted) / len(results) if results else 0.0
    return f"{kind:<14}{len(results):>6}{len(admitted):>5}{share:>5.0%}{doubted:>9}{1000 * middle:>6.0f} ms"


def _wrong(result: Judged, *, is_verbose: bool) -> str:
    codes = Counter(problem.code for problem in result.verdict.problems)
    told = [str(problem) for problem in result.verdict.refusals] if is_verbose or result.case.kind == HONEST else []
    answer = f"admitted as {result.verdict.standing}" if result.verdict.admitted else "refused"
    return "\n    ".join([f"{result.case.id} {result.case.candidate.name}: {answer}, {dict(codes)}", *told])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hollow", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--policy", choices=("agent", "human", "import"), default="agent")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what was found in each")
    options = parser.parse_args()
    started = time.perf_counter()
    judged = asyncio.run(judge_all(cases(options.path), options.policy))
    show(judged, is_verbose=options.verbose)
    print(f"{len(judged)} verdicts in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
