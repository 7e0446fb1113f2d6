"""A style adds its parameters to schemas, removes them from arguments, and does no work twice."""

from typing import Any

from agent_core.base.messages import SEND
from agent_core.model.request import FunctionShown
from agent_core.runtime.message_protocol import DIRECT, HEARTBEAT, MessageProtocol


def shown(name: str, **properties: Any) -> FunctionShown:  # Any: JSON Schema
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return FunctionShown(name, "Does something.", schema)


KNOWN = {name: shown(name, text={"type": "string"}) for name in ["a", "b", "c", "d", SEND]}


def test_a_model_under_a_schema_is_shown_functions_as_they_are_but_for_sending() -> None:
    line = (KNOWN["a"], KNOWN[SEND])
    assert MessageProtocol("memgpt").shown(line, "constrained") == (KNOWN["a"],)


def test_the_wish_for_a_step_is_taken_out_of_the_arguments() -> None:
    memgpt, parameters = MessageProtocol("memgpt"), KNOWN["a"].parameters
    rows: list[tuple[MessageProtocol, dict[str, Any], dict[str, Any], bool]] = [
        (memgpt, {HEARTBEAT: True}, {}, True),
        (memgpt, {HEARTBEAT: False}, {}, False),
        (memgpt, {}, {}, False),
        (memgpt, {HEARTBEAT: [1]}, {}, False),
        (DIRECT, {HEARTBEAT: True}, {HEARTBEAT: True}, False),
    ]
    for style, wish, left, asked in rows:
        arguments: dict[str, Any] = {"text": "x", **wish}
        assert style.take_heartbeat(arguments, parameters) is asked, wish
        assert arguments == {"text": "x", **left}
