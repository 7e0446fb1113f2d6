"""The whole searches that the agent calls: `python -m benchmarks.searches [PATH …] [--messages N] [--json]`.

`Recall.search` over messages and `Archival.search` over passages: embed the question, find rows by words and by vector,
add neighbors, weight, and write the page. Sentences as in `benchmarks.passages`, among a tenth and among all. Other
processes disturb CPU time less.
"""

import argparse
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from agent_core.base.clock import Clock
from agent_core.memory.archival import Archival
from agent_core.memory.recall import JournalMessage, Recall, derive
from agent_core.storage import SavePassages, SaveSaid, Store, open_store
from benchmarks.measure import Row, line, ran_with
from benchmarks.passages import PATHS, Taken
from benchmarks.passages_texts import texts
from benchmarks.recall_data import checked, model_named

BATCH, SMALL, AIM_MS, AIM_SMALL_MS = 2_000, 10, 30.0, 12.0
SESSION, PAUSE_S = 20, 7200
_NAMES = ("small", "large")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.searches", description=__doc__)
    given = os.environ.get(PATHS, "")
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[Path(one) for one in given.split(":") if one]
    )
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    options = parser.parse_args()
    found = texts(options.paths, options.messages, options.rounds)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        rows = ran_with(
            "The embedding model", measure(Path(folder), found.passages, found.questions)
        )
    if options.json:
        print(json.dumps({"rows": [{**asdict(row), "met": row.is_met} for row in rows]}))
        return
    for row in rows:
        print(line(row))


async def measure(folder: Path, passages: list[str], questions: list[str]) -> list[Row]:
    """Return a row for each kind of memory and size."""
    small = len(passages) // SMALL
    rows = []
    async with open_store(folder / "state.db", clock=Clock()) as store:
        for name, count in zip(_NAMES, (small, len(passages)), strict=True):
            recall, archival = await filled(store, name, passages[:count])
            for shelf, search in (("messages", recall.search), ("passages", archival.search)):
                first = Taken()
                await first.add(search(questions[0]))
                taken = Taken()
                for question in questions:
                    await taken.add(search(question))
                rows += [
                    Row(
                        f"whole search of {count:,} {shelf}",
                        taken.ms,
                        aim=AIM_MS if name == "large" else AIM_SMALL_MS,
                    ),
                    Row("  in processor time", taken.worked_ms),
                    Row("  the first of a process, in processor time", first.worked_ms),
                ]
    return rows


async def filled(store: Store, agent: str, passages: list[str]) -> tuple[Recall, Archival]:
    """Fill the memory of an agent: it heard all passages and archived them."""
    clock, model = Clock(), await model_named("wordllama")
    at = clock.now() - len(passages) * PAUSE_S / SESSION * 2
    lines = []
    # Entry numbers are global in the store: those of another agent must not be reused.
    last = max(
        [entry.seq for entry in [await store.last_message(name) for name in _NAMES] if entry],
        default=0,
    )
    for number, text in enumerate(passages, start=last + 1):
        at += PAUSE_S if number % SESSION == 0 else 60
        lines.append(JournalMessage(number, "user" if number % 2 else "assistant", text, at))
    said = derive(agent, agent, lines, None)
    for start in range(0, len(said), BATCH):
        await store.apply([SaveSaid(tuple(said[start : start + BATCH]))])
    recall = Recall(store, agent, model, clock)
    archival = Archival(store, agent, model, clock)
    for start in range(0, len(passages), BATCH):
        batch = tuple(archival.passage(text, "bench") for text in passages[start : start + BATCH])
        await store.apply([SavePassages(batch)])
    await recall.vectors.embed_all()
    await archival.vectors.embed_all()
    checked(recall.vectors)
    checked(archival.vectors)
    return recall, archival


if __name__ == "__main__":
    main()
