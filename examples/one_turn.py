"""One turn as a library: ask, and print what happens. Needs a model: see `knapper doctor`.

python examples/one_turn.py "How many vowels are in 'queueing'?"
"""

import asyncio
import sys

from agent_core import Workspace, events


async def main(question: str) -> None:
    """Open a workspace in the current folder and ask its agent."""
    async with Workspace.open(".") as workspace:
        agent = await workspace.agent()
        async for event in agent.turn(question):
            match event:
                case events.Text():
                    print(event.text, end="", flush=True)
                case events.CallAnswered():
                    print(f"[{event.name}: {event.outcome} in {event.seconds * 1000:.0f} ms]")
                case events.Warned():
                    print(f"! {event.message}")
                case events.TurnEnded():
                    print(
                        f"\n({event.reason} after {event.steps} steps; made: {event.made or 'nothing'})"
                    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "How many vowels are in 'queueing'?"))
