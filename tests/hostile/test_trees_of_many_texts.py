"""Dense texts by the dozen: their trees, and what is derived from them, take only so much memory together."""

import ast
import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Coroutine
from itertools import count

import pytest

from agent_core.base.language import language_of, stem, stems
from agent_core.base.likeness import likeness
from agent_core.base.syntax import tree_of
from agent_core.functions.gate.tree import context_nodes, nodes_of
from agent_core.memory.embedding import embedder
from agent_core.memory.search import ParsedQuery
from agent_core.memory.signals import Lexicon, measure_passages
from agent_core.memory.vectors import TextVectors
from agent_core.model.reading import meant
from agent_core.registry import arguments
from agent_core.registry.depends import statements_of
from agent_core.storage import PassageRow

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
QUERY = ParsedQuery("x", ("x",), ("x",), {}, frozenset(), frozenset(), "x", ())


def passage(words: str) -> PassageRow:
    return PassageRow("id", "main", words, words, 0.0)


def kept_of(read: Callable[[str], object], rounds: int) -> int:
    """Return the bytes that are kept of long texts once they were read, each in a loop if that takes one."""

    def read_once(text: str) -> None:
        result = read(text)
        if isinstance(result, Coroutine):
            asyncio.run(result)

    read_once("x")
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(rounds):
            read_once(f"{number:06}{'x' * LONG}")
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return kept


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(stem, id="stem"),
        pytest.param(lambda text: stems([text], "de"), id="stems"),
        pytest.param(language_of, id="language"),
        pytest.param(lambda text: likeness(["a"], text), id="likeness"),
        pytest.param(lambda text: meant(f"{text[:150]}.x", {text: text}), id="names-of-functions"),
        pytest.param(
            lambda text: measure_passages([passage(text)], QUERY, (), {}, 1), id="passages"
        ),
    ],
)
def test_long_texts_are_let_go_once_they_are_read(read: Callable[[str], object]) -> None:
    assert kept_of(read, 20) < 2 * LONG


def test_of_long_texts_with_vectors_the_beginnings_are_kept() -> None:
    vectors = TextVectors(embedder("wordllama"))
    assert kept_of(lambda text: vectors.of([text]), 20) < 2 * LONG


def test_long_texts_of_which_words_have_vectors_are_let_go() -> None:
    model = embedder("wordllama")
    assert model is not None
    lexicon, numbers = Lexicon(model), count()
    kept = kept_of(lambda text: lexicon.likeness(["x"], {next(numbers): [*text]}), 55)
    assert kept < 160 * LONG, "of ten million letters nothing is kept"


def test_schemas_of_strangers_are_let_go_once_arguments_were_read() -> None:
    def read_with(text: str) -> None:
        schema = {"type": "object", "properties": {"a": {"enum": [text]}}}
        assert isinstance(arguments.read('{"a": 1}', schema), tuple)

    kept = kept_of(read_with, 400)
    assert kept < 300 * LONG, "512 characters are a part, of a hundred thousand"
