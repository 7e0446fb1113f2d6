"""Constrained mode: the schema of a step, its text in transit, and the requests to the server."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.messages import Answer, Assistant, Call, Message, User
from agent_core.base.settings import ModelSettings
from agent_core.model import (
    FunctionShown,
    Piece,
    Reply,
    Request,
    TextPiece,
    ThoughtPiece,
    TokenUsage,
)
from agent_core.model.connection import Endpoint
from agent_core.model.wire import portable
from knapper_ext.local.constrained import ConstrainedModel, GrowingStep
from knapper_ext.local.conversation import ModelStep, read_step, step_schema, write_step
from tests.kit import Say, ScriptedModel
from tests.model.asking import HELLO

ADD = FunctionShown(
    "add",
    "Add.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)

TREE = {
    "$ref": "#/$defs/Tree",
    "$defs": {
        "Tree": {
            "type": "object",
            "properties": {"left": {"$ref": "#/$defs/Tree"}, "n": {"type": "integer"}},
        }
    },
}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def test_a_step_is_one_call_of_a_shown_function_or_a_reply() -> None:
    rows: list[tuple[str, Any, bool]] = [
        ("a-call", {"thought": "t", "call": {"name": "add", "arguments": {"a": 1, "b": 2}}}, True),
        ("a-reply", {"thought": "t", "reply": "r"}, True),
        ("a-long-thought", {"thought": "t" * 161, "reply": "r"}, False),
        ("an-unknown-function", {"thought": "t", "call": {"name": "sub", "arguments": {}}}, False),
        (
            "a-missing-argument",
            {"thought": "t", "call": {"name": "add", "arguments": {"a": 1}}},
            False,
        ),
    ]
    for case, step, is_taken in rows:
        assert fits(step, step_schema([ADD])) is is_taken, case


NUMBER, NULL, STRING = {"type": "number"}, {"type": "null"}, {"type": "string"}


def test_what_a_grammar_cannot_hold_is_left_to_the_check() -> None:
    rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("format-and-pattern", {**STRING, "format": "date", "pattern": "^x$"}, STRING),
        ("ranges", {**NUMBER, "minimum": 1, "maximum": 9}, NUMBER),
        ("one-of", {"oneOf": [NULL, STRING]}, {"anyOf": [NULL, STRING]}),
        ("a-bound-too-large-for-a-grammar", {**STRING, "maxLength": 100_000}, STRING),
        (
            "array",
            {"type": "array", "items": NUMBER, "uniqueItems": True},
            {"type": "array", "items": NUMBER},
        ),
        (
            "tuple",
            {"type": "array", "prefixItems": [NUMBER, STRING]},
            {"type": "array", "prefixItems": [NUMBER, STRING], "minItems": 2, "maxItems": 2},
        ),
        (
            "mapping",
            {"type": "object", "additionalProperties": {**NUMBER, "minimum": 0}},
            {"type": "object", "additionalProperties": NUMBER},
        ),
        ("a-reference-to-nothing", {"$ref": "#/nowhere"}, {}),
    ]
    for case, schema, expected in rows:
        assert portable(schema) == expected, case


def test_a_schema_that_refers_to_itself_ends_somewhere() -> None:
    assert "$ref" not in json.dumps(portable(TREE))


def trees(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional={"left": inner, "n": st.integers()})


@given(st.recursive(st.just({}), trees, max_leaves=6))
def test_what_the_whole_schema_takes_the_portable_part_takes_too(tree: Any) -> None:
    assert fits(tree, TREE)
    assert fits(tree, portable(TREE))


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
def test_a_call_keeps_its_arguments_byte_for_byte(
    thought: str, arguments: dict[str, object]
) -> None:
    raw = json.dumps(arguments, ensure_ascii=False)
    assert read_step(write_step(thought, name="add", arguments=raw)) == ModelStep(
        thought, name="add", arguments=raw
    )


def test_what_is_no_step_reads_as_none() -> None:
    for text in ["Hello.", '{"answer": 3}', '[{"thought": "t", "reply": "r"}]', ""]:
        assert read_step(text) is None, text


def test_a_call_that_was_cut_off_says_which_and_keeps_what_came() -> None:
    step = read_step('{"thought":"t","call":{"name":"create_function","arguments":{"code":"def f(')
    assert step == ModelStep(
        "", name="create_function", arguments='{"code":"def f(', is_whole=False
    )


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


def test_half_an_escape_waits_for_its_other_half() -> None:
    growing = GrowingStep()
    assert growing.feed('{"thought":"a\\ud83d') == [ThoughtPiece("a")]
    assert growing.feed("\\ude00b") == [ThoughtPiece("\N{GRINNING FACE}b")]


CALL = '{"thought": "I add.", "call": {"name": "add", "arguments": {"a": 1, "b": 2}}}'


async def ask(
    server: ScriptedModel, request: Request | None = None, **settings: object
) -> list[Piece]:
    chosen = ModelSettings.model_validate(settings)
    model = ConstrainedModel(
        Endpoint(server.base_url, "scripted", settings=chosen), "scripted", 8_192, chosen
    )
    try:
        return [piece async for piece in model.stream(request or Request(HELLO, (ADD,)))]
    finally:
        await model.aclose()


def tried(call_id: str) -> tuple[Message, ...]:
    return Assistant("", (Call(call_id, "add", '{"a": 1}'),)), Answer(
        call_id, "add", "`b` is missing."
    )


def reply_of(pieces: list[Piece]) -> Reply:
    assert isinstance(pieces[-1], Reply)
    return pieces[-1]


async def test_a_reply_streams_its_thought_and_its_text(
    scripted: Callable[..., ScriptedModel],
) -> None:
    pieces = await ask(
        scripted([Say('{"thought": "I greet.", "reply": "Hello, you."}', usage=(100, 9))])
    )
    assert "".join(piece.text for piece in pieces if isinstance(piece, ThoughtPiece)) == "I greet."
    texts = [piece.text for piece in pieces if isinstance(piece, TextPiece)]
    assert "".join(texts) == "Hello, you."
    assert len(texts) > 1
    assert reply_of(pieces) == Reply("Hello, you.", "I greet.", (), "stop", TokenUsage(100, 9))


async def test_the_server_is_asked_for_the_schema_of_this_step(
    scripted: Callable[..., ScriptedModel],
) -> None:
    server = scripted([Say(CALL)])
    await ask(server, Request((User("use add"),), (ADD,), max_tokens=77), temperature=0.5)
    body = server.requests[0].body
    assert body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert (body["max_tokens"], body["temperature"], "tools" in body) == (77, 0.5, False)


async def test_a_model_that_repeats_itself_is_asked_with_some_chance(
    scripted: Callable[..., ScriptedModel],
) -> None:
    rows: list[tuple[str, tuple[Message, ...], dict[str, float], float]] = [
        ("once", (*HELLO, *tried("1")), {}, 0),
        ("twice", (*HELLO, *tried("1"), *tried("2")), {}, 0.8),
        ("the-user-spoke", (*HELLO, *tried("1"), *tried("2"), User("Stop.")), {}, 0),
        ("as-set", (*HELLO, *tried("1"), *tried("2")), {"temperature": 0.1}, 0.1),
    ]
    for case, messages, settings, expected in rows:
        server = scripted([Say(CALL)])
        await ask(server, Request(messages, (ADD,)), **settings)
        assert server.requests[0].body["temperature"] == expected, case


async def test_a_server_that_once_lets_go_of_the_schema_is_taken_at_its_word(
    scripted: Callable[..., ScriptedModel],
) -> None:
    server = scripted([Say(CALL), Say("Just text.")])
    model = ConstrainedModel(Endpoint(server.base_url, "scripted"), "scripted", 8_192)
    for _ in range(2):
        pieces = [piece async for piece in model.stream(Request(HELLO, (ADD,)))]
    await model.aclose()
    assert pieces[0] == TextPiece("Just text.")
    assert "used as it is" in reply_of(pieces).note
