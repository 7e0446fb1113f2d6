"""A group in a workspace, and a model that plays its members: it answers each request in the role that was asked."""

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.runtime.agent import Agent
from agent_core.workspace.workspace import Workspace
from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Step, Wanted

MEMBERS = ("planner", "coder", "critic")
_YOU = re.compile(r"You are (\w+), in the group")


class Cast:
    """The members of a group and the model that chooses among them, as one script; `heard` records who was asked."""

    def __init__(
        self,
        says: Callable[[str, int], str | Step],
        chooses: Callable[[int, Seen], str | Step] = lambda *_: "nobody",
    ) -> None:
        self.says = says
        self.chooses = chooses
        self.spoken: list[str] = []
        self.choices: list[Seen] = []
        self.heard: list[tuple[str, Seen]] = []

    def __call__(self, seen: Seen) -> Step:
        """Answer a request."""
        if "choose" in seen.functions and len(seen.functions) == 1:
            self.choices.append(seen)
            return _step(self.chooses(len(self.choices), seen))
        name = _YOU.findall(seen.text)[-1]
        self.heard.append((name, seen))
        said = _step(self.says(name, len(self.spoken)))
        if isinstance(said, Say):
            self.spoken.append(name)
        return said


def chosen(name: str) -> Ask:
    """Return a choice by the function that the model is offered."""
    return Ask(Wanted("choose", {"name": name}))


def playing(cast: Cast) -> list[Repeat]:
    """Return the script of a cast."""
    return [Repeat(cast)]


def group_file(
    root: Path, text: str = "", members: Sequence[str] = MEMBERS, name: str = "team"
) -> Path:
    """Write the file of a group, and the files of its members."""
    for folder in ("agents", "groups"):
        (root / folder).mkdir(exist_ok=True)
    for member in members:
        (root / "agents" / f"{member}.toml").write_text(f'purpose = "The {member} of the team."\n')
    path = root / "groups" / f"{name}.toml"
    path.write_text(f"members = {json.dumps([*members])}\n{text}")
    return path


@asynccontextmanager
async def team(root: Path, model: ScriptedModel, text: str = "") -> AsyncIterator[Agent]:
    """Open a workspace and its group."""
    if text or not (root / "groups" / "team.toml").exists():
        group_file(root, text)
    async with Workspace.open(root, environment=model.environment) as workspace:
        yield await workspace.agent("team")


async def talk(group: Agent, message: str | None) -> list[Event]:
    """Run one whole turn of a group and return its events."""
    return [event async for event in group.turn(message)]


def speakers(heard: Sequence[Event]) -> list[str]:
    """Return the chosen speakers, in order."""
    return [event.agent for event in heard if isinstance(event, events.SpeakerChosen)]


def _step(said: str | Step) -> Step:
    return Say(said) if isinstance(said, str) else said
