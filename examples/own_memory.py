"""An agent with a custom memory class: its blocks, and a method that becomes a function for the model.

`python examples/own_memory.py WORKSPACE "Remind me to buy milk."`
"""

import asyncio
import sys

from agent_core import Block, ChatMemory, Workspace, events


class TaskMemory(ChatMemory):
    """A conversation with a to-do list."""

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
    """Run one turn and print the list after it."""
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
