"""The maker: another model that writes and fixes the functions that agents request.

It is shown the request, the agent's source, and why each attempt was refused. It answers with a source, which has to
pass the gate like any other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_core.base.errors import KnapperError
from agent_core.base.fences import fenced_texts
from agent_core.base.messages import System, User
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import block, one_line, visible
from agent_core.functions.gate.reader import reply_apart
from agent_core.functions.service import change_texts
from agent_core.functions.service.file_sync import own_text
from agent_core.functions.service.judgment import Judgment
from agent_core.model import Model, Request
from agent_core.registry.function import signature

if TYPE_CHECKING:
    from agent_core.base.settings import Settings
    from agent_core.functions.service import Author, FunctionService, PlannedChange
    from agent_core.registry.registry import Snapshot

MAX_ATTEMPTS: Final = 3
_WAIT_S: Final = 180.0
_MAX_CHARS: Final = 12_000  # of each text that the maker is shown
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

MAX_CALLABLE: Final = 12
"""The maximum number of functions that the maker is shown to call."""


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
        texts = [f"{title}:\n{block(text, _MAX_CHARS)}" for title, text in shown if text.strip()]
        named = (
            f"The function: `{function}`"
            if function
            else "Choose a name that says what the function does."
        )
        request = Request((System(_TASK), User("\n\n".join([named, *texts]))), is_apart=True)
        try:
            async with self._one_at_a_time, asyncio.timeout(_WAIT_S):
                self._model = self._model or await self._open()
                reply = await reply_apart(self._model, request)
        except TimeoutError:
            return WrittenSource(self.name, error=f"no answer within {_WAIT_S:.0f} s")
        except KnapperError as refusal:
            return WrittenSource(self.name, error=one_line(refusal.message, 400))
        source = next(iter(fenced_texts(reply.text)), reply.text)
        usage = reply.usage
        error = "" if source.strip() else "its answer was empty"
        return WrittenSource(self._model.name, source, usage.prompt, usage.completion, error)


class MakerForAgents:
    """Has the maker write what agents ask for, in place of their own model."""

    def __init__(self, maker: FunctionMaker, service: "FunctionService") -> None:
        self._maker = maker
        self._service = service

    async def write(
        self,
        name: str,
        author: "Author",
        own: tuple[str, str],
        judge: "Callable[[str, Author], Awaitable[PlannedChange]]",
    ) -> "PlannedChange":
        """Return the plan for the maker's source, written instead of the author's `own` source and reason.

        Each refused attempt is shown to the maker with the verdict. If it does not answer, the author's source is
        judged.
        """
        code, reason = own
        snapshot = self._service.registry.snapshot()
        pending = await self._service.pending(name)
        attempts = list[tuple[str, str]]()
        if pending is not None:
            why = change_texts.problems_of(pending.verdict.refusals)
            attempts.append((pending.text, why))
        asked = author.request() if author.request else ""
        likely = await self._service.likely(asked or reason, MAX_CALLABLE)
        facts = [("The user's request", asked), ("What is to be done", reason)]
        facts.append(callable_functions(likely, name, snapshot))
        facts.append(("The function as it is", own_text(name, snapshot) or ""))
        facts.append(("What the assistant wrote", code))
        alone = replace(author, request=None)
        plan: PlannedChange | None = None
        for _ in range(MAX_ATTEMPTS):
            written = await self._maker.write(name, facts, attempts)
            if author.spend is not None and written.prompt_tokens:
                author.spend(written.prompt_tokens, written.completion_tokens, written.model)
            if written.error:
                plan = plan or await judge(code, alone)
                told = f"{written.model} wrote nothing ({written.error}).\n{plan.text}"
                return replace(plan, text=told)
            plan = await judge(written.source, replace(alone, model=written.model))
            if isinstance(plan.detail, Judgment) and _is_decided(plan.detail):
                return plan
            if plan.outcome != "refused":
                return replace(plan, text=f"Written by {written.model}.\n{plan.text}")
            attempts.append((written.source, shown_refusal(plan)))
        assert plan is not None
        return plan


def _is_decided(judgment: Judgment) -> bool:
    """Return whether a person has said no, or is still to say yes: another source would change nothing."""
    return bool(judgment.denied) or any(one.code == "needs-yes" for one in judgment.problems)


def open_writer(service: "FunctionService", settings: "Settings") -> MakerForAgents | None:
    """Return what writes for the agents of a workspace, if its settings name a maker."""
    open_model = service.parts.open_model
    if open_model is None or settings.maker is None:
        return None
    maker = FunctionMaker(settings.maker, partial(open_model, settings.maker))
    return MakerForAgents(maker, service)


def mender_of(service: "FunctionService", settings: "Settings") -> FunctionMaker | None:
    """Return the model that fixes functions: the maker, or else the usual one."""
    open_model = service.parts.open_model
    if open_model is None:
        return None
    return FunctionMaker(settings.maker or "the usual model", partial(open_model, settings.maker))


def callable_functions(names: Sequence[str], own: str, snapshot: "Snapshot") -> tuple[str, str]:
    """Return a fact for the maker of the function `own`: these other functions, each with the way to call it."""
    lines = list[str]()
    visible_names = snapshot.functions.keys() - snapshot.hidden - {own}
    for function in (snapshot.functions[name] for name in names if name in visible_names):
        first = function.description.partition("\n")[0]
        how = (
            "self.call"
            if function.takes_self
            else f"from functions.{function.module} import {function.name}"
        )
        lines.append(f"{signature(function)} - {first} ({how})")
    return "Functions it can call", visible("\n".join(lines))


def shown_refusal(plan: "PlannedChange") -> str:
    """Return the reason for a refusal, for the maker; a question about results becomes a request for examples."""
    calls = plan.detail.challenges if isinstance(plan.detail, Judgment) else ()
    if not calls:
        return plan.text
    return "\n".join([_UNSETTLED, *calls])
