"""The question to the user before a function gets access, and the answer, also as a model reads it."""

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
"""The moments of questions whose approval is for one text only, and is not stored."""
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

# The placeholders for items that a human must name.
_NAMED: Mapping[str, str] = MappingProxyType(
    {"network": "HOST", "read": "FOLDER", "write": "FOLDER", "secrets": "NAME", "memory": "LABEL", "functions": "NAME"}
)


@dataclass(frozen=True, slots=True)
class Question:
    """The grants that a function is missing: `why` is the model's reason, `lines` are the lines of code that need them.

    `granted` is what the previous version had, `diff` the change since then; `is_again` means that nothing new is
    requested, and only the content is new. The `moment` is before a function joins, before a call, while one runs, when
    the user grants manually, before a helper is changed, or before a program runs, for the functions that it calls.
    `caller` is the function that makes the call, if any.

    `installs` lists what an approval installs, `doubts` what is unknown about its effect, one line each. `folder` is
    the folder around a single requested file, to which an approval may be widened. `changed` is the reason why an
    earlier approval is not in force. `asker` is the agent that has the turn, if it works for another one, `whom`. Texts
    are a model's, so they are shown as untrusted. `id` identifies the question if the answer comes from elsewhere.
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
        """The command that grants the request."""
        items = [
            f"{flag} {shlex.quote(value)}"
            for kind, flag in _FLAGS.items()
            for value in (_NAMED.get(kind, UNSAID) if item == UNSAID else item for item in self.missing.items(kind))
            if value != UNSAID
        ]
        return " ".join([f"knapper functions grant {self.function}", *items])

    @property
    def wider(self) -> Grants:
        """The grants of an approval for the folder."""
        return Grants.from_json(dict.fromkeys(self.missing.to_json(), (self.folder,))) if self.folder else self.missing

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the question in its stored form while it is pending."""
        return {**asdict(self), "missing": self.missing.to_json(), "granted": self.granted.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:  # Any: the result of `to_json`
        """Build the question from JSON."""
        lines = tuple((int(number), str(text)) for number, text in data["lines"])
        grants = {name: Grants.from_json(data[name]) for name in ("missing", "granted")}
        texts = {name: tuple(data[name]) for name in ("installs", "doubts")}
        return cls(**{**data, **grants, **texts, "lines": lines})


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer: yes for the next call only, yes permanently, or no; `word` is a message for the model.

    `by` is the origin: human (now), policy (nobody could be asked), earlier (the human's no in the same turn), often
    (several refusals in the turn), never (no human can grant it), unavailable (what it needs is not available), or
    ended (the turn ended before an answer). `is_wide` means that the approval includes the folder around the file.
    """

    answer: Answer
    word: str = ""
    by: By = "human"
    is_wide: bool = False

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the decision in its stored form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:  # Any: JSON
        """Build the decision from JSON; an invalid one is a no."""
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
"""Asks a human a question; without one, nobody is asked and the answer is no."""


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


def denial(question: Question, decision: Decision, *, by_hand: bool = False) -> str:
    """Return the refusal message for a model, or for the human whose own call it is (`by_hand`)."""
    missing = "; ".join(question.missing.sentences())
    new = " in this new version" if question.is_again else ""
    new += f" ({question.changed})" if question.is_again and question.changed else ""
    message = (
        f"`{question.function}` may not{new}: {missing}." if missing else f"`{question.function}` needs the user's yes."
    )
    if by_hand and decision.by == "human":
        again = (
            "Do the same again to be asked again."
            if question.moment == "join"
            else f"Call it again to be asked again. To grant it for good: {question.command}"
        )
        return f"{message} The question was answered with no.\n{again}"
    word = one_line(decision.word, LONGEST_WORD)
    match decision.by:
        case "policy":
            advice = [f"A human grants it with: {question.command}"] if question.missing else []
        case "never" | "unavailable":
            advice = [word]
        case _:
            advice = [f"They say: “{word}”.", _AS_THEY_SAY] if word else [_NO_MORE]
    return "\n".join([f"{message} {_SAID[decision.by]}".rstrip(), *advice])


def says_what_to_do(text: str) -> bool:
    """Check whether a text for the model contains the advice after a refusal."""
    return _NO_MORE in text or _AS_THEY_SAY in text
