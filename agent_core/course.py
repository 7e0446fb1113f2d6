"""How a turn goes on: when it is over, when the model gets advice first, and when enough is enough.

Pure: takes what happened, gives what follows. The loop carries it out.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from .dispatch import Done
from .model.reply import Reply

Reason = Literal["replied", "interrupted", "steps", "repeated", "failed"]

MAX_SAME_FAILURES = 3
MAX_SAME_ANSWERS = 5


@dataclass(frozen=True, slots=True)
class GoOn:
    """Another step; `advice`, if any, is told to the model first."""

    advice: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn is over; `warning` is for the human, `advice` for the model's next turn."""

    reason: Reason
    reply: str = ""
    warning: str = ""
    advice: str = ""


@dataclass(slots=True)
class Course:
    """What one turn has been through: the advice that was given, and how often the same thing came again."""

    excluded: frozenset[str] = frozenset()
    _advised: set[str] = field(default_factory=set)
    _runs: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def after_reply(self, reply: Reply, refused: Sequence[str], *, more_waits: bool) -> GoOn | Ended:
        """After a reply without a call. `refused` names candidates of this turn that stand refused."""
        objection = _objection(reply, refused)
        if objection is not None and objection[0] not in self._advised:
            self._advised.add(objection[0])
            return GoOn(objection[1])
        if more_waits:
            return GoOn()
        if not reply.text.strip():
            return Ended("failed", warning="The model answered nothing, twice. /retry asks again.")
        return Ended("replied", reply.text)

    def after_calls(self, done: Sequence[Done]) -> GoOn | Ended:
        """After the calls of a step: the same call with the same outcome, step after step: advice, then the end."""
        self.excluded = frozenset().union(*(each.excluded for each in done))
        self._runs = {key: self._runs.get(key, 0) + 1 for key in map(_sameness, done)}
        if not self._runs:
            return GoOn()
        (name, _, answer), times = max(self._runs.items(), key=lambda run: (run[1], not run[0][2]))
        how = "gave the same answer" if answer else "failed"
        what = f"`{name}` {how} {times} times in a row with the same arguments"
        if times >= (MAX_SAME_ANSWERS if answer else MAX_SAME_FAILURES):
            advice = f"{what}. Do something else, or tell the user what is in the way."
            return Ended("repeated", warning=f"The turn was ended: {what}.", advice=advice)
        if times == MAX_SAME_FAILURES:
            return GoOn(f"{what}. Reply to the user now.")
        return GoOn()


def _objection(reply: Reply, refused: Sequence[str]) -> tuple[str, str] | None:
    """Why a reply without a call should not end the turn yet: a name for it, and what to tell the model."""
    if reply.finish == "length":
        return "length", "Your reply was cut off at its length limit. Go on in smaller pieces, or say it shorter."
    if not reply.text.strip():
        return "empty", "Your reply was empty. Answer the user, or call a function."
    if refused:
        names = ", ".join(f"`{name}`" for name in refused)
        said = f"Nothing was made or changed: {names} stands refused. "
        return "refused", said + "Mend it with edit_function or create_function, or tell the user that it was not done."
    return None


def _sameness(done: Done) -> tuple[str, str, str]:
    try:
        arguments = json.dumps(json.loads(done.call.arguments), sort_keys=True)
    except ValueError:
        arguments = done.call.arguments
    return done.call.name, arguments, "" if done.failed else done.text
