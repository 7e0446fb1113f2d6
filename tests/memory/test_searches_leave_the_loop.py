"""A search of a large memory does not block the event loop."""

import asyncio
import random
import threading
import time

import pytest

from agent_core.base.language import english_stems
from agent_core.memory.embedding import embedder
from agent_core.memory.signals import Lexicon
from agent_core.memory.words import split

MOST_S = 0.15
WORDS = [
    f"{first}{second}ing{number}"
    for first in "abcdefghij"
    for second in "lmnopqrstu"
    for number in range(200)
]


async def longest_s(lexicon: Lexicon, question: list[str], texts: dict[int, list[str]]) -> float:
    """Return the longest time that comparing the words of texts with a question blocked the event loop."""
    waits, comparing = [0.0], asyncio.create_task(lexicon.likeness(question, texts))
    while not comparing.done():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        waits.append(time.perf_counter() - began)
    assert comparing.result() is not None
    return max(waits)


@pytest.mark.slow
async def test_the_words_of_long_messages_are_compared_beside_the_event_loop() -> None:
    model = embedder("wordllama")
    assert model is not None
    await model.embed(["loaded"])
    drawing = random.Random(1)
    texts = {number: drawing.sample(WORDS, 8_000) for number in range(150)}
    question = drawing.sample(WORDS, 100)
    took_s = [await longest_s(Lexicon(model), question, texts) for _ in range(3)]
    assert min(took_s) < MOST_S, took_s


async def test_searches_at_one_time_give_each_word_its_own_vector() -> None:
    model = embedder("wordllama")
    assert model is not None
    lexicon = Lexicon(model)
    texts = {number: [word] for number, word in enumerate(("puppy", "violin", "harbor", "window"))}
    several = [
        lexicon.likeness(["dog", "music"], {number: words}) for number, words in texts.items()
    ]
    await asyncio.gather(*several)
    together = await lexicon.likeness(["dog", "music"], texts)
    alone = await Lexicon(model).likeness(["dog", "music"], texts)
    assert together is not None
    assert alone is not None
    assert together.tolist() == alone.tolist()


LONG = "The horses ran through 3 wide fields.\nThey were running again, quickly, "


@pytest.mark.parametrize("size", [1, 60, 10_000, 70_000])
def test_a_long_text_has_the_words_of_its_parts(size: int) -> None:
    text = LONG * (size // len(LONG) + 1)
    assert split(text) == split(LONG) * (size // len(LONG) + 1)
    assert english_stems(text) == english_stems(LONG)


def part_without_others(size: int) -> float:
    """Return the largest part of the time that taking a text apart takes in which no other thread runs."""
    text = LONG * (size // len(LONG))
    work = threading.Thread(target=lambda: (english_stems(text), split(text)))
    began = last = time.perf_counter()
    longest = 0.0
    work.start()
    while work.is_alive():
        time.sleep(0.0005)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest / (time.perf_counter() - began)


def test_the_words_of_a_long_message_let_other_threads_run() -> None:
    assert min(part_without_others(4_000_000) for _ in range(5)) < 0.2
