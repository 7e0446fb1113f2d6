"""Judge a file without admitting anything: a module, or one candidate a line of a `.jsonl` file."""

import asyncio
import json
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..gate import Candidate, Gate, GivenExample, ModuleVerdict, Policy
from ..problem import Problem
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source

_AT_ONCE = 8


async def check(
    gate: Gate, snapshot: Snapshot, path: Path, policy: Policy, promised: tuple[str, str]
) -> list[dict[str, Any]]:  # Any: JSON
    """One verdict for each function of a file, or for each line of a `.jsonl` file, in order.

    `promised` is the function's name (or an empty text) and the module that it would join.

    Raises:
        UsageError: the file cannot be read, or a line is not a candidate.
    """
    try:
        text = await asyncio.to_thread(path.read_text, "utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    if path.suffix == ".jsonl":
        return await _check_lines(gate, snapshot, path, text, policy)
    source = Source.of(promised[1], text, path.as_posix())
    offered = read_module(source).functions
    if len(offered) > 1 and not promised[0]:
        return _of_module(await gate.judge_module(source, snapshot, policy))
    name = promised[0] or (offered[0].name if offered else path.stem)
    verdict = await gate.judge(_candidate(snapshot, name, text, promised[1]), snapshot, policy)
    return [verdict.to_json()]


async def _check_lines(gate: Gate, snapshot: Snapshot, path: Path, text: str, policy: Policy) -> list[dict[str, Any]]:
    candidates = [_parse(line, f"{path}:{number}") for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    slots = asyncio.Semaphore(_AT_ONCE)

    async def judge(candidate: Candidate) -> dict[str, Any]:
        async with slots:
            return (await gate.judge(candidate, snapshot, policy)).to_json()

    return list(await asyncio.gather(*map(judge, candidates)))


def _parse(line: str, where: str) -> Candidate:
    try:
        row = json.loads(line)
        examples = tuple(
            GivenExample(str(each["call"]), str(each["expected"]), each.get("approx"))
            for each in row.get("examples") or ()
        )
        module = str(row.get("module") or "checked")
        return Candidate(
            str(row["name"]), str(row["code"]), module, examples=examples, description=str(row.get("description") or "")
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{where} is not a candidate: {error!r}.",
            mend='Write {"name": …, "code": …, "examples": [{"call": …, "expected": …}]}.',
        ) from error


def _candidate(snapshot: Snapshot, name: str, text: str, module: str) -> Candidate:
    holder = snapshot.functions.get(name)
    return Candidate(name, text, holder.module if holder else module, replaces=holder is not None)


def _of_module(verdict: ModuleVerdict) -> list[dict[str, Any]]:
    """A verdict for each function of a module: its own problems, and those of the whole file."""
    whole = verdict.to_json()
    spans = {each.name: (each.line, each.end_line) for each in verdict.reading.functions}
    rows = []
    for name, standing in verdict.standings:
        problems = [problem for problem in verdict.problems if _concerns(problem, spans[name], spans)]
        refused = any(problem.severity == "refuses" for problem in problems)
        rows.append(
            {
                **{key: whole[key] for key in ("module", "stages")},
                "name": name,
                "admitted": verdict.admitted and not refused,
                "standing": "" if refused else standing,
                "version": verdict.reading.source.version,
                "mends": [],
                "problems": [problem.to_json() for problem in problems],
                "source": verdict.reading.source.text,
            }
        )
    return rows


def _concerns(problem: Problem, span: tuple[int, int], spans: dict[str, tuple[int, int]]) -> bool:
    line = problem.where.line
    if span[0] <= line <= span[1]:
        return True
    return not any(first <= line <= last for first, last in spans.values())
