"""Dense texts by the dozen: their trees, and what is derived from them, take only so much memory together."""

import ast
import gc
import tracemalloc
from collections.abc import Callable

import pytest

from agent_core.base.language import language_of, stem, stems
from agent_core.base.likeness import likeness
from agent_core.base.syntax import tree_of
from agent_core.functions.gate.tree import context_nodes, nodes_of
from agent_core.registry.depends import statements_of

TEXTS = 8
SIGNS = 12_000  # in a text, each of which is two nodes


def test_the_trees_of_many_dense_texts_are_let_go() -> None:
    most = 0
    gc.collect()
    gc.freeze()  # what was there before is not looked through
    for number in range(TEXTS):
        text = f"def part{number}(x: int) -> int:\n    y = ({'-x,' * SIGNS})\n    return y[0]\n"
        tree = tree_of(text)
        assert len(nodes_of(tree)) > SIGNS
        context_nodes(tree.body[0])
        statements_of(text)
        del tree
        alive = sum(isinstance(each, ast.AST) for each in gc.get_objects())
        most = max(most, alive)
    assert most < TEXTS * SIGNS, most  # half of what all of them have


LONG = 200_000


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(stem, id="stem"),
        pytest.param(lambda text: stems([text], "de"), id="stems"),
        pytest.param(language_of, id="language"),
        pytest.param(lambda text: likeness(["a"], text), id="likeness"),
    ],
)
def test_long_texts_are_let_go_once_they_are_read(read: Callable[[str], object]) -> None:
    read("x")
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(20):
            read(f"{number:06}{'x' * LONG}")
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 * LONG, kept
