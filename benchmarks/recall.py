"""`python -m benchmarks.recall PATH [--json] [--embedding …] [--postgresql]`: how often search finds the answer.

Through the product's own `Recall` (conversations) or `Archival` (notes), on a real store, without a language model.
With `--postgresql` the store is a database on a temporary server, otherwise a file. Conversations are measured at 5 and
10 rows, notes also at 1; each figure is next to that of plain word search.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from agent_core.memory import words
from agent_core.memory.archival import Archival
from agent_core.memory.search import read_query
from agent_core.storage import Shelf
from tests.kit.postgres import Server

from .measure import ran_with
from .recall_data import AGENT, MODELS, Question, Read, checked, is_talk, load, model_named, reading

DEPTHS: Final = (1, 5, 10)
FITTED_ON: Final = 2
CATEGORIES: Final = {1: "several turns", 2: "time", 3: "inference", 4: "one turn", 5: "adversarial"}


def main() -> None:
    given = options(sys.argv[1:])
    with ExitStack() as stack:
        server = Server.make() if given.postgresql else None
        if server:
            stack.callback(server.remove)
        work = measure(given.path, given.embedding, server)
        figures = ran_with(f"--embedding {given.embedding}", work)
    print(json.dumps(figures, indent=1) if given.json else table(figures))


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the file and the model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--embedding", choices=MODELS, default="wordllama")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--postgresql", action="store_true")
    return parser.parse_args(arguments)


async def measure(  # Any: a name of a model; JSON
    path: Path, embedding: Any, server: Server | None = None
) -> dict[str, Any]:
    """Return the figures of a file: each group of questions with the share found at each depth.

    Raises:
        KnapperError: the embedding model cannot be used here.
    """
    model = await model_named(embedding)
    scored: list[tuple[list[str], list[float], list[float]]] = []
    spent: list[float] = []
    for number, one in enumerate(load(path)):
        async with reading(one, model, server) as read:
            for question in read.questions:
                began = time.perf_counter()
                found = await searched(read, question.text)
                spent.append(time.perf_counter() - began)
                plain = await plain_search(read, question.text)
                groups = _groups(one, number, question)
                scored.append((groups, _shares(found, question), _shares(plain, question)))
            checked(read.memory.vectors)
    median = sorted(spent)[len(spent) // 2] * 1000
    kept = "postgresql" if server else "sqlite"
    return {
        "file": path.name,
        "embedding": embedding,
        "store": kept,
        "median_ms": round(median, 2),
        "groups": _means(scored),
    }


async def searched(read: Read, question: str) -> list[int]:
    """Return the first rows that the product finds."""
    if isinstance(read.memory, Archival):
        ranked = await read.memory.rank(await read_query(question, (), 0.0))
        return [row.seq for row in ranked[: DEPTHS[-1]]]
    evidence, _ = await read.memory.gather(question)
    return [said.seq for said in (await read.memory.ranked(evidence))[: DEPTHS[-1]]]


async def plain_search(read: Read, question: str) -> list[int]:
    """Return the first rows that the store's word index finds."""
    shelf: Shelf = "archival" if isinstance(read.memory, Archival) else "recall"
    hits = await read.kept.search_words(shelf, AGENT, words.content(question), DEPTHS[-1])
    return [hit.seq for hit in hits]


def _groups(one: dict[str, Any], number: int, question: Question) -> list[str]:  # Any: JSON
    if not is_talk(one):
        return ["all", str(one["scenario"])]
    held_out = ["held out (from the third on)"] if number >= FITTED_ON else []
    return [
        "all",
        *held_out,
        f"{question.category} {CATEGORIES.get(question.category, '')}".strip(),
    ]


def _shares(found: Sequence[int], question: Question) -> list[float]:
    return [
        len(question.gold & {*found[:depth]}) / min(len(question.gold), depth if depth == 1 else 99)
        for depth in DEPTHS
    ]


def _means(
    scored: Sequence[tuple[list[str], list[float], list[float]]],
) -> dict[str, Any]:  # Any: JSON
    means = {}
    for name in sorted(
        {name for groups, _, _ in scored for name in groups}, key=lambda name: (name != "all", name)
    ):
        rows = [(found, plain) for groups, found, plain in scored if name in groups]
        means[name] = {
            "questions": len(rows),
            "found": {
                f"@{depth}": _mean([row[0][place] for row in rows])
                for place, depth in enumerate(DEPTHS)
            },
            "plain": {
                f"@{depth}": _mean([row[1][place] for row in rows])
                for place, depth in enumerate(DEPTHS)
            },
        }
    return means


def _mean(shares: Sequence[float]) -> float:
    return round(100 * sum(shares) / len(shares), 1)


def table(figures: dict[str, Any]) -> str:  # Any: JSON
    """Return the figures as a table."""
    lines = [
        f"{figures['file']}, {figures['embedding']}, {figures['store']}, {figures['median_ms']} ms a search",
        "| questions | number | @1 | @5 | @10 | plain @1 | @5 | @10 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in figures["groups"].items():
        cells = [*row["found"].values(), *row["plain"].values()]
        lines.append(f"| {name} | {row['questions']} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
