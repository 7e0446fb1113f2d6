"""A helper as a function: the agent calls `team/helpers/vowel_finder.toml`. Needs a model.

python examples/helpers.py FOLDER "Which words of 'queueing in the sky' have many vowels?"
"""

import asyncio
import shutil
import sys
from pathlib import Path

from agent_core import Workspace, events

HELPERS = Path(__file__).parent / "team" / "helpers"


async def main(folder: Path, question: str) -> None:
    """Open a workspace with a helper and print what a turn spends in it."""
    Workspace.create(folder)
    shutil.copytree(HELPERS, folder / "helpers", dirs_exist_ok=True)
    async with Workspace.open(folder) as workspace:
        agent = await workspace.agent()
        for name, helper in workspace.helpers.helpers.items():
            print(f"{name} -> {helper.answer.returns}: {helper.purpose}")
        async for event in agent.turn(question):
            match event:
                case events.CallAnswered():
                    run = event.detail.get("helper") or {"steps": 0, "agent": "nobody"}
                    print(
                        f"[{event.name}: {event.outcome}, {run['steps']} steps of {run['agent']}]"
                    )
                case events.TurnEnded():
                    print(f"\n{event.reply} ({event.reason} after {event.steps} steps)")


if __name__ == "__main__":
    given = [
        *sys.argv[1:],
        *(".", "Which words of 'queueing in the sky' have many vowels?")[len(sys.argv) - 1 :],
    ]
    asyncio.run(main(Path(given[0]), given[1]))
