"""The maker: another model that writes the functions that agents ask for, and mends them.

It is shown the request, what the agent wrote and why each attempt was refused, and answers with a source, which passes
the gate as any other does. The agent's own model calls what joins.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_core.base.errors import KnapperError
from agent_core.base.messages import System, User
from agent_core.base.untrusted import fence, one_line
from agent_core.model import Model, Request

from ..gate.reader import reply_apart
from .judgment import Judgment

if TYPE_CHECKING:
    from .plan import PlannedChange

MOST_ATTEMPTS: Final = 3
_WAIT_S: Final = 180.0
_MOST_CHARS: Final = 12_000  # of a text that it is shown
_FENCED: Final = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)
_TASK: Final = """\
You write one Python function for an assistant, which will call it. The assistant is a smaller model: what it wrote \
may be wrong, or only a signature. Write what its request needs, under the name that is given, if one is.

- Python 3.11 with the standard library: imports, then the one function, with type hints on all parameters and the \
result, and a docstring that describes each parameter under `Args:`.
- General: what belongs to this one case comes in as arguments, which are few and plain (text, numbers, lists, dicts).
- At least two examples in the docstring, as doctests with different results, worked out with care; errors that it \
raises on purpose under `Raises:`.
- A first parameter `self` gives self.call("its_name", argument=value), self.fetch(url), self.scratch and self.state. \
Nothing else is reached.
Answer with the whole source in one code fence, and nothing else."""

_UNSETTLED: Final = (
    "No example settles what these calls return. Add each to the docstring as an example, with the result that it must"
    " have:"
)


@dataclass(frozen=True, slots=True)
class RefusedAttempt:
    """A source that was judged, and what the gate said of it."""

    source: str
    verdict: str


@dataclass(frozen=True, slots=True)
class WrittenSource:
    """A source that the maker wrote, with its cost; with `error`, the reason why there is none."""

    model: str
    source: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""


class FunctionMaker:
    """A model in a fresh context, opened when it is first asked; `name` is what the settings say."""

    def __init__(self, name: str, open_model: Callable[[], Awaitable[Model]]) -> None:
        self.name = name
        self._open = open_model
        self._model: Model | None = None
        self._one_at_a_time = asyncio.Lock()

    async def write(
        self, function: str, facts: Sequence[tuple[str, str]], attempts: Sequence[RefusedAttempt]
    ) -> WrittenSource:
        """Return a source for the function of this name, or of one that the maker chooses; `facts` are titles with
        texts, from whoever said them.
        """
        shown = [*facts, *_told(attempts)]
        texts = [f"{title}:\n{fence(text[:_MOST_CHARS])}" for title, text in shown if text.strip()]
        named = f"The function: `{function}`" if function else "Choose a name that says what the function does."
        request = Request((System(_TASK), User("\n\n".join([named, *texts]))), is_apart=True)
        try:
            async with self._one_at_a_time, asyncio.timeout(_WAIT_S):
                self._model = self._model or await self._open()
                reply = await reply_apart(self._model, request)
        except TimeoutError:
            return WrittenSource(self.name, error=f"no answer within {_WAIT_S:.0f} s")
        except KnapperError as refusal:
            return WrittenSource(self.name, error=one_line(refusal.message, 400))
        fenced = _FENCED.search(reply.text)
        source, usage = fenced[1] if fenced else reply.text, reply.usage
        error = "" if source.strip() else "its answer was empty"
        return WrittenSource(self._model.name, source, usage.prompt, usage.completion, error)

    async def aclose(self) -> None:
        """Close the model."""
        if self._model is not None:
            await self._model.aclose()


def shown_refusal(plan: "PlannedChange") -> str:
    """Return why an attempt was refused, as the maker reads it: where its author is asked what calls return, it says so
    by examples.
    """
    calls = plan.detail.challenges if isinstance(plan.detail, Judgment) else ()
    if not calls:
        return plan.text
    return "\n".join([_UNSETTLED, *calls])


def _told(attempts: Sequence[RefusedAttempt]) -> list[tuple[str, str]]:
    """Return what is shown of attempts that were refused."""
    return [
        pair
        for number, attempt in enumerate(attempts, 1)
        for pair in ((f"Refused attempt {number}", attempt.source), ("Why it was refused", attempt.verdict))
    ]
