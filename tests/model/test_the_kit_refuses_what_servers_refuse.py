"""The scripted model is as strict as real endpoints, and every departure from the script is noticed."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.kit import Expect, Repeat, Say, ScriptedModel, ScriptError, contains, scripted, shows
from tests.kit.steps import Script

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


def test_a_request_that_real_servers_refuse_is_refused() -> None:
    rows: list[tuple[str, dict[str, Any], str]] = [
        ("no-messages", {"messages": []}, "too short"),
        ("unanswered", {"messages": [USER, asking(call())]}, "did not have response messages: c1"),
        ("half-answered", {"messages": [asking(call("a"), call("b")), answer("a"), USER]}, "messages: b"),
        ("answer-without-call", {"messages": [USER, answer()]}, "must be a response"),
        ("answered-twice", {"messages": [asking(call()), answer(), answer()]}, "must be a response"),
        ("unknown-role", {"messages": [{"role": "notice", "content": "x"}]}, "is not one of"),
        ("no-content", {"messages": [{"role": "user", "content": None}]}, "expected a string"),
        ("call-name", {"messages": [asking(call(name="a.b")), answer()]}, "Invalid call"),
        ("broken-arguments", {"messages": [asking(call(arguments="{")), answer()]}, "string of JSON"),
        ("object-arguments", {"messages": [asking(call(arguments={})), answer()]}, "string of JSON"),
        ("empty-calls", {"messages": [{**asking(), "content": "x"}]}, "too short"),
        ("equal-ids", {"messages": [asking(call(), call()), answer()]}, "Duplicate ids"),
        ("function-name", {"tools": [function("a.b")]}, "does not match pattern"),
        ("functions-of-one-name", {"tools": [function(), function()]}, "must be unique"),
        ("too-many-functions", {"tools": [function(f"f{n}") for n in range(129)]}, "1 to 128"),
        ("schema", {"tools": [function(parameters={"type": "object", "required": 1})]}, "Invalid schema"),
        ("schema-of-a-list", {"tools": [function(parameters={"type": "array"})]}, 'type: "object"'),
        ("overflow", {"messages": [{**USER, "content": "x" * 5000}]}, "maximum context length is 1000"),
    ]
    for case, body, says in rows:
        with scripted([], refusals_expected=True, limit_tokens=1000) as server:
            status, reply = post(server, **body)
        assert status == 400, case
        assert says in reply["error"]["message"], case
        assert server.refusals == [reply["error"]["message"]], case


def test_what_does_not_go_by_the_script_is_an_error() -> None:
    rows: list[tuple[Script, list[dict[str, Any]], str]] = [
        ([Say("a")], [], "never asked for: Say"),
        ([], [{}], "the script is over, but request 1 came"),
        ([], [{"messages": []}], "refused: "),
        ([Expect(Say("a"), contains("blue"))], [{}], "does not contain 'blue'"),
        ([Expect(Say("a"), shows("f"))], [{}], "`f` is not shown"),
        ([Repeat(Say("a"), 2)], [{}], "never asked for: Repeat"),
    ]
    for script, bodies, says in rows:
        server = ScriptedModel(script)
        for body in bodies:
            post(server, **body)
        server.close()
        with pytest.raises(ScriptError, match=says):
            server.verify()
