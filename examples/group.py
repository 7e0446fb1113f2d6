"""Two agents and you, as a group: each speaks in its own name, and who speaks next is said with the reason.

python examples/group.py "Find a name for a bakery."
"""

import asyncio
import sys
from pathlib import Path

from agent_core import Workspace, events

FILES = {
    "agents/writer.toml": 'purpose = "Has ideas, and writes them down."\n',
    "agents/critic.toml": 'purpose = "Says what is wrong with an idea, and AGREED when nothing is."\n',
    "groups/review.toml": """\
purpose = "Agree on an idea."
members = ["writer", "critic"]
rules = ["addressed", "asked", "handoff"]
choose = "least_recent"
stop = { turns = 6, text = "AGREED" }
limits = { tokens = 50000 }
""",
}


def write_files() -> None:
    """Write the files that are missing in the current folder."""
    for name, text in FILES.items():
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(text)


async def main(message: str) -> None:
    """Let the group talk."""
    async with Workspace.open(".") as workspace:
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
    write_files()
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "Find a name for a bakery."))
