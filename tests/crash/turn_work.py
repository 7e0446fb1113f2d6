"""A process that takes turns until it is killed: it prints a line for each thing that it was shown.

`python -m tests.crash.turn_work FOLDER BASE_URL`
"""

import asyncio
import sys
from pathlib import Path

from agent_core.base.events import CallAnswered, TurnEnded, TurnStarted
from agent_core.workspace.workspace import Workspace


async def main(root: Path, base_url: str) -> None:
    flags = {"model.base_url": base_url, "model.name": "scripted", "model.stream": False}
    async with Workspace.open(root, flags=flags) as workspace:
        agent = await workspace.agent()
        print("ready", flush=True)
        number = len([entry for entry in await agent.history() if type(entry).__name__ == "User"])
        while True:
            async for event in agent.turn(f"message {number}"):
                match event:
                    case TurnStarted():
                        print("said", event.message, flush=True)
                    case CallAnswered():
                        print("answered", event.call_id, event.outcome, flush=True)
                    case TurnEnded():
                        print("replied", event.reply, flush=True)
            number += 1


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
