"""The floor of a group: its members, what was said, who is addressed by it, and who may speak now. Pure values."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final

from agent_core.base.records import dataclass, field
from sandbox.wire.lines import bare_lines

from ..taken_up import quoted

USER: Final = "user"
"""The name for the user, as a speaker and as the one to whom a group hands back; no member has this name."""
_LONGEST_RUN: Final = 30  # number of speeches within which every member gets to speak
_READ_CHARS: Final = 20_000  # of each end of a speech


@dataclass(frozen=True, slots=True)
class SpeechNames:
    """The names that a speech addresses, and those that appear in its questions, in order."""

    addressed: Sequence[str]
    asked: Sequence[str]


@dataclass(frozen=True)  # no slots: cached properties are stored in `__dict__`
class Speech:
    """One speech. `to` is the member or user to whom the speaker handed over by a call.

    `seq` is the number of its entry in the journal. The rules read the beginning and the end of a long speech, once.
    """

    by: str
    text: str
    to: str = ""
    seq: int = field(default=0, compare=False)
    _names: dict[tuple[str, ...], SpeechNames] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @cached_property
    def audible(self) -> str:
        """The text without code and quotations."""
        text = self.text
        if len(text) > 2 * _READ_CHARS:
            text = f"{text[:_READ_CHARS]}\n{text[-_READ_CHARS:]}"
        return _SILENT.sub(lambda match: " " * len(match[0]), text)

    @property
    def asks(self) -> bool:
        """True if the speech contains a question."""
        return any(mark in self.audible for mark in _QUESTION_MARKS)

    def names(self, members: Collection[str]) -> SpeechNames:
        """Return the members that the speech names."""
        key = tuple(members)
        if key not in self._names:
            self._names[key] = SpeechNames(_addressed(self.audible, key), _asked(self.audible, key))
        return self._names[key]

    def says(self, words: str) -> bool:
        """Check whether the speech contains these words as whole words and outside of code and quotations."""
        return bool(re.search(rf"(?<!\w){re.escape(words)}(?!\w)", self.audible))


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
        start = max(
            (place for place, speech in enumerate(self.said) if speech.by == USER), default=-1
        )
        return self.said[start + 1 :]

    @property
    def open_speeches(self) -> Sequence[Speech]:
        """The speeches whose words may choose who speaks now: the user's last message and the run after it."""
        return self.said[max(len(self.said) - len(self.run) - 1, 0) :]

    @property
    def size(self) -> int:
        """The number of characters that the rules read."""
        return sum(min(len(speech.text), 2 * _READ_CHARS) for speech in self.open_speeches)

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
        usual = max(
            min(3 * members, _LONGEST_RUN - members), members
        )  # in a small group, all speak within thirty
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
        text = marked(speech.by, speech.text[: room + 1])  # no longer one fits
        if len(text) > room:
            if not lines and room > 0:
                lines.append(f"{text[: room - 1]}…")
            break
        lines.append(text)
        room -= len(text) + 1
    return lines[::-1]


# Who is addressed and who is asked in a text. Names in code, quotations and mail addresses do not count.

_SILENT: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>[^\n]*$|\"[^\"\n]{0,500}\"|“[^“”\n]{0,500}”",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE: Final = re.compile(r"[^.!?？\n]*+[.!?？\n]?")
_QUESTION_MARKS: Final = ("?", "？")


def _addressed(audible: str, names: tuple[str, ...]) -> list[str]:
    """Return the names that a text addresses, in order of appearance: with @, or in direct address."""
    forms = _forms(names)
    places = [(match.start(1), match[1]) for match in forms["at"].finditer(audible)]
    for match in forms["call"].finditer(audible):
        start = match.start("names")
        places += [
            (start + name.start(), name[1]) for name in forms["name"].finditer(match["names"])
        ]
    places += [(match.start(1), match[1]) for match in forms["end"].finditer(audible)]
    return _unique([name for _, name in sorted(places)], names)


def _asked(audible: str, names: tuple[str, ...]) -> list[str]:
    """Return the names that appear in a question of a text, in order."""
    forms = _forms(names)
    questions = [
        sentence for sentence in _SENTENCE.findall(audible) if sentence.endswith(_QUESTION_MARKS)
    ]
    return _unique(
        [match[1] for question in questions for match in forms["name"].finditer(question)], names
    )


@lru_cache(maxsize=64)
def _forms(names: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    known = "|".join(re.escape(name) for name in sorted({*names, USER}, key=len, reverse=True))
    members = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or r"(?!)"
    name = rf"(?<![\w@./+-])(?:{members})(?![\w-]|\.\w|@)"
    several = rf"{name}(?:(?:,[ \t]*|,?[ \t]+[^\W\d_]{{1,3}}[ \t]+|[ \t]+&[ \t]+){name})*"
    # A short interjection may precede the name, in any language: "So, Critic: …".
    begins = r"(?:^|(?<=[.!?;:\n(—–])|(?<=[.!?;:)—–][ \t]))[ \t]*(?:[^\W\d_]{1,6}[,!][ \t]+)?"
    forms = {
        "at": rf"(?<![\w@./+-])@({known})(?![\w-]|\.\w|@)",
        "call": rf"{begins}(?P<names>{several})[ \t]*[,:!—–]",
        "end": rf",[ \t]+({name})(?=[ \t]*(?:[.!?…]|$))",
        "name": rf"({name})",
    }
    return {key: re.compile(form, re.IGNORECASE | re.MULTILINE) for key, form in forms.items()}


def _unique(found: Sequence[str], names: Collection[str]) -> list[str]:
    """Return the names in their original spelling, without duplicates."""
    spelled = {name.casefold(): name for name in (*names, USER)}
    return list(dict.fromkeys(spelled[name.casefold()] for name in found))
