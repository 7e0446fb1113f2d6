"""The floor of a group: its members, what was said, and who may speak now. Pure values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from sandbox.wire.lines import bare_lines

from ..entries import quoted

USER: Final = "user"
"""The name for the user, as a speaker and as the one to whom a group hands back; no member has this name."""
_LONGEST_RUN: Final = 30  # number of speeches within which every member gets to speak


@dataclass(frozen=True, slots=True)
class Speech:
    """One speech. `to` is the member or user to whom the speaker handed over by a call.

    `seq` is the number of its entry in the journal.
    """

    by: str
    text: str
    to: str = ""
    seq: int = field(default=0, compare=False)


@dataclass(frozen=True)  # no slots: cached properties are stored in `__dict__`
class Floor:
    """The state on which a choice is based. `members` are purposes by name, in order, and `said` is oldest first.

    `cut_off` was chosen, but did not speak because the program was stopped.
    """

    members: Mapping[str, str]
    said: Sequence[Speech]
    no_repeat: bool = True
    patience: int | None = None
    cut_off: str = ""

    @property
    def last(self) -> Speech:
        """The last speech."""
        return self.said[-1] if self.said else Speech(USER, "")

    @property
    def reply(self) -> str:
        """The reply to the user: the last speech of a member, or an empty text if none has spoken since the user."""
        return self.last.text if self.run else ""

    @cached_property
    def allowed(self) -> tuple[str, ...]:
        """The members that may speak now; with `no_repeat`, all but the last speaker."""
        return tuple(name for name in self.members if not (self.no_repeat and name == self.last.by))

    @cached_property
    def run(self) -> Sequence[Speech]:
        """The speeches of members since the user's last message."""
        start = max((place for place, speech in enumerate(self.said) if speech.by == USER), default=-1)
        return self.said[start + 1 :]

    @cached_property
    def spoken(self) -> dict[str, int]:
        """The index of each member's last speech; -1 if it has not spoken yet."""
        places = {speech.by: place for place, speech in enumerate(self.said)}
        return {name: places.get(name, -1) for name in self.members}

    @property
    def least_recent(self) -> str:
        """The member that has been silent the longest; among those that never spoke, the first."""
        return min(self.allowed, key=lambda name: self.spoken[name])

    @property
    def starved(self) -> str:
        """The member that has waited too long in this run, which overrides the rules; empty if none has."""
        places = {speech.by: place for place, speech in enumerate(self.run)}
        since = {name: len(self.run) - 1 - places.get(name, -1) for name in self.allowed}
        members = len(self.members)
        usual = max(min(3 * members, _LONGEST_RUN - members), members)  # in a small group, all speak within thirty
        patience = usual if self.patience is None else self.patience
        waited = [name for name in self.allowed if patience and since[name] >= patience]
        return max(waited, key=lambda name: since[name], default="")

    def member(self, name: str) -> str:
        """Return the spelling of a member's name in this group, or an empty text if there is no such member."""
        return next((own for own in self.members if own.casefold() == name.casefold()), "")


def marked(name: str, text: str) -> str:
    """Return a speaker's words with their name as a mark; marks inside of the words are escaped.

    All lines but the first are indented, because endpoints join messages: only the start of a speech is at the margin.
    """
    body = "\n  ".join(bare_lines(quoted(text)))
    return f"[from: {name}] {body}"


def tail(said: Sequence[Speech], most: int) -> list[str]:
    """Return the newest speeches, marked, up to `most` characters in total; if necessary, the newest one is cut."""
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
