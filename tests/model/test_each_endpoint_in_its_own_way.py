"""Differences between endpoints are data: ids, schemas, parameters, roles, and extra fields sent back with a call."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_core.base.errors import ModelError
from agent_core.base.messages import Answer, Assistant, Call, Message, System, User
from agent_core.base.settings import ModelSettings
from agent_core.model import FunctionShown, Reply, Request
from agent_core.model.client import NativeModel, open_model
from agent_core.model.connection import Endpoint
from agent_core.model.dialect import Dialect, changed, constraint, dialect_of, dialects, refuses
from agent_core.model.discover import DiscoveredModel
from agent_core.model.responses import to_responses
from agent_core.model.tokens import Window
from agent_core.model.wire import functions_to_wire, loosened, simple
from tests.kit import Fail, Say, ScriptedModel
from tests.kit.params import unfit
from tests.kit.responses import as_chat
from tests.kit.rules import fault
from tests.model.asking import ADD, ask, ask_reply, to_wire

Scripted = Callable[..., ScriptedModel]
TWO_CALLS: tuple[Message, ...] = (
    User("Add."),
    Assistant("", (Call("call_1", "add", "{}"), Call("call_2", "add", "{}"))),
    Answer("call_2", "add", "2"),
    Answer("call_1", "add", "1"),
)


def test_an_endpoint_is_known_by_its_address() -> None:
    rows: list[tuple[str, str]] = [
        ("https://api.openai.com/v1", "OpenAI"),
        ("https://acme.openai.azure.com/openai/v1", "Azure"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "Gemini"),
        ("https://api.anthropic.com/v1", "Anthropic"),
        ("http://127.0.0.1:11434/v1", "Ollama"),
        ("http://127.0.0.1:8080/v1", "llama.cpp"),
        ("http://gpu.example:8000/v1", "vLLM"),
        ("https://api.openai.com.evil.example/v1", "another endpoint"),
    ]
    for url, name in rows:
        assert dialect_of(url).name == name, url


def test_every_dialect_writes_what_servers_take() -> None:
    for dialect in dialects():
        body = {
            "model": "m",
            "messages": to_wire(TWO_CALLS, dialect),
            "tools": functions_to_wire([ADD], dialect),
        }
        if dialect.api == "responses":
            sent = to_responses(body)
            assert unfit(sent, "/v1/responses") is None, dialect
            body = as_chat(sent)
        assert fault(body) is None, dialect
        for way in dialect.constraints:
            assert ('{"type": "object"}' in json.dumps(constraint(way, {"type": "object"}))) is (
                way != "json_object"
            ), dialect


def test_what_strict_mode_cannot_express_is_sent_loose_and_said() -> None:
    rows: list[tuple[str, dict[str, Any], str | None]] = [
        (
            "fits",
            {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
            None,
        ),
        ("no-parameters", {}, None),
        ("optional", ADD.parameters, "`a` is optional"),
        (
            "keyword",
            {
                "type": "object",
                "properties": {"a": {"type": "string", "pattern": "x"}},
                "required": ["a"],
            },
            "`a` has `pattern`",
        ),
        (
            "any-key",
            {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]},
            "`a` takes any key",
        ),
        (
            "any",
            {"type": "object", "properties": {"a": {}}, "required": ["a"]},
            "`a` takes anything",
        ),
        (
            "list",
            {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]},
            "`a` is a list of anything",
        ),
    ]
    for case, schema, why in rows:
        function = FunctionShown("f", "", schema)
        assert loosened(schema) == why, case
        sent = functions_to_wire([function], Dialect(strict=True))[0]["function"]
        assert sent.get("strict", False) is (why is None), case


async def test_what_is_sent_loose_is_said_with_the_first_reply_and_not_again(
    scripted: Scripted,
) -> None:
    server = scripted([Say("One."), Say("Two.")])
    endpoint = Endpoint(server.base_url, "scripted")
    endpoint.speak(dialect_of("https://api.openai.com/v1"))
    model = NativeModel(endpoint, window=Window(32_000, "scripted"))
    notes = []
    for _ in range(2):
        notes += [
            piece.note
            async for piece in model.stream(Request((User("Hello."),), (ADD,)))
            if isinstance(piece, Reply)
        ]
    await model.aclose()
    assert notes == [
        "Sent without a strict schema, which cannot express them (`knapper doctor` says why): add.",
        "",
    ]


async def test_a_server_that_makes_no_grammar_of_a_schema_is_sent_a_simple_one(
    scripted: Scripted,
) -> None:
    coded = {"type": "object", "properties": {"code": {"type": "string", "pattern": "\\d+"}}}
    server = scripted(
        [Fail(400, "Failed to initialize samplers: failed to parse grammar"), Say("Here.")]
    )
    pieces = await ask(server, functions=(FunctionShown("f", "", coded),))
    assert isinstance(pieces[-1], Reply)
    assert ["pattern" in json.dumps(seen.body["tools"]) for seen in server.requests] == [
        True,
        False,
    ]


def test_what_an_endpoint_refuses_is_known_by_its_words() -> None:
    rows: list[tuple[str, str, bool]] = [
        (
            "functions",
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            True,
        ),
        ("functions", 'No endpoints found that support tool use. Try disabling "add".', True),
        ("functions", "This model only supports single tool-calls at once!", False),
        ("functions", "No endpoints found that support the provided 'tool_choice' value.", False),
        ("constraint", "Failed to initialize samplers: failed to parse grammar", True),
        ("constraint", "invalid JSON schema in format", True),
    ]
    for what, said, is_refused in rows:
        assert refuses(what, said) is is_refused, what


async def test_a_refusal_teaches_another_way_of_writing(scripted: Scripted) -> None:
    rows: list[tuple[str, int, str, str, object]] = [
        ("no-system-role", 400, "System role not supported", "system", "user"),
        ("one-call", 500, "This model only supports single tool-calls at once!", "one_call", True),
        ("no-strict", 400, "Invalid schema for function 'f': x", "strict", False),
        (
            "ids-of-nine",
            400,
            "Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9.",
            "id_length",
            9,
        ),
    ]
    for case, status, refusal, field, value in rows:
        found = changed(Dialect(strict=True), refusal)
        assert found is not None, case
        assert getattr(found, field) == value, case
        if field != "strict":
            server = scripted([Fail(status, refusal), Say("Here.")])
            assert (await ask_reply(server, System("Be kind."), *TWO_CALLS)).text == "Here.", case
            assert server.requests[0].body["messages"] != server.requests[1].body["messages"], case


LIST = {"type": "array"}


def test_a_simple_schema_has_no_references_and_no_rare_keywords() -> None:
    schema = {
        "type": "object",
        "$defs": {"P": {"type": "object", "properties": {"x": {"const": 1}}, "additionalProperties": False}},
        "properties": {"p": {"$ref": "#/$defs/P"}, "n": {"type": ["integer", "null"], "minimum": 1}, "l": LIST},
        "required": ["p"],
    }  # fmt: skip
    point = {"type": "object", "properties": {"x": {"enum": [1]}}, "required": []}
    number = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    places = {"p": point, "n": number, "l": {"type": "array", "items": {}}}
    assert simple(schema) == {"type": "object", "properties": places, "required": ["p"]}


async def test_constrained_mode_is_refused_where_no_schema_holds_a_reply() -> None:
    chosen = DiscoveredModel("https://api.anthropic.com/v1", "claude", "", "", context_tokens=9000)
    with pytest.raises(
        ModelError, match=r"Anthropic does not enforce a schema on replies.*model\.mode"
    ):
        await open_model(chosen, ModelSettings(mode="constrained"))
