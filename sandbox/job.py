"""A job for a worker as a value: the module, the work to do with it, and its limits and options.

A job is plain data until it runs: it can be stored, passed on, and changed with `dataclasses.replace`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from .access import NOTHING, Access
from .code import Modules
from .outcome import Outcome
from .policy import Limits
from .processes.debugging import PLAIN, CallHooks
from .processes.ends import OnOutput
from .wire.large import Large, LargeValues
from .wire.protocol import Frame as Message
from .wire.requests import RequestHandler
from .wire.values import encode, lean


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The call `functions.<module>.<function>(**arguments)`."""

    function: str
    arguments: Mapping[str, Any]  # values that can be sent to a worker

    def to_json(self) -> Message:
        """Return the message for the worker. Raise Unsendable if an argument cannot be sent."""
        return {"kind": "call", "function": self.function, "arguments": lean(dict(self.arguments))}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A doctest example in a copy of the module's namespace: `setup` runs first, then `expression` gives the value.

    If it `asks`, it requests files from the handler, as calls do.
    """

    setup: tuple[str, ...]
    expression: str
    asks: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The code that runs in addition to the module."""
        return (*self.setup, self.expression)

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Pairs of a file name in traceback frames and its code."""
        numbered = [(f"<setup {number}>", text) for number, text in enumerate(self.setup, start=1)]
        return [*numbered, ("<example>", self.expression)]

    def to_json(self) -> Message:
        """Return the message for the worker."""
        return {
            "kind": "evaluate",
            "setup": list(self.setup),
            "expression": self.expression,
            "asks": self.asks,
        }


@dataclass(frozen=True, slots=True)
class ModuleImport:
    """An import of the module, which returns None. It tells the handler which files it looks for."""

    def to_json(self) -> Message:
        """Return the message for the worker."""
        return {"kind": "load", "asks": True}


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """A program: lines of Python that call `functions` by name (name → parameters in order). It returns a dictionary.

    `kept` are initial variables, as JSON texts or large values; `began` is the time of its first run, in seconds since
    the epoch. Each call is a request `inner` with `function` and `rows`; its answer is a list with `value` or `failed`
    for each row.
    """

    code: str
    functions: Mapping[str, Sequence[str]]
    kept: Mapping[str, str | Large]
    began: float

    @property
    def texts(self) -> tuple[str, ...]:
        """The code that runs in addition to the module, which is empty."""
        return (self.code,)

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Pairs of a file name in traceback frames and its code."""
        return [("program.py", self.code)]

    def to_json(self) -> Message:
        """Return the message for the worker."""
        functions = {name: list(parameters) for name, parameters in self.functions.items()}
        given = {"functions": functions, "kept": encode({**self.kept}), "began": self.began}
        return {"kind": "program", "code": self.code, **given}


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """A request for the schemas of functions: {function: {parameter: JSON Schema}}, as the worker claims.

    A schema that cannot be made, or all those of a function, is replaced by a text with the reason.
    """

    functions: Sequence[str]

    def to_json(self) -> Message:
        """Return the message for the worker."""
        return {"kind": "describe", "functions": list(self.functions), "asks": True}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: an example, or the arguments of a call. `text` replaces the module's source (a mutant).

    `most_s` is a timeout for this attempt, if it is shorter than `each_s`.
    """

    work: Evaluation | Mapping[str, Any]  # values that can be sent to a worker
    text: str | None = None
    most_s: float = math.inf


Then: TypeAlias = Callable[[Sequence[Outcome | None]], Sequence[Attempt]]
"""Returns the next attempts, given all outcomes so far; an empty result ends the series."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """A series of attempts at a module and one of its functions, each with a timeout of `each_s`. `then` adds more.

    Patient attempts get more time on a busy machine, where they wait for a processor. The code of the first
    attempts decides which packages are preloaded.
    """

    function: str
    attempts: Sequence[Attempt]
    each_s: float
    then: Then | None = None
    is_patient: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The code that runs in addition to the module."""
        works = [attempt.work for attempt in self.attempts]
        return tuple(text for work in works if isinstance(work, Evaluation) for text in work.texts)

    def to_json(self) -> Message:
        """Return the message that precedes the attempts."""
        return {"kind": "attempts", "function": self.function}


DEFAULT: Final = Limits()
Work: TypeAlias = FunctionCall | Evaluation | ModuleImport | SchemaRequest | ProgramJob
W = TypeVar("W", bound=Work | Attempts, covariant=True)


@dataclass(frozen=True, slots=True)
class Job(Generic[W]):
    """A job: the work of one worker on `module`, with its limits and options.

    `handler` answers its requests, `on_output` gets its printed output, and `large` keeps values that are too large for
    a frame. Of the options, attempts use only limits and access.
    """

    modules: Modules
    module: str
    work: W
    limits: Limits = DEFAULT
    access: Access = NOTHING
    handler: RequestHandler | None = None
    around: CallHooks = PLAIN
    on_output: OnOutput | None = None
    large: LargeValues | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The code that runs in addition to the module."""
        return self.work.texts if isinstance(self.work, Evaluation | Attempts | ProgramJob) else ()
