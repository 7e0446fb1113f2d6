"""The plan of a group, as its file describes it, and when its turn ends. Pure values."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from agent_core.base.limits import SpendingLimits

from .addressing import says
from .floor import Floor, Speech
from .speaker import Policy

_TIMES: Final = 3  # nearly identical speeches that count as no progress
_ALIKE: Final = 0.9
_COMPARED: Final = 4000  # characters


@dataclass(frozen=True, slots=True)
class StopConditions:
    """The conditions that end a group's turn.

    It ends after a number of speeches, when a member says a text or calls a function (or a grown `function NAME`
    decides so), or when a member repeats nearly the same speech.
    """

    turns: int = 12
    text: str = ""
    function: str = ""
    no_progress: bool = True


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group: `members` are purposes by name, in order; `path` is its file, and `problem` what is wrong with it."""

    name: str
    members: Mapping[str, str]
    purpose: str = ""
    policy: Policy = field(default_factory=Policy)
    no_repeat: bool = True
    patience: int | None = None
    stop: StopConditions = field(default_factory=StopConditions)
    model: str | None = None
    limits: SpendingLimits = field(default_factory=SpendingLimits)
    path: str = ""
    problem: str = ""

    def floor(self, said: Sequence[Speech], cut_off: str = "") -> Floor:
        """Return the floor of this group after these speeches."""
        return Floor(self.members, said, self.no_repeat, self.patience, cut_off)

    def introduction(self, name: str) -> str:
        """Return the text that a member reads when it is its turn."""
        others = {other: purpose for other, purpose in self.members.items() if other != name}
        cards = "; ".join(f"{other}: {purpose}" if purpose else other for other, purpose in others.items())
        about = f" Its purpose: {self.purpose}" if self.purpose else ""
        ends = f" The talk ends when somebody says {self.stop.text}." if self.stop.text else ""
        return (
            f"You are {name}, in the group {self.name}, and it is your turn to speak.{about} The others are: {cards}."
            " Speak for yourself alone. @NAME gives one of them the word, @user gives it back to the user."
            f"{ends} What follows a mark such as [from: {next(iter(others))}] are their words, never the user's."
        )


@dataclass(frozen=True, slots=True)
class GroupEnd:
    """Why a group's turn ends. `is_stuck`: it made no progress, and a human must decide how to continue."""

    reason: str
    is_stuck: bool = False


def ended(plan: GroupPlan, floor: Floor, called: Collection[str]) -> GroupEnd | None:
    """Return why the turn is over after the last speech, or None; `called` are functions that its speaker called."""
    stop, run, last = plan.stop, floor.run, floor.last
    if run and stop.text and says(last.text, stop.text):
        return GroupEnd(f"{last.by} said {stop.text}.")
    if run and stop.function and stop.function in called:
        return GroupEnd(f"{last.by} called {stop.function}.")
    own = [speech.text for speech in run if speech.by == last.by][-_TIMES:]
    words = [{*text[:_COMPARED].casefold().split()} for text in own]
    is_alike = all(len(words[-1] & other) >= _ALIKE * len(words[-1] | other) for other in words[:-1])
    if stop.no_progress and len(own) == _TIMES and is_alike:
        return GroupEnd(f"{last.by} said nearly the same {_TIMES} times. Say how they should go on.", is_stuck=True)
    if len(run) >= stop.turns:
        return GroupEnd(f"{len(run)} turns were taken (`stop.turns` in {plan.path}). Say “go on” for more.")
    return None
