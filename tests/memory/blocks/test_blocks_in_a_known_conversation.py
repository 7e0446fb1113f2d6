"""A conversation in which MemGPT lost or doubled facts, replayed with the memory functions."""

from collections import Counter

import pytest

from agent_core.memory.blocks import Blocks
from tests.memory.blocks.conftest import By, OpenBlocks

Call = tuple[str, dict[str, str]]

MITYA, MITUA = "Best friend: Mitya, who also loves cherry pies", "Mitua is also a best friend of the user"
TOLD = ["Name: Chad", "Favourite food: cherry pie", MITYA, MITUA, "Ann is also a best friend of the user"]


def _append(content: str) -> Call:
    return "core_memory_append", {"name": "human", "content": content}


def _replace(old: str, new: str) -> Call:
    return "core_memory_replace", {"name": "human", "old_content": old, "new_content": new}


WAYS = [
    pytest.param([_replace(MITYA, "Mitya loves cherry pies"), _replace(MITUA, "")], id="replaces-what-no-longer-holds"),
    pytest.param(
        [_replace("Best friend: Mitya", "Mitya was no friend"), *[_replace("Mitua is", "Mitua is not")] * 2],
        id="replaces-parts-and-repeats-itself",
    ),
]


async def _tell(blocks: Blocks, calls: list[Call]) -> None:
    for n, (function, arguments) in enumerate(calls):
        edit = await blocks.commit(await blocks.call(function, arguments, By(turn=f"t{n}")))
        assert edit.outcome == "returned", edit.text


@pytest.mark.parametrize("corrections", WAYS)
async def test_a_friend_who_is_none_after_all_leaves_no_contradiction(
    blocks_of: OpenBlocks, corrections: list[Call]
) -> None:
    blocks = await blocks_of()
    told = [_append(fact) for fact in TOLD]
    await _tell(blocks, [*told, *told, *corrections])
    lines = blocks.memory.human.lines
    assert lines[:2] == TOLD[:2]
    assert not {MITYA, MITUA} & {*lines}
    assert "cherry pies" in blocks.memory.human.text
    assert max(Counter(lines).values()) == 1


@pytest.mark.parametrize("corrections", WAYS)
async def test_the_history_of_it_shows_each_change_in_its_turn(blocks_of: OpenBlocks, corrections: list[Call]) -> None:
    blocks = await blocks_of()
    await _tell(blocks, [*(_append(fact) for fact in TOLD), *corrections])
    _, *changes = await blocks.history("human")
    assert [change.turn for change in changes] == [f"t{n}" for n in range(len(changes))]
    assert [change.version for change in changes] == [*range(2, len(changes) + 2)]
    assert all('"' in change.action for change in changes)
    for _ in changes[len(TOLD) :]:
        await blocks.commit(await blocks.undo("human", By()))
    assert blocks.memory.human.lines == TOLD
