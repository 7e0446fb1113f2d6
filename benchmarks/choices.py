"""`python -m benchmarks.choices PATH [--json]`: how much of a library a model is shown, and how often it chooses right.

The tools of a data file become functions and its queries messages, through the product's own search and selection. No
model takes part: of the functions it is shown, a scripted chooser calls the one that shares the most words with the
message (BM25). So the figures compare the ways to show functions, not models. With `--model local/qwen2.5-coder-1.5b
[--requests N]` a real model chooses instead, in its first step under a schema; it may also reply, which counts as no
call.

- *prediction*: shows the functions that the message probably needs, as a turn does.
- *search*: shows what `list_functions` finds for the message.
- *neither*: shows what fits, in order of the names.

A model that calls natively sees no schema but an index of text lines in the system message: *in the index* is whether
the right function has a line there at the first message of a conversation.
"""

import argparse
import hashlib
import json
import statistics
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

from agent_core.base.messages import System, User
from agent_core.base.settings import TurnSettings
from agent_core.context import BYTES_PER_TOKEN, CALLER, Shown
from agent_core.context.shown import EXPECTED, size_of
from agent_core.functions.search import FunctionSearch
from agent_core.memory.embedding import Embedder
from agent_core.model.reply import Reply
from agent_core.model.request import FunctionShown, Request
from agent_core.registry.function import Function
from agent_core.registry.registry import Snapshot
from agent_core.runtime import host_functions
from agent_core.workspace.deps import MAX_SHOWN_FUNCTIONS
from knapper_ext.local.server import open_local

from .measure import Row, ran_with, show
from .recall_data import model_named
from .tool_search import Plain, Pool, Query, Remembered, pool_of, read

SIZES: Final = (20, 200, 1_734)
LIBRARIES: Final = (20, 500)
REQUESTS: Final = 60
TURNS: Final = 10  # of one conversation, in which every message has a different subject
EACH: Final = 3  # requests for each tool
Chooser: TypeAlias = Callable[[Mapping[str, Function], str], Awaitable[str | None]]
_TASK: Final = "You help the user by calling functions. Call the one that does what is asked."
_SETTINGS: Final = TurnSettings()
_ROOM: Final = int(_SETTINGS.function_tokens * BYTES_PER_TOKEN)


class Nothing:
    """Hide no function; there are no complaints."""

    held: frozenset[tuple[str, str]] = frozenset()
    archived: frozenset[tuple[str, str]] = frozenset()
    complaints: Mapping[tuple[str, str], str] = {}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choices", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--model", help="a local model that chooses, in place of the script")
    parser.add_argument(
        "--requests", type=int, default=REQUESTS, help="how many requests a real model is sent"
    )
    given = parser.parse_args()
    rows = (
        chosen_by_model(given.path, given.model, given.requests)
        if given.model
        else bench(given.path)
    )
    show(ran_with("The model" if given.model else "The embedding model", rows), as_json=given.json)


async def chosen_by_model(path: Path, name: str, requests: int) -> list[Row]:
    """Return the right calls of a real model for the first requests."""
    model = await open_local(name)

    async def choose(functions: Mapping[str, Function], message: str) -> str | None:
        shown = tuple(
            FunctionShown(one.name, one.description, dict(one.parameters))
            for one in functions.values()
        )
        *_, reply = [
            piece async for piece in model.stream(Request((System(_TASK), User(message)), shown))
        ]
        assert isinstance(reply, Reply)
        called = reply.calls[0].name if reply.calls else None
        print(f"{message[:70]!r} of {len(shown)}: {called}", file=sys.stderr, flush=True)
        return called

    tools, queries = read(path)
    try:
        return await _right_calls(tools, queries, await model_named("wordllama"), choose, requests)
    finally:
        await model.aclose()


async def bench(path: Path) -> list[Row]:
    """Return the rows of a data file: the tokens, the share that stays unchanged, and the right calls."""
    tools, queries = read(path)
    model = await model_named("wordllama")
    ordered = _in_order(tools)
    messages = _drawn(queries, REQUESTS)
    talks = [messages[at : at + TURNS] for at in range(0, REQUESTS, TURNS)]
    sessions = [await _sessions(library_of(ordered[:size]), talks, model) for size in SIZES]
    rows = [
        Row(f"functions shown, library of {size:,}", round(tokens), unit="tokens")
        for size, (tokens, _) in zip(SIZES, sessions, strict=True)
    ]
    rows += [
        Row(
            f"of them at the same place in the next turn, library of {size:,}",
            round(100 * kept, 1),
            unit="%",
        )
        for size, (_, kept) in zip(SIZES, sessions, strict=True)
    ]
    return rows + await _right_calls(tools, queries, model, chosen, REQUESTS)


async def _right_calls(
    tools: Sequence[dict[str, Any]],  # Any: JSON
    queries: Iterable[Query],
    model: Embedder | None,
    choose: Chooser,
    requests: int,
) -> list[Row]:
    """Return how many requests lead to the right function, for a small and a large library."""
    asked, rows = _asked(queries, {tool["id"] for tool in tools}), list[Row]()
    wanted = {id for query in asked for id in query.gold}
    library = sorted(_in_order(tools), key=lambda tool: tool["id"] not in wanted)
    for size in LIBRARIES:
        pool = library_of(sorted(library[:size], key=lambda tool: str(tool["name"])))
        rows += await _calls(pool, asked[:: max(1, len(asked) // requests)], model, choose)
    return rows


def _in_order(tools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:  # Any: JSON
    return sorted(tools, key=lambda tool: mixed(tool["id"]))


async def _sessions(
    pool: Pool, talks: Sequence[Sequence[Query]], model: Embedder | None
) -> tuple[float, float]:
    """Return the mean tokens of the functions shown, and the share of the prefix kept from the previous turn."""
    search = FunctionSearch(model, Remembered([]), lambda: pool.snapshot)
    tokens, kept = list[float](), list[float]()
    for messages in talks:
        shown, texts = shown_set(), list[str]()
        for query in messages:
            await predicted(shown, pool, search, query.text)
            texts.append("".join(_wire(shown.choose(pool.snapshot.functions))))
        tokens += [len(text.encode()) / BYTES_PER_TOKEN for text in texts]
        kept += [_common(before, after) / max(len(before), 1) for before, after in pairwise(texts)]
    return statistics.mean(tokens), statistics.mean(kept)


async def _calls(
    pool: Pool, asked: Sequence[Query], model: Embedder | None, choose: Chooser
) -> list[Row]:
    """Return how many requests lead to the right function, for each way to show functions."""
    search = FunctionSearch(model, Remembered([]), lambda: pool.snapshot)
    functions, right, seen = pool.snapshot.functions, Counter[str](), Counter[str]()
    for query in asked:
        expecting, plain = shown_set(), shown_set()
        await predicted(expecting, pool, search, query.text)
        report = await search.search(query.text)
        sets = {
            "prediction": [part.name for part in expecting.choose(functions)],
            "search": [match.function.name for match in report.results],
            "neither": [part.name for part in plain.choose(functions)],
        }
        listed = await indexed(pool, search, query.text)
        seen["index"] += any(pool.ids[name] in query.gold for name in listed)
        for way, names in sets.items():
            seen[way] += any(pool.ids[name] in query.gold for name in names)
            called = await choose({name: functions[name] for name in names}, query.text)
            right[way] += called is not None and pool.ids[called] in query.gold
    in_index = Row(
        f"right function in the index, {len(functions)}", seen["index"], unit=f"of {len(asked)}"
    )
    return [in_index] + [
        row
        for way in ("prediction", "search", "neither")
        for row in (
            Row(
                f"right function called, {len(functions)}, {way}",
                right[way],
                unit=f"of {len(asked)}",
            ),
            Row(
                f"right function shown, {len(functions)}, {way}", seen[way], unit=f"of {len(asked)}"
            ),
        )
    ]


async def chosen(functions: Mapping[str, Function], message: str) -> str | None:
    """Return the shown function that shares the most words with a message."""
    if not functions:
        return None
    plain = await Plain.of(Pool(Snapshot(functions, {}, {}, {}), {}), None)
    return (await plain.rank(message))["BM25"][0]


async def predicted(shown: Shown, pool: Pool, search: FunctionSearch, message: str) -> None:
    """Predict what a message needs and add it to the functions shown, as a turn does."""
    shown.choose(pool.snapshot.functions)
    if shown.is_crowded:
        shown.expect(await search.likely(message, EXPECTED))


async def indexed(pool: Pool, search: FunctionSearch, message: str) -> frozenset[str]:
    """Return the functions with a line in the index of a conversation that begins with this message."""
    caller = host_functions.standard()[CALLER].function
    shown = Shown([caller], MAX_SHOWN_FUNCTIONS, Nothing(), room=_ROOM)
    await predicted(shown, pool, search, message)
    shown.choose(pool.snapshot.functions)
    return shown.index(int(_SETTINGS.index_tokens * BYTES_PER_TOKEN), is_kept=True).names


def library_of(tools: Iterable[dict[str, Any]]) -> Pool:  # Any: JSON
    """Return tools as functions of one library with unique names; dependencies outside of it are dropped."""
    tools = list(tools)
    ids = {tool["id"] for tool in tools}
    inside = {
        tool["id"]: [
            needed for needed in tool.get("depends_on", ()) if f"{tool['set']}:{needed}" in ids
        ]
        for tool in tools
    }
    pool = pool_of({**tool, "depends_on": inside[tool["id"]]} for tool in tools)
    functions = {
        name: replace(function, name=name) for name, function in pool.snapshot.functions.items()
    }
    return Pool(replace(pool.snapshot, functions=functions), pool.ids)


def shown_set() -> Shown:
    """Return the functions that an agent is shown at first."""
    return Shown([], MAX_SHOWN_FUNCTIONS, Nothing(), room=_ROOM)


def _asked(queries: Iterable[Query], ids: set[str]) -> list[Query]:
    """Return a few requests for each of a number of tools; one tool serves each request."""
    by_tool: dict[str, list[Query]] = {}
    for query in sorted(queries, key=lambda query: mixed(query.id)):
        if len(query.gold) == 1 and query.gold <= ids:
            by_tool.setdefault(min(query.gold), []).append(query)
    tools = [id for id in sorted(by_tool, key=mixed) if len(by_tool[id]) >= EACH]
    return [query for id in tools[: REQUESTS // EACH] for query in by_tool[id][:EACH]]


def _drawn(queries: Iterable[Query], count: int) -> list[Query]:
    return sorted(queries, key=lambda query: mixed(query.id))[:count]


def mixed(id: str) -> str:
    """Return a sort key for an order that is arbitrary but the same in every run."""
    return hashlib.sha1(f"c{id}".encode()).hexdigest()


def _wire(functions: Sequence[FunctionShown]) -> list[str]:
    assert size_of(functions) <= _ROOM
    return [
        json.dumps([part.name, part.description, dict[str, Any](part.parameters)])
        for part in functions
    ]


def _common(before: str, after: str) -> int:
    length = min(len(before), len(after))
    return next((place for place in range(length) if before[place] != after[place]), length)


if __name__ == "__main__":
    main()
