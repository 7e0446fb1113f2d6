"""Helpers as functions that the model calls; the answer is the result of a narrow agent's run.

A run has its own transcript, which the answer names. Only the result enters the caller's context.
"""

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_core.base.errors import KnapperError
from agent_core.base.interruption import Interrupted as StopRequested
from agent_core.base.untrusted import one_line
from agent_core.functions.answers import InterruptedCall
from agent_core.storage.agent_store import HELPER_RUN
from sandbox import Failure, Raised, Refused, Returned

from .call_record import CallRecord, Done
from .dispatch import FunctionSource, ModelFunction

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.snapshot import Snapshot

ABOUT_HELPERS: Final = frozenset({"create_helper", "edit_helper", "delete_helper"})
"""The host functions that are offered only if agents may make helpers."""
GIVE: Final = "give_result"
"""The function with which a helper returns its result."""


@dataclass(frozen=True, slots=True)
class HelperRun:
    """The outcome of a run: its result or failure, the agent that has its transcript, and what it spent."""

    agent: str
    steps: int = 0
    tokens: int = 0
    cost: float | None = None
    value: Any = None  # Any: JSON of the result's type
    failure: str = ""

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the link to the transcript and what the run spent, for the record of the caller's call."""
        return {"agent": self.agent, "steps": self.steps, "tokens": self.tokens, "cost": self.cost}


class OfferedHelper(Protocol):
    """A helper that can be called."""

    @property
    def function(self) -> "Function":
        """The name and schema that the caller sees."""


RunHelper = Callable[[Any, dict[str, Any], CallRecord], Awaitable[HelperRun]]
"""Runs a helper for a call, with these arguments. Raises a KnapperError if it may not run."""


class HelperSet(Protocol):
    """The helpers that an agent may call."""

    def offered(self, snapshot: "Snapshot") -> Mapping[str, OfferedHelper]:
        """Return the helpers by name. The same object is returned until something changes."""

    def refusal(self, name: str) -> str:
        """Return why the helper with this name cannot be called; empty if there is none."""


class MakesHelpers(Protocol):
    """Actions on helpers for a model, which reads the returned texts. A rejection raises a UsageError."""

    async def create(self, name: str, table: Mapping[str, Any], reason: str) -> str:  # Any: JSON
        """Propose a new helper."""

    async def edit(self, name: str, old_text: str, new_text: str, reason: str) -> str:
        """Propose to replace one passage of a helper's file."""

    async def delete(self, name: str, reason: str) -> str:
        """Propose to delete a helper."""


@dataclass(frozen=True, slots=True)
class HelperFunctions(FunctionSource):
    """The helpers of one agent as a function source."""

    helpers: HelperSet
    run: RunHelper

    def names(self, snapshot: "Snapshot") -> Iterable[str]:
        """Return the names of the helpers that can be called."""
        return self.helpers.offered(snapshot)

    def find(self, name: str, snapshot: "Snapshot") -> ModelFunction | None:
        """Return the helper with this name, in one version of its file."""
        helper = self.helpers.offered(snapshot).get(name)
        return ModelFunction(helper.function, partial(self._call, helper), helper.function.version) if helper else None

    async def refusal(self, name: str, snapshot: "Snapshot") -> str:
        """Return why a known helper cannot be called."""
        return self.helpers.refusal(name)

    async def _call(self, helper: OfferedHelper, arguments: dict[str, Any], record: CallRecord) -> Done:  # Any: JSON
        """Run a helper, and close the record with its result only."""
        turn, function = record.turn, helper.function
        await record.begin(function.version)
        run = HelperRun(run_name(function.name, turn.id, record.call.id))
        try:
            async with turn.ending.interruption:
                run = await self.run(helper, arguments, record)
        except StopRequested:
            return await record.close(InterruptedCall(), about={"helper": run.to_json()})
        except KnapperError as error:
            return await record.close(Refused(str(error)))
        if not run.failure:
            returned = Returned(run.value, "", "", record.seconds())
            return await record.close(returned, about={"helper": run.to_json()})
        spent = f"{run.steps} step{'' if run.steps == 1 else 's'} and {run.tokens:,} tokens"
        text = (
            f"`{function.name}` gave no result: {one_line(run.failure, 800)} It spent {spent}."
            " Do not call it again with the same arguments: do it yourself, ask for less, or tell the user."
        )
        raised = Raised(Failure("HelperFailed", run.failure), "", record.seconds())
        return await record.close(raised, text, about={"helper": run.to_json()})


def run_name(helper: str, turn: str, call: str) -> str:
    """Return the name of the agent that runs a helper for a call; it stays the same after a crash."""
    digest = hashlib.sha256(f"{turn}:{call}".encode()).hexdigest()
    return f"{HELPER_RUN}{helper[:40]}-{digest[:12]}"
