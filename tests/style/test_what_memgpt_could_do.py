"""What MemGPT's own functions could do works here: results counted, memory saved, another model asked, all listed."""

import json
from pathlib import Path
from typing import Any

from agent_core.base.events import CallAnswered, MemoryChanged
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Script, Wanted, scripted
from tests.kit.desk import VOWELS, desk, ended, of
from tests.style.support import memgpt, send

PIES = [f"I like pie number {number}." for number in range(4)]


def call(name: str, **arguments: Any) -> Ask:  # Any: JSON
    """Return a reply that calls a function and requests another step."""
    return Ask(Wanted(name, {**arguments, "request_heartbeat": True}))


async def test_a_search_shows_as_many_as_are_asked_for(at_desk: OpenDesk) -> None:
    searches: list[tuple[str, dict[str, Any]]] = [
        ("conversation_search", {"query": "pie number"}),
        ("conversation_search_date", {"start_date": "today"}),
        ("archival_memory_search", {"query": "pie number"}),
        ("archival_memory_search", {"query": ""}),
    ]
    asked = [(*search, *counts) for search in searches for counts in ((2, 2), (0, 1), (-3, 1))]
    inserts = Ask(*(Wanted("archival_memory_insert", {"content": pie}) for pie in PIES))
    calls = [
        step
        for name, given, count, _ in asked
        for step in (call(name, **given, count=count), send("There."))
    ]
    here = await memgpt(at_desk, [Repeat(send("Good."), len(PIES)), inserts, *calls])
    for pie in PIES:
        await here.say(pie)
    await here.say("Keep them.")
    for name, _, count, shown in asked:
        answer = of(CallAnswered, await here.say("Which pies?"))[0].text
        assert sum(line.startswith("- ") for line in answer.splitlines()) == shown, (
            name,
            count,
            answer,
        )
        assert f"Showing {shown} of" in answer
        assert f"with count={shown} has the next" in answer


async def test_a_memory_is_saved_in_a_section_and_told_after_the_answer(at_desk: OpenDesk) -> None:
    save = call("core_memory_save", section="human", memory="Her name is Ada.")
    here = await memgpt(at_desk, [save, send("Kept.")])
    events = await here.say("My name is Ada.")
    assert "Her name is Ada." in here.agent.memory.blocks.memory["human"].text
    (changed,) = of(MemoryChanged, events)
    assert (changed.block, ended(events).made["remembered"]) == ("human", ["human"])
    assert events.index(of(CallAnswered, events)[0]) < events.index(changed)


async def test_another_model_is_asked(tmp_path: Path) -> None:
    reply = send("It is Lima.", thought="So.")
    script: Script = [call("message_chatgpt", message="Capital of Peru?"), Say("Lima."), reply]
    own = {"turn__message_llm_model": "another"}
    with scripted(script, models=["scripted", "another"]) as model:
        async with desk(tmp_path, model, memory__preset="memgpt", **own) as here:
            here.agent.session.verify = False
            await here.say("What is the capital of Peru?")
    assert [request.body["model"] for request in model.requests] == [
        "scripted",
        "another",
        "scripted",
    ]
    texts = [each["content"] for each in model.requests[1].messages]
    assert (texts[1:], model.requests[1].functions) == (["Capital of Peru?"], [])
    assert model.requests[2].answers == ["Lima."]


async def test_every_function_of_the_agent_is_listed_marked_and_shown_with_its_schema(
    at_desk: OpenDesk,
) -> None:
    says = {
        "create_function": ["meta-function", "cannot be edited", '"function_code_with_docstring"'],
        "core_memory_append": ["about memory", "cannot be edited", '"content"'],
        "debugger": ["meta-function", '"expressions"'],
        "count_vowels": ["def count_vowels", 'Schema: {"type": "object"'],
    }
    lists = [call("list_functions"), call("list_functions", module="memory")]
    shows = [call("introspect_function", function_name=name) for name in says]
    here = await memgpt(at_desk, [*lists, *shows, send("So.")])
    here.put("text.py", VOWELS)
    await here.workspace.functions.reload()
    await here.say("What can you do?")
    everything, of_memory, *shown = (request.answers[-1] for request in here.model.requests[1:])
    assert "1 function," in everything
    marked = ["create_function (meta)", "send_message (meta)", "core_memory_append (memory)"]
    for line in ["count_vowels (text, ", *marked]:
        assert f"- {line}" in everything
    assert "- conversation_search (memory)" in of_memory
    assert "create_function" not in of_memory
    tools = {
        each["function"]["name"]: each["function"]["parameters"]
        for each in here.model.requests[1].body["tools"]
    }
    for (name, texts), answer in zip(says.items(), shown, strict=True):
        assert all(text in answer for text in texts), answer
        schema = next(line for line in answer.splitlines() if line.startswith("Schema: "))
        parameters = json.loads(schema.removeprefix("Schema: "))
        assert parameters["properties"]["request_heartbeat"]["type"] == "boolean"
        if name in tools:
            assert tools[name]["properties"].keys() == parameters["properties"].keys()
            assert tools[name]["required"] == parameters["required"]
