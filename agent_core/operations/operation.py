"""What an operation is: its signature is the grammar of every face, and its docstring the help."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum, auto
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
)

from agent_core.base.extensions import VERBS, offers
from agent_core.base.late import LateModule
from agent_core.base.records import dataclass, field

from .words import kind_of, word_of

if TYPE_CHECKING:  # `knapper --help` must not load the service
    from agent_core.functions.service import Author, FunctionService, plan
    from agent_core.storage import CallOwners
else:
    plan = LateModule("agent_core.functions.service.plan")

Body: TypeAlias = Callable[..., Awaitable[object]]
Question: TypeAlias = Callable[..., Awaitable[tuple[str, str]]]
B = TypeVar("B", bound=Body)
Scope: TypeAlias = Literal["chat", "read", "edit", "approve", "admin"]
LoadVerb: TypeAlias = Callable[[], object]
"""What an extension has for a verb, such as `functions audit`: it loads what is an `Operation`, or else a command."""
_OPERATIONS: Final[dict[str, dict[str, "Operation"]]] = {}
_PLAN: Final = "PlannedChange"
_SENTENCE: Final = re.compile(r".*?\.(?=\s|\Z)", re.DOTALL)
_MEANING: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


class Here(Protocol):
    """Where an operation runs: an agent, or a face with an open workspace."""

    @property
    def functions(self) -> "FunctionService":
        """The functions of the workspace."""

    @property
    def author(self) -> "Author":
        """Who changes something, and is asked about grants."""

    @property
    def owners(self) -> "CallOwners":
        """The agents whose calls may be read; None is all."""


class Opens(Enum):
    """The workspace that a command needs: a normal, a readable or a grant-asking one, any (even empty), or none.

    To call a function, grants are asked for as well, but files that are saved meanwhile are not followed.
    """

    WORKSPACE = auto()
    READABLE = auto()
    ASKING = auto()
    CALLING = auto()
    MACHINE = auto()
    NOTHING = auto()


@dataclass(slots=True, eq=False)
class Operation:
    """One definition of something that can be asked; it decorates what does it, whose name is the verb.

    A token needs one of the `scopes`. Without a `path`, it follows from noun and verb; reading is a GET. `gives` names
    the type of the result. `tool` is the name of the model's function, `slash` that of the prompt's command, which
    `prompt` describes. `asks` returns the question that a person at a prompt is asked before, with a digest of what it
    is about. `try_it` is an example: words for the shell.
    """

    noun: str
    scopes: tuple[Scope, ...] = ("read",)
    opens: Opens = Opens.READABLE
    path: tuple[str, str] = ("", "")
    gives: str = ""
    tool: str = ""
    slash: str = ""
    prompt: Mapping[str, Any] = field(default_factory=dict)  # Any: fields of a slash command
    asks: Question | None = None
    try_it: tuple[str, ...] = ("count_vowels",)
    verb: str = ""
    body: Body = field(init=False)

    def __call__(self, body: B) -> B:
        """Define the operation."""
        self.body = body
        self.verb = body.__name__.strip("_").replace("_", "-")
        name = "/{name}" if self.parameters[:1] and self.parameters[0].name == "name" else ""
        if not any(self.path):
            method = "GET" if self.opens is Opens.READABLE else "POST"
            self.path = (method, f"/{self.noun}{name}/{self.verb}")
        self.gives = self.gives or inspect.signature(body).return_annotation
        _OPERATIONS.setdefault(self.noun, {}).setdefault(self.verb, self)
        return body

    @property
    def text(self) -> str:
        """Its docstring."""
        return inspect.getdoc(self.body) or ""

    @property
    def help(self) -> str:
        """What it does, for people."""
        return self.text.partition("\n\nArgs:")[0]

    @property
    def summary(self) -> str:
        """What it does, in one sentence."""
        first = _SENTENCE.match(self.help)
        return " ".join(first[0].split()) if first else self.help

    @property
    def meanings(self) -> dict[str, str]:
        """What its parameters mean, by name."""
        return {name: " ".join(text.split()) for name, text in _MEANING.findall(self.text)}

    @property
    def parameters(self) -> Sequence[inspect.Parameter]:
        """Its parameters after the first, which is where it runs."""
        return [*inspect.signature(self.body).parameters.values()][1:]

    @property
    def tool_text(self) -> str:
        """The source of the model's function, which is read like that of every function."""
        text = self.text
        taken = ["self"]
        for each in self.parameters:
            name = word_of(each).for_models or each.name
            text = text.replace(f"\n    {each.name}: ", f"\n    {name}: ")
            taken.append(str(each.replace(name=name, annotation=kind_of(each))))
        returned = inspect.signature(self.body).return_annotation
        # A plan by its name: what changes functions is no function of a program. All else is told in a text.
        gives = returned if returned == _PLAN else "str"
        head = f"async def {self.tool}({', '.join(taken)}) -> {gives}:"
        return f'import typing\n\n\n{head}\n    """{text}"""\n'

    async def run(self, here: Here, **values: Any) -> object:  # Any: as it takes them
        """Run it outside of a turn and return the result; a change is carried out."""
        made = await self.body(here, **values)
        if isinstance(made, plan.PlannedChange):
            return await here.functions.make(made, here.author)
        return made


def verbs_beside(noun: str) -> list[object]:
    """Load and return the verbs that extensions add to a noun; of an operation, that defines it."""
    loads: Mapping[str, LoadVerb] = offers(VERBS)
    return [load() for words, load in loads.items() if words.partition(" ")[0] == noun]


def operations_of(noun: str) -> Mapping[str, Operation]:
    """Return the operations of a noun by verb: those that a module of this room defines, then those of extensions."""
    verbs_beside(noun)
    return _OPERATIONS.get(noun, {})


def all_operations() -> list[Operation]:
    """Return the operations of all nouns."""
    nouns = dict.fromkeys([*_OPERATIONS, *(words.partition(" ")[0] for words in offers(VERBS))])
    return [operation for noun in nouns for operation in operations_of(noun).values()]
