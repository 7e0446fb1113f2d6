"""`python -m benchmarks.turn`: a step of the whole loop against a step of the raw SDK loop, in a turn of 50 calls.

Ours writes every step to disk (synced commits) and calls `add` in a sandboxed worker; the SDK's loop
(`chat.completions.create`) adds in its own process. Both ask the same instant endpoint, without streaming.
"""

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import openai

from agent_core.model.connection import Connection

from .fake_endpoint import running
from .measure import Row, in_turn, median_ms, options, ratio, show, timed
from .peers.ours import CALLS, open_workspace, our_turn

AIM = 0.4
_PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
_SCHEMA: Any = {
    "type": "function",
    "function": {"name": "add", "description": "Add two numbers.", "parameters": _PARAMETERS},
}
Ask = Callable[[list[Any]], Awaitable[dict[str, Any]]]  # Any: messages in the wire's own shape


def main() -> None:
    given = options(__doc__, rounds=9)
    show(asyncio.run(bench(given.rounds)), as_json=given.json)


async def bench(rounds: int, calls: int = CALLS) -> list[Row]:
    """Return the milliseconds per step, of both loops and of other ways to call the package."""
    async with AsyncExitStack() as stack:
        url = f"{stack.enter_context(running())}/{calls}/v1"
        root = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()))
        )  # a disk, not a memory disk
        workspace = await stack.enter_async_context(open_workspace(root, url, calls))
        client = await stack.enter_async_context(openai.AsyncOpenAI(base_url=url, api_key="none"))
        connection = Connection(url)
        stack.push_async_callback(connection.aclose)
        sdk, ours = "SDK loop, chat.completions.create", "Knapper's loop"
        ways: dict[str, Ask] = {
            sdk: partial(_create, client),
            "SDK loop, streamed, each chunk typed": partial(_streamed, client),
            "SDK loop, create.with_raw_response": partial(_raw, client),
            "SDK loop, lower-level post": partial(_post, client),
            "SDK loop, lower-level post of bytes": partial(_post_bytes, client),
            "SDK loop, our connection": partial(_connected, connection, False),
            "SDK loop, our connection, streamed": partial(_connected, connection, True),
        }
        acts = {name: partial(_sdk_turn, ask, calls) for name, ask in ways.items()}
        acts[ours] = partial(our_turn, workspace, count(), calls)
        taken = {
            name: [seconds / (calls + 1) for seconds in found]
            for name, found in (await in_turn(acts, rounds)).items()
        }
    aims = {ours: AIM}
    return [
        Row(f"step: {name}", median_ms(taken[name]), sdk, ratio(taken, name, sdk), aims.get(name))
        for name in acts
    ]


async def _sdk_turn(ask: Ask, calls: int) -> float:
    messages: list[Any] = [{"role": "user", "content": "go"}]
    seconds = await timed(_loop(ask, messages))
    assert len(messages) == 2 * calls + 2
    return seconds


async def _loop(ask: Ask, messages: list[Any]) -> None:
    while True:
        message = await ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return
        for call in message["tool_calls"]:
            text = str(_add(**json.loads(call["function"]["arguments"])))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})


def _add(a: int, b: int) -> int:
    return a + b


async def _create(client: openai.AsyncOpenAI, messages: list[Any]) -> dict[str, Any]:
    found = await client.chat.completions.create(model="fake", messages=messages, tools=[_SCHEMA])
    return found.choices[0].message.model_dump(exclude_none=True)


async def _post(client: openai.AsyncOpenAI, messages: list[Any]) -> dict[str, Any]:
    body = {"model": "fake", "messages": messages, "tools": [_SCHEMA]}
    found: Any = await client.post("/chat/completions", cast_to=object, body=body)
    message: dict[str, Any] = found["choices"][0]["message"]
    return message


async def _streamed(client: openai.AsyncOpenAI, messages: list[Any]) -> dict[str, Any]:
    stream = await client.chat.completions.create(
        model="fake", messages=messages, tools=[_SCHEMA], stream=True
    )
    return _joined([chunk.model_dump(exclude_none=True) async for chunk in stream])


async def _raw(client: openai.AsyncOpenAI, messages: list[Any]) -> dict[str, Any]:
    ask = client.chat.completions.with_raw_response.create
    message: dict[str, Any] = json.loads(
        (await ask(model="fake", messages=messages, tools=[_SCHEMA])).text
    )
    return _joined([message])


async def _post_bytes(client: openai.AsyncOpenAI, messages: list[Any]) -> dict[str, Any]:
    content = json.dumps({"model": "fake", "messages": messages, "tools": [_SCHEMA]}).encode()
    found: Any = await client.post("/chat/completions", cast_to=object, content=content)
    return _joined([found])


async def _connected(connection: Connection, streamed: bool, messages: list[Any]) -> dict[str, Any]:  # noqa: FBT001
    body = {"model": "fake", "messages": messages, "tools": [_SCHEMA]} | (
        {"stream": True} if streamed else {}
    )
    content = json.dumps(body, separators=(",", ":")).encode()
    found = [
        chunk async for chunk in connection.stream("/chat/completions", content, streamed=streamed)
    ]
    return _joined([chunk for chunk in found if isinstance(chunk, dict)])


def _joined(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the message of a response, whether whole or from one piece of a stream."""
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    message: dict[str, Any] = choices[0].get("message") or choices[0]["delta"]
    for call in message.get("tool_calls", ()):
        call.pop("index", None)
    return {"role": "assistant", "content": None, **message}


if __name__ == "__main__":
    main()
