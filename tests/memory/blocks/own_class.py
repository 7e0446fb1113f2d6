"""A memory class as a user writes one, with its own blocks and functions."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from agent_core.memory.classes import Block, ChatMemory

__all__ = ["TaskMemory"]

Priority = Literal["low", "high"]


class TaskMemory(ChatMemory):
    """A conversation's memory with a queue of tasks."""

    starts_with: ClassVar[tuple[Block, ...]] = (
        *ChatMemory.starts_with,
        Block(label="tasks", value=[], limit=60),
    )
    without: ClassVar[frozenset[str]] = frozenset({"core_memory_rewrite"})
    most: Annotated[int, Field(description="How many tasks there may be.")] = 3

    @field_validator("most")
    @classmethod
    def few(cls, most: int) -> int:
        """At least one."""
        return max(most, 1)

    @property
    def waiting(self) -> int:
        """How many tasks wait."""
        return len(self.tasks.lines)

    def task_push(self, task: str, priority: Priority = "low") -> str:
        """Put a task into the queue.

        Args:
            task: What is to be done.
            priority: A task of high priority goes first.
        """
        lines = self.tasks.lines
        self.tasks.put([task, *lines] if priority == "high" else [*lines, task])
        return f"{self.waiting} tasks wait."

    async def task_pop(self) -> str | None:
        """Take the first task out of the queue."""
        first, *rest = self.tasks.lines
        self.tasks.put(rest)
        return first

    def core_memory_append(self, name: str, content: str) -> str:
        """Add to a block, loudly.

        Args:
            name: The block.
            content: What to add.
        """
        return super().core_memory_append(name, content.upper())

    def _hidden(self) -> None:
        """Not for a model."""
