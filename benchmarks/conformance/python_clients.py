"""One real Python client: `python_clients.py CLIENT BASE_URL TOKEN` prints what was tested; a failure raises.

Run by the interpreter of the client's own environment; it imports none of our code.
"""

import asyncio
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

load: Final = importlib.import_module  # type checking runs without these packages
PAGE: Final = Path(__file__).parents[2] / "docs" / "integrations.md"
WORD: Final = "Brindle"  # what the scripted model always says
TIDE: Final = "The tide is low."
_SCHEMA: Final = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
}
Look: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]  # Any: JSON Schema
Call: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[str]]  # Any: JSON
_MESSAGES: Final = [{"role": "user", "content": "Where is the lighthouse?"}]


def openai_python(url: str, token: str) -> list[str]:
    """Models, a chat, a stream with its usage, the streaming helper, responses, and three kinds of errors."""
    client = load("openai").OpenAI(base_url=url, api_key=token, max_retries=0)
    assert "main" in [model.id for model in client.models.list()]
    reply = client.chat.completions.create(model="main", messages=_MESSAGES)
    assert WORD in reply.choices[0].message.content, reply
    assert reply.choices[0].finish_reason == "stop", reply
    assert (
        reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0
    ), reply.usage
    more = [*_MESSAGES, {"role": "assistant", "content": reply.choices[0].message.content}]
    told = {"include_usage": True}
    stream = client.chat.completions.create(
        model="main", messages=[*more, _MESSAGES[0]], stream=True, stream_options=told
    )
    text, usage = "", None
    for chunk in stream:
        text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        usage = chunk.usage or usage
    assert WORD in text, text
    assert usage is not None, text
    assert usage.total_tokens > 0, usage
    with client.chat.completions.stream(model="main@helper", messages=_MESSAGES) as helper:
        assert WORD in helper.get_final_completion().choices[0].message.content
    shown = ["models", "chat", "stream", "usage", "stream helper"]
    return [*shown, *_own_functions(client), *_responses(client), *_errors(url, token)]


def _own_functions(client: Any) -> list[str]:  # Any: the SDK's client
    """A function of the client: the call arrives here, and its result goes to the model."""
    tools = [{"type": "function", "function": {"name": "tide_at", "parameters": _SCHEMA}}]
    messages = [*_MESSAGES]
    with client.chat.completions.stream(model="main", messages=messages, tools=tools) as stream:
        asked = stream.get_final_completion().choices[0]
    assert asked.finish_reason == "tool_calls", asked
    (call,) = asked.message.tool_calls
    assert (call.function.name, call.function.arguments) == ("tide_at", '{"place": "Brindle"}'), (
        call
    )
    messages += [asked.message, {"role": "tool", "tool_call_id": call.id, "content": TIDE}]
    reply = client.chat.completions.create(model="main", messages=messages, tools=tools)
    assert TIDE in reply.choices[0].message.content, reply
    own = [{"type": "function", "name": "tide_at", "parameters": _SCHEMA}]
    first = client.responses.create(model="main", input="Is it low?", tools=own)
    output = [{"type": "function_call_output", "call_id": first.output[0].call_id, "output": TIDE}]
    second = client.responses.create(
        model="main", input=output, tools=own, previous_response_id=first.id
    )
    assert TIDE in second.output_text, second
    return ["functions of the client", "and by responses"]


def _responses(client: Any) -> list[str]:  # Any: the SDK's client
    first = client.responses.create(model="main", input="Where is the lighthouse?")
    assert WORD in first.output_text, first
    assert first.status == "completed", first
    second = client.responses.create(model="main", input="And now?", previous_response_id=first.id)
    assert WORD in second.output_text, second
    kinds, text = [], ""
    for event in client.responses.create(model="main", input="Stream it.", stream=True):
        kinds.append(event.type)
        text += event.delta if event.type == "response.output_text.delta" else ""
    assert WORD in text, kinds
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed"), kinds
    return ["responses", "previous_response_id", "responses stream"]


def _errors(url: str, token: str) -> list[str]:
    openai = load("openai")

    def fails(kind: type[Exception], key: str, **asked: object) -> None:
        client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
        try:
            client.chat.completions.create(**{"model": "main", "messages": _MESSAGES, **asked})
        except kind:
            return
        raise AssertionError(f"{kind.__name__} was expected")

    fails(openai.AuthenticationError, "wrong")
    fails(openai.NotFoundError, token, model="nobody")
    fails(openai.BadRequestError, token, messages=[])
    return ["errors"]


def tide_at(place: str) -> str:
    """Tell the tide at a place."""
    return TIDE if place else ""


def openai_agents(url: str, token: str) -> list[str]:
    """An agent of the Agents SDK with our model, whole and streamed, by chat completions and by responses."""
    agents = load("agents")
    agents.set_tracing_disabled(True)

    async def work() -> list[str]:
        shown = []
        async with load("openai").AsyncOpenAI(base_url=url, api_key=token, max_retries=0) as client:
            for kind in (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel):
                model = kind(model="main", openai_client=client)
                agent = agents.Agent(name="visitor", instructions="Be brief.", model=model)
                result = await agents.Runner.run(agent, "Where is the lighthouse?")
                assert WORD in result.final_output, result
                streamed = agents.Runner.run_streamed(agent, "Where is it, once more?")
                async for _ in streamed.stream_events():
                    pass
                assert WORD in str(streamed.final_output), streamed
                own = agents.Agent(
                    name="skipper", model=model, tools=[agents.function_tool(tide_at)]
                )
                result = await agents.Runner.run(own, "Is it low?")
                assert TIDE in result.final_output, result
                streamed = agents.Runner.run_streamed(own, "Is it low, once more?")
                async for _ in streamed.stream_events():
                    pass
                assert TIDE in str(streamed.final_output), streamed
                name = kind.__name__
                shown += [
                    name,
                    f"{name} streamed",
                    f"{name} with a function of its own",
                    "and streamed",
                ]
        return shown

    return asyncio.run(work())


def llm(url: str, token: str) -> list[str]:
    """The command `llm`, streamed and whole, and a conversation with a second message."""
    program = shutil.which("llm", path=str(Path(sys.executable).parent))
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="llm-") as folder:
        (entry,) = re.findall(r"```yaml\n(.+?)```", PAGE.read_text("utf-8"), re.DOTALL)
        entry = entry.replace("http://127.0.0.1:8700/v1", url)
        (Path(folder) / "extra-openai-models.yaml").write_text(entry, "utf-8")
        environment = {**os.environ, "LLM_USER_PATH": folder}
        for more in ([], ["--no-stream"], ["-c"]):
            command = [
                program,
                "prompt",
                "-m",
                "ours",
                "--key",
                token,
                *more,
                "Where is the lighthouse?",
            ]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=120, check=False
            )
            assert WORD in done.stdout, done.stdout + done.stderr
    return ["stream", "--no-stream", "-c"]


async def _follow(look: Look, call: Call, change: Callable[[], Awaitable[object]]) -> None:
    """Print what `count_vowels` takes and returns, now and after each change notification, until it is deleted.

    The function may already be deleted.
    """
    was_there = False
    while True:
        if (takes := (await look()).get("count_vowels")) is None:
            answer = await call(
                "call_function", {"function_name": "count_vowels", "arguments": {"text": "sky"}}
            )
        else:
            answer = await call("count_vowels", {"text": "sky"})
        print(json.dumps([takes and sorted(takes["properties"]), answer]), flush=True)
        if was_there and takes is None and "was deleted" in answer:
            return
        was_there = was_there or takes is not None
        await change()


def mcp_1(place: str, token: str) -> None:
    """The SDK's 1.x client, which performs a handshake and is notified over its connection."""
    mcp, notice = load("mcp"), load("mcp.types").ToolListChangedNotification
    heard = asyncio.Event()

    async def hear(message: Any) -> None:  # Any: the SDK's
        if isinstance(getattr(message, "root", None), notice):
            heard.set()

    async def work() -> None:
        if token:
            http = load("mcp.client.streamable_http")
            way = http.streamablehttp_client(place, headers={"Authorization": f"Bearer {token}"})
        else:
            way = mcp.stdio_client(_started(mcp, place))
        async with (
            way as (reader, writer, *_),
            mcp.ClientSession(reader, writer, message_handler=hear) as session,
        ):
            about = await session.initialize()
            assert about.capabilities.tools.listChanged, about

            async def look() -> Mapping[str, Any]:
                return {tool.name: tool.inputSchema for tool in (await session.list_tools()).tools}

            async def call(name: str, arguments: dict[str, Any]) -> str:
                return _text(await session.call_tool(name, arguments))

            await _follow(look, call, lambda: _heard(heard))

    asyncio.run(work())


def mcp_2(place: str, token: str, *, modern: bool) -> None:
    """The SDK's 2.x client: it watches changes by `subscriptions/listen`, or performs a handshake as before."""
    mcp, notice = load("mcp"), load("mcp_types").ToolListChangedNotification
    heard = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, notice):
            heard.set()

    async def work() -> None:
        async with AsyncExitStack() as stack:
            if token:
                http = await stack.enter_async_context(_http(token))
                way = load("mcp.client.streamable_http").streamable_http_client(
                    place, http_client=http
                )
            else:
                way = mcp.stdio_client(_started(mcp, place))
            opened = mcp.Client(way, mode="auto" if modern else "legacy", message_handler=hear)
            client = await stack.enter_async_context(opened)
            assert (client.protocol_version >= "2026-07-28") == modern, client.protocol_version

            async def look() -> Mapping[str, Any]:
                tools = (await client.list_tools(cache_mode="bypass")).tools
                return {tool.name: tool.input_schema for tool in tools}

            async def call(name: str, arguments: dict[str, Any]) -> str:
                return _text(await client.call_tool(name, arguments))

            if modern:
                events = aiter(
                    await stack.enter_async_context(client.listen(tools_list_changed=True))
                )
                await _follow(look, call, lambda: anext(events))
            else:
                await _follow(look, call, lambda: _heard(heard))

    asyncio.run(work())


def mcp_agent_framework(place: str, token: str) -> None:
    """The client of Agent Framework's agents: it loads changes by itself; this only polls it."""
    framework = load("agent_framework")

    async def work() -> None:
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(_http(token))
            tool = await stack.enter_async_context(_tool(framework, place, http if token else None))

            seen: dict[str, Any] = {}

            def now() -> dict[str, Any]:
                return {function.name: function.parameters() for function in tool.functions}

            async def look() -> Mapping[str, Any]:
                nonlocal seen
                seen = now()
                return seen

            async def call(name: str, arguments: dict[str, Any]) -> str:
                try:
                    return "\n".join(
                        content.text for content in await tool.call_tool(name, **arguments)
                    )
                except framework.exceptions.ToolExecutionException as error:
                    return str(error)

            async def change() -> None:
                while now() == seen:  # noqa: ASYNC110 - the framework sends no notification
                    await asyncio.sleep(0.05)

            await _follow(look, call, change)

    asyncio.run(work())


def _tool(framework: Any, place: str, http: Any) -> Any:  # Any: the framework's
    if http is not None:
        return framework.MCPStreamableHTTPTool("ours", place, http_client=http, load_prompts=False)
    program, *arguments = json.loads(place)
    return framework.MCPStdioTool("ours", program, args=arguments, load_prompts=False)


def _started(mcp: Any, place: str) -> Any:  # Any: the SDK's
    program, *arguments = json.loads(place)
    return mcp.StdioServerParameters(command=program, args=arguments)


def _http(token: str) -> Any:  # Any: the SDK's
    return load("httpx2").AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120)


async def _heard(heard: asyncio.Event) -> None:
    await heard.wait()
    heard.clear()


def _text(result: Any) -> str:  # Any: the SDK's
    return "\n".join(content.text for content in result.content)


CLIENTS: Final[dict[str, Callable[[str, str], list[str] | None]]] = {
    "openai-python": openai_python,
    "openai-agents": openai_agents,
    "llm": llm,
    "mcp-1": mcp_1,
    "mcp-2": partial(mcp_2, modern=True),
    "mcp-2-handshake": partial(mcp_2, modern=False),
    "mcp-agent-framework": mcp_agent_framework,
}

if __name__ == "__main__":
    name, address, key = sys.argv[1:]
    print(", ".join(CLIENTS[name](address, key) or ()))
