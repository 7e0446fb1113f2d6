from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent_core.interfaces.repl.blocks import Blocks

TEXT = "First *line*\nsecond line\n\n- one\n- two\n\n```python\nx = 1\n\ny = 2\n```\nAfter.\n"
WHOLE = ["First *line*\nsecond line", "- one\n- two", "```python\nx = 1\n\ny = 2\n```", "After."]


def cut(text: str, at: list[int]) -> list[str]:
    places = sorted({0, len(text), *(place % len(text) for place in at)})
    return [text[start:end] for start, end in pairwise(places)]


def play(pieces: list[str]) -> list[str]:
    blocks = Blocks()
    found = [block for piece in pieces for block in blocks.feed(piece)]
    rest = blocks.end()
    return [*found, rest] if rest else found


@given(st.lists(st.integers(0, 1000)))
def test_blocks_are_the_same_however_the_stream_was_cut(at: list[int]) -> None:
    assert play(cut(TEXT, at)) == WHOLE


@given(st.text(alphabet="a`~#- \n", max_size=80), st.lists(st.integers(0, 1000), max_size=6))
def test_no_line_that_says_something_is_lost_or_said_twice(text: str, at: list[int]) -> None:
    pieces = cut(text, at) if text else []
    said = [line for block in play(pieces) for line in block.split("\n") if line.strip()]
    assert said == [line for line in text.split("\n") if line.strip()]


def test_a_blank_line_inside_a_fence_ends_no_block() -> None:
    blocks = Blocks()
    assert blocks.feed("~~~~\na\n\n~~~\nb\n") == []
    assert blocks.feed("~~~~\n") == ["~~~~\na\n\n~~~\nb\n~~~~"]


def test_what_is_pending_is_the_unfinished_end_within_its_limits() -> None:
    blocks = Blocks()
    blocks.feed("done\n\none\ntwo\nthree\nfo")
    blocks.feed("ur")
    assert blocks.pending(2, 3) == "two\nree\nour"
