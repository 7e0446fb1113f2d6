"""What follows a step: another one, or the end of the turn."""

from typing import Literal, TypeAlias

from agent_core.base.records import dataclass

Reason: TypeAlias = Literal[
    "replied",
    "interrupted",
    "steps",
    "repeated",
    "failed",
    "limits",
    "parked",
    "client_calls",
    "handed_off",
    "stuck",
    "length",
]


@dataclass(frozen=True, slots=True)
class GoOn:
    """Another step. The model first reads `advice`, if any, and then `heartbeat`, the reason why it is awake."""

    advice: str = ""
    heartbeat: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a turn.

    `warning` and `fix` (what to do about it) are for the user; `advice` is for the model's next turn.
    """

    reason: Reason
    reply: str = ""
    warning: str = ""
    advice: str = ""
    fix: str = ""

    @property
    def why(self) -> str:
        """The warning, followed by the fix."""
        return f"{self.warning} {self.fix}".strip()
