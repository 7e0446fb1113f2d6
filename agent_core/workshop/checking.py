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
    shown = path.as_posix()
    source = Source.of(promised[1], text, shown)
    offered = read_module(source).functions
    if len(offered) > 1 and not promised[0]:
        return _of_module(await gate.judge_module(source, snapshot, policy))
    name = promised[0] or (offered[0].name if offered else path.stem)
    holder = snapshot.functions.get(name)
    module = holder.module if holder else promised[1]
    candidate = Candidate(name, text, module, replaces=holder is not None, file=shown)
    return [{**(await gate.judge(candidate, snapshot, policy)).to_json(), "path": shown}]


async def _check_lines(gate: Gate, snapshot: Snapshot, path: Path, text: str, policy: Policy) -> list[dict[str, Any]]:
    lines = {f"{path.as_posix()}:{number}": line for number, line in enumerate(text.split("\n"), 1) if line.strip()}
    candidates = {where: _parse(line, where) for where, line in lines.items()}
    slots = asyncio.Semaphore(_AT_ONCE)

    async def judge(where: str, candidate: Candidate) -> dict[str, Any]:
        async with slots:
            return {**(await gate.judge(candidate, snapshot, policy)).to_json(), "path": where}

    return list(await asyncio.gather(*(judge(where, candidate) for where, candidate in candidates.items())))


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


def _of_module(verdict: ModuleVerdict) -> list[dict[str, Any]]:
    """A verdict for each function of a module: its own problems, and those of the whole file."""
    whole = verdict.to_json()
    spans = {each.name: (each.line, each.end_line) for each in verdict.reading.functions}
    standings = dict(verdict.standings)  # of a module that cannot be imported, no function has one
    rows = []
    for name, span in spans.items():
        problems = [problem for problem in verdict.problems if not standings or _concerns(problem, span, spans)]
        refused = any(problem.severity == "refuses" for problem in problems)
        rows.append(
            {
                **{key: whole[key] for key in ("module", "stages")},
                "path": verdict.reading.source.path,
                "name": name,
                "admitted": not refused,
                "standing": "" if refused else standings[name],
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
