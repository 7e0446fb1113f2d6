"""The output of a model as plain values: the pieces while it streams, and one whole reply."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from agent_core.base.errors import ModelError
from agent_core.base.messages import Call

from .request import FunctionShown, Request
from .tokens import Window

Finish: TypeAlias = Literal["stop", "calls", "length", "filter", "refusal"]
Mode: TypeAlias = Literal["native", "constrained"]


NOTES: Final[dict[str, str]] = {
    "filter": "The endpoint's content filter withheld the reply, or part of it: rephrase the request.",
    "refusal": "The model refused to answer: rephrase the request, or use another model.",
    "length": "The reply was cut off at its length limit: ask for less at once, or raise `model.max_tokens`.",
}
"""The note for the user about a reply with this finish reason."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The token usage of one request: as the endpoint reports it, or `estimated`."""

    prompt: int
    completion: int
    cached: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class TextPiece:
    """The next part of the text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtPiece:
    """The next part of the thought, if the model shows one."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """The next part of a call's arguments, as JSON text; `place` is the call's in the reply, from 0.

    It is for people who watch: only the calls of the reply run.
    """

    place: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class RetryPiece:
    """A report that the endpoint failed before it said anything; it is asked again after `wait_s`."""

    reason: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class ReadingPiece:
    """A report that the endpoint is reading the prompt: tokens read, of how many, and the seconds left if known."""

    done: int
    total: int
    left_s: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The whole reply. Call ids are unique in the conversation; `arguments` are unchanged, even if broken, except that
    a second encoding is removed.

    An empty reply has finish `stop`, no text and no calls. `note` says what was fixed or left out in reading it.
    `cut` names the calls that were cut off in the middle, each with its broken argument: they are not among `calls`.
    `written` names the calls that came as text although functions were shown: known ones are among `calls` as well.
    `attached` is the function whose call stands as text after words of the reply: meant, or an example for the user.
    """

    text: str
    thought: str
    calls: tuple[Call, ...]
    finish: Finish
    usage: TokenUsage
    note: str = ""
    cut: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    attached: str = ""
    reasoning: tuple[str, ...] = ()
    """Items of reasoning that the endpoint wants back within the turn, as JSON texts."""


class ModeChanged(ModelError):
    """A report that calls are transmitted in another way from now on; nothing was answered yet."""


Piece: TypeAlias = TextPiece | ThoughtPiece | CallPiece | RetryPiece | ReadingPiece | Reply


class Model(Protocol):
    """A protocol for models, which answer requests."""

    @property
    def name(self) -> str:
        """The model's name at its endpoint."""

    @property
    def mode(self) -> Mode:
        """The mode in which calls are transmitted."""

    @property
    def context_limit(self) -> int:
        """The size of the model's window in tokens."""

    @property
    def window(self) -> Window:
        """The same, with the origin of the number."""

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """Return the bytes of a request that are neither instructions nor messages: the functions, as the model sees
        them.
        """

    def stream(self, request: Request) -> AsyncIterator[Piece]:
        """Yield the pieces of one reply, in order; the last piece is the one `Reply`.

        Raises:
            ContextOverflow: the request is longer than the window.
            ModeChanged: calls travel in another way from now on, so the request has to be made anew.
            ModelError: there is no usable answer; the message says why and what to do.
        """

    async def aclose(self) -> None:
        """Close the connections."""
