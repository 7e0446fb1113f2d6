"""Words by their stems: as the text index sees them."""

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.memory.stem import stem


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("ponies", "poni", id="plural"),
        pytest.param("hopping", "hop", id="doubled letter"),
        pytest.param("hoping", "hope", id="fixed e"),
        pytest.param("generalizations", "gener", id="several steps"),
        pytest.param("sky", "sky", id="no vowel before y"),
        pytest.param("straße", "straße", id="not ascii"),
    ],
)
def test_forms_of_a_word_have_one_stem(word: str, expected: str) -> None:
    assert stem(word) == expected


@given(st.text("abcdeilnorstuvyz", min_size=1, max_size=14))
def test_every_word_has_the_stem_that_the_store_gives_it(word: str) -> None:
    tokenize = apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61"])
    theirs = tokenize(word.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    assert [stem(word)] == [*theirs]
