"""The passages that benchmarks.passages searches, made of given or generated sentences, and an exact search."""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import numpy as np
import numpy.typing as npt

from agent_core.memory.embedding import embedder

STOPPED, FREQUENT = (
    60,
    40,
)  # how many of the most frequent words count as stop words, and how many as very frequent
VOCABULARY, SENTENCES = 20_000, 8_000
Floats: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Texts:
    """Passages and their words without the most frequent ones; questions and their search words."""

    passages: list[str]
    words: list[str]
    questions: list[str]
    asked: list[list[str]]
    frequent: list[list[str]]


def texts(paths: Sequence[Path], count: int, rounds: int) -> Texts:
    """Return the same texts in every run."""
    chance = random.Random(7)
    given = dict.fromkeys(one for path in paths for one in sentences(path))
    told = [one for one in given if not one.endswith("?")] or list(made(chance))
    questions = chance.sample([one for one in given if one.endswith("?")] or told, rounds)
    passages: dict[str, None] = {}
    while len(passages) < count:
        passages[" ".join(chance.sample(told, chance.choice((1, 2, 2, 3))))] = None
    sample = [set(split(one)) for one in chance.sample(list(passages), min(count, 20_000))]
    ranked = [
        word
        for word, _ in Counter(word for one in sample for word in one).most_common(
            STOPPED + FREQUENT
        )
    ]
    stopped, frequent = {*ranked[:STOPPED]}, ranked[STOPPED:]
    asked = [
        [word for word in split(one) if word not in stopped] or frequent[:1] for one in questions
    ]
    words = [" ".join(word for word in split(one) if word not in stopped) for one in passages]
    return Texts(
        [*passages], words, questions, asked, [chance.sample(frequent, 5) for _ in range(rounds)]
    )


def split(text: str) -> list[str]:
    """Return the words in lower case."""
    return re.findall(r"\w+", text.lower())


def sentences(path: Path) -> Iterator[str]:
    """Yield sentences of at least four words from a JSON document, JSON lines or a text."""
    for text in _strings(path.read_text("utf-8")):
        yield from (one for one in re.split(r"(?<=[.!?])\s+|\n+", text) if len(one.split()) >= 4)


def _strings(text: str) -> Iterator[str]:
    try:
        yield from _leaves([json.loads(text)])
    except ValueError:
        for line in text.splitlines():
            try:
                yield from _leaves([json.loads(line)])
            except ValueError:
                yield line


def _leaves(values: list[Any]) -> Iterator[str]:  # Any: JSON
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value


def made(chance: random.Random) -> Iterator[str]:
    """Generate sentences from a vocabulary in which the n-th word is 1/n as frequent as the first."""
    words = ["".join(chance.choices("aeiou", k=1) + chance.choices("bdfgklmnprstvz", k=1 + n % 5)) + str(n)
             for n in range(VOCABULARY)]  # fmt: skip
    weights = list(accumulate(1 / n for n in range(1, VOCABULARY + 1)))
    for _ in range(SENTENCES):
        yield " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(6, 14)))


async def embed(passages: Sequence[str]) -> Floats:
    """Embed with the default model."""
    model = embedder("wordllama")
    assert model is not None
    return np.stack([np.frombuffer(vector, np.float32) for vector in await model.embed(passages)])


def exact_scores(rows: Sequence[str], asked: Sequence[Sequence[str]]) -> list[list[float]]:
    """Return the ten best scores of each question, over all rows, by the rarity of the matching words."""
    stems = apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61"])

    def stemmed(text: str) -> list[str]:
        kind = apsw.FTS5_TOKENIZE_DOCUMENT
        found = stems(text.encode(), kind, None, include_offsets=False, include_colocated=False)
        return [str(stem) for stem in found]

    questions = [{*stemmed(" ".join(words))} for words in asked]
    wanted = set().union(*questions)
    holding: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        for word in wanted & {*stemmed(row)}:
            holding[word].append(number)
    return [_ten([holding[word] for word in sorted(words)], len(rows)) for words in questions]


def _ten(found: Sequence[Sequence[int]], total: int) -> list[float]:
    scores: dict[int, float] = defaultdict(float)
    for holding in found:
        for number in holding:
            scores[number] += log(1 + (total - len(holding) + 0.5) / (len(holding) + 0.5))
    return sorted(scores.values(), reverse=True)[:10]
