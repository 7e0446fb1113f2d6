"""A plugin for AutoGen's own tests: our agents replace those that the tests create.

Each `AssistantAgent` and `_EchoAgent` of a test becomes an agent of a fresh workspace; its model's replies come from
the test's replay model, or echo the message. A test that needs something our agents do not have is skipped with that
reason. Loaded by the interpreter of AutoGen's environment (`autogen_suite.py`).
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import pytest
import pytest_asyncio

from agent_core import connect
from knapper_ext.frameworks.autogen import AutoGenAgent
from sandbox import Sandbox
from tests.kit import Repeat, Say, Seen, scripted

Reply: TypeAlias = Callable[[str], str]
load: Final = import_module  # type checking runs without AutoGen
replies: Final[dict[str, Reply]] = {}  # the model's reply to a message, by agent
place: Final[dict[str, Any]] = {}  # the folder of the running test's workspace, and its client
_TAKEN: Final = {
    "model_client_stream",
    "description",
    "system_message",
}  # the accepted parameters of `AssistantAgent`
_APART: Final = {
    "test_declarative_groupchats_with_config": "gives a client of OpenAI an empty key, which today's openai refuses",
    "test_agent_tool_state": "compares the state of its own agent; ours is a reference",
    "test_round_robin_group_chat_cancellation": "cancels an agent that never waits: after one that did, AutoGen's"
    " manager goes on waiting for it, also for an AssistantAgent",
}


class Member(AutoGenAgent):
    """Accepts the parameters of `AssistantAgent` that apply to our agents."""

    def __init__(
        self, name: str, model_client: Any = None, *, description: str = "One.", **other: Any
    ) -> None:
        if strange := sorted(set(other) - _TAKEN):
            _not_fitting(f"an agent of ours takes no {', '.join(strange)}")
        agent = f"m{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        (place["folder"] / "agents" / f"{agent}.toml").write_text(
            'purpose = "Speaks in a test."\n', "utf-8"
        )
        replies[agent] = _echo if model_client is None else lambda _: _replayed(model_client)
        self._streams = bool(other.get("model_client_stream"))
        super().__init__(name, place["client"], agent=agent, description=description)

    async def on_messages_stream(
        self, messages: Sequence[Any], token: Any
    ) -> AsyncGenerator[Any, None]:
        """Drop chunks that the test did not request, and usage, because our prompt includes the history."""
        pieces = load("autogen_agentchat.messages").ModelClientStreamingChunkEvent
        async with aclosing(super().on_messages_stream(messages, token)) as stream:
            async for message in stream:
                if isinstance(message, load("autogen_agentchat.base").Response):
                    message.chat_message.models_usage = None
                if self._streams or not isinstance(message, pieces):
                    yield message

    def _to_config(self) -> NoReturn:
        _not_fitting("an agent of ours has a client, which no configuration holds")

    @property
    def _model_context(self) -> NoReturn:
        _not_fitting("reads the private list of an AssistantAgent; up to there it passed")


class EchoMember(Member):
    """Accepts the parameters of the tests' `_EchoAgent` and counts as it does."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(name, description=description)
        self.total_messages = 0

    async def on_messages_stream(
        self, messages: Sequence[Any], token: Any
    ) -> AsyncGenerator[Any, None]:
        """Count the turn."""
        self.total_messages += 1
        async with aclosing(super().on_messages_stream(messages, token)) as stream:
            async for message in stream:
                yield message


def _not_fitting(why: str) -> NoReturn:
    pytest.skip(f"does not fit: {why}")


def _echo(heard: str) -> str:
    """Return the first message received, without the sender's name."""
    return re.sub(r"\A\[from: .+\]\n", "", heard.partition("\n\n[from: ")[0])


def _replayed(model_client: Any) -> str:
    message = load("autogen_core.models").UserMessage(content="Go on.", source="user")
    with ThreadPoolExecutor() as apart:  # the script is queried inside a running event loop
        return str(
            apart.submit(lambda: asyncio.run(model_client.create([message]))).result().content
        )


def _said(seen: Seen) -> Say:
    agent = re.findall(r"You are the agent `(\w+)`", seen.text)[0]
    return Say(replies[agent](str(seen.messages[-1]["content"])))


@pytest_asyncio.fixture(scope="session")
async def one_sandbox() -> AsyncIterator[Sandbox]:
    """One sandbox for all tests."""
    async with await Sandbox.start() as started:
        yield started


@pytest_asyncio.fixture(autouse=True)
async def members(
    one_sandbox: Sandbox,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[None]:
    """Give each test a workspace, and let it create our agents."""
    if why := _APART.get(request.node.originalname):
        _not_fitting(why)
    for folder in ("functions", "agents"):
        (tmp_path / folder).mkdir()
    replies.clear()
    monkeypatch.setattr(request.module, "AssistantAgent", Member, raising=False)
    monkeypatch.setattr(request.module, "_EchoAgent", EchoMember, raising=False)
    with scripted([Repeat(_said)]) as model:
        flags = {
            "model.base_url": model.base_url,
            "model.name": "scripted",
            "model.context_tokens": 8_192,
        }
        async with await connect(tmp_path, flags=flags, sandbox=one_sandbox) as client:
            place.update(folder=tmp_path, client=client)
            yield
