"""Large blocks and hostile texts from a model: an edit ends quickly and does not block the event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product

import pytest

from agent_core.base.errors import UsageError
from agent_core.memory.classes import ChatMemory
from agent_core.memory.edits import Edited, append, remove, replace
from tests.conftest import OpenDesk
from tests.kit.drawing import sampled
from tests.kit.heartbeat import MOST_MS, stall_of
from tests.kit.pace import least_s, time_of

_SOON_S = 3.0
N = 60_000
BLOCKS = {
    "one-word": ["a " * (N // 2)],
    "letters": ["a" * N],
    "blanks": ["a" + " " * N + "b"],
    "wide-blanks": ["a" + "\u3000" * N + "b"],
    "commas": ["a," + " ," * (N // 2)],
    "hyphens": ["is and " + "a-" * (N // 2)],
    "names": ["A, " * (N // 3) + "B and C are friends of " + "x" * 1_000],
    "combining": ["a" + "\u0316\u0301" * (N // 2)],
    "many-lines": [f"fact {n} is about thing {n}" for n in range(N // 25)],
    "lines-alike": [f"abcdefghij is liked by klmnopqrs{n % 10}" for n in range(N // 40)],
    "short-lines": [f"{n}" for n in range(N // 6)],
    "numbers": [" ".join(map(str, range(N // 6)))],
}


def _almost(lines: list[str]) -> str:
    return "\n".join(lines)[: -(len(lines[-1]) // 50 + 2)] + "zq"


EDITS: dict[str, Callable[[list[str]], Edited]] = {
    "replaced-nearly": lambda lines: replace(lines, _almost(lines), "new"),
    "replaced-half": lambda lines: replace(lines, _almost(lines)[: N // 2] + "zq", "new"),
    "replaced-by-much": lambda lines: replace([*lines, "old"], "old", "\n".join(lines)[::-1]),
    "removed-nearly": lambda lines: remove(lines, "zq " + _almost(lines)),
    "a-piece-removed": lambda lines: remove([*lines, f"x{lines[0]},"], "x"),
    "added-nearly": lambda lines: append(lines, _almost(lines)),
    "added-not": lambda lines: append(lines, f"not {lines[0]}"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("edit", "block"), [*sampled(product(EDITS, BLOCKS), 21)])
def test_every_edit_of_every_large_block_ends_soon(block: str, edit: str) -> None:
    def make() -> None:
        with suppress(UsageError):
            EDITS[edit](BLOCKS[block])

    assert least_s(_SOON_S, lambda: time_of(make)) <= _SOON_S


@pytest.mark.sampled
@pytest.mark.parametrize("block", sampled(BLOCKS, 7))
async def test_no_edit_of_a_large_block_holds_up_the_event_loop(
    at_desk: OpenDesk, block: str
) -> None:
    here = await at_desk([])
    memory = ChatMemory()
    memory["human"].limit = 10 * N
    memory["human"].put(BLOCKS[block])
    blocks = here.agent.memory.blocks
    await blocks.commit(await blocks.set_up("human", here.agent.author, limit=10 * N))
    await blocks.commit(await blocks.write("human", "\n".join(BLOCKS[block]), here.agent.author))
    arguments = {"name": "human", "old_content": _almost(BLOCKS[block]), "new_content": "new"}
    async with asyncio.timeout(120):
        stall = await stall_of(
            partial(blocks.call, "core_memory_replace", arguments, here.agent.author)
        )
    assert stall.cpu_ms <= MOST_MS, stall
