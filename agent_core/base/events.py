"""The events of a turn: frozen dataclasses that every interface consumes.

The REPL, the one-shot command and the tests read the same events and reach past them to
nothing. Their published shape is one object a line, `type` first.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from .errors import TurnError
from .json_form import IF_SET, fields_to_json
from .receipt import Made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    type: ClassVar[str]
    turn: str = ""
    step: int = 0
    agent: str = ""

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published shape of an event; `agent` is whose it is, if not of the one that is talked to."""
        fields = fields_to_json(self)
        if not self.agent:
            fields.pop("agent", None)
        return {"type": self.type, **fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(_Base):
    """A message, or another `event` (heartbeat, login, system), was picked up; it is on disk.

    `trace` is the `traceparent` that it came with.
    """

    type: ClassVar[str] = "turn_started"
    agent: str
    message: str
    event: str = "message"
    trace: str = field(default="", metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAdded(_Base):
    """A message waits for a turn, under its `message_id`, or the running `turn` has taken it up; then it is on disk."""

    type: ClassVar[str] = "message"
    message: str
    message_id: str = field(default="", metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsRemoved(_Base):
    """Turns left the conversation: who shows it reads it again. A server tells this, of what is done there."""

    type: ClassVar[str] = "turns_removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerChosen(_Base):
    """The member of a group that speaks next (`user`: the group hands back), by which rule, and why; it is on disk."""

    type: ClassVar[str] = "speaker"
    rule: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(_Base):
    """A piece of the reply's text, as it streams."""

    type: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought(_Base):
    """A piece of the model's reasoning that the user may see."""

    type: ClassVar[str] = "thought"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(_Base):
    """The model's server is still reading the prompt: tokens read of `total`; `done` is missing if it does not tell."""

    type: ClassVar[str] = "reading"
    total: int
    done: int | None = None
    left_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing(_Base):
    """The model writes a call: the next piece of its arguments, as JSON text; `place` is the call's in the reply.

    It is provisional: the event `call` has them whole, if there is to be a call.
    """

    type: ClassVar[str] = "writing"
    place: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted(_Base):
    """A call is about to run; it is on disk. `arguments` is the model's own JSON text."""

    type: ClassVar[str] = "call"
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(_Base):
    """A running function reports its progress."""

    type: ClassVar[str] = "progress"
    call_id: str
    name: str
    done: float
    total: float | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed(_Base):
    """A piece of a running function's output, secrets masked; the answer has all of it again."""

    type: ClassVar[str] = "printed"
    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantAsked(_Base):
    """The user is asked before a function gets a grant; the turn waits. `question` names it for the answer.

    `moment` is join, call or run, and `caller` the function that calls it, if one does; `says` has a sentence for each
    of `missing`; `granted` is what the version before had, `why` the model's reason, `lines` are `[number, text]` of
    its source, `diff` is what became different since the last yes; `is_again`: nothing new is asked for; `installs`
    says what a yes installs, `doubts` what is not known of what it gives. `command` grants the same. `whom` is the
    agent that another one asks for.
    """

    type: ClassVar[str] = "grant_asked"
    question: str
    function: str
    moment: str
    says: tuple[str, ...]
    missing: dict[str, Any]  # Any: JSON, as in grants.toml
    granted: dict[str, Any]
    why: str = ""
    lines: tuple[tuple[int, str], ...] = ()
    diff: str = ""
    version: str = ""
    is_again: bool = False
    installs: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    command: str = ""
    caller: str = ""
    whom: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantAnswered(_Base):
    """The answer to such a question: once, yes or no, perhaps with a message for the model.

    `by` is human, policy (nobody could be asked: `command` grants it), earlier (a no of this turn, not asked again),
    often (several noes in this turn, and no question more), never (no human can grant it) or unavailable (what it needs
    is not available: `word` says why). Only what a human was asked for had a `grant_asked` before it.
    """

    type: ClassVar[str] = "grant_answered"
    question: str
    function: str
    says: tuple[str, ...]
    answer: str
    word: str = ""
    by: str = "human"
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswered(_Base):
    """The answer to one call, as the model reads it; `outcome` is the published word.

    `detail` holds what an interface may show besides: a verdict's or an outcome's JSON.
    """

    type: ClassVar[str] = "answer"
    call_id: str
    name: str
    text: str
    outcome: str
    seconds: float
    detail: dict[str, Any] = field(default_factory=dict)  # Any: a JSON document of a published shape


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionsChanged(_Base):
    """The set of functions changed: names by what happened to them; `by` is agent, user (a command) or human (files).

    `standings` says by name how a function stands that was judged, `disagreeing` how one differs from its examples,
    `noted` which of them it lost, whom it breaks or, in a later event and a line each, what else was found in it;
    `fixed` are files that load again. `lines` are the source lines that files are rejected for, by the words of
    `rejected`.
    """

    type: ClassVar[str] = "functions_changed"
    loaded: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    by: str = "human"
    fixed: tuple[str, ...] = ()
    disagreeing: dict[str, str] = field(default_factory=dict)
    noted: dict[str, str] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    standings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined(_Base):
    """A function kept failing, and the model no longer sees it; reported once.

    `failures` are its last ones, shortly; `worked_version` is what returned last, if anything ever did, and when;
    `ways` are the commands out of it, without the program's name.
    """

    type: ClassVar[str] = "quarantined"
    name: str
    version: str
    failures: tuple[str, ...]
    worked_version: str = ""
    worked_at: float | None = None
    ways: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanged(_Base):
    """A block of memory changed."""

    type: ClassVar[str] = "memory_changed"
    block: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(_Base):
    """Something the user should know, and what to do about it (`fix`), if anything; the turn continues."""

    type: ClassVar[str] = "warning"
    message: str
    fix: str = field(default="", metadata=IF_SET)

    @property
    def text(self) -> str:
        """Both in one."""
        return f"{self.message} {self.fix}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(_Base):
    """The turn waits for something else than the model's reply: `what` says for what; empty when that is over."""

    type: ClassVar[str] = "waiting"
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(_Base):
    """Tokens of one step, as the endpoint reported or as estimated. `model` is set for a step of a helper, which has
    a context of its own.
    """

    type: ClassVar[str] = "usage"
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    estimated: bool = False
    context_tokens: int = 0
    context_limit: int = 0
    model: str = field(default="", metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(_Base):
    """The end of a turn. `reason`: replied, interrupted, steps, repeated, failed, cancelled, limits, parked (it waits
    for other agents and goes on by itself), client_calls (a client has to answer calls of its own functions),
    handed_off (another agent goes on), stuck (a person has to decide), length (a client's limit cut the reply off).

    `usage` sums the turn's tokens. `made` is the turn's receipt, by kinds of facts: functions `created`, `changed` or
    `deleted`; memory `remembered`, and of blocks how many `lines`; files that were `wrote` or `removed`; addresses
    `reached`, `refused` and `unreached`; agents `told`; what a person was `asked`; functions `called`, and those that
    `failed`. It is empty if nothing of this happened. `receipt` is the same as a sentence.
    """

    type: ClassVar[str] = "turn_ended"
    reason: str
    reply: str
    steps: int
    usage: dict[str, int]
    made: Made = field(default_factory=dict)
    receipt: str = ""


Event: TypeAlias = (
    TurnStarted
    | MessageAdded
    | TurnsRemoved
    | SpeakerChosen
    | Text
    | Thought
    | Writing
    | CallStarted
    | Progress
    | Reading
    | Waiting
    | Printed
    | GrantAsked
    | GrantAnswered
    | CallAnswered
    | FunctionsChanged
    | Quarantined
    | MemoryChanged
    | Warned
    | Usage
    | TurnEnded
)


def no_reply(who: str, warned: Warned | None, reason: str) -> TurnError:
    """Return the error for a turn that ended without a reply, from the last warning in it, if there was one."""
    if warned is None or reason == "interrupted":
        how = "was interrupted" if reason == "interrupted" else f"ended: {reason}"
        return TurnError(f"{who} did not reply: its turn {how}.")
    return TurnError(f"{who} did not reply: {warned.message}", fix=warned.fix)
