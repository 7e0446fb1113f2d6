"""The scripted model is as strict as real endpoints, and every departure from the script is noticed."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.kit import Ask, Expect, Repeat, Say, ScriptedModel, ScriptError, Seen, Wanted, contains, scripted, shows
from tests.kit.steps import Script, read_script

USER = {"role": "user", "content": "x"}


def post(server: ScriptedModel, **body: Any) -> tuple[int, dict[str, Any]]:
    data = json.dumps({"model": "scripted", "messages": [USER], **body}).encode()
    request = urllib.request.Request(f"{server.base_url}/chat/completions", data)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def asking(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def call(call_id: str = "c1", name: str = "f", arguments: object = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "x"}


def function(name: str = "f", parameters: object = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters or {"type": "object"}}}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param({"messages": []}, "too short", id="no-messages"),
        pytest.param({"messages": [USER, asking(call())]}, "did not have response messages: c1", id="unanswered"),
        pytest.param(
            {"messages": [asking(call("a"), call("b")), answer("a"), USER]}, "messages: b", id="half-answered"
        ),
        pytest.param({"messages": [USER, answer()]}, "must be a response", id="answer-without-call"),
        pytest.param({"messages": [asking(call()), answer(), answer()]}, "must be a response", id="answered-twice"),
        pytest.param({"messages": [{"role": "notice", "content": "x"}]}, "is not one of", id="unknown-role"),
        pytest.param({"messages": [{"role": "user", "content": None}]}, "expected a string", id="no-content"),
        pytest.param({"messages": [asking(call(name="a.b")), answer()]}, "Invalid call", id="call-name"),
        pytest.param({"messages": [asking(call(arguments="{")), answer()]}, "string of JSON", id="broken-arguments"),
        pytest.param({"messages": [asking(call(arguments={})), answer()]}, "string of JSON", id="object-arguments"),
        pytest.param({"messages": [{**asking(), "content": "x"}]}, "too short", id="empty-calls"),
        pytest.param({"messages": [asking(call(), call()), answer()]}, "Duplicate ids", id="equal-ids"),
        pytest.param({"tools": [function("a.b")]}, "does not match pattern", id="function-name"),
        pytest.param({"tools": [function(), function()]}, "must be unique", id="functions-of-one-name"),
        pytest.param({"tools": [function(f"f{n}") for n in range(129)]}, "1 to 128", id="too-many-functions"),
        pytest.param(
            {"tools": [function(parameters={"type": "object", "required": 1})]}, "Invalid schema", id="schema"
        ),
        pytest.param({"tools": [function(parameters={"type": "array"})]}, 'type: "object"', id="schema-of-a-list"),
        pytest.param({"messages": [{**USER, "content": "x" * 5000}]}, "maximum context length is 1000", id="overflow"),
    ],
)
def test_a_request_that_real_servers_refuse_is_refused(body: dict[str, Any], says: str) -> None:
    with scripted([], refusals_expected=True, limit_tokens=1000) as server:
        status, reply = post(server, **body)
    assert status == 400
    assert says in reply["error"]["message"]
    assert server.refusals == [reply["error"]["message"]]


@pytest.mark.parametrize(
    ("script", "bodies", "says"),
    [
        pytest.param([Say("a")], [], "never asked for: Say", id="left-over"),
        pytest.param([], [{}], "the script is over, but request 1 came", id="unexpected"),
        pytest.param([], [{"messages": []}], "refused: ", id="refusal"),
        pytest.param([Expect(Say("a"), contains("blue"))], [{}], "does not contain 'blue'", id="text-missing"),
        pytest.param([Expect(Say("a"), shows("f"))], [{}], "`f` is not shown", id="function-missing"),
        pytest.param([Repeat(Say("a"), 2)], [{}], "never asked for: Repeat", id="repeated-too-seldom"),
    ],
)
def test_what_does_not_go_by_the_script_is_an_error(script: Script, bodies: list[dict[str, Any]], says: str) -> None:
    server = ScriptedModel(script)
    for body in bodies:
        post(server, **body)
    server.close()
    with pytest.raises(ScriptError, match=says):
        server.verify()


def test_a_step_may_be_a_function_of_the_request() -> None:
    def echo(seen: Seen) -> Say:
        return Say(seen.text.upper())

    with scripted([Repeat(echo)]) as server:
        said = [post(server)[1]["choices"][0]["message"]["content"] for _ in range(3)]
    assert said == ["X", "X", "X"]


def test_a_script_can_be_read_from_json() -> None:
    text = """[{"say": "a", "expect": {"contains": "x", "shows": "f"}}, {"ask": [{"name": "f"}], "text": "b"},
               {"fail": 503, "code": "busy"}, {"cut": "c"}, {"stall": 1}, {"raw": "d"}, {"say": "e", "repeat": true}]"""
    expect, *steps, repeat = read_script(text)
    assert isinstance(expect, Expect)
    assert isinstance(repeat, Repeat)
    assert [type(step).__name__ for step in steps] == ["Ask", "Fail", "Cut", "Stall", "Raw"]


def test_calls_that_are_answered_are_taken() -> None:
    with scripted([Ask(Wanted("f", {"a": 1})), Say("done")]) as server:
        wanted = post(server, tools=[function()])[1]["choices"][0]["message"]
        given = [answer(found["id"]) for found in wanted["tool_calls"]]
        status, _ = post(server, tools=[function()], messages=[USER, wanted, *given])
    assert status == 200
    assert server.requests[1].answers == ["x"]
