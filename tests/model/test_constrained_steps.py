"""A step in transit: written, read back whole or truncated, and read while it grows."""

import json

from hypothesis import given
from hypothesis import strategies as st

from agent_core.model import TextPiece, ThoughtPiece
from agent_core.model.constrained import GrowingStep
from agent_core.model.conversation import ModelStep, read_step, write_step
from agent_core.model.reply import CallPiece

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@given(TEXT, TEXT)
def test_a_reply_that_was_written_reads_back_as_it_was(thought: str, reply: str) -> None:
    assert read_step(write_step(thought, reply=reply)) == ModelStep(thought, reply=reply)


@given(TEXT, st.dictionaries(TEXT, JSON, max_size=3))
def test_a_call_keeps_its_arguments_byte_for_byte(thought: str, arguments: dict[str, object]) -> None:
    raw = json.dumps(arguments, ensure_ascii=False)
    assert read_step(write_step(thought, name="add", arguments=raw)) == ModelStep(thought, name="add", arguments=raw)


def test_arguments_in_an_unusual_place_are_written_anew() -> None:
    step = read_step('{"call": {"arguments": {"a": 1}, "name": "add"}, "thought": "\\"arguments\\": {}"}')
    assert step == ModelStep('"arguments": {}', name="add", arguments='{"a":1}')


def test_what_is_no_step_reads_as_none() -> None:
    for text in ["Hello.", '{"answer": 3}', '[{"thought": "t", "reply": "r"}]', ""]:
        assert read_step(text) is None, text


def test_a_call_that_was_cut_off_says_which_and_keeps_what_came() -> None:
    step = read_step('{"thought":"t","call":{"name":"create_function","arguments":{"code":"def f(')
    assert step == ModelStep("", name="create_function", arguments='{"code":"def f(', is_whole=False)


@given(TEXT, TEXT, st.data())
def test_thought_and_reply_come_in_pieces_however_the_text_is_cut(
    thought: str, reply: str, data: st.DataObject
) -> None:
    text = json.dumps({"thought": thought, "reply": reply}, ensure_ascii=data.draw(st.booleans()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    growing = GrowingStep()
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    pieces = [piece for part in parts for piece in growing.feed(part)]
    assert "".join(piece.text for piece in pieces if isinstance(piece, ThoughtPiece)) == thought
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == reply


def test_a_call_shows_its_thought_and_no_text() -> None:
    growing = GrowingStep()
    pieces = growing.feed('{"thought": "I add.", "call": {"name": "reply", "arguments": {"reply": "x"}}}')
    assert pieces == [ThoughtPiece("I add."), CallPiece(0, "reply", '{"reply": "x"}}}')]
    assert (growing.thought, growing.reply) == ("I add.", "")


def test_half_an_escape_waits_for_its_other_half() -> None:
    growing = GrowingStep()
    assert growing.feed('{"thought":"a\\ud83d') == [ThoughtPiece("a")]
    assert growing.feed("\\ude00b") == [ThoughtPiece("\N{GRINNING FACE}b")]
