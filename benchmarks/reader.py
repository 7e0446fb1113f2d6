"""What a description reader admits, and its cost: `python -m benchmarks.reader PATH… [--model NAME] [--json]`.

PATH holds one function per line: `name`, `code`, `kind` (honest or hollow), `hollow_kind`, `language`, `reach` (what
the body must reach according to its description), `checks` (calls with the results that it promises). Without
`--model`, a scripted endpoint simulates a capable reader from these labels. Each author predicts what its own code
returns, and insists when told that its promise is beyond the code: the worst that an author can do.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from agent_core.base.settings import load
from agent_core.functions.gate import Candidate, Gate
from agent_core.functions.gate.examples import doctest_form, predictions
from agent_core.functions.gate.reader import CANNOT_TELL, DescriptionReader
from agent_core.functions.gate.verdict import DISPUTED, REACHES_NOTHING, ReaderAnswer
from agent_core.model import Model
from agent_core.model.prices import Prices
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from agent_core.runtime.ledger import Ledger
from agent_core.workspace.model_opener import ModelOpener
from agent_core.workspace.state_store import open_state
from sandbox import Evaluation, Job, Limits, Outcome, Raised, Returned, Sandbox
from tests.kit.play import ScriptedModel, reading
from tests.kit.steps import Seen, Step

Labels: TypeAlias = dict[str, dict[str, Any]]  # Any: JSON
OUTCOMES = ("joined unasked", "joined after a question", "draft", "refused")


@dataclass(frozen=True, slots=True)
class Judged:
    """One function with its outcome, the first rejection or question, and the cost of the reader."""

    row: Mapping[str, Any]  # Any: JSON
    outcome: str
    first: str
    seconds: float
    tokens: int
    reach: str
    why: str = ""


def rows_of(paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the functions of the files; if several share a name, only the first, because labels are found by name."""
    seen = set[str]()
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["name"] not in seen:
                seen.add(row["name"])
                yield row


class CapableReader(DescriptionReader):
    """A reader at a scripted endpoint that knows what an honest function returns for any call."""

    def __init__(
        self, open_model: Callable[[], Awaitable[Model]], labels: Labels, sandbox: Sandbox
    ) -> None:
        super().__init__("same", open_model)
        self._labels, self._sandbox = labels, sandbox

    async def read(self, description: str, calls: Sequence[str], bare: str) -> ReaderAnswer:
        """Answer by the labels; for an honest function, what its code returns is right."""
        row = self._labels[description.partition("def ")[2].partition("(")[0]]
        if row["kind"] == "honest":
            results = await _returned(row["code"], calls, self._sandbox)
            row["known"] = dict(zip(calls, results, strict=True))
        return await super().read(description, calls, bare)


def by_labels(labels: Labels) -> ScriptedModel:
    """Return an endpoint whose reader answers by the labels, and says that it cannot tell where they are silent."""

    def answer(seen: Seen) -> Step:
        name = seen.text.rpartition("\n\ndef ")[2].partition("(")[0]
        name = (
            name if name in labels else next(name for name in labels if f"def {name}(" in seen.text)
        )
        row = labels[name]
        checks = {check["call"]: check["result"] for check in row.get("checks", ())}
        asked = seen.text.partition("what these calls must return:\n")[2].splitlines()
        results = [
            row.get("known", {}).get(call, CANNOT_TELL) for call in asked if f"{name}(" in call
        ]
        return reading(row["reach"], checks, results)(seen)

    return ScriptedModel([], reader=answer)


async def judge(row: Mapping[str, Any], gate: Gate, sandbox: Sandbox) -> Judged:
    """Return the outcome for one function whose author predicts its own code and insists."""
    candidate, snapshot = Candidate(row["name"], row["code"], "grown"), Snapshot.empty()
    verdict = await gate.judge(candidate, snapshot, challenging=True, reading=True)
    first = ", ".join(sorted({problem.code for problem in verdict.refusals}))
    answer = verdict.answer
    cost = (
        (answer.seconds, answer.prompt_tokens + answer.completion_tokens, answer.reach)
        if answer
        else (0.0, 0, "")
    )
    if verdict.admitted:
        return Judged(row, "draft" if verdict.standing == "draft" else OUTCOMES[0], first, *cost)
    candidate = replace(candidate, answer=answer, code=verdict.source)
    if {problem.code for problem in verdict.refusals} == {REACHES_NOTHING}:
        candidate = replace(candidate, insists=True)
        verdict = await gate.judge(candidate, snapshot, challenging=True, reading=True)
    if verdict.challenges:
        own = await _returned(verdict.source, verdict.challenges, sandbox)
        examples = predictions(verdict.challenges, own, _returns(row))
        candidate = replace(candidate, asked=verdict.challenges, examples=examples)
        verdict = await gate.judge(candidate, snapshot, challenging=True, reading=True)
    outcome = (
        OUTCOMES[3]
        if not verdict.admitted
        else "draft"
        if verdict.standing == "draft"
        else OUTCOMES[1]
    )
    told = [
        str(problem)
        for problem in verdict.problems
        if problem.severity == "refuses" or problem.code == DISPUTED
    ]
    return Judged(
        row, outcome, first, *cost, " ".join(["", *told]) if outcome != OUTCOMES[1] else ""
    )


def _returns(row: Mapping[str, Any]) -> str:
    functions = read_module(ModuleSource.of("grown", row["code"])).functions
    return next((function.returns for function in functions if function.name == row["name"]), "")


async def _returned(code: str, calls: Sequence[str], sandbox: Sandbox) -> list[str]:
    """Return the results of code for calls, each as an example writes it."""
    modules = Snapshot.empty().with_module(read_module(ModuleSource.of("grown", code))).modules
    jobs = [Job(modules, "grown", Evaluation((), call), Limits(wall_s=10)) for call in calls]
    return [_written(await sandbox.run(job)) for job in jobs]


def _written(outcome: Outcome) -> str:
    if isinstance(outcome, Returned):
        return doctest_form(outcome).strip()
    return outcome.failure.type if isinstance(outcome, Raised) else CANNOT_TELL


async def judge_all(rows: Sequence[Mapping[str, Any]], model: str) -> list[Judged]:
    """Judge every function, one at a time if the model runs on this machine."""
    async with AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(await Sandbox.start(parallel=os.cpu_count() or 1))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        labels = {str(row["name"]): dict(row) for row in rows}
        endpoint = None if model else stack.enter_context(closing(by_labels(labels)))
        flags = (
            {"model.name": model}
            if model
            else {"model.base_url": endpoint.base_url, "model.name": "scripted"}  # type: ignore[union-attr]
        )
        settings = load(folder, flags)
        store = await stack.enter_async_context(open_state(folder, settings))
        ledger = Ledger(store, settings, Prices(folder, settings.models))
        opener = ModelOpener(folder, settings, None, ledger=ledger)

        opened = partial(opener.open_kept, None)
        stack.push_async_callback(opener.aclose)
        reader = (
            DescriptionReader(model, opened) if model else CapableReader(opened, labels, sandbox)
        )
        gate, turn = (
            Gate(sandbox, limits=Limits(wall_s=10), reader=reader),
            asyncio.Semaphore(1 if model else 4),
        )

        async def one(row: Mapping[str, Any]) -> Judged:
            async with turn:
                return await judge(row, gate, sandbox)

        return list(await asyncio.gather(*map(one, rows)))


def summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Return the figures as one JSON document: outcomes by kind, first questions, seconds and tokens."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        groups[one.row["kind"]].append(one)
        groups[f"{one.row['kind']}, {one.row['language']}"].append(one)
        if one.row["kind"] == "hollow":
            groups[f"hollow, {one.row.get('hollow_kind', '')}"].append(one)
    read = sorted(one.seconds for one in judged if one.seconds)
    return {
        "groups": {
            name: {
                "count": len(members),
                **{outcome: sum(one.outcome == outcome for one in members) for outcome in OUTCOMES},
            }
            for name, members in sorted(groups.items())
        },
        "reach said": {
            kind: dict(Counter(one.reach for one in groups.get(kind, [])))
            for kind in ("honest", "hollow")
        },
        "first refusals of honest ones": dict(
            Counter(one.first for one in groups["honest"] if one.first)
        ),
        "seconds a reading (median)": round(read[len(read) // 2], 2) if read else None,
        "tokens a reading": round(sum(one.tokens for one in judged) / max(len(read), 1)),
        "hollow, joined unasked": [
            one.row["name"] for one in groups["hollow"] if one.outcome == OUTCOMES[0]
        ],
        "honest, not joined unasked": [
            f"{one.row['name']}: {one.first or 'joined'}, then {one.outcome}{one.why}"
            for one in groups["honest"]
            if one.outcome != OUTCOMES[0]
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reader", description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+", help="files of functions, one a line")
    parser.add_argument(
        "--model", default="", help="a model's name, such as local/qwen2.5-coder-1.5b"
    )
    parser.add_argument("--limit", type=int, default=None, help="only the first N functions")
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    options = parser.parse_args()
    rows = list(rows_of(options.paths))[: options.limit]
    began = time.perf_counter()
    result = {"seconds": 0.0, **summary(asyncio.run(judge_all(rows, options.model)))}
    result["seconds"] = round(time.perf_counter() - began, 1)
    if options.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
        return
    print(f"{'':<24}{'count':>6}" + "".join(f"{outcome:>26}" for outcome in OUTCOMES))
    for name, figures in result.pop("groups").items():
        shares = [
            f"{figures[outcome]} ({figures[outcome] / figures['count']:.0%})"
            for outcome in OUTCOMES
        ]
        print(f"{name:<24}{figures['count']:>6}" + "".join(f"{share:>26}" for share in shares))
    for name, value in result.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
