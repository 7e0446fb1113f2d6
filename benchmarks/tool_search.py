"""`python -m benchmarks.tool_search PATH [--embedding …] [--remembered N] [--json]`: how often search finds the tool.

The tools of a data file become functions of a snapshot, and each query a need, through the product's own index: each
set among its own tools, and among those of all sets in one pool. Baselines are plain BM25, the plain embedding, and the
fusion of their ranks. With `--remembered`, up to N queries per tool from the other half of the file count as served
before; a table replaces the store.
"""

import argparse
import hashlib
import json
import math
import re
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from agent_core.functions.search import FunctionSearch, WordIndex
from agent_core.memory import words
from agent_core.memory.embedding import Embedder
from agent_core.registry.function import Function
from agent_core.registry.registry import Snapshot
from agent_core.registry.source import ModuleSource
from benchmarks.measure import ran_with
from benchmarks.recall_data import model_named

DEPTH: Final = 10
METHODS: Final = ("product", "BM25", "embedding", "rank fusion")
_FUSED: Final = 60
_WHOLE: Final = "gold_with_dependencies"


@dataclass(frozen=True, slots=True)
class Query:
    """A need, the tools that serve it, and the tools that these call, if the file has them."""

    id: str
    set: str
    text: str
    gold: frozenset[str]
    with_needs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pool:
    """The tools of one pool as a snapshot; `ids` maps its names to those of the file."""

    snapshot: Snapshot
    ids: Mapping[str, str]


@dataclass(slots=True)
class Remembered:
    """The served requests, in place of a store's."""

    rows: list[tuple[str, str]]

    async def requests_mark(self) -> str:
        """Return the number of rows."""
        return str(len(self.rows))

    async def requests_served(
        self, each: int, owners: Collection[str] | None = None, *, with_private: bool = False
    ) -> list[tuple[str, str]]:
        """Return the last requests of each function."""
        served: dict[str, list[str]] = {}
        for name, text in self.rows:
            served.setdefault(name, []).append(text)
        return [(name, text) for name, texts in served.items() for text in texts[-each:]]


class Memorized:
    """An embedder that embeds no text twice: each request is searched in two pools, and by several methods."""

    def __init__(self, model: Embedder) -> None:
        self.space, self.recipe, self._model = model.space, model.recipe, model
        self.vectors: dict[str, bytes] = {}

    @property
    def lexicon(self) -> Embedder | None:
        """The fast model of the wrapped embedder; this one if the wrapped embedder is its own fast model."""
        return self if self._model.lexicon is self._model else self._model.lexicon

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vectors; embed only new texts."""
        new = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        self.vectors.update(zip(new, await self._model.embed(new), strict=True))
        return [self.vectors[text] for text in texts]


def main() -> None:
    parsed = options(sys.argv[1:])
    work = measure(parsed.path, parsed.embedding, parsed.remembered, parsed.most)
    figures = ran_with(f"--embedding {parsed.embedding}", work)
    print(json.dumps(figures, indent=1) if parsed.json else table(figures))


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command-line options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tool_search", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument(
        "--embedding", choices=("wordllama", "e5", "minilm", "none"), default="wordllama"
    )
    parser.add_argument(
        "--remembered", type=int, default=0, help="how many requests per tool were served before"
    )
    parser.add_argument(
        "--most", type=int, default=0, help="only so many queries of each set, drawn by their hash"
    )
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


async def measure(
    path: Path, name: Any, remembered: int, most: int
) -> dict[str, Any]:  # Any: a model's name; JSON
    """Return the figures of a file: by set and pool, of each method."""
    tools, queries = read(path)
    chosen = await model_named(name)
    model = Memorized(chosen) if chosen is not None else None
    queries = [query for group in _by_set(queries).values() for query in _drawn(group, most)]
    families = {tool["id"]: tool["set"] for tool in tools}
    figures: dict[str, Any] = {
        "file": path.name,
        "embedding": name,
        "remembered": remembered,
        "pools": {},
    }
    pools = {"one": tools} | {
        family: [tool for tool in tools if tool["set"] == family] for family in {*families.values()}
    }
    rows: dict[tuple[str, str], list[dict[str, list[float]]]] = {}
    seconds: list[float] = []
    for pool_name, members in pools.items():
        pool = pool_of(members)
        asked = [
            query
            for query in queries
            if pool_name == "one" or families[min(query.gold)] == pool_name
        ]
        for half in (0, 1) if remembered else (None,):
            mine = [query for query in asked if half is None or _half(query.id) == half]
            past = served(queries, pool, half, remembered) if half is not None else []
            kind = "one pool" if pool_name == "one" else "own pool"
            _tell(f"{len(members)} tools, {len(mine)} requests …")
            async for query, shares, spent in scored(mine, pool, model, past):
                rows.setdefault((kind, query.set), []).append(shares)
                rows.setdefault((kind, "all"), []).append(shares)
                seconds += [spent] if spent else []
    figures["median_ms"] = round(1000 * sorted(seconds)[len(seconds) // 2], 2) if seconds else 0.0
    figures["pools"] = {
        f"{kind}, {group}": _means(shares) for (kind, group), shares in sorted(rows.items())
    }
    return figures


def read(path: Path) -> tuple[list[dict[str, Any]], list[Query]]:  # Any: JSON
    """Return the tools and the queries of a file."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    tools = [row for row in rows if row["kind"] == "tool"]
    queries = [
        Query(
            row["id"],
            row["set"],
            row["query"],
            frozenset(row["gold"]),
            frozenset(row.get("gold_with_dependencies", ())),
        )
        for row in rows
        if row["kind"] == "query"
    ]
    return tools, queries


def pool_of(tools: Iterable[dict[str, Any]]) -> Pool:  # Any: JSON
    """Return tools as a snapshot: one module per tool, whose function names its dependencies."""
    names: dict[str, str] = {}
    tools = list(tools)
    for tool in tools:
        plain = re.sub(r"\W", "_", tool["name"])
        names[tool["id"]] = plain if plain not in names.values() else f"{plain}_{len(names)}"
    functions, modules = {}, {}
    for tool in tools:
        name = names[tool["id"]]
        needs = [names[f"{tool['set']}:{needed}"] for needed in tool.get("depends_on", ())]
        modules[name] = ModuleSource(
            name, f"functions/{name}.py", f"def {name}(): {', '.join(needs) or '...'}\n", name
        )
        functions[name] = _function(tool, name)
    snapshot = Snapshot(functions, modules, {}, {})
    return Pool(snapshot, {name: id for id, name in names.items()})


def _function(tool: dict[str, Any], name: str) -> Function:  # Any: JSON
    path = f"functions/{name}.py"
    parts = (tool["description"], _schema(tool["parameters"]), False, False, "", (), "", "", ())
    return Function(tool["name"], name, path, 1, 1, *parts)


def _schema(parameters: Any) -> dict[str, Any]:  # Any: JSON
    if isinstance(parameters, dict):
        return {"type": "object", "properties": parameters.get("properties", {})}
    return {
        "type": "object",
        "properties": {
            row["name"]: {"description": row.get("description", "")} for row in parameters
        },
    }


def served(queries: Iterable[Query], pool: Pool, half: int, each: int) -> list[tuple[str, str]]:
    """Return up to `each` requests of every tool, from the half that is not searched."""
    names = {id: name for name, id in pool.ids.items()}
    counts: dict[str, int] = {}
    rows = []
    for query in sorted(
        queries, key=lambda query: hashlib.sha1(f"k{query.id}".encode()).hexdigest()
    ):
        for id in query.gold if _half(query.id) != half else ():
            if id in names and counts.get(id, 0) < each:
                counts[id] = counts.get(id, 0) + 1
                rows.append((names[id], query.text))
    return rows


async def scored(
    queries: Sequence[Query], pool: Pool, model: Memorized | None, past: list[tuple[str, str]]
) -> Any:  # an iterator of queries with their shares and seconds
    """Yield each query with the methods' results, and the seconds of the product's search if the query is new."""
    search = FunctionSearch(model, Remembered(past), lambda: pool.snapshot)
    plain = await Plain.of(pool, model)
    if queries:
        await search.likely(queries[0].text, DEPTH)
    for query in queries:
        is_new = model is None or query.text not in model.vectors
        began = time.perf_counter()
        ranked = await search.index.rank(query.text, pool.snapshot, DEPTH)
        spent = time.perf_counter() - began if is_new else 0.0
        found = {"product": [pool.ids[row.name] for row in ranked]}
        found |= {
            method: [pool.ids[name] for name in names]
            for method, names in (await plain.rank(query.text)).items()
        }
        shares = {method: _shares(ids, query.gold) for method, ids in found.items()}
        if query.with_needs:
            brought = [pool.ids[name] for name in await search.likely(query.text, DEPTH)]
            shares["product, needs"] = _shares(brought, query.with_needs)
        yield query, shares, spent


class Plain:
    """The baselines: words only, the embedding only, and both fused by rank."""

    def __init__(
        self, names: list[str], index: WordIndex, matrix: Any, model: Embedder | None
    ) -> None:  # Any: numpy
        self._names, self._index, self._matrix, self._model = names, index, matrix, model

    @classmethod
    async def of(cls, pool: Pool, model: Embedder | None) -> "Plain":
        """Return the baselines of a pool."""
        names, index = [*pool.snapshot.functions], WordIndex((1,), (0.75,))
        texts = []
        for slot, function in enumerate(pool.snapshot.functions.values()):
            name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-]+", " ", function.name)
            properties = function.parameters["properties"]
            rest = " ".join(
                f"{key} {row.get('description', '')}" for key, row in properties.items()
            )
            index.put(slot, [words.stems(words.content(f"{name} {function.description} {rest}"))])
            texts.append(f"{name}. {function.description}")
        rows = await model.embed(texts) if model is not None else []
        matrix = np.frombuffer(b"".join(rows), "<f4").reshape(len(rows), -1) if rows else None
        return cls(names, index, matrix, model)

    async def rank(self, need: str) -> dict[str, list[str]]:
        """Return the first names by each method."""
        scores = {"BM25": self._index.scores(words.stems(words.content(need)), len(self._names))}
        if self._model is not None:
            vector = np.frombuffer((await self._model.embed([need]))[0], "<f4")
            scores["embedding"] = self._matrix @ vector
            fused = sum(1 / (_FUSED + 1 + np.argsort(np.argsort(-row))) for row in scores.values())
            scores["rank fusion"] = np.asarray(fused)
        return {
            method: [self._names[at] for at in np.argsort(-row)[:DEPTH]]
            for method, row in scores.items()
        }


def _tell(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def _by_set(queries: Iterable[Query]) -> dict[str, list[Query]]:
    groups: dict[str, list[Query]] = {}
    for query in queries:
        groups.setdefault(query.set, []).append(query)
    return groups


def _drawn(queries: list[Query], most: int) -> list[Query]:
    ordered = sorted(queries, key=lambda query: hashlib.sha1(query.id.encode()).hexdigest())
    return ordered[:most] if most else queries


def _half(id: str) -> int:
    return int(hashlib.sha1(f"q{id}".encode()).hexdigest(), 16) % 2


def _shares(found: Sequence[str], gold: frozenset[str]) -> list[float]:
    """Return the recall at 1 (is the first one right), at 5 and at 10, and the nDCG at 10."""
    hits = [id in gold for id in found[:DEPTH]]
    gain = sum(hit / math.log2(place + 2) for place, hit in enumerate(hits))
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(gold), DEPTH)))
    return [float(any(hits[:1])), sum(hits[:5]) / len(gold), sum(hits) / len(gold), gain / ideal]


def _means(rows: Sequence[dict[str, list[float]]]) -> dict[str, Any]:  # Any: JSON
    methods = dict.fromkeys(method for row in rows for method in row)
    means: dict[str, Any] = {"queries": len(rows)}
    for method in methods:
        values = [row[method] for row in rows if method in row]
        means[method] = [
            round(100 * sum(column) / len(values), 1) for column in zip(*values, strict=True)
        ]
    return means


def table(figures: dict[str, Any]) -> str:  # Any: JSON
    """Return the figures as a table."""
    lines = [
        f"{figures['file']}, {figures['embedding']}, {figures['remembered']} requests remembered for each tool,"
        f" {figures['median_ms']} ms a query",
        "| pool, set | queries | method | recall@1 | recall@5 | recall@10 | nDCG@10 |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, means in figures["pools"].items():
        for method, values in _methods(means):
            lines.append(
                f"| {name} | {means['queries']} | {method} | {' | '.join(map(str, values))} |"
            )
    return "\n".join(lines)


def _methods(means: dict[str, Any]) -> Iterator[tuple[str, list[float]]]:  # Any: JSON
    yield from ((method, values) for method, values in means.items() if method != "queries")


if __name__ == "__main__":
    main()
