from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent_core.interfaces.repl.live import BlockSplitter, DrawnBlock

TEXT = "First *line*\nsecond line\n\n- one\n- two\n\n```python\nx = 1\n\ny = 2\n```\nAfter.\n"
WHOLE = [
    DrawnBlock("First *line*\nsecond line"),
    DrawnBlock("- one\n- two"),
    DrawnBlock("x = 1\n\ny = 2\n", "python"),
    DrawnBlock("After."),
]


def cut(text: str, at: list[int]) -> list[str]:
    places = sorted({0, len(text), *(place % len(text) for place in at)})
    return [text[start:end] for start, end in pairwise(places)]


def play(pieces: list[str]) -> list[DrawnBlock]:
    """Return the blocks of a stream, with the parts of each joined."""
    blocks, whole = BlockSplitter(), list[DrawnBlock]()
    for block in [*(found for piece in pieces for found in blocks.feed(piece)), *blocks.end()]:
        if whole and not whole[-1].ends:
            block = DrawnBlock(whole.pop().text + block.text, block.code, block.ends)
        whole.append(block)
    return whole


@given(st.lists(st.integers(0, 1000)))
def test_blocks_are_the_same_however_the_stream_was_cut(at: list[int]) -> None:
    assert play(cut(TEXT, at)) == WHOLE


@given(st.text(alphabet="a#- \n", max_size=80), st.lists(st.integers(0, 1000), max_size=6))
def test_no_line_that_says_something_is_lost_or_said_twice(text: str, at: list[int]) -> None:
    pieces = cut(text, at) if text else []
    said = [line for block in play(pieces) for line in block.text.split("\n") if line.strip()]
    assert said == [line for line in text.split("\n") if line.strip()]


@given(st.text(alphabet="a`~ \n", max_size=60), st.lists(st.integers(0, 1000), max_size=6))
def test_code_and_its_fences_are_cut_the_same_in_any_pieces(text: str, at: list[int]) -> None:
    assert play(cut(text, at) if text else []) == play([text])


def test_code_is_given_out_as_soon_as_it_is_written_without_the_indentation_of_its_fence() -> None:
    blocks = BlockSplitter()
    assert blocks.feed("~~~~ python\na\n\n~~~\nb") == [DrawnBlock("a\n\n~~~\n", "python", ends=False)]
    assert blocks.feed("\n~~~~\n") == [DrawnBlock("b\n", "python")]
    assert play(["- so:\n  ```\n  x\n    y\n  ```\n"]) == [DrawnBlock("- so:"), DrawnBlock("x\n  y\n", "")]
    assert play(["```\nx"]) == [DrawnBlock("x\n", "")]  # a block that the reply leaves open ends with it


def test_what_grows_beyond_a_screen_is_given_out_in_parts_and_a_table_goes_on_under_its_head() -> None:
    for line, first, parts in (("- item", 40, 3), ("| a | b |", 120, 1)):
        lines = [line, "|---|---|" if line[0] == "|" else line, *[line] * 118]
        found = BlockSplitter().feed("\n".join(lines) + "\n\n")
        assert (len(found), found[0].text.count("\n") + 1) == (parts, first)
    found = BlockSplitter().feed("\n".join(["| a |", "|---|", *["| x |"] * 300]) + "\n\n")
    assert [part.text.split("\n")[:2] for part in found] == [["| a |", "|---|"]] * 2
    assert sum(part.text.count("| x |") for part in found) == 300
