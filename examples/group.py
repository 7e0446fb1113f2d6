"""Two agents and you as a group: each speaks in its own name; the next speaker is printed with the reason.

python examples/group.py FOLDER "Find a name for a bakery."
"""

import asyncio
import shutil
import sys
from pathlib import Path

from agent_core import Workspace, events

TEAM = Path(__file__).parent / "team"


async def main(folder: Path, message: str) -> None:
    """Let the group talk, in a copy of the example's workspace."""
    if not (folder / "groups").exists():
        shutil.copytree(TEAM, folder, dirs_exist_ok=True)
    async with Workspace.open(folder) as workspace:
        group = await workspace.agent("review")
        async for event in group.turn(message):
            match event:
                case events.SpeakerChosen():
                    print(f"\n[{event.agent}: {event.reason}]")
                case events.Text():
                    print(event.text, end="", flush=True)
                case events.Warned():
                    print(f"\n! {event.message}")
                case events.TurnEnded():
                    print(f"\n({event.reason} after {event.steps} turns)")


if __name__ == "__main__":
    asyncio.run(
        main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "Find a name for a bakery.")
    )
