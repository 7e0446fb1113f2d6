"""API operations: a path, scopes, and typed parts that validate and describe requests.

They do not depend on HTTP: the server and the in-process client run the same operations. The parts parse the bodies of
all HTTP interfaces. The size of a list or mapping is checked before its elements, so that a request gets few problems
even if many elements are wrong. Large bodies are parsed in a thread.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar

from annotated_types import MaxLen
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic_core import PydanticCustomError

from agent_core.base.errors import KnapperError, UnknownName
from agent_core.base.offload import aside
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.functions.service import USER, Author, FunctionService
from agent_core.functions.service.judgment import Judgment
from agent_core.operations.history_pages import Hold, hold_freely
from agent_core.operations.operation import Operation, Scope
from agent_core.operations.words import word_of
from agent_core.storage import MAIN, AgentName, CallOwners, Line, line_named, line_of
from agent_core.workspace.helper_changes import HelperVerdict
from agent_core.workspace.workspace import Workspace
from sandbox.wire.strict_json import MESSAGE, Malformed, read_json

from .agent_host import Rooms
from .identity import ApiRefusal, Identity, rejected

API: Final = "/api/v1"
_PLACES: Final = re.compile(r"{(\w+)}")
MOST_KEYS: Final = 64  # in an object with known keys
MOST_PROBLEMS: Final = 20
_LONGEST_KEY: Final = 80  # characters shown of a key
P = TypeVar("P", bound="_BoundedPart")
Names: TypeAlias = Mapping[str, str]


class _BoundedPart(BaseModel):
    """A part that is rejected as a whole if it has too many keys, or too many elements in a field with `max_length`."""

    _longest: ClassVar[dict[str, int]]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:  # Any: as in pydantic
        cls._longest = {
            name: length.max_length
            for name, field in cls.model_fields.items()
            for length in field.metadata
            if isinstance(length, MaxLen)
        }

    @model_validator(mode="before")
    @classmethod
    def _is_small(cls, values: object) -> object:
        if isinstance(values, dict):
            _check_length("", len(values), MOST_KEYS)
            for name, most in cls._longest.items():
                if isinstance(value := values.get(name), list | dict):
                    _check_length(name, len(value), most)
        return values


class Part(_BoundedPart):
    """A part of a request. An unknown field is an error that names the field."""

    model_config = ConfigDict(extra="forbid", strict=False, str_max_length=1 << 20)


class Nothing(Part):
    """No fields."""


class OfConversation(Part):
    """The conversation that a request is about, by its id or its name."""

    conversation: Annotated[str, Field(max_length=200)] = MAIN


class Open(_BoundedPart):
    """A part of a request in another protocol. Unknown fields are kept, and values are not converted to other types."""

    model_config = ConfigDict(extra="allow", strict=True)


class InvalidBody(KnapperError):
    """The values in a request are invalid. `is_json` is true if the body was valid JSON.

    `problems` are the first problems, each with its path.
    """

    code = "invalid"

    def __init__(
        self, problems: Sequence[tuple[tuple[int | str, ...], str]], *, is_json: bool = True
    ) -> None:
        self.problems = [
            (tuple(one_line(str(place), _LONGEST_KEY) for place in places), message)
            for places, message in problems[:MOST_PROBLEMS]
        ]
        self.is_json = is_json
        places, message = self.problems[0]
        super().__init__(f"{'.'.join(places)}: {message}" if places else message)


async def read_part(kind: type[P], body: bytes) -> P:
    """Parse a request body.

    Raises:
        InvalidBody: the body is not JSON or has invalid values.
    """
    return await aside(len(body), _read, kind, body)


def checked(kind: type[P], values: object) -> P:
    """Return a part with these values.

    Raises:
        InvalidBody: the values are invalid.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        rows = error.errors(include_url=False, include_context=False, include_input=False)
        raise InvalidBody([(row["loc"], row["msg"]) for row in rows]) from error


def _read(kind: type[P], body: bytes) -> P:
    try:
        value = read_json(body, MESSAGE)
    except Malformed as error:
        raise InvalidBody([((), f"{error}")], is_json=False) from error
    return checked(kind, value)


def _check_length(name: str, length: int, most: int) -> None:
    if length > most:
        what = f"`{name}` may have" if name else "An object here may have"
        context = {"most": most, "length": length}
        raise PydanticCustomError("too_long", f"{what} {{most}} entries, not {{length}}", context)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its sender, the rooms that it uses, the last event that a stream's client had, and its trace.

    It may `hold` only so much of a history until it is answered.
    """

    rooms: Rooms
    identity: Identity
    last_event: str = ""
    trace: str = ""
    hold: Hold = hold_freely

    @property
    def workspace(self) -> Workspace:
        """The open workspace."""
        return self.rooms.workspace

    @property
    def functions(self) -> FunctionService:
        """The functions of the workspace."""
        return self.rooms.workspace.functions

    async def line(self, agent: AgentName, conversation: str) -> Line:
        """Return the line of a conversation of an agent.

        Raises:
            UnknownName: there is none, or it is private to another token.
        """
        named = line_of(agent, conversation)
        if conversation != MAIN and self.identity.may_reach(named):
            row = await self.rooms.conversations(agent, self.identity).find(conversation)
            named = line_named(row.line)
        # A token that is limited gives ids: what is near another name would tell which conversations there are, and
        # a name that is the id of a deleted one would be another conversation.
        if not self.identity.may_reach(named):
            raise UnknownName(
                f"`{self.identity.name}` has no conversation `{one_line(conversation, 80)}`.",
                fix="Name one of those to which the token is limited, by its id.",
            )
        return named


Handler: TypeAlias = Callable[..., Awaitable[object]]


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """A method on a path. A token needs one of the `scopes`; if it `streams`, the response is an event stream.

    What is `in_a_conversation` reaches nothing else, so that a token that is limited to conversations may do it.
    """

    method: str
    path: str
    scopes: tuple[Scope, ...]
    summary: str
    handler: Handler
    body: type[Part] = Nothing
    query: type[Part] = Nothing
    status: int = 200
    streams: bool = False
    in_a_conversation: bool = False

    @property
    def names(self) -> list[str]:
        """The parameters in the path."""
        return _PLACES.findall(self.path)

    async def run(self, asked: Asked, path: Names, query: Names, body: bytes) -> object:
        """Check a request, run its handler, and return the result: for a stream, an asynchronous generator of frames.

        Raises:
            KnapperError: the request was refused or failed with an expected error.
        """
        asked.identity.needs(*self.scopes, in_a_conversation=self.in_a_conversation)
        where = "query"
        try:
            query_part = checked(self.query, dict(query))
            where = "body"
            is_empty = self.body is Nothing and not body.strip()
            body_part = await read_part(self.body, b"{}" if is_empty else body or b"{}")
        except InvalidBody as error:
            rows = [
                {"where": ".".join((where, *places)), "message": message}
                for places, message in error.problems
            ]
            fix = "See /openapi.json for what each operation takes."
            raise ApiRefusal(
                422, "invalid", "The request is not as it must be.", fix, rows
            ) from error
        given: dict[str, Any] = dict(path)  # Any: of handlers
        if "agent" in path:
            given["agent"] = await asked.rooms.known(path["agent"], asked.identity)
        parameters = _parameters(self.handler)
        if isinstance(query_part, OfConversation):
            given["line"] = await asked.line(given["agent"], query_part.conversation)
            if "agent" not in parameters:
                del given["agent"]
        for name, param in parameters.items():
            if param.annotation in (self.body, self.query):
                given[name] = body_part if param.annotation is self.body else query_part
            for read in getattr(param.annotation, "__metadata__", ()):
                given[name] = await read(asked, path[name])
        return await self.handler(asked, **given)


@cache
def _parameters(handler: Handler) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(handler).parameters


def api_operation(
    method: str,
    path: str,
    scopes: tuple[Scope, ...],
    summary: str,
    *,
    status: int = 200,
    streams: bool = False,
    in_a_conversation: bool = False,
) -> Callable[[Handler], ApiOperation]:
    """Make a handler the operation of a method and path; its docstring becomes the description.

    Its parameters are the path parameters and a part: the query for `GET` and `DELETE`, otherwise the body. An `agent`
    must exist for the token. With a `line`, the query names a conversation of the agent, and it gets the line. A path
    parameter annotated with a function gets the result of that function.
    """

    def decorate(handler: Handler) -> ApiOperation:
        hints = [param.annotation for param in _parameters(handler).values()]
        part = next(
            (hint for hint in hints if isinstance(hint, type) and issubclass(hint, Part)), Nothing
        )
        body, query = (Nothing, part) if method in ("GET", "DELETE") else (part, Nothing)
        is_in_one = "{agent}" in path and "line" in _parameters(handler)
        if is_in_one and query is Nothing:
            query = OfConversation
        return ApiOperation(
            method,
            f"{API}{path}",
            scopes,
            summary,
            handler,
            body,
            query,
            status,
            streams,
            in_a_conversation,
        )

    return decorate


# The methods of operations.


@dataclass(frozen=True, slots=True)
class Site:
    """Where an operation runs that was requested."""

    functions: FunctionService
    owners: CallOwners
    author: Author = USER


@cache
def api_of(operation: Operation) -> ApiOperation:
    """Return the method of the API for an operation: its parameters are in the path, and a query or a body."""
    method, path = operation.path
    fields: dict[str, Any] = {}
    for each in operation.parameters:
        if each.name not in _PLACES.findall(path):
            usual = ... if each.default is each.empty else each.default
            fields[each.name] = (_limited(each), usual)
    name = "".join(word.title() for word in (operation.noun, *operation.verb.split("-")))
    part: Any = create_model(name, __base__=Part, **fields) if fields else Nothing

    async def handler(asked: Asked, values: part, **named: str) -> object:
        site = Site(asked.functions, await asked.rooms.owners(asked.identity))
        return require_admitted(await operation.run(site, **named, **dict(values)))

    handler.__name__ = operation.verb
    handler.__doc__ = operation.help
    return api_operation(method, path, operation.scopes, operation.summary)(handler)


def _limited(parameter: inspect.Parameter) -> Any:  # Any: a type
    """Return the type of a parameter with the limits of its text, or of its list and the texts in it."""
    word = word_of(parameter)
    limit = Field(max_length=word.max_chars)
    if word.max_items is None:
        return Annotated[parameter.annotation, limit]
    most = Field(max_length=word.max_items, fail_fast=True)
    return Annotated[list[Annotated[str, limit]] | None, most]


def require_admitted(result: object) -> object:
    """Return a result; if it is a verdict that refuses, raise an error with the gate's problems."""
    if isinstance(result, Judgment) and not result.admitted:
        raise rejected(result, result.refusals, result.error)
    if isinstance(result, HelperVerdict) and not result.admitted:
        raise rejected(result, result.problems, result.denied)
    return result
