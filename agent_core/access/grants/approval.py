"""The question that the user is asked before a function gets what it needs, and the answer, as a model reads it too."""

import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeAlias, get_args
from uuid import uuid4

from agent_core.base.untrusted import one_line

from .items import UNSAID
from .value import NOTHING, Grants

Answer: TypeAlias = Literal["once", "yes", "no"]
Moment: TypeAlias = Literal["join", "call", "run", "grant", "helper", "program"]
BOUND: Final = ("helper", "program")
"""The moments of questions whose yes is for this one text, and kept nowhere."""
By: TypeAlias = Literal["human", "policy", "earlier", "often", "never", "unavailable", "ended"]

_FLAGS: Mapping[str, str] = MappingProxyType(
    {
        "network": "--network",
        "read": "--read",
        "write": "--write",
        "secrets": "--secret",
        "packages": "--package",
        "memory": "--block",
        "functions": "--call",
    }
)

# Which one, a human has to say.
_NAMED: Mapping[str, str] = MappingProxyType(
    {"network": "HOST", "read": "FOLDER", "write": "FOLDER", "secrets": "NAME", "memory": "LABEL", "functions": "NAME"}
)


@dataclass(frozen=True, slots=True)
class Question:
    """The grants that a function is missing: `why` is the model's reason, `lines` are the lines of code that need them.

    `granted` is what the version before had, `diff` what became different since; `is_again` says that nothing new is
    asked for, and only the content is new. It comes up before a function joins, before a call, while one runs, when
    the user grants manually, before a helper is changed, or before a program runs, for the functions that it calls;
    `caller` is the function that calls it, if one does.
    `installs` says what a yes installs, `doubts` what is not known of what it gives, a line each. `folder` is what a
    yes may be widened to: the folder around the one file that is asked for. `changed` says why an earlier yes is not
    in force. `asker` is the agent whose turn it is, where it works for another one, `whom`. Texts are a model's: they
    are shown as untrusted. `id` names the question where an answer comes from elsewhere.
    """

    function: str
    missing: Grants = NOTHING
    granted: Grants = NOTHING
    why: str = ""
    lines: tuple[tuple[int, str], ...] = ()
    diff: str = ""
    version: str = ""
    is_again: bool = False
    moment: Moment = "call"
    installs: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    caller: str = ""
    folder: str = ""
    changed: str = ""
    asker: str = field(default="", compare=False)
    whom: str = field(default="", compare=False)
    id: str = field(default_factory=lambda: uuid4().hex, compare=False)

    @property
    def command(self) -> str:
        """The command that grants what is asked for."""
        items = [
            f"{flag} {shlex.quote(value)}"
            for kind, flag in _FLAGS.items()
            for value in (_NAMED.get(kind, UNSAID) if item == UNSAID else item for item in self.missing.items(kind))
            if value != UNSAID
        ]
        return " ".join([f"knapper functions grant {self.function}", *items])

    @property
    def wider(self) -> Grants:
        """The grants that a yes for the folder gives."""
        return Grants.from_json(dict.fromkeys(self.missing.to_json(), (self.folder,))) if self.folder else self.missing

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the question as it is stored while it is pending."""
        return {**asdict(self), "missing": self.missing.to_json(), "granted": self.granted.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:  # Any: what `to_json` gave
        """Build the question from JSON."""
        lines = tuple((int(number), str(text)) for number, text in data["lines"])
        grants = {name: Grants.from_json(data[name]) for name in ("missing", "granted")}
        texts = {name: tuple(data[name]) for name in ("installs", "doubts")}
        return cls(**{**data, **grants, **texts, "lines": lines})


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer: yes for the next call only, yes for good, or no; `word` is a message for the model.

    `by` says who gave it: a human now; nobody, for none could be asked; the human's no earlier in the same turn, or
    their several noes in it; nobody ever, for no human can grant it; nobody, for what it needs is not available; or
    nobody, for the turn ended before. `is_wide`: the yes is for the folder around the file, too.
    """

    answer: Answer
    word: str = ""
    by: By = "human"
    is_wide: bool = False

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the decision as it is stored with its question."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:  # Any: JSON
        """Build the decision from JSON; anything else is a no."""
        if data["answer"] not in get_args(Answer) or data["by"] not in get_args(By):
            return cls("no", by="unavailable")
        return cls(**data)


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question that waits for an answer, by its `id`; `asked_at` is in seconds since the epoch."""

    question: Question
    agent: str
    turn: str
    asked_at: float

    @property
    def id(self) -> str:
        """The id by which it is answered."""
        return self.question.id


Approver: TypeAlias = Callable[[Question], Awaitable[Decision]]
"""Puts a question to a human; where there is none, nobody is asked and the answer is no."""


LONGEST_WORD = 400
_SAID: Mapping[By, str] = MappingProxyType(
    {
        "human": "The user was asked and said no.",
        "earlier": "The user has said no to this in this turn, and was not asked again.",
        "often": "The user has said no several times in this turn, and is not asked again before the next one.",
        "policy": "Nobody can be asked here.",
        "never": "",
        "unavailable": "",
        "ended": "The turn ended before the user answered.",
    }
)
_NO_MORE = (
    "Do not try the same again in this turn: nobody would be asked. Do it in a way that needs less, or tell the user"
    " what you need it for."
)
_AS_THEY_SAY = "Change it as they say before you try again: for the same code they are not asked again in this turn."
_ANSWERED_NO = "The question was answered with no."
_CALL_AGAIN = "Call it again to be asked again. To grant it for good: {}"
_AGAIN: Mapping[Moment, str] = MappingProxyType({"join": "Do the same again to be asked again."})


def denial(question: Question, decision: Decision, *, by_hand: bool = False) -> str:
    """Return the refusal message for a question, for a model, or for the human whose own call `by_hand` it is."""
    lacks = "; ".join(question.missing.sentences())
    new = " in this new version" if question.is_again else ""
    new += f" ({question.changed})" if question.is_again and question.changed else ""
    message = (
        f"`{question.function}` may not{new}: {lacks}." if lacks else f"`{question.function}` needs the user's yes."
    )
    if by_hand and decision.by == "human":
        return f"{message} {_ANSWERED_NO}\n{_AGAIN.get(question.moment, _CALL_AGAIN.format(question.command))}"
    return "\n".join([f"{message} {_SAID[decision.by]}".rstrip(), *_next(question, decision)])


def says_what_to_do(text: str) -> bool:
    """Check whether a text for the model has what to do after a no."""
    return _NO_MORE in text or _AS_THEY_SAY in text


def _next(question: Question, decision: Decision) -> list[str]:
    word = one_line(decision.word, LONGEST_WORD)
    match decision.by:
        case "policy":
            return [f"A human grants it with: {question.command}"] if question.missing else []
        case "never" | "unavailable":
            return [word]
        case _:
            return [f"They say: “{word}”.", _AS_THEY_SAY] if word else [_NO_MORE]
