"""A process that edits memory through a small window until it is killed; it reports each answered edit."""

import asyncio
import re
from multiprocessing.connection import Connection
from pathlib import Path

from agent_core.base.events import CallAnswered
from agent_core.workspace.workspace import Workspace
from tests.kit import Ask, Say, Seen, Step, Wanted

WINDOW = 14_000
FILLER = "Clouds came and went over the bay, and the wind was fresh. " * 60


def remembering(seen: Seen) -> Step:
    """Answer each message with one block edit and one passage, then with talk that fills the window."""
    since = [str(each["content"]) for each in seen.messages[_last_reply(seen) + 1 :]]
    asked = next((found for text in since if (found := re.fullmatch(r"message (\d+)", text))), None)
    if asked is None:
        return Say(FILLER)
    number = int(asked[1])
    edit = (
        ("core_memory_rewrite", f"Turn {number}")
        if number % 2
        else ("core_memory_append", f"Also {number:x}-{number}")
    )
    return Ask(
        Wanted(edit[0], {"name": "human", "content": edit[1]}),
        Wanted("archival_memory_insert", {"content": f"Passage {number} tells of day {number}."}),
    )


def _last_reply(seen: Seen) -> int:
    return max(
        (place for place, each in enumerate(seen.messages) if each["role"] == "assistant"),
        default=-1,
    )


def remember(argument: str, reports: Connection) -> None:
    """Run turn after turn; the argument is the folder, the model's address and the number of the first turn."""
    root, url, number = argument.split("|")
    asyncio.run(_remember(Path(root), url, int(number), reports))


async def _remember(root: Path, url: str, number: int, reports: Connection) -> None:
    flags = {
        "model.base_url": url,
        "model.name": "scripted",
        "model.stream": False,
        "model.mode": "native",
    }
    async with Workspace.open(root, flags={**flags, "model.context_tokens": WINDOW}) as workspace:
        agent = await workspace.agent()
        reports.send("ready")
        while True:
            async for event in agent.turn(f"message {number}"):
                if isinstance(event, CallAnswered):
                    reports.send(f"{event.name} {number} {event.outcome}")
            number += 1
