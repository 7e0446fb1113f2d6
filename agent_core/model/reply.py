"""A model as its users see it, and its output as plain values: the pieces while it streams, and one whole reply."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from agent_core.base.errors import ModelError
from agent_core.base.messages import Call
from agent_core.base.records import dataclass

from .request import FunctionShown, Request
from .tokens import Window

if TYPE_CHECKING:
    from agent_core.base.settings import ProgramsOffer

Finish: TypeAlias = Literal["stop", "calls", "length", "filter", "refusal", "broken"]
Mode: TypeAlias = str
"""How calls are transmitted: `native`, or the name of an extension's mode, which is for small models."""


NOTES: Final[dict[str, str]] = {
    "filter": "The endpoint's content filter withheld the reply, or part of it: rephrase the request.",
    "refusal": "The model refused to answer: rephrase the request, or use another model.",
    "length": "The reply was cut off at its length limit: ask for less at once, or raise `model.max_tokens`.",
    "broken": "The endpoint ended the reply with `{}`, so it may be incomplete: ask again; at the prompt: /retry.",
}
"""The note to the user about a reply with this finish reason; `{}` stands for the endpoint's name for it."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The token usage of one request, as the endpoint reported it or `estimated`."""

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
    """The next part of a call's arguments, as JSON text; `place` is the call's index in the reply, from 0.

    For display only: a call runs when the reply contains it.
    """

    place: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class RetryPiece:
    """A report that the endpoint failed before its answer began; the request is retried after `wait_s`."""

    reason: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class ReadingPiece:
    """A report that the endpoint is reading the prompt: tokens read, the total, and the remaining seconds if known."""

    done: int
    total: int
    left_s: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The whole reply. Call ids are unique in the conversation; `arguments` are unchanged, even if broken, except that
    a second encoding is removed.

    An empty reply has finish `stop`, no text and no calls. `note` reports corrections and omissions. `cut` names the
    calls that were cut off, each with the unfinished argument; they are not among `calls`. `written` names the calls
    that arrived as text although functions were shown; known ones are also among `calls`. `attached` is the function
    whose call follows words of the reply as text, intended or as an example. `marked` is the function whose name stands
    between the marks of a template somewhere in the text.
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
    marked: str = ""
    reasoning: tuple[str, ...] = ()
    """The parts of the reasoning that go back to the endpoint, as JSON texts; see `Assistant`."""
    source: str = ""
    """The endpoint and model that gave the reply."""
    seen: frozenset[str] = frozenset()
    """The digests of the pictures that it was sent; it was told of others in words."""


class ModeChanged(ModelError):
    """A report that calls are transmitted differently from now on; the request was not answered."""


Piece: TypeAlias = TextPiece | ThoughtPiece | CallPiece | RetryPiece | ReadingPiece | Reply


class Model(Protocol):
    """A model that answers requests."""

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
        """The window with the origin of its size."""

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """Return the bytes of a request beyond instructions and messages: the functions, as the model sees them."""

    def stream(self, request: Request) -> AsyncIterator[Piece]:
        """Yield the pieces of one reply, in order; the last piece is the `Reply`.

        Raises:
            ContextOverflow: the request is longer than the window.
            ModeChanged: calls are transmitted differently from now on, so the request must be built again.
            ModelError: there is no usable answer; the message says why and what to do.
        """

    async def aclose(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """An open model, a line that says which one it is and why, and the settings table that it has, if any."""

    model: Model
    line: str
    table: str = ""
    endpoint_names: Callable[[], Awaitable[list[str]]] | None = None
    """Asks the endpoint for the names of its models."""
    programs: "ProgramsOffer" = "auto"


OpenModel = Callable[[str | None], Awaitable[OpenedModel]]
ReleaseModel = Callable[[Model], Awaitable[None]]
