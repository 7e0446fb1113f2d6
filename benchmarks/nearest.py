"""`python -m benchmarks.nearest [--embedding …] [--missed]`: does adding a fact show the line that it contradicts?

Reads `tests/data/nearest.jsonl`: in five languages a line, a fact that makes it untrue, and a line on the same subject
that stays true. Each is placed in a block of 5 to 40 lines, the others drawn from the same language, once without and
once with the line that stays true. The fact is added through the blocks of a real store, and the result is read.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from agent_core.base.clock import Clock
from agent_core.memory.blocks import Blocks, NamedAuthor
from agent_core.memory.classes import ChatMemory
from agent_core.memory.embedding import Embedder
from agent_core.storage import open_store

from .measure import ran_with
from .recall_data import MODELS, model_named

DATA: Final = Path(__file__).parents[1] / "tests" / "data" / "nearest.jsonl"
_SEED: Final = 7
_FEWEST, _MOST = 5, 40
_NEAREST: Final = re.compile(r"^Nearest to what was written: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shown:
    """A case and what the result showed: the rank of the contradicted line, from 0, and the total size."""

    language: str
    line: str
    fact: str
    rank: int | None
    text: str

    @property
    def tokens(self) -> int:
        """The tokens of the lines, estimated from their bytes."""
        return -(-len(self.text.encode()) // 3)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nearest", description=__doc__)
    parser.add_argument("--embedding", choices=MODELS, default="wordllama")
    parser.add_argument("--missed", action="store_true")
    given = parser.parse_args()
    shown = ran_with(f"--embedding {given.embedding}", measured(given.embedding))
    print(table(shown))
    if given.missed:
        print(
            *(
                f"{case.language}: {case.fact} | {case.line} | {case.text}"
                for case in shown
                if case.rank is None
            ),
            sep="\n",
        )


def rows() -> list[dict[str, Any]]:  # Any: JSON
    """Return the cases."""
    return [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]


def blocks_of(
    cases: Sequence[dict[str, Any]],
) -> Iterator[tuple[dict[str, Any], list[str]]]:  # Any: JSON
    """Yield each case twice with a block."""
    drawn = random.Random(_SEED)
    for beside in (False, True):
        for case in cases:
            own = {case["line"], case["beside"]}
            others = [
                row
                for row in cases
                if (row["language"], row["topic"]) != (case["language"], case["topic"])
            ]
            lines = [
                row["line"]
                for row in others
                if row["language"] == case["language"] and row["line"] not in own
            ]
            extra = [case["beside"]] if beside and case["beside"] else []
            count = drawn.randint(_FEWEST, _MOST) - 1 - len(extra)
            block = [*drawn.sample([*dict.fromkeys(lines)], count), case["line"], *extra]
            drawn.shuffle(block)
            yield case, block


async def measured(embedding: Any) -> list[Shown]:  # Any: a name of a model
    """Return what was shown in each case."""
    model: Embedder | None = await model_named(embedding)
    shown = []
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "state.db", clock=Clock())
        try:
            memory = ChatMemory()
            memory["human"].limit = 10_000
            blocks = Blocks(store, "reader", memory, Clock(), model)
            await blocks.load()
            for case, block in blocks_of(rows()):
                await blocks.commit(
                    await blocks.write("human", "\n".join(block), NamedAuthor("reader", by="human"))
                )
                call = {"name": "human", "content": case["fact"]}
                edit = await blocks.call("core_memory_append", call, NamedAuthor("reader"))
                match = _NEAREST.search(edit.text)
                text = match[1] if match else ""
                numbers = [int(number) for number in re.findall(r"(?:^|; )line (\d+): ", text)]
                place = block.index(case["line"]) + 1
                rank = numbers.index(place) if place in numbers else None
                shown.append(Shown(case["language"], case["line"], case["fact"], rank, text))
        finally:
            await store.close()
    return shown


def table(shown: Sequence[Shown]) -> str:
    """Return the figures as a table."""
    lines = ["| language | cases | shown | first | most tokens |", "|---|---|---|---|---|"]
    for name in ("all", *dict.fromkeys(case.language for case in shown)):
        of_it = [case for case in shown if name in ("all", case.language)]
        found, first = (sum(case.rank in ranks for case in of_it) for ranks in ((0, 1, 2), (0,)))
        tokens = max(case.tokens for case in of_it)
        lines.append(
            f"| {name} | {len(of_it)} | {found / len(of_it):.1%} | {first / len(of_it):.1%} | {tokens} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
