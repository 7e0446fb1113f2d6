"""One job for a worker, as a value: which module of which texts, what to do with it, and on which terms.

A job is data until it is run: it can be kept, sent on, and given other terms with `dataclasses.replace`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from .access import NOTHING, Access
from .code import Modules
from .outcome import Outcome
from .policy import Limits
from .processes.conversation import OnOutput
from .processes.debugging import PLAIN, CallHooks
from .wire.protocol import Frame as Message
from .wire.requests import RequestHandler
from .wire.values import encode


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The call `functions.<module>.<function>(**arguments)`."""

    function: str
    arguments: Mapping[str, Any]  # values that cross

    def to_json(self) -> Message:
        """Return the form that is sent to the worker. Raise Unsendable if an argument cannot cross."""
        return {"kind": "call", "function": self.function, "arguments": encode(dict(self.arguments))}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One doctest example, in a copy of the module's namespace: `setup` runs first, then `expression` is the value."""

    setup: tuple[str, ...]
    expression: str

    @property
    def texts(self) -> tuple[str, ...]:
        """The code that is evaluated next to the module."""
        return (*self.setup, self.expression)

    @property
    def labels(self) -> list[tuple[str, str]]:
        """The code by the name that it has in a failure's frames."""
        numbered = [(f"<setup {number}>", text) for number, text in enumerate(self.setup, start=1)]
        return [*numbered, ("<example>", self.expression)]

    def to_json(self) -> Message:
        """Return the form that is sent to the worker."""
        return {"kind": "evaluate", "setup": list(self.setup), "expression": self.expression}


@dataclass(frozen=True, slots=True)
class ModuleImport:
    """The import of the module alone. It returns None."""

    def to_json(self) -> Message:
        """Return the form that is sent to the worker."""
        return {"kind": "load"}


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """Lines of Python that call `functions` by name: name → its parameters in order. It returns a dictionary.

    `kept` are names that it begins with, as JSON texts; at `began`, in seconds since the epoch, it first ran. Each
    call is a request `inner` with `function` and `rows`, whose answer is a list with `value` or `failed` of each row.
    """

    code: str
    functions: Mapping[str, Sequence[str]]
    kept: Mapping[str, str]
    began: float

    @property
    def texts(self) -> tuple[str, ...]:
        """The code that is run next to the module, which is empty."""
        return (self.code,)

    @property
    def labels(self) -> list[tuple[str, str]]:
        """The code by the name that it has in a failure's frames."""
        return [("program.py", self.code)]

    def to_json(self) -> Message:
        """Return the form that is sent to the worker."""
        functions = {name: list(parameters) for name, parameters in self.functions.items()}
        given = {"functions": functions, "kept": {**self.kept}, "began": self.began}
        return {"kind": "program", "code": self.code, **given}


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """The schemas of functions as {function: {parameter or "return": JSON Schema}}, as the worker claims them.

    In the place of a schema, or of all those of a function, stands a text if there is none: the reason.
    """

    functions: Sequence[str]

    def to_json(self) -> Message:
        """Return the form that is sent to the worker."""
        return {"kind": "describe", "functions": list(self.functions)}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: an example, or the arguments of a call. `text` replaces the module's source (a mutant).

    `most_s` is for one that may take less time than all.
    """

    work: Evaluation | Mapping[str, Any]  # values that cross
    text: str | None = None
    most_s: float = math.inf


Then: TypeAlias = Callable[[Sequence[Outcome | None]], Sequence[Attempt]]
"""What is to be tried next, of all outcomes until now; nothing ends it."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """Attempts at a module and one of its functions, of which each may take `each_s`. `then` gives more.

    Patient ones may take longer on a busy machine, where they wait for a processor. What runs next to the module is
    given by the first of them.
    """

    function: str
    attempts: Sequence[Attempt]
    each_s: float
    then: Then | None = None
    is_patient: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The code that is evaluated next to the module."""
        works = [attempt.work for attempt in self.attempts]
        return tuple(text for work in works if isinstance(work, Evaluation) for text in work.texts)

    def to_json(self) -> Message:
        """Return what is sent to the worker before the attempts."""
        return {"kind": "attempts", "function": self.function}


DEFAULT: Final = Limits()
Work: TypeAlias = FunctionCall | Evaluation | ModuleImport | SchemaRequest | ProgramJob
W = TypeVar("W", bound=Work | Attempts, covariant=True)


@dataclass(frozen=True, slots=True)
class Job(Generic[W]):
    """The work of one worker on `module`, and its terms.

    `handler` answers its requests. With a key to `keep` it runs in the worker that the last job with this key left.
    `on_output` hears what it prints. Attempts need limits and access alone: nobody answers or hears them.
    """

    modules: Modules
    module: str
    work: W
    limits: Limits = DEFAULT
    access: Access = NOTHING
    handler: RequestHandler | None = None
    keep: str = ""
    around: CallHooks = PLAIN
    on_output: OnOutput | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The code that is evaluated next to the module."""
        return self.work.texts if isinstance(self.work, Evaluation | Attempts | ProgramJob) else ()
