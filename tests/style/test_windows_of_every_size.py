"""The MemGPT style works natively at every window from 8,192: the least needed is hidden, the style remains."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.events import Warned
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Seen, Wanted, scripted
from tests.kit.desk import another, desk, ended, of
from tests.style.support import memgpt, send, types

ALWAYS = {
    "send_message",
    "core_memory_append",
    "core_memory_replace",
    "conversation_search",
    "create_function",
}
WINDOWS = pytest.mark.parametrize("window", [8_192, 128_000])
SEARCH = Wanted(
    "conversation_search", {"query": "cherry pie", "count": 1, "request_heartbeat": True}
)


def schemas(request: Seen) -> Mapping[str, Any]:  # Any: JSON Schema
    """Return the properties of each function that a request showed, by name."""
    shown = [tool["function"] for tool in request.body.get("tools", ())]
    return {each["name"]: each["parameters"]["properties"] for each in shown}


@WINDOWS
async def test_every_part_of_the_style_works_at_every_window(tmp_path: Path, window: int) -> None:
    script = [
        send("Hello.", thought=""),
        send("Hello.", thought="A new face."),
        send("I like cherry pie, too.", thought="Pie."),
        Ask(SEARCH, text="What was it?"),
        send("It was cherry pie.", thought="Found."),
    ]
    flags = {"memory__preset": "memgpt", "model__context_tokens": window}
    with scripted(script, limit_tokens=window, reserves=True) as model:
        async with desk(tmp_path, model, **flags) as here:
            first = await here.say("Hi.")
            await here.say("I like cherry pie.")
            last = await here.say("What do I like?")
        assert model.refusals == []
        assert (ended(first).reply, ended(first).steps) == ("Hello.", 1)
        assert (ended(last).reply, ended(last).steps) == ("It was cherry pie.", 2)
        assert types(model)[-1] == "heartbeat"
        assert model.requests[-1].answers[-1].count("cherry pie") <= 2
        for request in model.requests:
            shown = schemas(request)
            assert shown.keys() >= ALWAYS
            assert all("request_heartbeat" in properties for properties in shown.values())
            assert "count" in shown["conversation_search"]
        assert not of(Warned, [*first, *last])


async def test_next_to_many_functions_the_tools_stay_and_one_that_was_just_made_is_told_of(
    at_desk: OpenDesk,
) -> None:
    code = another("zzz_newest")
    create = {
        "function_name": "zzz_newest",
        "function_code_with_docstring": code,
        "request_heartbeat": True,
    }
    here = await memgpt(
        at_desk,
        [Ask(Wanted("create_function", create)), send("Done.")],
        model__context_tokens=8_192,
    )
    here.put("many.py", "\n\n".join(another(f"count_{number}") for number in range(40)))
    await here.workspace.functions.reload()
    await here.say("Make it.")
    first, second = here.model.requests
    shown = schemas(first)
    assert shown.keys() > ALWAYS
    assert "list_functions" in shown
    assert {"debugger", "archival_memory_insert"} <= {*first.functions} - shown.keys()
    assert any(name.startswith("count_") for name in first.functions)
    assert "zzz_newest(" not in first.text
    assert "zzz_newest(" in second.answers[-1]
    assert second.body["tools"] == first.body["tools"]


@pytest.mark.parametrize(
    "flags", [{"model__mode": "constrained"}, {"model__context_tokens": 2_048}]
)
async def test_a_style_that_cannot_be_kept_is_said_once(
    at_desk: OpenDesk, flags: dict[str, Any]
) -> None:
    reply = Say(json.dumps({"thought": "Hm.", "reply": "Hello."}))
    here = await memgpt(at_desk, [reply, reply], **flags)
    first, second = await here.say("Hi."), await here.say("Hi.")
    warnings = [event.message for event in of(Warned, first) if "memgpt" in event.message]
    assert len(warnings) == 1
    assert "send_message" in warnings[0]
    assert "request_heartbeat" in warnings[0]
    assert not [event for event in of(Warned, second) if "memgpt" in event.message]
