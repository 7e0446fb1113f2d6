"""The gate's verdicts on a library: `python -m benchmarks.gate PATH [--policy P] [--documented] [--level L] …`.

PATH holds one function per line: `name`, `code`, `examples`, and variants that must not pass (`stub`, `placeholder`,
`hardcoded`, `mutants`). Good functions should be admitted, all others rejected. With `--documented`, only the good
functions are judged, each with hints, a docstring and two examples in it.
"""

import argparse
import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from agent_core.base.extensions import LEVELS, offers
from agent_core.base.user_folders import data_folder
from agent_core.functions.gate import Candidate, Gate, GivenExample, Policy, Rules, Verdict
from agent_core.registry.registry import Snapshot
from benchmarks.documented import documented
from sandbox import Limits, Sandbox
from sandbox.beside import LevelsBeside
from sandbox.processes.startup import CHOICES

KINDS = ("good", "stub", "placeholder", "hardcoded", "mutant")
AT_ONCE = 16
BESIDE: Final = LevelsBeside(partial(offers, LEVELS), data_folder())


@dataclass(frozen=True, slots=True)
class Case:
    """One candidate of the file, and whether it should be admitted."""

    id: str
    kind: str
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Judged:
    """A case with its verdict."""

    case: Case
    verdict: Verdict
    seconds: float


def cases(path: Path) -> Iterator[Case]:
    """Return every candidate of a data file: the good ones and their hollow or broken variants."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for kind, code in _codes(row):
            examples = tuple(
                GivenExample(one["call"], one["expected"], one.get("approx"))
                for one in row["examples"]
            )
            told = row.get("description") or ""
            yield Case(
                row["id"],
                kind,
                Candidate(row["name"], code, "library", examples=examples, description=told),
            )


def documented_cases(path: Path) -> Iterator[Case]:
    """Return the good functions of a data file as a careful author writes them; skip rows that show too little."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        candidate = documented(row)
        if candidate is not None:
            yield Case(row["id"], "good", candidate)


def _codes(row: dict[str, Any]) -> Iterator[tuple[str, str]]:  # Any: one line of the file
    yield "good", row["code"]
    for kind in ("stub", "placeholder", "hardcoded"):
        if row.get(kind):
            yield kind, row[kind]
    for mutant in row.get("mutants", ()):
        yield "mutant", mutant["code"]


async def judge_all(
    found: list[Case],
    policy: Policy,
    off: frozenset[str] = frozenset(),
    *,
    challenging: bool = False,
    level: str = "auto",
) -> list[Judged]:
    """Return every verdict, many at once; `off` names fixes to skip, `challenging` questions the authors."""
    cores = os.cpu_count() or 1
    async with await Sandbox.start(parallel=cores, level=level, beside=BESIDE) as sandbox:
        gate, turn = (
            Gate(sandbox, limits=Limits(wall_s=10), rules=Rules(off=off)),
            asyncio.Semaphore(AT_ONCE),
        )

        async def judge(case: Case) -> Judged:
            async with turn:
                started = time.perf_counter()
                verdict = await gate.judge(
                    case.candidate, Snapshot.empty(), policy, challenging=challenging
                )
                return Judged(case, verdict, time.perf_counter() - started)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(judge(case)) for case in found]
    return [task.result() for task in tasks]


def refusing_stage(verdict: Verdict) -> str:
    """Return the first stage that rejected the candidate."""
    found = (
        report.stage
        for report in verdict.stages
        if not report.passed and not report.note.startswith("not run")
    )
    return next(found, "-")


def summary(judged: list[Judged], seconds: float) -> dict[str, Any]:  # Any: JSON
    """Return the figures as one JSON document."""
    return {
        "seconds": round(seconds, 2),
        "kinds": {
            kind: _figures([one for one in judged if one.case.kind == kind]) for kind in KINDS
        },
        "good_refused": [
            {
                "id": one.case.id,
                "name": one.case.candidate.name,
                "problems": [str(problem) for problem in one.verdict.refusals],
            }
            for one in judged
            if one.case.kind == "good" and not one.verdict.admitted
        ],
        "bad_admitted": [
            {"id": one.case.id, "kind": one.case.kind, "standing": one.verdict.standing}
            for one in judged
            if one.case.kind != "good" and one.verdict.admitted
        ],
    }


def _figures(judged: list[Judged]) -> dict[str, Any]:  # Any: JSON
    refused = [one for one in judged if not one.verdict.admitted]
    spent = sorted(one.seconds for one in judged)
    return {
        "count": len(judged),
        "admitted": len(judged) - len(refused),
        "refused": len(refused),
        "by_stage": dict(Counter(refusing_stage(one.verdict) for one in refused).most_common()),
        "by_code": _codes_of(refused, "refuses"),
        "warnings": _codes_of(judged, "warns"),
        "fixes": dict(
            Counter(fix.code for one in judged for fix in one.verdict.fixes).most_common()
        ),
        "p50_ms": round(1000 * spent[len(spent) // 2], 1) if spent else None,
    }


def _codes_of(judged: list[Judged], severity: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for one in judged:
        found.update(
            {problem.code for problem in one.verdict.problems if problem.severity == severity}
        )
    return dict(found.most_common())


def show(result: dict[str, Any]) -> None:  # Any: JSON
    """Print the figures as a table, then the warnings and fixes, then each rejection of a good function."""
    total = sum(figures["count"] for figures in result["kinds"].values())
    fixed = "" if result["fixed"] else ", as published: nothing fixed"
    left_out = (
        f", {result['left_out']} left out: too little is shown of them"
        if result["left_out"]
        else ""
    )
    print(
        f"policy {result['policy']}{fixed}: {total} verdicts in {result['seconds']:.0f} s{left_out}\n"
    )
    print(
        f"{'kind':<12}{'count':>6}{'admitted':>10}{'':>7}{'refused':>9}{'':>7}{'p50':>9}  refused by stage"
    )
    for kind, figures in result["kinds"].items():
        if figures["count"]:
            print(_row(kind, figures))
    good = result["kinds"]["good"]
    for label, key in (
        ("good, refused", "by_code"),
        ("good, told", "warnings"),
        ("good, fixed", "fixes"),
    ):
        _counts(label, good[key], good["count"])
    _listed(
        "good, but refused",
        [f"{one['id']} {one['name']}: {one['problems'][0]}" for one in result["good_refused"]],
    )
    for kind in KINDS[1:]:
        bad = [
            f"{one['id']} as {one['standing']}"
            for one in result["bad_admitted"]
            if one["kind"] == kind
        ]
        _listed(f"{kind}, but admitted", bad)


def _row(kind: str, figures: dict[str, Any]) -> str:  # Any: JSON
    count = figures["count"]
    stages = ", ".join(f"{stage} {number}" for stage, number in figures["by_stage"].items())
    cells = "".join(
        f"{figures[key]:>{width}}{figures[key] / count:>7.1%}"
        for key, width in (("admitted", 10), ("refused", 9))
    )
    return f"{kind:<12}{count:>6}{cells}{figures['p50_ms']:>6.0f} ms  {stages}"


def _counts(label: str, found: dict[str, int], count: int) -> None:
    """Return the codes with their number of functions, two per line."""
    if not found:
        return
    print(f"\n{label} (of {count})")
    cells = [f"{code} {number} ({number / count:.1%})" for code, number in found.items()]
    for start in range(0, len(cells), 2):
        print("  " + "".join(f"{cell:<38}" for cell in cells[start : start + 2]).rstrip())


def _listed(label: str, lines: list[str]) -> None:
    if lines:
        print(f"\n{label}: {len(lines)}")
        print("\n".join(f"  {line}" for line in lines))


def _wanted(options: argparse.Namespace, parser: argparse.ArgumentParser) -> tuple[list[Case], int]:
    """Return the cases to judge, and how many rows of the file show too little for one."""
    if options.documented and options.kind not in (None, ["good"]):
        parser.error("--documented judges good functions only: leave --kind out")
    all_cases = list(documented_cases(options.path) if options.documented else cases(options.path))
    wanted = [case for case in all_cases if case.kind in (options.kind or KINDS)][: options.limit]
    if not wanted:
        parser.error(f"{options.path} holds no such candidate")
    rows = len(options.path.read_text(encoding="utf-8").splitlines())
    return wanted, rows - len(all_cases) if options.documented else 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__)
    parser.add_argument("path", type=Path, help="a file like functions_dev.jsonl")
    parser.add_argument("--policy", choices=("agent", "human", "import"), default="import")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these candidates")
    parser.add_argument("--limit", type=int, default=None, help="only the first N candidates")
    parser.add_argument(
        "--documented",
        action="store_true",
        help="good functions with hints, docstring, two examples",
    )
    parser.add_argument(
        "--unmended", action="store_true", help="judge everything as published, without a fix"
    )
    parser.add_argument(
        "--level", choices=(*CHOICES, *BESIDE.offers()), default="auto", help="of the sandbox"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    options = parser.parse_args()
    wanted, left_out = _wanted(options, parser)
    off = frozenset({"*"} if options.unmended else ())
    started = time.perf_counter()
    judged = asyncio.run(judge_all(wanted, options.policy, off, level=options.level))
    told = {"policy": options.policy, "fixed": not options.unmended, "left_out": left_out}
    result = {**told, **summary(judged, time.perf_counter() - started)}
    if options.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        show(result)


if __name__ == "__main__":
    main()
