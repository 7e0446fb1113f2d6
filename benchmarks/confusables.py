"""`python -m benchmarks.confusables PATH [--embedding …] [--json]`: are pairs that an audit calls confusable so?

PATH is as for benchmarks.tool_search. All of its tools form one library. A pair that the product finds by its
descriptions alone is right if a query for one of the two finds the other first. Only pairs can be judged for which both
tools have queries with one right answer. For comparison: pairs that are merely similar.
"""

import argparse
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from agent_core.functions.search import NEAR, FunctionIndex, confusions
from benchmarks.measure import ran_with
from benchmarks.recall_data import model_named
from benchmarks.tool_search import Pool, Query, pool_of, read

QUERIES: Final = 8
"""The number of queries for each tool."""

THRESHOLDS: Final = (0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_DEPTH: Final = 10


async def measure(path: Path, name: Any) -> dict[str, Any]:  # Any: a model's name; JSON
    """Return, for each threshold, how many pairs are found, can be judged, and are confused by a query."""
    tools, queries = read(path)
    pool = pool_of(tools)
    index = FunctionIndex(await model_named(name))
    asked = _asked(queries, pool)
    near = [
        pair
        for pair in await index.near(pool.snapshot, THRESHOLDS[0])
        if {*pair[:2]} <= asked.keys()
    ]
    found = {
        frozenset((pair.name, pair.other))
        for pair in await confusions(index, pool.snapshot, least=THRESHOLDS[0])
    }
    orders = {
        tool: await _orders(index, pool, asked[tool])
        for tool in {tool for pair in near for tool in pair[:2]}
    }
    rows = []
    for least in THRESHOLDS:
        judged = [pair for pair in near if pair[2] >= least]
        told = [pair for pair in judged if frozenset(pair[:2]) in found]
        rows.append(
            {"near": least, "told": _share(told, orders), "near alone": _share(judged, orders)}
        )
    return {"file": path.name, "embedding": name, "threshold": NEAR, "rows": rows}


def _asked(queries: Iterable[Query], pool: Pool) -> dict[str, list[str]]:
    """Return queries of each tool that only it answers, selected by hash."""
    names = {id: name for name, id in pool.ids.items()}
    texts: dict[str, list[str]] = defaultdict(list)
    for query in sorted(queries, key=lambda query: hashlib.sha1(query.id.encode()).hexdigest()):
        if len(query.gold) == 1 and len(texts[names[min(query.gold)]]) < QUERIES:
            texts[names[min(query.gold)]].append(query.text)
    return {name: own for name, own in texts.items() if own}


async def _orders(index: FunctionIndex, pool: Pool, texts: Sequence[str]) -> list[list[str]]:
    ranked = [await index.rank(text, pool.snapshot, _DEPTH, by_text=True) for text in texts]
    return [[candidate.name for candidate in order] for order in ranked]


def _share(
    pairs: Sequence[tuple[str, str, float]], orders: dict[str, list[list[str]]]
) -> dict[str, Any]:  # Any: JSON
    confused = [
        pair
        for pair in pairs
        if _is_confused(*pair[:2], orders) or _is_confused(pair[1], pair[0], orders)
    ]
    return {
        "pairs": len(pairs),
        "confused": round(100 * len(confused) / len(pairs), 1) if pairs else None,
    }


def _is_confused(name: str, other: str, orders: dict[str, list[list[str]]]) -> bool:
    """Check whether a query for one tool finds the other first."""
    return any(
        other in (order[: order.index(name)] if name in order else order) for order in orders[name]
    )


def table(figures: dict[str, Any]) -> str:  # Any: JSON
    """Return the figures as a table."""
    lines = [
        f"{figures['file']}, {figures['embedding']}; the product tells from a cosine of {figures['threshold']} on",
        "| cosine from | pairs told | confused, % | pairs that are near | confused, % |",
        "|---|---|---|---|---|",
    ]
    for row in figures["rows"]:
        told, near = row["told"], row["near alone"]
        lines.append(
            f"| {row['near']} | {told['pairs']} | {told['confused']} | {near['pairs']} | {near['confused']} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.confusables", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--embedding", choices=("wordllama", "e5", "minilm"), default="wordllama")
    parser.add_argument("--json", action="store_true")
    parsed = parser.parse_args(sys.argv[1:])
    figures = ran_with(f"--embedding {parsed.embedding}", measure(parsed.path, parsed.embedding))
    print(json.dumps(figures, indent=1) if parsed.json else table(figures))


if __name__ == "__main__":
    main()
