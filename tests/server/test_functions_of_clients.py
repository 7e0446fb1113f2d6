"""A client's own functions: the model calls them, the client answers, and the turn continues with the result."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

from sandbox import Sandbox
from tests.kit import Ask, Expect, Say, ScriptedModel, Seen, Wanted, contains, shows
from tests.kit.desk import VOWELS

from .conftest import Serve, Served, server
from .programs import client, has_no, has_once, user

SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
ASKED = Ask(Wanted("weather", {"place": "Brindle"}, id="call_w"))


def tool(name: str = "weather", **more: Any) -> Any:  # Any: a tool, whose type is the client's
    """Return a function of a client."""
    return {"type": "function", "function": {"name": name, "description": "Look out.", "parameters": SCHEMA, **more}}


def answer(id: str, text: str) -> Any:  # Any: a message
    """Return a client's result of a call."""
    return {"role": "tool", "tool_call_id": id, "content": text}


def answers(*texts: str) -> Callable[[Seen], str | None]:
    """Expect the request to end with these results of calls."""
    return lambda seen: None if seen.answers == [*texts] else f"the answers are {seen.answers}"


async def test_a_call_comes_to_the_client_and_its_answer_to_the_model(served: Serve) -> None:
    script = [Expect(ASKED, shows("weather")), Expect(Say("It rains."), answers("rain"), has_once("Weather?"))]
    server = await served(script)
    async with client(server) as program:
        messages = [user("Weather?")]
        first = await program.chat.completions.create(model="main", messages=messages, tools=[tool()])
        asked = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls"
        assert [(c.id, c.function.name, c.function.arguments) for c in asked.tool_calls or ()] == [  # type: ignore[union-attr]
            ("call_w", "weather", '{"place": "Brindle"}')
        ]
        messages += [asked.model_dump(exclude_none=True), answer("call_w", "rain")]
        second = await program.chat.completions.create(model="main", messages=messages, tools=[tool()])
    assert (second.choices[0].message.content, second.choices[0].finish_reason) == ("It rains.", "stop")
    names = await server.workspace.agent_names()
    assert len([name for name in names if "--chat-" in name]) == 1  # the same conversation


async def test_a_stream_ends_with_the_calls_and_ours_have_run(served: Serve) -> None:
    both = Ask(Wanted("count_vowels", {"text": "queueing"}, id="call_v"), *ASKED.calls, text="I look.")
    server = await served([both, Expect(Say("Five, and rain."), answers("5", "rain"))])
    (server.workspace.root / "functions" / "letters.py").write_text(VOWELS)
    await server.workspace.functions.reload()
    async with client(server) as program:
        messages = [user("Both?")]
        stream = await program.chat.completions.create(model="main", messages=messages, tools=[tool()], stream=True)
        chunks = [chunk async for chunk in stream]
        calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
        assert [(call.id, call.function and call.function.name) for call in calls] == [("call_w", "weather")]
        assert chunks[-1].choices[0].finish_reason == "tool_calls"
        happened = [
            event["name"]
            for chunk in chunks
            for event in (chunk.model_extra or {}).get("knapper", {"events": []})["events"]
            if "name" in event
        ]
        assert happened == ["count_vowels", "count_vowels"]
        sent = {"id": "call_w", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        # As many clients do: no text next to calls.
        messages += [{"role": "assistant", "content": None, "tool_calls": [sent]}, answer("call_w", "rain")]
        second = await program.chat.completions.create(model="main", messages=messages, tools=[tool()])
    assert second.choices[0].message.content == "Five, and rain."


async def test_several_calls_are_answered_together_in_any_order(served: Serve) -> None:
    two = Ask(Wanted("weather", {"place": "A"}, id="call_a"), Wanted("weather", {"place": "B"}, id="call_b"))
    server = await served([two, Expect(Say("Both."), answers("sun", "rain"))])
    async with client(server) as program:
        messages = [user("Where?")]
        first = await program.chat.completions.create(model="main@x", messages=messages, tools=[tool()])
        messages += [
            first.choices[0].message.model_dump(exclude_none=True),
            answer("call_b", "rain"),
            answer("call_a", "sun"),
        ]
        second = await program.chat.completions.create(model="main@x", messages=messages, tools=[tool()])
    assert second.choices[0].message.content == "Both."


async def test_a_client_that_takes_one_call_gets_one(served: Serve) -> None:
    two = Ask(Wanted("weather", {"place": "A"}, id="call_a"), Wanted("weather", {"place": "B"}, id="call_b"))
    server = await served([two, Expect(Say("One."), contains("one call at a time"), contains("sun"))])
    async with client(server) as program:
        messages = [user("Where?")]
        first = await program.chat.completions.create(
            model="main", messages=messages, tools=[tool()], parallel_tool_calls=False
        )
        asked = first.choices[0].message
        assert [call.id for call in asked.tool_calls or ()] == ["call_a"]
        messages += [asked.model_dump(exclude_none=True), answer("call_a", "sun")]
        await program.chat.completions.create(
            model="main", messages=messages, tools=[tool()], parallel_tool_calls=False
        )


async def test_a_restart_between_call_and_answer_changes_nothing(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> None:
    model = scripted([ASKED, Expect(Say("It rains."), answers("rain"), has_once("Weather?"))])
    messages = [user("Weather?")]
    async with server(tmp_path, model, one_sandbox) as before:
        token = await before.token("program", "chat")
        async with client(before, token) as program:
            first = await program.chat.completions.create(model="main", messages=messages, tools=[tool()])
    messages += [first.choices[0].message.model_dump(exclude_none=True), answer("call_w", "rain")]
    async with server(tmp_path, model, one_sandbox) as after, client(after, token) as program:
        second = await program.chat.completions.create(model="main", messages=messages, tools=[tool()])
        assert second.choices[0].message.content == "It rains."
        assert len([name for name in await after.workspace.agent_names() if "--chat-" in name]) == 1


async def test_a_call_that_the_client_never_answers_is_closed_as_that(served: Serve) -> None:
    server = await served([ASKED, Expect(Say("Fine."), contains("went on without an answer"), contains("Never mind"))])
    async with client(server) as program:
        messages = [user("Weather?")]
        first = await program.chat.completions.create(model="main", messages=messages, tools=[tool()])
        messages += [first.choices[0].message.model_dump(exclude_none=True), user("Never mind.")]
        second = await program.chat.completions.create(model="main", messages=messages, tools=[tool()])
    assert second.choices[0].message.content == "Fine."


async def test_a_message_from_elsewhere_closes_the_call_and_a_late_answer_is_refused(served: Serve) -> None:
    server = await served([ASKED, Expect(Say("Fine."), contains("went on without an answer")), Say("Late, then.")])
    async with client(server) as program:
        first = await program.chat.completions.create(model="main@x", messages=[user("Weather?")], tools=[tool()])
        await server.said("Never mind.", "main--x")
        messages = [user("Weather?"), first.choices[0].message.model_dump(exclude_none=True), answer("call_w", "rain")]
        await program.chat.completions.create(model="main@x", messages=messages, tools=[tool()])
    assert "after the conversation had gone on without it: rain" in server.model.requests[-1].text


async def test_an_unknown_history_with_calls_begins_a_conversation_that_has_them(served: Serve) -> None:
    server = await served([Expect(Say("Rain."), answers("rain"), contains("went on without an answer"))])
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"place": "A"}'}}
    other = {**call, "id": "call_2"}
    async with client(server) as program:
        messages: Any = [user("Once?"), {"role": "assistant", "content": None, "tool_calls": [other]}]
        messages += [
            user("Again?"),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            answer("call_1", "rain"),
        ]
        done = await program.chat.completions.create(model="main", messages=messages, tools=[tool()])
    assert done.choices[0].message.content == "Rain."


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
async def test_a_required_call_is_asked_for_until_it_comes(served: Serve, choice: Any) -> None:
    server = await served([Say("It may rain."), Expect(ASKED, contains("requires a call"))])
    async with client(server) as program:
        done = await program.chat.completions.create(
            model="main", messages=[user("Weather?")], tools=[tool(), tool("other")], tool_choice=choice
        )
    assert done.choices[0].finish_reason == "tool_calls"
    assert ("other" in server.model.requests[0].functions) == (choice == "required")


async def test_a_required_call_that_never_comes_is_an_error(served: Serve) -> None:
    server = await served([Say("It may rain.")] * 3)
    async with client(server) as program:
        with pytest.raises(openai.InternalServerError, match="requires a call of `weather`"):
            await program.chat.completions.create(
                model="main", messages=[user("Weather?")], tools=[tool()], tool_choice="required"
            )


async def test_no_function_is_shown_where_none_is_chosen(served: Serve) -> None:
    server = await served([lambda seen: Say(f"{'weather' in seen.functions}")] * 3)
    given: list[dict[str, Any]] = [{"tools": [tool()], "tool_choice": "none"}, {}, {"tools": [tool()]}]
    async with client(server) as program:
        for extra, expected in zip(given, ("False", "False", "True"), strict=True):
            create: Any = program.chat.completions.create
            done = await create(model="main@x", messages=[user("Weather?")], **extra)
            assert done.choices[0].message.content == expected


def nested(levels: int) -> dict[str, Any]:  # Any: JSON
    """Return a schema with this many levels."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tools": [tool("create_function")]}, "client_create_function"),
        ({"tools": [tool("core_memory_append")]}, "has here"),
        ({"tools": [tool(), tool()]}, "two tools named"),
        ({"tools": [tool("no name")]}, "cannot be the name"),
        ({"tools": [tool("")]}, "cannot be the name"),
        ({"tools": [tool("x" * 65)]}, "cannot be the name"),
        ({"tools": [tool("f\n## x")]}, "cannot be the name"),
        ({"tools": [tool(f"f{n}") for n in range(129)]}, "128"),
        ({"tools": [tool(parameters={"type": "array"})]}, "of the type `array`"),
        ({"tools": [tool(parameters=nested(12))]}, "too large"),
        ({"tools": [tool(parameters={"type": "object", "description": "x" * 20_000})]}, "too large"),
        (
            {"tools": [tool(f"f{n}", parameters={"type": "object", "description": "x" * 9_000}) for n in range(20)]},
            "in all",
        ),
        ({"tools": [{"type": "web_search"}]}, "`web_search`, which is not known"),
        ({"tools": [{"type": "function"}]}, "name"),
        ({"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "other"}}}, "not in `tools`"),
        ({"tools": [tool()], "tool_choice": {"type": "mcp"}}, "cannot be kept"),
        ({"tools": [tool()], "tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": "required"}, "no tools"),
        ({"messages": [user("a"), answer("call_1", "x")]}, "no call"),
        ({"model": "main@x", "messages": [answer("call_1", "x")]}, "no call"),
    ],
)
async def test_what_cannot_be_passed_on_is_told(unchanged: Served, options: Any, sentence: str) -> None:  # Any: JSON
    async with client(unchanged, unchanged.key) as program:
        with pytest.raises(openai.BadRequestError, match=sentence):
            await program.chat.completions.create(**{"model": "main", "messages": [user("hello")], **options})


async def test_a_name_of_a_function_of_the_workspace_is_taken(served: Serve) -> None:
    server = await served([])
    (server.workspace.root / "functions" / "letters.py").write_text(VOWELS)
    await server.workspace.functions.reload()
    async with client(server) as program:
        with pytest.raises(openai.BadRequestError, match="count_vowels"):
            await program.chat.completions.create(model="main", messages=[user("a")], tools=[tool("count_vowels")])


async def test_functions_that_leave_the_model_no_room_are_told(served: Serve) -> None:
    server = await served([])
    large = [tool(f"f{n}", parameters={"type": "object", "description": "x" * 9_000}) for n in range(5)]
    async with client(server) as program:
        with pytest.raises(openai.InternalServerError, match="functions of the client take"):
            await program.chat.completions.create(model="main", messages=[user("a")], tools=large)


async def test_a_response_has_the_calls_and_goes_on_with_their_outputs(served: Serve) -> None:
    server = await served([ASKED, Expect(Say("It rains."), answers("rain"), has_once("Weather?"))])
    own: Any = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True}
    async with client(server) as program:
        first = await program.responses.create(model="main", input="Weather?", tools=[own])
        (call,) = first.output
        assert (call.type, call.call_id, call.name) == ("function_call", "call_w", "weather")  # type: ignore[union-attr]
        output: Any = [{"type": "function_call_output", "call_id": "call_w", "output": "rain"}]
        second = await program.responses.create(model="main", input=output, tools=[own], previous_response_id=first.id)
    assert second.output_text == "It rains."


async def test_a_streamed_response_has_the_calls_as_items_and_its_history_is_known(served: Serve) -> None:
    server = await served([Ask(*ASKED.calls, text="I look."), Expect(Say("It rains."), has_once("Weather?"))])
    own: Any = {"type": "function", "name": "weather", "parameters": SCHEMA}
    async with client(server) as program:
        history: Any = [user("Weather?")]
        stream = await program.responses.create(model="main", input=history, tools=[own], stream=True)
        parts: list[Any] = [part async for part in stream]
        assert [part.sequence_number for part in parts] == list(range(len(parts)))
        done = [part.item for part in parts if part.type == "response.output_item.done"]
        assert [item.type for item in done] == ["message", "function_call"]
        assert parts[-1].response.output == done
        history += [item.model_dump(exclude_none=True) for item in done]
        history += [{"type": "function_call_output", "call_id": "call_w", "output": "rain"}]
        second = await program.responses.create(model="main", input=history, tools=[own])
    assert second.output_text == "It rains."
    assert len([name for name in await server.workspace.agent_names() if "--chat-" in name]) == 1


async def test_a_client_that_asks_without_functions_is_shown_none_of_those_before(served: Serve) -> None:
    server = await served([ASKED, lambda seen: Say(f"{'weather' in seen.functions}")])
    async with client(server) as program:
        messages = [user("Weather?")]
        first = await program.chat.completions.create(model="main", messages=messages, tools=[tool()])
        messages += [first.choices[0].message.model_dump(exclude_none=True), answer("call_w", "rain")]
        second = await program.chat.completions.create(model="main", messages=messages)
    assert second.choices[0].message.content == "False"
    assert has_no("weather")(server.model.requests[0]) is None
