"""One real client in Python at work: `python_clients.py CLIENT BASE_URL TOKEN` prints what was tried; a failure raises.

Run by the interpreter of the client's own environment; it imports nothing of ours.
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
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

load: Final = importlib.import_module  # none of these is installed where this file is checked
PAGE: Final = Path(__file__).parents[2] / "docs" / "integrations.md"
WORD: Final = "Brindle"  # what the scripted model always says
TIDE: Final = "The tide is low."
_SCHEMA: Final = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
_MESSAGES: Final = [{"role": "user", "content": "Where is the lighthouse?"}]


def openai_python(url: str, token: str) -> list[str]:
    """Models, a chat, a stream with its usage, the helper for streams, responses, and three kinds of errors."""
    client = load("openai").OpenAI(base_url=url, api_key=token, max_retries=0)
    assert "main" in [model.id for model in client.models.list()]
    reply = client.chat.completions.create(model="main", messages=_MESSAGES)
    assert WORD in reply.choices[0].message.content, reply
    assert reply.choices[0].finish_reason == "stop", reply
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0, reply.usage
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
    """A function of the client's own: its call comes here, and its answer goes to the model."""
    tools = [{"type": "function", "function": {"name": "tide_at", "parameters": _SCHEMA}}]
    messages = [*_MESSAGES]
    with client.chat.completions.stream(model="main", messages=messages, tools=tools) as stream:
        asked = stream.get_final_completion().choices[0]
    assert asked.finish_reason == "tool_calls", asked
    (call,) = asked.message.tool_calls
    assert (call.function.name, call.function.arguments) == ("tide_at", '{"place": "Brindle"}'), call
    messages += [asked.message, {"role": "tool", "tool_call_id": call.id, "content": TIDE}]
    reply = client.chat.completions.create(model="main", messages=messages, tools=tools)
    assert TIDE in reply.choices[0].message.content, reply
    own = [{"type": "function", "name": "tide_at", "parameters": _SCHEMA}]
    first = client.responses.create(model="main", input="Is it low?", tools=own)
    output = [{"type": "function_call_output", "call_id": first.output[0].call_id, "output": TIDE}]
    second = client.responses.create(model="main", input=output, tools=own, previous_response_id=first.id)
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
    """An agent of the Agents SDK whose model is ours, whole and streamed, by chat completions and by responses."""
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
                own = agents.Agent(name="skipper", model=model, tools=[agents.function_tool(tide_at)])
                result = await agents.Runner.run(own, "Is it low?")
                assert TIDE in result.final_output, result
                streamed = agents.Runner.run_streamed(own, "Is it low, once more?")
                async for _ in streamed.stream_events():
                    pass
                assert TIDE in str(streamed.final_output), streamed
                name = kind.__name__
                shown += [name, f"{name} streamed", f"{name} with a function of its own", "and streamed"]
        return shown

    return asyncio.run(work())


def llm(url: str, token: str) -> list[str]:
    """The command `llm`, streamed and whole, and a conversation that goes on."""
    program = shutil.which("llm", path=str(Path(sys.executable).parent))
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="llm-") as folder:
        (entry,) = re.findall(r"```yaml\n(.+?)```", PAGE.read_text("utf-8"), re.DOTALL)
        entry = entry.replace("http://127.0.0.1:8700/v1", url)
        (Path(folder) / "extra-openai-models.yaml").write_text(entry, "utf-8")
        environment = {**os.environ, "LLM_USER_PATH": folder}
        for more in ([], ["--no-stream"], ["-c"]):
            command = [program, "prompt", "-m", "ours", "--key", token, *more, "Where is the lighthouse?"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
            assert WORD in done.stdout, done.stdout + done.stderr
    return ["stream", "--no-stream", "-c"]


def a2a_sdk(url: str, token: str) -> list[str]:
    """The official A2A SDK: the card, a message whole and streamed, the task afterwards, one that goes on, cancel."""
    sdk, types, httpx = load("a2a.client"), load("a2a.types"), load("httpx")

    def message(text: str, **besides: str) -> Any:  # Any: the SDK's
        part = types.Part(text=text)
        sent = types.Message(message_id=text, role=types.Role.ROLE_USER, parts=[part], **besides)
        return types.SendMessageRequest(message=sent)

    async def work() -> list[str]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(headers=headers, timeout=120) as http:
            for streaming in (False, True):
                config = sdk.ClientConfig(streaming=streaming, httpx_client=http)
                client = await sdk.create_client(url.removesuffix("/v1"), client_config=config)
                events = [event async for event in client.send_message(message(f"Where? {streaming}"))]
                assert WORD in str(events), events
                begun = events[0].task
                goes_on = message(f"And now? {streaming}", context_id=begun.context_id)
                assert WORD in str([event async for event in client.send_message(goes_on)])
                kept = await client.get_task(types.GetTaskRequest(id=begun.id))
                assert kept.status.state == types.TaskState.TASK_STATE_COMPLETED, kept
                assert WORD in kept.artifacts[0].parts[0].text, kept
                try:
                    await client.cancel_task(types.CancelTaskRequest(id=begun.id))
                except load("a2a.utils.errors").TaskNotCancelableError:
                    continue
                raise AssertionError("a task that has ended was canceled")
        return ["card", "message", "stream", "context", "tasks/get", "tasks/cancel"]

    return asyncio.run(work())


VOWELS: Final = """def count_vowels(text: str) -> int:
    \"\"\"Count the vowels in a text.

    Args:
        text: The text to look at.

    >>> count_vowels("queueing")
    5
    >>> count_vowels("rhythm")
    0
    \"\"\"
    return sum(letter in "aeiou" for letter in text.lower())
"""


def mcp_1(url: str, token: str) -> list[str]:
    """The client of the handshake era at `/mcp`: of a function made, changed and deleted it hears, and calls it."""
    mcp, http = load("mcp"), load("mcp.client.streamable_http")
    changed = load("mcp.types").ToolListChangedNotification
    base, headers = url.removesuffix("/v1"), {"Authorization": f"Bearer {token}"}
    edit = {"old": "Count the vowels", "new": "Count all vowels"}
    asked = {"function_name": "count_vowels", "arguments": {"text": "queueing"}}
    heard = asyncio.Event()

    async def hear(message: Any) -> None:  # Any: the SDK's
        if isinstance(getattr(message, "root", None), changed):
            heard.set()

    async def work() -> list[str]:
        async with (
            http.streamablehttp_client(f"{base}/mcp", headers=headers) as (reader, writer, _),
            mcp.ClientSession(reader, writer, message_handler=hear) as session,
        ):
            about = await session.initialize()
            assert about.capabilities.tools.listChanged, about
            assert {"find_functions", "call_function"} <= {tool.name for tool in (await session.list_tools()).tools}
            for method, body in (("PUT", {"source": VOWELS}), ("PATCH", edit), ("DELETE", None)):
                heard.clear()
                await asyncio.to_thread(_change, f"{base}/api/v1/functions/count_vowels", headers, method, body)
                await asyncio.wait_for(heard.wait(), 60)
                answer = await session.call_tool("call_function", asked)
                assert answer.isError == (method == "DELETE"), answer
                assert method == "DELETE" or "5" in answer.content[0].text, answer
        return ["handshake", "list", "a function made, changed and deleted: heard of and called"]

    return asyncio.run(work())


def _change(place: str, headers: dict[str, str], method: str, body: object) -> None:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(place, data, {**headers, "Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=120):
        pass


CLIENTS: Final[dict[str, Callable[[str, str], list[str]]]] = {
    "openai-python": openai_python,
    "openai-agents": openai_agents,
    "llm": llm,
    "a2a-sdk": a2a_sdk,
    "mcp-1": mcp_1,
}

if __name__ == "__main__":
    name, address, key = sys.argv[1:]
    print(", ".join(CLIENTS[name](address, key)))
