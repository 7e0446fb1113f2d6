"""The floor of a group: who its members are, what was said, and who may speak now. Pure values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from sandbox.wire.lines import bare_lines

from ..identity import quoted

USER: Final = "user"
"""Whose the user's words are, and to whom a group hands back; no member has this name."""
_LONGEST_RUN: Final = 30  # speeches within which every member has spoken


@dataclass(frozen=True, slots=True)
class Speech:
    """What somebody said. `to` is whom they handed the matter over to, if they did so by a call.

    `seq` is the number of its entry in the journal.
    """

    by: str
    text: str
    to: str = ""
    seq: int = field(default=0, compare=False)


@dataclass(frozen=True)  # without slots: what is computed once lies in it
class Floor:
    """The state that a choice is made of: `members` are purposes by name, in order, and `said` is oldest first.

    `cut_off` was chosen before, and did not get to speak because the program was stopped.
    """

    members: Mapping[str, str]
    said: Sequence[Speech]
    no_repeat: bool = True
    patience: int | None = None
    cut_off: str = ""

    @property
    def last(self) -> Speech:
        """What was said last."""
        return self.said[-1] if self.said else Speech(USER, "")

    @property
    def reply(self) -> str:
        """What the user gets: what a member said last; nothing if none has spoken since the user."""
        return self.last.text if self.run else ""

    @cached_property
    def allowed(self) -> tuple[str, ...]:
        """The members that may speak now: with `no_repeat`, not the one that has just spoken."""
        return tuple(name for name in self.members if not (self.no_repeat and name == self.last.by))

    @cached_property
    def run(self) -> Sequence[Speech]:
        """What members said since the user's last message."""
        start = max((place for place, speech in enumerate(self.said) if speech.by == USER), default=-1)
        return self.said[start + 1 :]

    @cached_property
    def spoken(self) -> dict[str, int]:
        """The place of each member's last speech; -1 for one that has not spoken yet."""
        places = {speech.by: place for place, speech in enumerate(self.said)}
        return {name: places.get(name, -1) for name in self.members}

    @property
    def least_recent(self) -> str:
        """The member that has been silent longest; of those that never spoke, the first."""
        return min(self.allowed, key=lambda name: self.spoken[name])

    @property
    def starved(self) -> str:
        """The member that has waited too long in this run, whatever the rules say; empty if none has."""
        since = {name: _silence(name, self.run) for name in self.allowed}
        patience = _patience(len(self.members)) if self.patience is None else self.patience
        waited = [name for name in self.allowed if patience and since[name] >= patience]
        return max(waited, key=lambda name: since[name], default="")

    def member(self, name: str) -> str:
        """Return the member of this name as the group spells it; empty if there is none."""
        return next((own for own in self.members if own.casefold() == name.casefold()), "")


def _silence(name: str, run: Sequence[Speech]) -> int:
    last = max((place for place, speech in enumerate(run) if speech.by == name), default=-1)
    return len(run) - 1 - last


def _patience(members: int) -> int:
    """Return how many speeches of others a member waits for: all have spoken within thirty, if they are that few."""
    return max(min(3 * members, _LONGEST_RUN - members), members)


def marked(name: str, text: str) -> str:
    """Return somebody's words as a model reads them: after their name, and with no such mark of their own inside.

    All lines but the first are indented: endpoints join messages, and whoever speaks next begins at the margin.
    """
    body = "\n  ".join(bare_lines(quoted(text)))
    return f"[from: {name}] {body}"


def tail(said: Sequence[Speech], most: int) -> list[str]:
    """Return the newest speeches, marked, that are together no longer than `most`; the newest one is cut if it must."""
    lines: list[str] = []
    room = most
    for speech in reversed(said):
        text = marked(speech.by, speech.text)
        if len(text) > room:
            if not lines and room > 0:
                lines.append(f"{text[: room - 1]}…")
            break
        lines.append(text)
        room -= len(text) + 1
    return lines[::-1]
