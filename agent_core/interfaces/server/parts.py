"""The parts of requests, and the parsing of request bodies for all HTTP interfaces.

The size of a list or mapping is checked before its elements, so that a request gets few problems even if many elements
are wrong. Large bodies are parsed in a thread.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, TypeVar

from annotated_types import MaxLen
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agent_core.base.errors import KnapperError
from agent_core.base.offload import aside
from agent_core.base.untrusted import one_line
from sandbox.wire.strict_json import MESSAGE, Malformed, read_json

from .failures import Json

MOST_KEYS: Final = 64  # in an object with known keys
MOST_PROBLEMS: Final = 20
_LONGEST_KEY: Final = 80  # characters shown of a key
P = TypeVar("P", bound="_BoundedPart")


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


class Open(_BoundedPart):
    """A part of a request in another protocol. Unknown fields are kept, and values are not converted to other types."""

    model_config = ConfigDict(extra="allow", strict=True)


class InvalidBody(KnapperError):
    """The values in a request are invalid. `is_json` is true if the body was valid JSON.

    `problems` are the first problems, each with its path.
    """

    code = "invalid"

    def __init__(self, problems: Sequence[tuple[tuple[int | str, ...], str]], *, is_json: bool = True) -> None:
        self.problems = [(tuple(map(_place_text, places)), message) for places, message in problems[:MOST_PROBLEMS]]
        self.is_json = is_json
        places, message = self.problems[0]
        super().__init__(f"{'.'.join(places)}: {message}" if places else message)

    def listed(self, where: str) -> Iterator[Json]:
        """Yield the problems in the form of a response; `where` is the part of the request."""
        for places, message in self.problems:
            yield {"where": ".".join((where, *places)), "message": message}


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


def _place_text(place: int | str) -> str:
    return one_line(str(place), _LONGEST_KEY)
