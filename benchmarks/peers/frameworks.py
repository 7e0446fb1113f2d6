"""The same agent in each framework; a peer's own interpreter runs this file, so it imports none of our code.

`frameworks.py NAME turn URL` builds an agent with one function, `add`, reports that it is ready, and then takes one
turn for each line that it reads. `frameworks.py NAME schema FOLDER` imports every module of a folder and describes its
functions. Both print JSON lines.
"""

import asyncio
import importlib
import importlib.util
import json
import logging
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

Turn: TypeAlias = Callable[[], Awaitable[object]]
Describe: TypeAlias = Callable[[Callable[..., Any]], object]

_BEGAN: Final = time.perf_counter()
_KEY: Final = "none"
_MODEL: Final = "fake"
_MOST: Final = 1_000  # steps of a turn
_calls: list[int] = []
load: Final = importlib.import_module  # type checking runs without these packages


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: First number.
        b: Second number.
    """
    _calls.append(a)
    return a + b


def _sdk(url: str) -> Turn:
    client = load("openai").AsyncOpenAI(base_url=url, api_key=_KEY)
    described = _described("Add two numbers.")

    async def run(name: str, arguments: dict[str, int]) -> str:
        return str(add(**arguments))

    return lambda: _loop(client, described, run)


def _described(description: str) -> dict[str, Any]:
    properties = {name: {"type": "integer"} for name in ("a", "b")}
    parameters = {"type": "object", "properties": properties, "required": ["a", "b"]}
    return {
        "type": "function",
        "function": {"name": "add", "description": description, "parameters": parameters},
    }


async def _loop(
    client: Any, described: dict[str, Any], run: Callable[[str, dict[str, int]], Awaitable[str]]
) -> None:
    messages: list[Any] = [{"role": "user", "content": "go"}]
    while True:
        reply = await client.chat.completions.create(
            model=_MODEL, messages=messages, tools=[described]
        )
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return
        for call in message.tool_calls:
            text = await run(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def _openai_agents(url: str) -> Turn:
    agents, openai = load("agents"), load("openai")
    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=url, api_key=_KEY)
    model = agents.OpenAIChatCompletionsModel(model=_MODEL, openai_client=client)
    agent = agents.Agent(name="a", tools=[agents.function_tool(add)], model=model)
    return lambda: agents.Runner.run(agent, "go", max_turns=_MOST)


def _pydantic_ai(url: str) -> Turn:
    provider = load("pydantic_ai.providers.openai").OpenAIProvider(base_url=url, api_key=_KEY)
    model = load("pydantic_ai.models.openai").OpenAIChatModel(_MODEL, provider=provider)
    agent = load("pydantic_ai").Agent(model, tools=[add])
    limits = load("pydantic_ai.usage").UsageLimits(request_limit=_MOST)
    return lambda: agent.run("go", usage_limits=limits)


def _smolagents(url: str) -> Turn:
    smolagents = load("smolagents")
    model = smolagents.OpenAIServerModel(model_id=_MODEL, api_base=url, api_key=_KEY)
    silent = smolagents.LogLevel.OFF
    agent = smolagents.ToolCallingAgent(
        tools=[smolagents.tool(add)], model=model, verbosity_level=silent, max_steps=_MOST
    )

    async def turn() -> None:
        agent.run("go")

    return turn


def _autogen(url: str) -> Turn:
    abilities = dict.fromkeys(("vision", "json_output", "structured_output"), False)
    model = load("autogen_ext.models.openai").OpenAIChatCompletionClient(
        model=_MODEL,
        base_url=url,
        api_key=_KEY,
        model_info=abilities | {"function_calling": True, "family": "unknown"},
    )
    agents, tool = (
        load("autogen_agentchat.agents"),
        load("autogen_core.tools").FunctionTool(add, description="Add."),
    )

    async def turn() -> None:
        await agents.AssistantAgent(
            "a", model_client=model, tools=[tool], max_tool_iterations=_MOST
        ).run(task="go")

    return turn


def _langgraph(url: str) -> Turn:
    model = load("langchain_openai").ChatOpenAI(model=_MODEL, base_url=url, api_key=_KEY)
    agent = load("langgraph.prebuilt").create_react_agent(model, tools=[add])
    return lambda: agent.ainvoke(
        {"messages": [{"role": "user", "content": "go"}]}, {"recursion_limit": 5 * _MOST}
    )


def _fastmcp(url: str) -> Turn:
    """Return the turn of the SDK's loop whose calls go through a client of a server in the same process."""
    fastmcp, client = load("fastmcp"), load("openai").AsyncOpenAI(base_url=url, api_key=_KEY)
    server = fastmcp.FastMCP("a")
    server.tool(add)

    async def turn() -> None:
        async with fastmcp.Client(server) as connected:

            async def run(name: str, arguments: dict[str, int]) -> str:
                return str((await connected.call_tool(name, arguments)).data)

            await _loop(client, _described("Add two numbers."), run)

    return turn


def _schema_of_agents() -> Describe:
    describe = load("agents.function_schema").function_schema
    return lambda function: describe(function, strict_json_schema=False).params_json_schema


def _schema_of_pydantic_ai() -> Describe:
    tool = load("pydantic_ai").Tool
    return lambda function: tool(function).function_schema.json_schema


def _schema_of_smolagents() -> Describe:
    describe: Describe = load("smolagents._function_type_hints_utils").get_json_schema
    return describe


def _schema_of_autogen() -> Describe:
    tool = load("autogen_core.tools").FunctionTool
    return lambda function: tool(function, description=function.__doc__).schema


def _schema_of_langchain() -> Describe:
    describe: Describe = load("langchain_core.utils.function_calling").convert_to_openai_tool
    return describe


def _schema_of_fastmcp() -> Describe:
    tool = load("fastmcp.tools").Tool
    return lambda function: tool.from_function(function).parameters


AGENTS: Final[dict[str, tuple[Callable[[str], Turn], Callable[[], Describe] | None]]] = {
    "openai": (_sdk, None),
    "openai-agents": (_openai_agents, _schema_of_agents),
    "pydantic-ai": (_pydantic_ai, _schema_of_pydantic_ai),
    "smolagents": (_smolagents, _schema_of_smolagents),
    "autogen-agentchat": (_autogen, _schema_of_autogen),
    "langgraph": (_langgraph, _schema_of_langchain),
    "fastmcp": (_fastmcp, _schema_of_fastmcp),
}


async def _turns(turn: Turn) -> None:
    say({"ready": True})
    for _line in sys.stdin:
        _calls.clear()
        began = time.perf_counter()
        await turn()
        say({"seconds": time.perf_counter() - began, "calls": len(_calls)})


def _schemas(describe: Describe, folder: Path) -> None:
    """Print the time since this process began: for the framework, the modules, and their schemas."""
    functions = [getattr(_imported(path), path.stem) for path in sorted(folder.glob("*.py"))]
    texts = [json.dumps(describe(function), default=str) for function in functions]
    say({"seconds": time.perf_counter() - _BEGAN, "functions": len(texts)})


def _imported(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # type hints are resolved there
    spec.loader.exec_module(module)
    return module


def say(value: dict[str, Any]) -> None:
    """Print one line."""
    print(json.dumps(value), flush=True)


def main() -> None:
    name, work, place = sys.argv[1:]
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    agent, schema = AGENTS[name]
    if work == "turn":
        asyncio.run(_turns(agent(place)))
    elif schema is not None:
        _schemas(schema(), Path(place))


if __name__ == "__main__":
    main()
