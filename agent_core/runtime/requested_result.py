"""The result that a helper must return: one value of its type, by call or as text, with one chance to correct it.

It is validated by the same code as every function's arguments, so that no other value reaches the caller.
"""

import json
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.fences import without_fence
from agent_core.base.offload import aside
from agent_core.base.records import dataclass, field
from agent_core.base.untrusted import shorten
from agent_core.registry.arguments import read as read_arguments
from sandbox.wire.strict_json import Malformed, read_json

from .dispatch import GIVE
from .host_functions import HostFunction
from .loop import DirectReplyPolicy, StepResult
from .turn_end import Ended, GoOn

if TYPE_CHECKING:
    from agent_core.base.problem import Problem
    from agent_core.registry.function import Function

_MOST_FAULTS: Final = 2
_LONGEST_FAULT: Final = 600


@dataclass(slots=True)
class RequestedResult:
    """The result of one run; `function` is the call that returns it, and its parameter `result` has the type."""

    function: "Function"
    value: Any = None  # Any: JSON that fits the type
    is_given: bool = False
    faults: list[str] = field(default_factory=list)

    @property
    def host(self) -> HostFunction:
        """The function in the form that the dispatcher offers."""
        return HostFunction(self.function, self._give)

    @property
    def type_name(self) -> str:
        """The type as written in the helper's file."""
        return self.function.returns

    async def _give(
        self, _: object, /, result: Any
    ) -> str:  # Any: JSON that was validated as an argument
        self.value, self.is_given = result, True
        return "The caller has the result."

    def take_text(self, text: str) -> bool:
        """Take the result from a reply without a call if the whole text is a valid value; return whether it was."""
        kinds = self.function.parameters["properties"]["result"]
        if kinds.get("type") == "string" and not kinds.keys() & {"enum", "const", "format"}:
            self.value, self.is_given = text.strip(), bool(text.strip())
            return self.is_given
        try:
            value = read_json(without_fence(text))
            written = json.dumps({"result": value})
        except (Malformed, ValueError, RecursionError):
            return False
        arguments = read_arguments(written, self.function.parameters)
        if isinstance(arguments, dict):
            self.value, self.is_given = arguments["result"], True
        else:
            self.note(arguments)
        return self.is_given

    def note(self, problems: tuple["Problem", ...] | str) -> None:
        """Record a result that did not fit."""
        text = (
            problems
            if isinstance(problems, str)
            else "; ".join(problem.message for problem in problems)
        )
        self.faults.append(shorten(text, _LONGEST_FAULT))


@dataclass(slots=True)
class ResultPolicy(DirectReplyPolicy):
    """The policy of a helper's turn: it ends with a valid result or after the second invalid one."""

    request: RequestedResult = field(kw_only=True)

    def speaking(self, *, by_function: bool) -> DirectReplyPolicy:
        """Return this policy, because a helper has only one way to answer."""
        return self

    async def _after_step(self, step: StepResult) -> GoOn | Ended:
        """Decide what follows a step whose calls are all answered."""
        request = self.request
        before = len(request.faults)
        for done in step.done:
            if done.call.name == GIVE and done.failed:
                request.note(done.text)
        text = step.reply.text
        if not step.done and step.reply.finish != "length" and text.strip():
            is_taken = await aside(len(text), request.take_text, text)
            if not is_taken and len(request.faults) == before:
                request.note(f"the reply was text, and no call of {GIVE}")
        if request.is_given:
            return Ended("replied", "The result was given.")
        if len(request.faults) >= _MOST_FAULTS:
            return Ended(
                "failed",
                warning=f"no result of the type `{request.type_name}`: {request.faults[-1]}",
            )
        if len(request.faults) > before:
            advice = (
                f"Your result has to be of the type `{request.type_name}`: {request.faults[-1]}."
            )
            return GoOn(f"{advice} Call {GIVE} with it. This is your last chance.")
        return await DirectReplyPolicy._after_step(self, step)
