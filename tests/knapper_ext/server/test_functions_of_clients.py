"""A client's own functions: the model calls them, the client answers, and the turn continues with the result."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

from sandbox import Sandbox
from tests.kit import Ask, Expect, Say, ScriptedModel, Seen, Wanted, contains, shows
from tests.kit.desk import VOWELS

from .conftest import Serve, server
from .programs import client, has_once, user

SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
ASKED = Ask(Wanted("weather", {"place": "Brindle"}, id="call_w"))


def tool(name: str = "weather", **more: Any) -> Any:  # Any: a tool, whose type is the client's
    """Return a function of a client."""
    return {
        "type": "function",
        "function": {"name": name, "description": "Look out.", "parameters": SCHEMA, **more},
    }


def answer(id: str, text: str) -> Any:  # Any: a message
    """Return a client's result of a call."""
    return {"role": "tool", "tool_call_id": id, "content": text}


def answers(*texts: str) -> Callable[[Seen], str | None]:
    """Expect the request to end with these results of calls."""
    return lambda seen: None if seen.answers == [*texts] else f"the answers are {seen.answers}"


async def asks(program: openai.AsyncOpenAI, messages: Any, model: str = "main", **more: Any) -> Any:
    """Return the choice of a completion; the client has the function `weather` unless told otherwise."""
    done = await program.chat.completions.create(
        model=model, messages=messages, **{"tools": [tool()], **more}
    )
    return done.choices[0]


def sent_back(choice: Any) -> Any:  # Any: the client's
    """Return a reply as a client sends it back."""
    return choice.message.model_dump(exclude_none=True)


async def test_a_call_comes_to_the_client_and_its_answer_to_the_model_also_after_a_restart(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> None:
    model = scripted(
        [
            Expect(ASKED, shows("weather")),
            Expect(Say("It rains."), answers("rain"), has_once("Weather?")),
        ]
    )
    async with server(tmp_path, model, one_sandbox) as before:
        token = await before.token("program", "chat")
        async with client(before, token) as program:
            first = await asks(program, [user("Weather?")])
    assert first.finish_reason == "tool_calls"
    (call,) = first.message.tool_calls
    assert call.id.startswith("call_w--chat-"), "it names the history whose turn waits"
    assert (call.function.name, call.function.arguments) == ("weather", '{"place": "Brindle"}')
    async with server(tmp_path, model, one_sandbox) as after, client(after, token) as program:
        second = await asks(program, [user("Weather?"), sent_back(first), answer(call.id, "rain")])
        assert (second.message.content, second.finish_reason) == ("It rains.", "stop")
        assert len(await after.workspace.agent_names()) == 2, "the turn that waited went on"


async def test_a_stream_ends_with_the_calls_and_ours_have_run(served: Serve) -> None:
    both = Ask(
        Wanted("count_vowels", {"text": "queueing"}, id="call_v"), *ASKED.calls, text="I look."
    )
    server = await served([both, Expect(Say("Five, and rain."), answers("5", "rain"))])
    await server.save("letters.py", VOWELS)
    async with client(server) as program:
        messages = [user("Both?")]
        stream = await program.chat.completions.create(
            model="main", messages=messages, tools=[tool()], stream=True
        )
        chunks = [chunk async for chunk in stream]
        calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
        assert [call.function and call.function.name for call in calls] == ["weather"]
        assert chunks[-1].choices[0].finish_reason == "tool_calls"
        happened = [
            event["name"]
            for chunk in chunks
            for event in (chunk.model_extra or {}).get("knapper", {"events": []})["events"]
            if "name" in event
        ]
        assert happened == ["count_vowels", "count_vowels"]
        sent = {
            "id": calls[0].id,
            "type": "function",
            "function": {"name": "weather", "arguments": "{}"},
        }
        # As many clients do: no text next to calls.
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [sent]},
            answer(str(calls[0].id), "rain"),
        ]
        second = await program.chat.completions.create(
            model="main", messages=messages, tools=[tool()]
        )
    assert second.choices[0].message.content == "Five, and rain."


async def test_several_calls_are_answered_in_any_order_and_a_client_that_takes_one_gets_one(
    served: Serve,
) -> None:
    two = Ask(
        Wanted("weather", {"place": "A"}, id="call_a"),
        Wanted("weather", {"place": "B"}, id="call_b"),
    )
    one = Expect(Say("One."), contains("one call at a time"), contains("sun"))
    server = await served([two, Expect(Say("Both."), answers("sun", "rain")), two, one])
    async with client(server) as program:
        messages = [user("Where?")]
        first = await asks(program, messages, "main@x")
        messages += [sent_back(first), answer("call_b", "rain"), answer("call_a", "sun")]
        assert (await asks(program, messages, "main@x")).message.content == "Both."
        single: dict[str, Any] = {"parallel_tool_calls": False}
        first = await asks(program, [user("Where else?")], **single)
        (call,) = first.message.tool_calls
        messages = [user("Where else?"), sent_back(first), answer(call.id, "sun")]
        assert (await asks(program, messages, **single)).message.content == "One."


async def test_a_call_that_the_client_never_answers_is_closed_as_that_and_a_late_answer_is_told(
    served: Serve,
) -> None:
    closed = contains("went on without an answer")
    script = [
        ASKED,
        Expect(Say("Fine."), closed, contains("Never mind")),
        ASKED,
        Expect(Say("Fine."), closed),
    ]
    server = await served(
        [*script, Say("Late, then."), Expect(Say("Rain."), answers("rain"), closed)]
    )
    async with client(server) as program:
        first = await asks(program, [user("Weather?")])
        messages = [user("Weather?"), sent_back(first), user("Never mind.")]
        assert (await asks(program, messages)).message.content == "Fine."
        first = await asks(program, [user("Weather?")], "main@x")
        (row, *_) = await server.workspace.conversations("main").list()
        await server.said("Never mind.", conversation=row.id)
        await asks(
            program, [user("Weather?"), sent_back(first), answer("call_w", "rain")], "main@x"
        )
        assert (
            "after the conversation had gone on without it: rain" in server.model.requests[-1].text
        )
        function = {"name": "weather", "arguments": '{"place": "A"}'}
        other, call = (
            {"id": f"call_{n}", "type": "function", "function": function} for n in (2, 1)
        )
        unknown: list[Any] = [
            user("Once?"),
            {"role": "assistant", "content": None, "tool_calls": [other]},
        ]
        unknown += [user("Again?"), {"role": "assistant", "content": None, "tool_calls": [call]}]
        assert (
            await asks(program, [*unknown, answer("call_1", "rain")])
        ).message.content == "Rain."


async def test_a_required_call_is_asked_for_until_it_comes_and_none_where_none_is_chosen(
    served: Serve,
) -> None:
    comes = [Say("It may rain."), Expect(ASKED, contains("requires a call"))]
    is_shown = lambda seen: Say(f"{'weather' in seen.functions}")  # noqa: E731
    server = await served(
        [*comes, *comes, *[Say("It may rain.")] * 3, *[is_shown] * 3, ASKED, is_shown]
    )
    named = {"type": "function", "function": {"name": "weather"}}
    async with client(server) as program:
        for number, choice in enumerate(("required", named)):
            before = len(server.model.requests)
            tools = [tool(), tool("other")]
            done = await asks(
                program, [user("Weather?")], f"main@{number}", tools=tools, tool_choice=choice
            )
            assert done.finish_reason == "tool_calls"
            assert ("other" in server.model.requests[before].functions) == (choice == "required")
        with pytest.raises(openai.InternalServerError, match="requires a call of `weather`"):
            await asks(program, [user("Weather?")], tool_choice="required")
        for extra, expected in (
            ({"tool_choice": "none"}, "False"),
            ({}, "True"),
            ({"tools": openai.omit}, "False"),
        ):
            done = await asks(program, [user("Weather?")], "main@x", **extra)
            assert done.message.content == expected
        large = [
            tool(f"f{n}", parameters={"type": "object", "description": "x" * 9_000})
            for n in range(5)
        ]
        with pytest.raises(openai.InternalServerError, match="functions of the client take"):
            await asks(program, [user("a")], tools=large)
        first = await asks(program, [user("Again?")], "main@y")
        messages = [user("Again?"), sent_back(first), answer("call_w", "rain")]
        assert (
            await asks(program, messages, "main@y", tools=openai.omit)
        ).message.content == "False"


def nested(levels: int) -> dict[str, Any]:  # Any: JSON
    """Return a schema with this many levels."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


LONG = {"type": "object", "description": "x" * 9_000}
INNER = {
    "type": "object",
    "properties": {"a": {"type": "object", "properties": 1}},
    "required": ["a"],
}
REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"tools": [tool("create_function")]}, "client_create_function"),
    ({"tools": [tool("count_vowels")]}, "count_vowels"),
    ({"tools": [tool(), tool()]}, "two tools named"),
    *(
        ({"tools": [tool(name)]}, "cannot be the name")
        for name in ("no name", "", "x" * 65, "f\n## x")
    ),
    ({"tools": [tool(f"f{n}") for n in range(129)]}, "128"),
    ({"tools": [tool(parameters={"type": "array"})]}, "of the type `array`"),
    *(
        ({"tools": [tool(parameters={"properties": odd})]}, "`properties` are")
        for odd in (None, True, 1.5, ["a"], "a")
    ),
    ({"tools": [tool(parameters=INNER)]}, "`properties` are"),
    *(
        ({"tools": [tool(parameters={"required": odd})]}, "`required` is")
        for odd in (None, True, [1], "a")
    ),
    ({"tools": [tool(parameters={"type": "object", "description": "x" * 20_000})]}, "too large"),
    ({"tools": [tool(f"f{n}", parameters=LONG) for n in range(20)]}, "in all"),
    ({"tools": [{"type": "web_search"}]}, "`web_search`, which is not known"),
    (
        {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        "not in `tools`",
    ),
    ({"tool_choice": "required"}, "no tools"),
    ({"messages": [user("a"), answer("call_1", "x")]}, "no call"),
)


async def test_what_cannot_be_passed_on_is_told(served: Serve) -> None:
    server = await served([])
    await server.save("letters.py", VOWELS)
    async with client(server) as program:
        for options, sentence in REFUSED:
            with pytest.raises(openai.BadRequestError, match=sentence):
                await program.chat.completions.create(
                    **{"model": "main", "messages": [user("hello")], **options}
                )


async def test_a_streamed_response_has_the_calls_as_items_and_goes_on_with_the_answer(
    served: Serve,
) -> None:
    server = await served(
        [Ask(*ASKED.calls, text="I look."), Expect(Say("It rains."), has_once("Weather?"))]
    )
    own: Any = {"type": "function", "name": "weather", "parameters": SCHEMA}
    async with client(server) as program:
        history: Any = [user("Weather?")]
        stream = await program.responses.create(
            model="main", input=history, tools=[own], stream=True
        )
        parts: list[Any] = [part async for part in stream]
        assert [part.sequence_number for part in parts] == list(range(len(parts)))
        done = [part.item for part in parts if part.type == "response.output_item.done"]
        assert [item.type for item in done] == ["message", "function_call"]
        assert parts[-1].response.output == done
        history += [item.model_dump(exclude_none=True) for item in done]
        call_id = parts[-1].response.output[-1].call_id
        history += [{"type": "function_call_output", "call_id": call_id, "output": "rain"}]
        second = await program.responses.create(model="main", input=history, tools=[own])
    assert second.output_text == "It rains."
    assert len(await server.workspace.conversations("main").list()) == 1
