"""The events of a turn: frozen dataclasses that every interface consumes.

The REPL, the one-shot command and the tests read the same events and nothing behind them. The published form is one
JSON object per line, `type` first. An event with a `kind` is an entry of the journal itself, told with its place there:
`storage/journal.py` stores it under this kind. Its `UNTOLD` fields are stored and not published.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias, get_args

from .errors import TurnError
from .pictures import Picture
from .receipt import Made
from .records import (
    IF_SET,
    IF_SET_STORED,
    UNSTORED,
    UNTOLD,
    dataclass,
    field,
    fields,
    fields_to_json,
    stored_as,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    type: ClassVar[str]
    turn: str = field(default="", metadata=UNSTORED)
    step: int = field(default=0, metadata=UNSTORED)
    agent: str = field(default="", metadata=UNSTORED)
    seq: int = field(default=0, compare=False, metadata=UNSTORED | UNTOLD)
    """The number of its entry in the agent's journal; 0 if it has none."""

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published form of an event; `agent` is set unless it is the agent that the user talks to."""
        fields = fields_to_json(self)
        if not self.agent:
            fields.pop("agent", None)
        return {"type": self.type, **fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(_Base):
    """A message, or another `event` (heartbeat, login, system), was picked up and is on disk.

    `trace` is the `traceparent` that it came with, `conversation` the id of the conversation if it is not the main one.
    A message has its `message_id` and its `origin`: the name of a person or of a token, or the kind of window, such as
    `page`.
    """

    type: ClassVar[str] = "turn_started"
    agent: str
    message: str
    event: str = "message"
    trace: str = field(default="", metadata=IF_SET)
    conversation: str = field(default="", metadata=IF_SET)
    message_id: str = field(default="", metadata=IF_SET)
    origin: str = field(default="", metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAdded(_Base):
    """A message waits for a turn under its `message_id`, or the running `turn` has taken it up and it is on disk.

    One that waits comes again when it was edited. `origin` is as in `turn_started`.
    """

    type: ClassVar[str] = "message"
    message: str
    message_id: str = field(default="", metadata=IF_SET)
    origin: str = field(default="", metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageWithdrawn(_Base):
    """A message that waited for a turn was taken back. Sent by a server."""

    type: ClassVar[str] = "message_withdrawn"
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsRemoved(_Base):
    """Turns were removed from the conversation, so an interface that shows it must reload it. Sent by a server."""

    type: ClassVar[str] = "turns_removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerChosen(_Base):
    """The group member that speaks next (`user`: the group hands back), the rule that chose it, and why; on disk."""

    type: ClassVar[str] = "speaker"
    kind: ClassVar[str] = "speaker"
    agent: str = field(metadata=stored_as("name"))
    rule: str = ""
    reason: str = ""
    passed: tuple[str, ...] = field(default=(), metadata=UNTOLD | IF_SET)
    asked_model: bool = field(default=False, metadata=UNTOLD)


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
    """The model's server is still reading the prompt: `done` of `total` tokens; `done` is None if it does not say."""

    type: ClassVar[str] = "reading"
    total: int
    done: int | None = None
    left_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing(_Base):
    """The model is writing a call: the next piece of its arguments, as JSON text. `place` is its index in the reply.

    The piece is provisional; the event `call` has the complete arguments if the call is made.
    """

    type: ClassVar[str] = "writing"
    place: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted(_Base):
    """A call is about to run and is on disk. `arguments` is the model's own JSON text."""

    type: ClassVar[str] = "call"
    kind: ClassVar[str] = "call"
    call_id: str = field(metadata=stored_as("id"))
    name: str = ""
    version: str | None = field(default=None, metadata=UNTOLD)
    """None of a built-in function."""
    arguments: str = field(default="", metadata=IF_SET_STORED)
    """Stored where they are not as in the reply."""
    client: bool = field(default=False, metadata=UNTOLD | IF_SET)
    """Whether a client has to answer it, whose function it is."""


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
    """A piece of a running function's output, with secrets masked; the answer repeats all of it."""

    type: ClassVar[str] = "printed"
    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantAsked(_Base):
    """The user is asked before a function gets a grant; the turn waits. The answer refers to it by `question`.

    `moment` is join, call, run, helper, program or open; `caller` is the function that makes the call, if any. `says`
    has a sentence for each entry of `missing`. `granted` is what the previous version had, `why` the model's reason,
    `lines` are pairs `[number, text]` of the source, and `diff` is the change since the last approval. `is_again` means
    that nothing new is requested. `installs` lists what an approval installs, `doubts` what is unknown about what it
    allows, `precedents` what was given to functions that it calls by name. `command` grants the same. `asker` is the
    agent that asks, `whom` the one on whose behalf, if that is another. A yes may be wide where there is a `folder`:
    for the function, or for all that its `maker` makes. `changed` says what did since the last yes, `unset` which
    secrets have no value.
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
    precedents: tuple[str, ...] = ()
    command: str = ""
    caller: str = ""
    asker: str = ""
    whom: str = ""
    folder: str = ""
    maker: str = ""
    changed: str = ""
    unset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantAnswered(_Base):
    """The answer to such a question: once, yes or no, optionally with a message for the model.

    `by` is human, policy (nobody could be asked; `command` grants it), earlier (refused in this turn and not asked
    again), often (refused repeatedly in this turn; no longer asked), never (no human can grant it) or unavailable (what
    it needs is not available; `word` says why). Only a question to a human follows a `grant_asked`.
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
class CallStopped(_Base):
    """A function stands still at a debugger, at a `place` and for a reason; `stop` has what a debugger shows of it.

    It waits as a `question`: a window that takes it over answers that. Another one than its own steps it if it
    `is_elsewhere`; the `window` is the one that set its breakpoint, if that is another one, too.
    """

    type: ClassVar[str] = "stopped"
    question: str
    function: str
    place: str
    why: str
    stop: dict[str, Any] = field(default_factory=dict)  # Any: JSON
    is_elsewhere: bool = False
    window: str = field(default="", metadata=IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswered(_Base):
    """The answer to one call, as the model reads it; `outcome` is the published word.

    `detail` has more that an interface may show: the JSON of a verdict or an outcome.
    """

    type: ClassVar[str] = "answer"
    kind: ClassVar[str] = "result"
    call_id: str
    name: str
    text: str
    outcome: str = ""
    seconds: float = 0.0
    detail: dict[str, Any] = field(
        default_factory=dict
    )  # Any: a JSON document of a published shape
    whole: str = field(default="", metadata=UNTOLD | IF_SET)
    """The hash of the whole text, if this is its beginning; a large value that was returned has none."""
    chars: int = field(default=0, metadata=UNTOLD | IF_SET)
    """The length of the whole text with such a value, or 0."""
    arguments: str = field(default="", metadata=UNTOLD | IF_SET)
    """Those of a call that did not start, where they are not as in the reply."""
    pictures: tuple[Picture, ...] = field(default=(), metadata=UNTOLD | IF_SET)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionsChanged(_Base):
    """The set of functions changed: the names by kind of change. `by` is agent, user (a command) or human (files).

    `standings` maps the name of a judged function to its standing, and `disagreeing` to how the function differs from
    its examples. `noted` has further findings: examples that it lost, functions that it breaks or, in a later event,
    one line for each other finding. `fixed` are files that load again. `lines` maps each entry of `rejected` to the
    source lines that caused it.
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
    """A function kept failing and the model no longer sees it; reported once.

    `failures` are its last failures, in short form. `worked_version` is the last version that returned a result and
    `worked_at` when, if any did. `ways` are the commands that lift the quarantine, without the program's name.
    """

    type: ClassVar[str] = "quarantined"
    name: str
    version: str
    failures: tuple[str, ...]
    worked_version: str = ""
    worked_at: float | None = None
    ways: tuple[str, ...] = ()


def numbers_of(choices: Sequence[str]) -> Sequence[str]:
    """Return what stands before each choice: its number; nothing where a choice is a number itself."""
    is_clear = not any(choice.strip().isdecimal() for choice in choices)
    return [f"{number} " if is_clear else "" for number in range(1, len(choices) + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionAsked(_Base):
    """A running function asks a person; its call waits. `text` and `choices` are the function's words.

    It is answered by its `question`: `form` says with what, and `otherwise` what follows without an answer.
    """

    type: ClassVar[str] = "function_asked"
    question: str
    call: str
    function: str
    text: str
    choices: tuple[str, ...] = ()
    form: str = ""
    otherwise: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionAnswered(_Base):
    """The answer to a function's question; `by` is human, default or nobody, and then it is empty."""

    type: ClassVar[str] = "function_answered"
    question: str
    call: str
    answer: str
    by: str


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
        """The message and the fix in one text."""
        return f"{self.message} {self.fix}".rstrip()


StoredEvent: TypeAlias = (
    GrantAsked
    | GrantAnswered
    | FunctionAsked
    | FunctionAnswered
    | FunctionsChanged
    | Quarantined
    | MemoryChanged
    | Warned
)
"""An event that nothing else in a journal implies: it is an entry of its own, whose kind is its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(_Base):
    """The turn waits for something other than the model's reply; `what` names it and is empty when the wait ends."""

    type: ClassVar[str] = "waiting"
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(_Base):
    """Tokens of one step, as reported by the endpoint or estimated. `model` is set for a step of a helper, which has a
    context of its own.
    """

    type: ClassVar[str] = "usage"
    kind: ClassVar[str] = "usage"
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    context_tokens: int = field(default=0, metadata=UNSTORED)
    context_limit: int | None = field(default=None, metadata=IF_SET_STORED)
    """That of the model, 0 for a helper's; None for a request apart, which is stored and not told."""

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published form, with the model last."""
        document = _Base.to_json(self)
        model = document.pop("model")
        return document | ({"model": model} if model else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(_Base):
    """The end of a turn. `reason`: replied, interrupted, steps, repeated, failed, cancelled, limits, parked (it waits
    for other agents and resumes by itself), client_calls (a client must answer calls of its own functions),
    handed_off (another agent continues), stuck (a person must decide), length (a client's limit cut the reply off).

    `usage` sums the turn's tokens. `made` is the turn's receipt, by kind of fact: functions `created`, `changed` or
    `deleted`; memory `remembered`, with the number of `lines` per block; files that were `wrote` or `removed`;
    addresses `reached`, `refused` and `unreached`; agents `told`; what a person was `asked`; functions `called`, and
    those that `failed`. It is empty if none of this happened. `receipt` is the same as a sentence.
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
    | MessageWithdrawn
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
    | FunctionAsked
    | FunctionAnswered
    | CallStopped
    | CallAnswered
    | FunctionsChanged
    | Quarantined
    | MemoryChanged
    | Warned
    | Usage
    | TurnEnded
)


def stored_fields(event: StoredEvent) -> dict[str, Any]:  # Any: JSON
    """Return the payload of such an entry; its place in the journal says turn and step."""
    payload = event.to_json()
    for key, value in event.to_json().items():
        if not value or key in ("type", "turn", "step"):
            del payload[key]
    return payload


def stored_keys() -> frozenset[str]:
    """Return the keys that such payloads may have."""
    return frozenset(one.name for kind in get_args(StoredEvent) for one in fields(kind))


def no_reply(who: str, warned: Warned | None, reason: str) -> TurnError:
    """Return the error for a turn that ended without a reply, built from its last warning if there was one."""
    if warned is None or reason == "interrupted":
        how = "was interrupted" if reason == "interrupted" else f"ended: {reason}"
        return TurnError(f"{who} did not reply: its turn {how}.")
    return TurnError(f"{who} did not reply: {warned.message}", fix=warned.fix)
