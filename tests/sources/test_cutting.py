"""Chunks contain the whole text, have a good size, and give their true place."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.untrusted import UNSEEN
from agent_core.memory.sources.cutting import LONGEST, Cut
from agent_core.memory.sources.kinds import read
from tests.kit.drawing import sampled

_WORD = st.text(
    st.characters(exclude_categories=("Cc", "Cf", "Cs", "Z", "Cn", "Co")), min_size=1, max_size=30
).map(
    lambda word: re.sub(f"[{UNSEEN}]", "x", word)  # which is not part of a visible word
)
_GLUE = st.sampled_from(
    [
        " ",
        " ",
        " ",
        "\n",
        "\n\n",
        ". ",
        "\n# ",
        "\n## ",
        "\n```\n",
        "\n---\n",
        "\n    ",
        "\ndef ",
        "\n\n\n",
    ]
)
_TEXT = st.lists(st.tuples(_WORD, _GLUE), min_size=1, max_size=900).map(
    lambda found: "".join(map("".join, found))
)
KINDS = ("notes.txt", "notes.md", "notes.rs", "notes.py")


def cut(name: str, text: str) -> Cut:
    return read(name, text.encode())


@pytest.mark.sampled
@pytest.mark.parametrize("name", sampled(KINDS, 3))
@given(text=_TEXT)
def test_chunks_together_hold_every_word_of_the_text(name: str, text: str) -> None:
    held = Counter(word for chunk in cut(name, text).chunks for word in chunk.text.split())
    assert not Counter(text.split()) - held


@pytest.mark.sampled
@pytest.mark.parametrize("name", sampled([*KINDS, "notes.html"], 3))
@given(
    words=st.lists(
        st.sampled_from(["heron", "otter.", "pike!", "eel;", "ÄÖ", "(reed)", "鷺。"]), min_size=200
    )
)
def test_a_text_without_a_line_break_is_cut_between_words(name: str, words: list[str]) -> None:
    held = Counter(
        word for chunk in cut(name, " ".join(words)).chunks for word in chunk.text.split()
    )
    assert not Counter(words) - held
    assert {*held} <= {*words}


@pytest.mark.sampled
@pytest.mark.parametrize("name", sampled(KINDS, 3))
@given(text=_TEXT)
def test_chunks_stand_in_the_lines_that_their_place_names(name: str, text: str) -> None:
    lines = text.split("\n")
    for chunk in cut(name, text).chunks:
        found = re.search(r"lines? (\d+)(?:–(\d+))?$", chunk.place)
        assert found is not None
        within = lines[int(found[1]) - 1 : int(found[2] or found[1])]
        # A continued chunk starts with its heading, which precedes it in the text.
        said = [line for line in chunk.text.split("\n")[1:] if line.strip()]
        assert [line.strip() for line in said if line.strip() not in "\n".join(within)] == []


@pytest.mark.sampled
@pytest.mark.parametrize("name", sampled([*KINDS, "notes.html", "notes.csv"], 3))
@given(text=_TEXT)
def test_chunks_are_never_longer_than_promised_and_come_out_alike(name: str, text: str) -> None:
    found = cut(name, text)
    assert max(len(chunk.text) for chunk in found.chunks) <= LONGEST
    assert found == cut(name, text)


@given(
    rows=st.lists(
        st.lists(_WORD.filter(lambda word: '"' not in word), min_size=3, max_size=3), min_size=2
    )
)
def test_every_cell_of_a_table_is_in_a_chunk(rows: list[list[str]]) -> None:
    text = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    held = Counter(word for chunk in cut("a.csv", text).chunks for word in chunk.text.split())
    assert not Counter(cell for row in rows for cell in row) - held


def test_most_chunks_of_prose_have_a_good_size() -> None:
    text = "\n\n".join(
        f"Note {n}. " + "It rains in the valley today, they say. " * 7 for n in range(200)
    )
    sizes = [len(chunk.text) for chunk in cut("a.txt", text).chunks]
    assert sum(700 <= size <= LONGEST for size in sizes) > 0.95 * len(sizes)


def test_a_paragraph_that_is_cut_takes_its_last_sentence_along() -> None:
    text = " ".join(f"Sentence number {n} says something short." for n in range(60))
    first, second, *_ = cut("a.txt", text).chunks
    last = re.findall(r"Sentence number \d+ says something short\.", first.text)[-1]
    assert second.text.startswith(last)


def test_a_word_longer_than_any_chunk_is_cut_and_kept_whole() -> None:
    text = "x" * 5_000
    assert "".join(chunk.text for chunk in cut("a.txt", text).chunks) == text
