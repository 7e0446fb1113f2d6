"""A workspace of several agents, and a model that answers each by the name in its prompt."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent_core import Approver, Workspace
from agent_core.base.events import Event, TurnEnded
from agent_core.runtime.agent import Agent
from tests.kit import Repeat, Say, ScriptedModel, Seen, Step
from tests.kit import scripted as running

Part = Callable[[Seen], Step]


@dataclass
class Team:
    """The agents of a workspace, run by its runner."""

    workspace: Workspace
    model: ScriptedModel
    heard: list[Event] = field(default_factory=list)

    async def say(self, message: str, to: str = "main") -> list[Event]:
        """Run one turn of an agent and return its events."""
        async with await self.workspace.agent(to) as agent:
            return [event async for event in agent.turn(message)]

    async def work(self) -> None:
        """Run all due work until none is left."""
        async with self.workspace.runner(self.heard.append) as runner:
            await runner.run(until_idle=True)

    def replies(self, name: str) -> list[str]:
        """Return an agent's replies in the background."""
        return [
            event.reply
            for event in self.heard
            if isinstance(event, TurnEnded) and event.agent == name
        ]

    def last(self, name: str) -> Seen:
        """Return the last request of an agent."""
        return [seen for seen in self.model.requests if of_whom(seen) == name][-1]

    async def words(self, name: str) -> list[str]:
        """Return the messages of an agent's conversation."""
        async with await self.workspace.agent(name) as agent:
            return [message.text for message in await agent.history()]


def of_whom(seen: Seen) -> str:
    """Return the agent that sent the request."""
    match = re.search(r"You are the agent `([\w-]+)`", seen.text)
    return match[1] if match else ""


def said_last(seen: Seen) -> str:
    """Return the last message of the request."""
    return str(seen.messages[-1]["content"])


def by_name(parts: Mapping[str, Part]) -> Part:
    """Return a script with a part for each agent; an agent without one replies so."""

    def play(seen: Seen) -> Step:
        name = of_whom(seen)
        return parts[name](seen) if name in parts else Say(f"no part for {name!r}")

    return play


def describe(root: Path, name: str, text: str = "") -> Path:
    """Write an agent's file."""
    (root / "agents").mkdir(exist_ok=True)
    path = root / "agents" / f"{name}.toml"
    path.write_text(text or f'purpose = "Is {name}."\n', "utf-8")
    return path


@asynccontextmanager
async def team(
    root: Path, parts: Mapping[str, Part], approver: Approver | None = None, **flags: object
) -> AsyncIterator[Team]:
    """Open a workspace with a file for each part; existing files are kept."""
    for name in parts:
        if not (root / "agents" / f"{name}.toml").exists():
            describe(root, name)
    with running([Repeat(by_name(parts))]) as model:
        async with Workspace.open(
            root, flags=settings(model, **flags), approver=approver
        ) as workspace:
            yield Team(workspace, model)


def settings(model: ScriptedModel, **flags: object) -> dict[str, object]:
    """Return the flags for a workspace that uses the model; `runner__hops=3` sets `runner.hops`."""
    given = {name.replace("__", "."): value for name, value in flags.items()}
    base = {"model.base_url": model.base_url, "model.name": "scripted", "model.stream": False}
    return {**base, "model.context_tokens": 16_384, "memory.embedding": "none", **given}


async def turn(agent: Agent, message: str | None = None) -> list[Event]:
    """Run one turn of an open agent and return its events."""
    return [event async for event in agent.turn(message)]
