"""A style adds its parameters to schemas, removes them from arguments, and does no work twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.messages import SEND
from agent_core.model.request import FunctionShown
from agent_core.runtime.message_protocol import DIRECT, HEARTBEAT, MessageProtocol

NAMES = st.lists(st.sampled_from(["a", "b", "c", "d", SEND]), unique=True, max_size=5)


def shown(name: str, **properties: Any) -> FunctionShown:  # Any: JSON Schema
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return FunctionShown(name, "Does something.", schema)


KNOWN = {name: shown(name, text={"type": "string"}) for name in ["a", "b", "c", "d", SEND]}


@given(st.lists(NAMES, min_size=2, max_size=6))
def test_what_did_not_change_is_the_same_object_in_every_line(lines: list[list[str]]) -> None:
    style, before = MessageProtocol("memgpt"), dict[str, FunctionShown]()
    for names in lines:
        line = style.shown(tuple(KNOWN[name] for name in names))
        now = {each.name: each for each in line}
        assert [*now] == names
        assert all(now[name] is before[name] for name in now.keys() & before.keys())
        before = now


def test_a_line_that_is_the_same_gives_the_same_line() -> None:
    style = MessageProtocol("memgpt")
    line = (KNOWN["a"], KNOWN["b"])
    assert style.shown(line) is style.shown(line)
    assert DIRECT.shown(line) is line


def test_a_function_is_not_changed_by_how_it_is_shown() -> None:
    function = shown("a", text={"type": "string"})
    (made,) = MessageProtocol("memgpt").shown((function,))
    assert made.parameters["required"] == ["text", HEARTBEAT]
    assert [*function.parameters["properties"]] == ["text"]


def test_a_model_under_a_schema_is_shown_functions_as_they_are_but_for_sending() -> None:
    line = (KNOWN["a"], KNOWN[SEND])
    assert MessageProtocol("memgpt").shown(line, "constrained") == (KNOWN["a"],)


@pytest.mark.parametrize(
    ("style", "arguments", "left", "asked"),
    [
        pytest.param(MessageProtocol("memgpt"), {"text": "x", HEARTBEAT: True}, {"text": "x"}, True, id="asked"),
        pytest.param(MessageProtocol("memgpt"), {"text": "x", HEARTBEAT: False}, {"text": "x"}, False, id="not-asked"),
        pytest.param(MessageProtocol("memgpt"), {"text": "x"}, {"text": "x"}, False, id="left-out"),
        pytest.param(MessageProtocol("memgpt"), {"text": "x", HEARTBEAT: [1]}, {"text": "x"}, False, id="odd"),
        pytest.param(DIRECT, {"text": "x", HEARTBEAT: True}, {"text": "x", HEARTBEAT: True}, False, id="direct"),
    ],
)
def test_the_wish_for_a_step_is_taken_out_of_the_arguments(
    style: MessageProtocol, arguments: dict[str, Any], left: dict[str, Any], *, asked: bool
) -> None:
    parameters = KNOWN["a"].parameters
    assert style.take_heartbeat(arguments, parameters) is asked
    assert arguments == left


def test_arguments_are_read_by_the_same_schema_each_time() -> None:
    style, parameters = MessageProtocol("memgpt"), KNOWN["a"].parameters
    assert style.reading(parameters) is style.reading(parameters)
    assert DIRECT.reading(parameters) is parameters
