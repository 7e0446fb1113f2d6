"""An agent with a memory class of one's own: its blocks, and a method that becomes a function of the model.

`python examples/own_memory.py WORKSPACE "Remind me to buy milk."`
"""

import asyncio
import sys

from agent_core import Block, ChatMemory, Workspace, events


class TaskMemory(ChatMemory):
    """A conversation with a list of what is to be done."""

    starts_with = (
        *ChatMemory.starts_with,
        Block(label="tasks", value=[], description="What is to be done, a line each."),
    )

    def finish_task(self, task: str) -> str:
        """Take a task off the list.

        Args:
            task: The task, as it stands there.
        """
        self.core_memory_remove("tasks", task)
        return f"Done: {task}"


async def main(root: str, message: str) -> None:
    """One turn, and what is on the list after it."""
    async with Workspace.open(root) as workspace:
        agent = await workspace.agent("tasks", memory=TaskMemory(human="Likes short answers."))
        async for event in agent.turn(message):
            if isinstance(event, events.Text):
                print(event.text, end="", flush=True)
        print("\nTo do:", *agent.memory.blocks.memory["tasks"].lines, sep="\n- ")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit('Type: python examples/own_memory.py WORKSPACE "A message"')
    asyncio.run(main(*sys.argv[1:]))
