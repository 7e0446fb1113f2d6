"""Questions about grants that wait in the approvals after the call that raised them was answered.

A program that calls a function cannot wait for a human. It reads what they must do, and the question stays: a yes
gives the grant, and the next call has it. Nothing is run then.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from agent_core.access.grants import ApprovalQueue, Approvals, Decision, Question
from agent_core.base.errors import KnapperError
from agent_core.functions.service.grant_service import GrantService
from agent_core.registry.snapshot import Snapshot
from agent_core.workspace.workspace import Workspace

_MOST: Final = 20  # that wait at the same time
_HOW: Final = (
    "A human must say yes first: the question waits in the approvals. Or they type: {command} After that, call again."
)


class WaitingQuestions:
    """The questions that wait, each for its function and what that is missing."""

    def __init__(self, grants: GrantService) -> None:
        self._grants = grants
        self._waiting: dict[tuple[str, str, str], asyncio.Task[None]] = {}

    def approvals(self, snapshot: Snapshot) -> Approvals:
        """Return who is asked during a call of a function of this snapshot."""
        return Approvals(ApprovalQueue(partial(self._left, snapshot)))

    async def settle(self, function: str) -> None:
        """End the question before a call of a function that was called now: it was answered another way meanwhile."""
        await _end([task for (name, moment, _), task in self._waiting.items() if (name, moment) == (function, "call")])

    async def aclose(self) -> None:
        """End them all."""
        await _end([*self._waiting.values()])

    async def _left(self, snapshot: Snapshot, question: Question) -> Decision:
        if question.moment not in ("call", "run"):
            return Decision("no", by="policy")
        key = question.function, question.moment, question.command
        if key not in self._waiting and len(self._waiting) < _MOST:
            task = asyncio.create_task(self._answered(snapshot, question))
            self._waiting[key] = task
            task.add_done_callback(lambda _: self._waiting.pop(key, None))
        return Decision("no", _HOW.format(command=question.command), by="unavailable")

    async def _answered(self, snapshot: Snapshot, question: Question) -> None:
        """Ask until somebody answers by the question's id; a yes is kept for the function as it was."""
        granting = self._grants.during(Approvals(self._grants.queue.asking(Workspace.answered_by_id)))
        try:
            if question.moment == "call":
                function = snapshot.functions[question.function]
                await granting.permit(function, snapshot, question.caller)
            else:
                missing, folder = question.missing, question.folder
                await granting.want_path(question.function, snapshot, missing, folder, "", caller=question.caller)
        except KnapperError:
            return  # what it needs cannot be had: the next call says so


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
