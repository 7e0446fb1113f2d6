"""A second pair of eyes: a model that sees a function's name, signature and docstring, and says what calls must return.

It knows nothing of the conversation or the body. What it says admits and refuses nothing: where the function returns
something else, its author is asked. That it fails, in whatever way, is a line in the record.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from agent_core.base.errors import KnapperError
from agent_core.base.json_form import IF_SET
from agent_core.base.messages import Notice, System, User
from agent_core.base.untrusted import one_line
from agent_core.model import FunctionShown, Model, Reply, Request
from agent_core.model.reply import ModeChanged
from agent_core.model.step import REPLY
from sandbox.wire.foreign import LOOSE, Malformed, read_json

_WAIT_S: Final = 60.0
_MOST: Final = 5
_LONGEST: Final = 400  # characters of a call or a result
_TOKENS: Final = 800
_SYSTEM: Final = """\
You check Python functions by their descriptions alone. You are shown the name, the signature and the docstring of \
one, and say what some calls must return by that description. Choose three to five calls unlike its examples, small \
enough to be sure of their results. Write the calls and results as Python: total([1, 2]) and 3; an error by its name, \
ValueError."""
_TEXT: Final = {"type": "string"}
GIVE: Final = FunctionShown(
    "give_examples",
    "Say what calls must return.",
    {
        "type": "object",
        "properties": {
            "examples": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"call": _TEXT, "expected": _TEXT},
                    "required": ["call", "expected"],
                },
            }
        },
        "required": ["examples"],
    },
)


@dataclass(frozen=True, slots=True)
class Opinion:
    """One call, what the reviewer expects of it, and what it returned; `agreed` tells whether that is the same."""

    call: str
    expected: str
    returned: str = ""
    agreed: bool = False


@dataclass(frozen=True, slots=True)
class Review:
    """What a reviewer said of a candidate and what it cost; with `error`, the reason why it said nothing."""

    model: str
    opinions: tuple[Opinion, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    error: str = field(default="", metadata=IF_SET)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Review":  # Any: JSON
        """Return a review in the JSON of a verdict."""
        return cls(**{**data, "opinions": tuple(Opinion(**row) for row in data["opinions"])})


class Reviewer:
    """A model in a fresh context, opened when it is first asked; `name` is what the settings say."""

    def __init__(self, name: str, open_model: Callable[[], Awaitable[Model]]) -> None:
        self.name = name
        self._open = open_model
        self._model: Model | None = None

    async def review(self, described: str) -> Review:
        """Return the calls and results that the model gives for a function, of which only the description is shown."""
        began = time.perf_counter()
        try:
            async with asyncio.timeout(_WAIT_S):
                if self._model is None:
                    self._model = await self._open()
                reply = await _asked(self._model, described)
        except TimeoutError:
            return Review(self.name, seconds=time.perf_counter() - began, error=f"no answer within {_WAIT_S:.0f} s")
        except KnapperError as error:
            return Review(self.name, seconds=time.perf_counter() - began, error=one_line(error.message, _LONGEST))
        opinions = _opinions(reply)
        spent = reply.usage.prompt, reply.usage.completion, time.perf_counter() - began
        return Review(self._model.name, opinions, *spent, "" if opinions else "its answer has no examples")

    async def aclose(self) -> None:
        """Close the model."""
        if self._model is not None:
            await self._model.aclose()


async def _asked(model: Model, described: str) -> Reply:
    messages = (System(_SYSTEM), User(described), Notice("Call give_examples with three to five examples."))
    request = Request(messages, (GIVE,), _TOKENS, frozenset({REPLY}))
    for _ in range(2):
        try:
            async with aclosing(model.stream(request)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    if isinstance(piece, Reply) and (piece.calls or not piece.written):
                        return piece
        except ModeChanged:
            continue
    raise KnapperError("The reviewer gave no reply.")


def _opinions(reply: Reply) -> tuple[Opinion, ...]:
    """Return the usable examples of a reply."""
    call = next((call for call in reply.calls if call.name == GIVE.name), None)
    try:
        data = read_json(call.arguments, LOOSE) if call else {}
    except Malformed:
        return ()
    rows = data.get("examples") if isinstance(data, dict) else None
    return tuple(
        Opinion(row["call"].strip(), row["expected"].strip())
        for row in (rows if isinstance(rows, list) else [])[:_MOST]
        if _is_usable(row)
    )


def _is_usable(row: Any) -> bool:  # Any: JSON
    texts = [row.get("call"), row.get("expected")] if isinstance(row, Mapping) else [None]
    return all(isinstance(text, str) and 0 < len(text) <= _LONGEST for text in texts)
