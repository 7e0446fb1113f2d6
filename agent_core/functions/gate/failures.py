"""A failing call: whether the function may raise the error, what excuses it, and how it is described. Pure.

A function may raise what its docstring, an example or a `raise` names. The class hierarchy is known for builtins and a
few other exceptions; any other class only matches by its name.
"""

import ast
import builtins
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_core.base.untrusted import fence
from agent_core.registry import docstring
from sandbox import Killed, Outcome, Raised, TimedOut

from .tree import nodes_of

if TYPE_CHECKING:
    from .call_arguments import Arguments
    from .draft import TrialSubject

_CRASHES = frozenset({"TypeError", "AttributeError", "RecursionError", "AssertionError", "ReturnTypeError", "Killed"})
_CODES = {"TimedOut": "hangs-on", "Unsendable": "not-json", "UnboundLocalError": "crashes"}
_NAME = re.compile(r"name '(\w{1,100})'")
_MUCH = 1000
_ENDLESS = frozenset({"count", "cycle", "repeat", "iter", "append", "extend", "add", "update", "insert"})


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A failing call and its outcome; `unlike` are the parameters with values unlike those of all examples.

    `allowed_s` is the time limit of a call if this one may only be slow; 0 if it looks endless.
    """

    call: "Arguments"
    outcome: Raised | TimedOut | Killed
    unlike: tuple[str, ...] = ()
    allowed_s: float = 0.0

    @property
    def kind(self) -> tuple[str, int]:
        """The identity of a failure: the error and its line."""
        if not isinstance(self.outcome, Raised):
            return type(self.outcome).__name__, 0
        is_endless = self.outcome.failure.type == "RecursionError"  # raised at any line of the cycle
        return self.outcome.failure.type, 0 if is_endless else line_of(self.outcome)

    def is_like(self, call: "FailedCall") -> bool:
        """Return whether two failures are the same; running out of time and running out of memory count as one."""
        return self.kind == call.kind or (self._is_endless and call._is_endless)

    @property
    def _is_endless(self) -> bool:
        return not isinstance(self.outcome, Raised) or self.outcome.failure.type == "MemoryError"

    @property
    def rank(self) -> tuple[bool, int]:
        """The sort key: failures with arguments like those of examples first, then the shortest."""
        return bool(self.unlike), len(repr(self.call))

    @property
    def code(self) -> str:
        """The code of the problem; with arguments unlike all examples only a warning, except for undefined names."""
        kind = self.kind[0]
        if self._lacks_a_name:
            return "crashes"
        if self.unlike:
            return "fails-on"
        if kind == "TimedOut" and self.allowed_s:
            return "slow-on"
        return _CODES.get(kind, "crashes" if kind in _CRASHES else "fails-on")

    @property
    def _lacks_a_name(self) -> bool:
        """True if the line that raised uses an undefined name, which no arguments can excuse."""
        if not isinstance(self.outcome, Raised) or self.kind[0] != "NameError":
            return False
        frames, name = self.outcome.failure.frames, _NAME.search(self.outcome.failure.message)
        return bool(frames and name and name[1] in frames[-1].source)


def line_of(outcome: Outcome) -> int:
    """Return the line that raised, or 0."""
    frames = outcome.failure.frames if isinstance(outcome, Raised) else ()
    return frames[-1].line if frames else 0


def describe_failure(failed: FailedCall, call: str) -> str:
    """Return what happens, where, and which arguments are unlike those of all examples."""
    names = " and ".join(f"`{name}`" for name in failed.unlike[:2])
    unseen = f"; no example has such a value of {names}" if names and failed.code == "fails-on" else ""
    if failed.code == "slow-on" and isinstance(failed.outcome, TimedOut):
        taken = f"takes longer than {failed.outcome.limit_s:g} s"
        return f"{fence(call, 160)} {taken}; the limit of a call is {failed.allowed_s:g} s"
    return f"{fence(call, 160)} {describe_outcome(failed.outcome)}{unseen}"


def describe_outcome(outcome: Raised | TimedOut | Killed) -> str:
    """Return a description of how a call failed."""
    match outcome:
        case Raised(failure=failure):
            at = f" at {fence(failure.frames[-1].source.strip(), 120)}" if failure.frames else ""
            return f"raises {fence(f'{failure.type}: {failure.message}'.rstrip(': '), 200)}{at}"
        case TimedOut(limit_s=limit_s):
            return f"does not end within {limit_s:g} s"
        case Killed(reason=reason):
            return f"is stopped: {fence(reason)}"


def fix_of(failed: FailedCall) -> str:
    """Return a fix for the failure."""
    kind = failed.kind[0]
    if failed.code == "slow-on":
        return "make it faster if such arguments are meant"
    if kind in _FIXES:
        return _FIXES[kind]
    named = f"`{kind}`" if kind.isidentifier() and kind.isascii() else "the exception"
    return f"handle that case, or name {named} under `Raises:` if it is meant"


_FIXES = {
    "NameError": "define that name, or fix its spelling",
    "UnboundLocalError": "give that variable a value on every way to this line",
    "ReturnTypeError": "return what the hint promises, or widen the hint",
    "Unsendable": "return text, numbers, lists or dictionaries",
    "TimedOut": "look for a loop that these arguments never end; if it is only slow, show that by an example",
    "Killed": "fix the body where it asks for too much",
}


# Standard library exceptions that a named base class covers.
_KINDS = {
    "JSONDecodeError": "ValueError",
    "StatisticsError": "ValueError",
    "ValidationError": "ValueError",
    "ZoneInfoNotFoundError": "KeyError",
    "InvalidOperation": "ArithmeticError",
    "DivisionByZero": "ZeroDivisionError",
    "DivisionUndefined": "ZeroDivisionError",
}


def known_errors(subject: "TrialSubject") -> frozenset[str]:
    """Return the names of the exceptions that a function is expected to raise."""
    described = docstring.read(ast.get_docstring(subject.node)).raises
    shown = (example.raises.partition(":")[0].strip() for example in subject.function.examples)
    raised = [node.exc for node in nodes_of(subject.tree) if isinstance(node, ast.Raise) and node.exc is not None]
    kinds = (ast.unparse(error.func if isinstance(error, ast.Call) else error) for error in raised)
    return frozenset(name.rpartition(".")[2] for name in (*described, *shown, *kinds) if name)


def is_right(raised: Raised, names: frozenset[str]) -> bool:
    """Check whether an exception is expected: it is named, is a subclass of a named one, or comes from a `raise`."""
    frames = raised.failure.frames
    if frames and frames[-1].source.lstrip().startswith("raise "):
        return True
    kind = raised.failure.type.rpartition(".")[2]
    known_class = _BUILTIN.get(_KINDS.get(kind, kind))
    bases = tuple(_BUILTIN[name] for name in names & _BUILTIN.keys())
    return kind in names or (known_class is not None and issubclass(known_class, bases))


def may_loop(tree: ast.Module, name: str) -> bool:
    """Check whether code may run forever: by `while`, recursion, an endless iterator or a growing list."""
    calls = [node.func for node in nodes_of(tree) if isinstance(node, ast.Call)]
    called = {func.id if isinstance(func, ast.Name) else getattr(func, "attr", "") for func in calls}
    return bool(called & (_ENDLESS | {name})) or any(isinstance(node, ast.While) for node in nodes_of(tree))


def is_much(value: object) -> bool:
    """Check whether arguments contain a number or collection so large that processing may take long."""
    if isinstance(value, int | float):
        return abs(value) > _MUCH
    if isinstance(value, str | bytes):
        return len(value) > _MUCH
    if isinstance(value, dict):
        return len(value) > _MUCH or any(map(is_much, value.values()))
    return isinstance(value, list | tuple | set | frozenset) and (len(value) > _MUCH or any(map(is_much, value)))


_BUILTIN: dict[str, type] = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}
