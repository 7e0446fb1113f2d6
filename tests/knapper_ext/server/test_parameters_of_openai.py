"""Each parameter of the two OpenAI interfaces works or is rejected by name; a reply has the requested format."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import httpx2
import pytest

from knapper_ext.openai_api.openai_parameters import (
    CHAT,
    RESPONSES,
    Acts,
    Effect,
    Kinds,
    NotOffered,
    SentOn,
)
from tests.agents.groups import group_file
from tests.kit import Ask, Expect, Fail, Repeat, Say, Seen, Wanted
from tests.kit.drawing import sampled
from tests.kit.heartbeat import MOST_MS, stall_of
from tests.kit.pace import slowness
from tests.kit.steps import Step

from .conftest import Serve, Served
from .programs import user

DOORS: Mapping[str, tuple[Mapping[str, Effect], dict[str, Any]]] = {
    "/v1/chat/completions": (CHAT, {"model": "main", "messages": [user("hello")]}),
    "/v1/responses": (RESPONSES, {"model": "main", "input": "hello"}),
}


def places_in(effect: Effect, place: str) -> Iterator[str]:
    """Yield the places within a parameter, from the table."""
    parts = effect.parts if isinstance(effect, Acts) else None
    tables = parts.kinds.items() if isinstance(parts, Kinds) else [("", parts or {})]
    for kind, table in tables:
        for name, inner in table.items():
            yield (where := f"{place}{f'[{kind}]' if kind else ''}.{name}")
            yield from places_in(inner, where)


CALLED = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SHAPE = {"name": "a", "schema": {"type": "object"}}
WITHIN: Mapping[
    str, tuple[Callable[[Any], Any], dict[str, Any]]
] = {  # an object at a place, and its surrounding value
    "messages[user].": (lambda it: {"messages": [it, user("a")]}, {"role": "user", "content": "a"}),
    "messages[user].content[text].": (
        lambda it: {"messages": [{"role": "user", "content": [it]}]},
        {"type": "text", "text": "a"},
    ),
    "messages[assistant].tool_calls[function].": (
        lambda it: {"messages": [{"role": "assistant", "tool_calls": [it]}]},
        CALLED,
    ),
    "tools[function].function.": (
        lambda it: {"tools": [{"type": "function", "function": it}]},
        {"name": "f"},
    ),
    "tool_choice[function].": (lambda it: {"tool_choice": it}, {"type": "function"}),
    "stream_options.": (lambda it: {"stream_options": it}, {}),
    "response_format[json_schema].": (lambda it: {"response_format": it}, {"type": "json_schema"}),
    "input[message].": (lambda it: {"input": [it]}, {"role": "user", "content": "a"}),
    "input[function_call_output].": (
        lambda it: {"input": [it]},
        {"type": "function_call_output", "call_id": "c", "output": "a"},
    ),
    "text.": (lambda it: {"text": it}, {}),
    "reasoning.": (lambda it: {"reasoning": it}, {}),
}


@pytest.mark.parametrize("path", DOORS)
async def test_what_cannot_act_within_a_parameter_is_a_400_that_names_it(
    unchanged: Served, path: str
) -> None:
    effects, body = DOORS[path]
    asked = set[str]()
    for place, effect in within(effects):
        before, _, name = place.rpartition(".")
        if not isinstance(effect, NotOffered) or f"{before}." not in WITHIN:
            continue
        put, sample = WITHIN[f"{before}."]
        unknown = (
            []
            if before.startswith(("messages", "input", "tools["))
            else [("frobnicate", "is not known here.")]
        )
        for key, why in ((name, effect.why), *unknown):
            answer = await unchanged.client.post(
                path, json={**body, **put({**sample, key: {"neither": "usual"}})}
            )
            error = answer.json()["error"]
            top = place.partition("[")[0].partition(".")[0]
            assert (answer.status_code, error["param"]) == (400, top), (place, answer.text)
            assert f".{key}` {why}" in error["message"], (place, error)
        asked.add(before)
    assert len(asked) >= 2


def within(parts: Mapping[str, Effect]) -> Iterator[tuple[str, Effect]]:
    """Yield everything within the parameters, by its place."""
    for name, effect in parts.items():
        for place in places_in(effect, name):
            yield place, effect_at(place.split("."), parts)


def effect_at(steps: Sequence[str], parts: Mapping[str, Effect]) -> Effect:
    """Return the table's entry for a place."""
    name, _, kind = steps[0].rstrip("]").partition("[")
    effect = parts[name]
    if len(steps) == 1:
        return effect
    assert isinstance(effect, Acts)
    inner = effect.parts.kinds[kind] if isinstance(effect.parts, Kinds) else effect.parts
    assert inner is not None
    return effect_at(steps[1:], inner)


async def test_who_says_something_stands_before_it_and_nobody_else_is_the_agent(
    served: Serve,
) -> None:
    def has_them(seen: Seen) -> str | None:
        missing = [
            text for text in ("ada: hello", "bob: me, too", "\nwhat now?") if text not in seen.text
        ]
        return f"missing: {missing}" if missing else None

    server = await served([Expect(Say("Hello both."), has_them), Expect(Say("On."), has_them)])
    path = "/v1/chat/completions"
    said = [
        {**user("hello"), "name": "ada"},
        {**user("me, too"), "name": "bob"},
        {**user("what now?"), "name": "user"},
    ]
    answer = await server.client.post(path, json={"model": "main", "messages": said})
    assert answer.status_code == 200, answer.text
    for wrong in (
        {"role": "assistant", "content": "b", "name": "eve"},
        {**user("a"), "name": "from: x"},
    ):
        refused = await server.client.post(
            path, json={"model": "main", "messages": [wrong, user("c")]}
        )
        assert (refused.status_code, "name" in refused.json()["error"]["message"]) == (400, True)
    mine = [*said, {"role": "assistant", "content": "Hello both.", "name": "main"}, user("go on")]
    assert (
        await server.client.post(path, json={"model": "main", "messages": mine})
    ).status_code == 200


async def test_a_strict_function_gets_arguments_that_fit(served: Serve) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    described = {"name": "count", "parameters": schema, "strict": True}
    server = await served([Ask(Wanted("count", {"n": "many"})), Ask(Wanted("count", {"n": 3}))] * 2)
    for path, (_, body) in DOORS.items():
        is_chat = path.endswith("completions")
        tools = [
            {"type": "function", "function": described}
            if is_chat
            else {"type": "function", **described}
        ]
        answer = (await server.client.post(path, json={**body, "tools": tools})).json()
        called = (
            answer["choices"][0]["message"]["tool_calls"][0]["function"]
            if is_chat
            else answer["output"][-1]
        )
        assert json.loads(called["arguments"]) == {"n": 3}, path
        assert "do not fit the schema" in server.model.requests[-1].text, path


@pytest.mark.parametrize("path", DOORS)
async def test_what_cannot_act_is_a_400_that_names_it_and_says_why(
    unchanged: Served, path: str
) -> None:
    effects, body = DOORS[path]
    refused = {name: effect for name, effect in effects.items() if isinstance(effect, NotOffered)}
    assert len(refused) > 10
    for name, effect in [*refused.items(), ("frobnicate", NotOffered("is not known here."))]:
        answer = await unchanged.client.post(path, json={**body, name: {"neither": "usual"}})
        assert answer.status_code == 400, (name, answer.text)
        error = answer.json()["error"]
        assert error["param"] == name
        assert f"`{name}` {effect.why}" in error["message"]


MEANINGLESS: Sequence[tuple[str, object]] = [
    ("temperature", 3),
    ("user", "x" * 300),
    ("prompt_cache_key", 7),
    ("temperature", True),
    ("stream", "false"),
    ("parallel_tool_calls", "no"),
    ("tools", [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]),
    ("tool_choice", {"type": "function", "function": {"name": "nobody"}}),
]


FORMATS: tuple[dict[str, Any], ...] = (
    {"type": "json_object", "strict": True},
    {"type": "json_schema", "json_schema": {**SHAPE, "grammar": "x"}},
    {"type": "json_schema", "json_schema": {**SHAPE, "strict": "yes"}},
)
UNCHECKED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"type": "array"}, "object"),
    ({"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}}, "pattern"),
    ({"type": "object", "properties": {"a": {"$ref": "http://x/"}}}, "$ref"),
    ({"type": "object", "description": "x" * 70_000}, "64 KiB"),
)


@pytest.mark.parametrize("path", DOORS)
async def test_a_value_that_cannot_be_meant_is_refused_with_its_name(
    unchanged: Served, path: str
) -> None:
    async def refused(body: dict[str, Any]) -> dict[str, Any]:
        answer = await unchanged.client.post(path, json={**DOORS[path][1], **body})
        assert answer.status_code == 400, (body, answer.text)
        error: dict[str, Any] = answer.json()["error"]
        return error

    for name, value in MEANINGLESS:
        error = await refused({name: value})
        assert (error["param"], name in error["message"]) == (name, True), value
    for schema, says in UNCHECKED:
        assert says in (await refused(shaped_request(path, schema, streamed=False)))["message"]
    if path.endswith("responses"):
        assert (await refused({"previous_response_id": "resp_none"}))[
            "param"
        ] == "previous_response_id"
        items = [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]
        items.append({"type": "function_call_output", "call_id": "c", "output": "1", "name": "g"})
        assert "is not `f`" in (await refused({"input": items}))["message"]
    else:
        for shape in FORMATS:
            assert "response_format" in (await refused({"response_format": shape}))["message"]
        answer = {"role": "tool", "tool_call_id": "c", "content": "1", "name": "g"}
        messages = [{"role": "assistant", "tool_calls": [CALLED]}, answer]
        assert "is not `f`" in (await refused({"messages": messages}))["message"]
        group_file(unchanged.workspace.root)
        for_group = {"model": "team", "response_format": {"type": "json_object"}}
        assert "group" in (await refused(for_group))["message"], (
            "it takes nothing that is meant for one model"
        )


SAMPLES: Mapping[str, Any] = {
    "temperature": 0.3,
    "top_p": 0.9,
    "prompt_cache_key": "k",
    "frequency_penalty": 0.5,
    "presence_penalty": -0.5,
    "seed": 7,
    "reasoning_effort": "low",
    "verbosity": "high",
}


async def test_what_is_sent_on_reaches_the_model_and_what_asks_for_nothing_is_taken(
    served: Serve,
) -> None:
    server = await served([Say("Hello.")] * 4)
    for path, (effects, body) in DOORS.items():
        sent = {
            name: SAMPLES[name] for name, effect in effects.items() if isinstance(effect, SentOn)
        }
        unoffered = {
            name: effect.usual for name, effect in effects.items() if isinstance(effect, NotOffered)
        }
        plain = {name: usual[0] if usual else None for name, usual in unoffered.items()}
        answer = await server.client.post(path, json={**body, **sent, **plain})
        assert answer.status_code == 200, answer.text
        assert {name: server.model.requests[-1].body.get(name) for name in sent} == sent
        answer = await server.client.post(
            path, json={**dict.fromkeys(effects), **body, "model": "main@null"}
        )
        assert answer.status_code == 200, answer.text


async def test_options_of_responses_act_under_their_own_names(served: Serve) -> None:
    def has_them(seen: Seen) -> str | None:
        found = [seen.body.get(name) for name in ("reasoning_effort", "verbosity", "max_tokens")]
        return None if found == ["high", "low", 50] else f"the model was sent {found}"

    server = await served([Expect(Say("Hello."), has_them)])
    options = {
        "reasoning": {"effort": "high"},
        "text": {"verbosity": "low"},
        "max_output_tokens": 50,
    }
    more = {"metadata": {"order": "7"}, "store": False}
    answer = await server.client.post(
        "/v1/responses", json={"model": "main", "input": "a", **options, **more}
    )
    assert answer.json()["metadata"] == {"order": "7"}
    again = {"model": "main", "input": "b", "previous_response_id": answer.json()["id"]}
    assert (
        await server.client.post("/v1/responses", json=again)
    ).status_code == 400  # it was not to be stored


async def test_a_reply_that_the_clients_limit_cuts_off_ends_as_length(served: Serve) -> None:
    server = await served([Say("Once upon a", finish="length")] * 2)
    body = {"model": "main", "messages": [user("Tell me a story")], "max_completion_tokens": 3}
    answer = (await server.client.post("/v1/chat/completions", json=body)).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["message"]["content"] == "Once upon a"
    body = {"model": "main", "input": "Tell me another", "max_output_tokens": 3}
    response = (await server.client.post("/v1/responses", json=body)).json()
    assert (response["status"], response["incomplete_details"]) == (
        "incomplete",
        {"reason": "max_output_tokens"},
    )


async def test_a_response_is_gone_on_from_by_the_user_only_whom_it_was_given_to(
    served: Serve,
) -> None:
    server = await served([Say("Hello."), Say("Twice.")])
    body: dict[str, Any] = {"model": "main", "input": "first", "user": "ada"}
    first = (await server.client.post("/v1/responses", json=body)).json()
    on = {"model": "main", "input": "second", "previous_response_id": first["id"]}
    for more, status in (({"user": "bob"}, 400), ({}, 400), ({"user": "ada"}, 200)):
        answer = await server.client.post("/v1/responses", json={**on, **more})
        assert answer.status_code == status, more


CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 0}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
ORDER = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}},
        "paid": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    },
    "required": ["items"],
    "$defs": {
        "item": {"type": "object", "properties": {"n": {"enum": [1, 2, 3]}}, "required": ["n"]}
    },
}
TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "parts": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["name"],
}
SHAPES: Mapping[str, tuple[dict[str, Any] | None, dict[str, Any], dict[str, Any]]] = {
    "city": (CITY, {"city": "Köln", "people": 1_087_353}, {"city": "Köln", "people": "many"}),
    "order": (ORDER, {"items": [{"n": 1}, {"n": 3}], "paid": None}, {"items": [{"n": 9}]}),
    "tree": (
        TREE,
        {"name": "a", "parts": [{"name": "b", "parts": []}]},
        {"name": "a", "parts": [{"parts": []}]},
    ),
    "any object": (None, {"a": [1, {"b": None}]}, {}),
}
Behavior = Callable[[str, str], list[Step]]
BEHAVIORS: Mapping[
    str, tuple[Behavior, bool]
] = {  # replies, made of a right and a wrong one; does it end well
    "rightly": (lambda right, _: [Say(right)], True),
    "in a fence": (lambda right, _: [Say(f"```json\n{right}\n```")], True),
    "with prose around": (
        lambda right, _: [Say(f"Here is what you want:\n\n{right}\n\nAnything else?")],
        True,
    ),
    "with a thought before": (lambda right, _: [Say(right, thought="I count the people.")], True),
    "wrongly, then rightly": (lambda right, wrong: [Say(wrong), Say(right)], True),
    "with half a document, then rightly": (
        lambda right, _: [Say(right[: len(right) // 2]), Say(right)],
        True,
    ),
    "with a list, then rightly": (lambda right, _: [Say(f"[{right}]"), Say(right)], True),
    "wrongly at last": (lambda _, wrong: [Say(wrong), Say(wrong), Say(wrong)], False),
    "never": (lambda _, wrong: [Say("No."), Say("I said no."), Say("No!")], False),
}


CASES = [
    case
    for case in itertools.product(SHAPES, BEHAVIORS, DOORS, (False, True))
    if not (case[0] == "any object" and "wrong" in case[1])
]


@pytest.mark.sampled
async def test_a_shaped_reply_is_the_value_or_an_error(served: Serve) -> None:
    cases = sampled(CASES, 17)
    script = [
        step
        for shape, behavior, *_ in cases
        for step in BEHAVIORS[behavior][0](*map(json.dumps, SHAPES[shape][1:]))
    ]
    server = await served(script)
    for number, (shape, behavior, path, streamed) in enumerate(cases):
        schema, value, _ = SHAPES[shape]
        body = {**shaped_request(path, schema, streamed=streamed), "model": f"main@{number}"}
        text, failed = read_answer(
            path, await server.client.post(path, json=body), streamed=streamed
        )
        if BEHAVIORS[behavior][1]:
            assert (json.loads(text), failed) == (value, ""), (shape, behavior, path, streamed)
        else:
            assert (text, "shape" in failed) == ("", True), (
                shape,
                behavior,
                path,
                streamed,
                failed,
            )


async def test_a_long_shaped_reply_does_not_hold_up_the_event_loop(served: Serve) -> None:
    row = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}}
    value = {"rows": [{"a": at} for at in range(20_000)]}
    server = await served([Repeat(Say(json.dumps(value)))])
    texts = list[str]()

    async def asked() -> None:
        path = "/v1/chat/completions"
        body = shaped_request(path, schema, streamed=False) | {"model": f"main@{len(texts)}"}
        answer = await server.client.post(path, json=body)
        texts.append("".join(read_answer(path, answer, streamed=False)))

    stall = await stall_of(asked)
    assert json.loads(texts[0]) == value
    assert stall.cpu_ms < MOST_MS * slowness(), stall


async def test_the_format_is_sent_on_to_an_endpoint_that_takes_it_and_others_are_asked_in_words(
    served: Serve,
) -> None:
    def is_sent(seen: Seen) -> str | None:
        sent = seen.body.get("response_format") or {}
        is_whole = (
            sent.get("json_schema", {}).get("schema") == CITY
            and sent["json_schema"]["name"] == "thing"
        )
        return None if is_whole and "tools" not in seen.body else f"it was sent {sent}"

    def take(seen: Seen) -> Step:
        if "response_format" in seen.body:
            return Fail(400, "response_format is not supported by this model")
        is_alone = "tools" not in seen.body and '"minimum": 0' in seen.text
        return Say(bonn) if is_alone else Say("Bonn.")

    bonn, path = '{"city": "Bonn", "people": 1}', "/v1/chat/completions"
    server = await served([Say("Bonn."), Expect(Say(bonn), is_sent), Repeat(take)])
    for name in ("sent", "asked"):
        body = {**shaped_request(path, CITY, streamed=False), "model": f"main@{name}"}
        assert read_answer(path, await server.client.post(path, json=body), streamed=False) == (
            bonn,
            "",
        )


def shaped_request(path: str, schema: dict[str, Any] | None, *, streamed: bool) -> dict[str, Any]:
    """Return a request for a reply in this format, or for any object."""
    body = {**DOORS[path][1], "stream": streamed}
    described = {"name": "thing", "schema": schema, "strict": True}
    if path.endswith("responses"):
        flat = {"type": "json_schema", **described} if schema else {"type": "json_object"}
        return {**body, "text": {"format": flat}}
    nested = (
        {"type": "json_schema", "json_schema": described} if schema else {"type": "json_object"}
    )
    return {**body, "response_format": nested}


def read_answer(path: str, answer: httpx2.Response, *, streamed: bool) -> tuple[str, str]:
    """Return the text of a reply and its error."""
    is_chat = path.endswith("completions")
    if not streamed:
        body = answer.json()
        if answer.status_code != 200:
            return "", body["error"]["message"]
        return (
            (body["choices"][0]["message"]["content"], "")
            if is_chat
            else (body["output"][0]["content"][0]["text"], "")
        )
    rows = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    if is_chat:
        failed = [row["error"]["message"] for row in rows if "error" in row]
        parts = [
            row["choices"][0]["delta"].get("content") or "" for row in rows if row.get("choices")
        ]
    else:
        failed = [
            row["response"]["error"]["message"] for row in rows if row["type"] == "response.failed"
        ]
        parts = [row["delta"] for row in rows if row["type"] == "response.output_text.delta"]
    return "".join(parts), "".join(failed)


async def test_a_model_in_constrained_mode_writes_the_shape_as_its_reply(served: Serve) -> None:
    def step(seen: Seen) -> Step:
        schema = json.dumps(seen.body["response_format"])
        assert '"people"' in schema, schema
        return Say(json.dumps({"thought": "I know it.", "reply": {"city": "Bonn", "people": 1}}))

    server = await served([Repeat(step)], model__mode="constrained")
    path = "/v1/chat/completions"
    answer = await server.client.post(path, json=shaped_request(path, CITY, streamed=False))
    assert json.loads(read_answer(path, answer, streamed=False)[0]) == {"city": "Bonn", "people": 1}


MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
THOUGHT: dict[str, Any] = {
    "reasoning_content": "hm",
    "reasoning": "hm",
    "reasoning_details": [{"type": "reasoning.text"}],
}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "f", **MARK}, **MARK}
PASSED_OVER = [
    pytest.param(
        "/v1/chat/completions",
        {
            "messages": [
                user("a"),
                {"role": "assistant", "content": "b", **THOUGHT},
                {**user("c"), **MARK},
            ]
        },
        id="thoughts-in-a-history",
    ),
    pytest.param(
        "/v1/chat/completions",
        {
            "messages": [{"role": "user", "content": [{"type": "text", "text": "a", **MARK}]}],
            "tools": [TOOL],
        },
        id="marks-of-a-cache",
    ),
    pytest.param(
        "/v1/responses",
        {"input": [{"type": "reasoning", "id": "rs_1", "summary": []}, {**user("a"), **MARK}]},
        id="thoughts-as-items",
    ),
]


@pytest.mark.parametrize(("path", "more"), PASSED_OVER)
async def test_what_asks_for_nothing_is_passed_over(
    served: Serve, path: str, more: dict[str, Any]
) -> None:
    server = await served([Say("Hello.")])
    answer = await server.client.post(path, json={"model": "main", **more})
    assert answer.status_code == 200, answer.text
    assert '"hm"' not in server.model.requests[-1].text


async def test_one_model_is_retrieved_like_the_list(unchanged: Served) -> None:
    listed = (await unchanged.client.get("/v1/models")).json()["data"]
    assert (await unchanged.client.get("/v1/models/main")).json() == next(
        row for row in listed if row["id"] == "main"
    )
    missing = await unchanged.client.get("/v1/models/nobody")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")
