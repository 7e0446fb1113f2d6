"""The maker: another model that writes and fixes the functions that agents request.

It is shown the request, the agent's source, and why each attempt was refused. It answers with a source, which has to
pass the gate like any other. A trigger test asks the agent's own model whether it would call the new function.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.errors import KnapperError
from agent_core.base.fences import fenced_texts
from agent_core.base.messages import Notice, System, User
from agent_core.base.records import dataclass
from agent_core.base.untrusted import block, one_line, visible
from agent_core.model import FunctionShown, Model, Request
from agent_core.model.reply import TokenUsage
from agent_core.model.request import REPLY
from agent_core.registry.function import signature
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from ..gate.reader import reply_apart
from .judgment import Judgment

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

    from .plan import PlannedChange

MOST_ATTEMPTS: Final = 3
_WAIT_S: Final = 180.0
_MOST_CHARS: Final = 12_000  # of each text that the maker is shown
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

MOST_CALLABLE: Final = 12
"""The maximum number of functions that the maker is shown to call."""
NEIGHBORS: Final = 6
"""The maximum number of functions that a new one is compared with in its trigger test."""
_NONE: Final = "none"
_CHOOSE: Final = "choose_functions"
_TRIGGER_TOKENS: Final = 600
_TRIGGER_WAIT_S: Final = 60.0
_MOST_SHOWN: Final = 120  # characters of a request, and of a line of a description
_CHOOSING: Final = f"""\
An assistant may call the functions that are listed, of which it knows these lines alone. A user asks it something. \
Think of other users:
- rewordings: two that want the same, each in words and with data of its own.
- near_misses: two that sound alike, and want something that the same function does not do.
Say for each, and for what the user asked, which function you would call by these lines, or {_NONE}.
- description: the line, in at most 90 characters, that should describe the function for what the user asked, so that \
each of them is told right; as it is now, if that is right."""
_CHOOSING_ONE: Final = (
    "An assistant may call the functions that are listed, of which it knows these lines alone. Say which one you would"
    f" call for what the user asks, or {_NONE}."
)


@dataclass(frozen=True, slots=True)
class TriggerTest:
    """The requests that a model gets wrong with a new function, and a better first line for its description.

    For `missed` requests it should call the function but does not; for `taken` ones it should not call it. `error` is
    the reason why there is no result.
    """

    missed: tuple[tuple[str, str], ...] = ()  # a request, and the function that would be called for it
    taken: tuple[str, ...] = ()
    description: str = ""
    usage: TokenUsage | None = None
    error: str = ""

    def advice(self, function: "Function", source: str) -> str:
        """Return advice for the author: an edit of the first docstring line; empty if every choice was right."""
        if self.error:
            return f"(Its trigger test has no result: {self.error}.)"
        told = [f"for “{text}” {f'`{chosen}`' if chosen != _NONE else 'nothing'}" for text, chosen in self.missed]
        told += [f"for “{text}” this function, which does not serve it" for text in self.taken]
        if not told:
            return ""
        line = function.description.partition("\n")[0]
        fix = "Make the first line of its docstring say what it is for, and what not."
        if line and source.count(line) == 1 and self.description and not {*'"\\'} & {*self.description}:
            edit = (
                f"function_name={function.name!r}, changes=[{{'old_text': {line!r}, 'new_text': {self.description!r}}}]"
            )
            fix = f"Say better what it is for, if it is true: edit_function({edit})."
        return f"By its description, you would call {'; '.join(told)}. {fix}"


async def trigger_test(model: Model, function: str, asked: str, lines: Sequence[str]) -> TriggerTest:
    """Ask a model which function it would call for each request, given the lines of the function and its neighbors.

    It is not told which one is new, since that would lead its answer. A model in constrained mode is too small to think
    of other requests, and only chooses a function for the user's.
    """
    listed, request, is_small = "\n".join(lines), block(asked, _MOST_CHARS), model.mode == "constrained"
    text = f"The functions:\n{listed}\n\nThe user asked:\n{request}"
    messages = (System(_CHOOSING), User(text), Notice(f"Call {_CHOOSE}."))
    about = Request(messages, (_CHOICES,), _TRIGGER_TOKENS, frozenset({REPLY}), is_apart=True)
    if is_small:
        names = [line.partition("(")[0] for line in lines]
        schema = {
            "type": "object",
            "properties": {"function": {"type": "string", "enum": [*names, _NONE]}},
            "required": ["function"],
            "additionalProperties": False,
        }
        shape = {"type": "json_schema", "json_schema": {"name": _CHOOSE, "schema": schema}}
        about = Request((System(_CHOOSING_ONE), User(text)), (), _TRIGGER_TOKENS, shape=shape, is_apart=True)
    try:
        async with asyncio.timeout(_TRIGGER_WAIT_S):
            reply = await reply_apart(model, about)
    except TimeoutError:
        return TriggerTest(error=f"no answer within {_TRIGGER_WAIT_S:.0f} s")
    except KnapperError as refusal:
        return TriggerTest(error=one_line(refusal.message, 400))
    written = next((call.arguments for call in reply.calls if call.name == _CHOOSE), reply.text if is_small else "")
    try:
        chosen = read_json(written, LOOSE)
        if is_small:
            chosen = {"for_request": chosen["function"], "rewordings": (), "near_misses": (), "description": ""}
        alike = [(asked, chosen["for_request"]), *((row["request"], row["function"]) for row in chosen["rewordings"])]
        apart = [(row["request"], row["function"]) for row in chosen["near_misses"]]
        described = str(chosen["description"])
        if chosen["for_request"] != function:  # then the near misses are about another function
            apart = []
    except (Malformed, KeyError, TypeError):
        return TriggerTest(usage=reply.usage, error="its answer could not be read")
    missed = tuple((_short(text), _short(called)) for text, called in alike if called != function)
    taken = tuple(_short(text) for text, called in apart if called == function)
    return TriggerTest(missed, taken, _short(described), reply.usage)


def _short(text: object) -> str:
    return one_line(str(text), _MOST_SHOWN)


_CHOICE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"request": {"type": "string"}, "function": {"type": "string"}},
    "required": ["request", "function"],
}
_TWO: Final = {"type": "array", "items": _CHOICE, "minItems": 2, "maxItems": 2}
_ANSWER: Final[dict[str, Any]] = {
    "for_request": {"type": "string", "description": f"The function to call for what the user asked, or {_NONE}."},
    "rewordings": _TWO,
    "near_misses": _TWO,
    "description": {"type": "string"},
}
_CHOICES: Final = FunctionShown(
    _CHOOSE,
    "Say which function each request would call.",
    {"type": "object", "properties": _ANSWER, "required": [*_ANSWER]},
)


@dataclass(frozen=True, slots=True)
class WrittenSource:
    """A source that the maker wrote, with its cost; `error` is the reason why there is none."""

    model: str
    source: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""


class FunctionMaker:
    """A model with a fresh context, opened when it is first used; `name` is the one in the settings."""

    def __init__(self, name: str, open_model: Callable[[], Awaitable[Model]]) -> None:
        self.name = name
        self._open = open_model
        self._model: Model | None = None
        self._one_at_a_time = asyncio.Lock()

    async def write(
        self, function: str, facts: Sequence[tuple[str, str]], attempts: Sequence[tuple[str, str]]
    ) -> WrittenSource:
        """Return a source for the function with this name; if it is empty, the maker chooses one.

        `facts` are titles with texts; `attempts` are refused sources with the reasons.
        """
        shown = [*facts]
        for number, (source, why) in enumerate(attempts, 1):
            shown += [(f"Refused attempt {number}", source), ("Why it was refused", why)]
        texts = [f"{title}:\n{block(text, _MOST_CHARS)}" for title, text in shown if text.strip()]
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
        source, usage = next(iter(fenced_texts(reply.text)), reply.text), reply.usage
        error = "" if source.strip() else "its answer was empty"
        return WrittenSource(self._model.name, source, usage.prompt, usage.completion, error)

    async def aclose(self) -> None:
        """Close the model."""
        if self._model is not None:
            await self._model.aclose()


def callable_functions(names: Sequence[str], own: str, snapshot: "Snapshot") -> tuple[str, str]:
    """Return a fact for the maker of the function `own`: these other functions, each with the way to call it."""
    lines = list[str]()
    visible_names = snapshot.functions.keys() - snapshot.hidden - {own}
    for function in (snapshot.functions[name] for name in names if name in visible_names):
        first = function.description.partition("\n")[0]
        how = "self.call" if function.takes_self else f"from functions.{function.module} import {function.name}"
        lines.append(f"{signature(function)} - {first} ({how})")
    return "Functions it can call", visible("\n".join(lines))


def shown_refusal(plan: "PlannedChange") -> str:
    """Return the reason for a refusal, for the maker; a question about results becomes a request for examples."""
    calls = plan.detail.challenges if isinstance(plan.detail, Judgment) else ()
    if not calls:
        return plan.text
    return "\n".join([_UNSETTLED, *calls])
