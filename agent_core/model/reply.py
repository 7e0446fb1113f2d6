"""What comes back from a model: pieces while it speaks, and one whole reply at the end."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from ..errors import ModelError
from ..messages import Call
from .request import FunctionShown, Request

Finish: TypeAlias = Literal["stop", "calls", "length", "filter", "refusal"]
Mode: TypeAlias = Literal["native", "constrained"]


NOTES: Final[dict[str, str]] = {
    "filter": "The endpoint's content filter held back the reply, or a part of it: say it in other words.",
    "refusal": "The model refused to answer: say it in other words, or use another model.",
    "length": "The reply was cut off at its longest: ask for less at once, or raise `model.max_tokens`.",
}
"""What a human is told about a reply that ended so."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one request: as the endpoint reports them, or `estimated`."""

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
    """The next part of the thought, where the model shows one."""

    text: str


@dataclass(frozen=True, slots=True)
class RetryPiece:
    """The endpoint failed before it said anything; it is asked again after `wait_s`."""

    reason: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class Reply:
    """The whole reply. Call ids are unique in the conversation; `arguments` are as they came, even if broken,
    but for a second encoding.

    An empty reply has finish `stop`, no text and no calls. `note` says what was mended or left out in reading it.
    `cut` names the calls that were cut off in the middle, each with its broken argument: they are not among `calls`.
    """

    text: str
    thought: str
    calls: tuple[Call, ...]
    finish: Finish
    usage: TokenUsage
    note: str = ""
    cut: tuple[str, ...] = ()


class ModeChanged(ModelError):
    """Calls travel in another way from now on; nothing was answered yet."""


Piece: TypeAlias = TextPiece | ThoughtPiece | RetryPiece | Reply


class Model(Protocol):
    """Something that answers requests."""

    @property
    def name(self) -> str:
        """What it is called at its endpoint."""

    @property
    def mode(self) -> Mode:
        """How calls travel."""

    @property
    def context_limit(self) -> int:
        """The size of its window in tokens."""

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """Bytes of a request that are neither instructions nor messages: the functions, as it is shown them."""

    def stream(self, request: Request) -> AsyncIterator[Piece]:
        """The pieces of one reply, in order; the last is the one `Reply`.

        Raises:
            ContextOverflow: the request is longer than the window.
            ModeChanged: calls travel in another way from now on, so the request has to be made anew.
            ModelError: there is no usable answer; the message says why and what to do.
        """

    async def aclose(self) -> None:
        """Let go of connections."""
