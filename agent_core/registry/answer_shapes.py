"""The shape that an answer must have: a type, a JSON Schema, or fields such as `name, age int`; and its value.

The model is always asked for an object: another value is asked for as the `answer` in one.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.errors import TurnError, UsageError
from agent_core.base.late import LateModule
from agent_core.base.problem import Place
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from sandbox.wire.definitions import with_definitions
from sandbox.wire.strict_json import Malformed, read_json

from .schema import Signature, read_signature
from .typenames import Schema
from .validation import check_schema, schemas_in

if TYPE_CHECKING:
    from sandbox.inside import annotations
else:  # for types alone
    annotations = LateModule("sandbox.inside.annotations")

MAX_SCHEMA_BYTES: Final = 64 << 10
_UNCHECKED: Final = ("pattern", "patternProperties", "uniqueItems", "unevaluatedProperties")
_WRAPPER: Final = "answer"
_OPENING_BRACKETS: Final = "[({"
_CLOSING_BRACKETS: Final = "])}"
_FIELDS_FIX: Final = "Write fields such as 'name, age int, tags list[str]: up to three words'."


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """The shape of an answer: its `schema`, which is that of an object, and the type of its value if there is one."""

    schema: Schema
    kind: object = None
    is_wrapped: bool = False

    @classmethod
    def of(cls, result: object) -> "AnswerShape":
        """Return the shape that a program or a person names: a type, a JSON Schema, or a text with fields or a schema.

        Raises:
            UsageError: no answer can have it.
        """
        if isinstance(result, str):
            return cls.of_text(result)
        if isinstance(result, Mapping):
            return cls.of_schema(dict(result))
        schema = annotations.schema_of(result)
        if isinstance(schema, str):
            what = f"No answer can have the type `{one_line(annotations.words(result), 80)}`"
            raise UsageError(f"{what}: {one_line(schema, 300)}.", fix="Name another type.")
        return cls._of_any(schema, result)

    @classmethod
    def of_text(cls, text: str) -> "AnswerShape":
        """Return the shape in a text: a JSON Schema, fields as in `name, age int`, or `[…]` for a list of such objects.

        Raises:
            UsageError: it is neither.
        """
        text = text.strip()
        if not text.startswith("{"):
            is_list = text.startswith("[") and text.endswith("]")
            fields = _fields_schema(text[1:-1] if is_list else text)
            return cls._of_any({"type": "array", "items": fields} if is_list else fields)
        try:
            schema = read_json(text)
        except Malformed as error:
            fix = "Write one JSON object."
            raise UsageError(f"The schema is not JSON: {error}.", fix=fix) from error
        return cls.of_schema(schema)

    @classmethod
    def of_schema(cls, schema: dict[str, Any]) -> "AnswerShape":  # Any: JSON
        """Return the shape in a JSON Schema.

        Raises:
            UsageError: it is none that is kept here.
        """
        shape = cls._of_any({key: value for key, value in schema.items() if key != "$schema"})
        if (why := schema_fault(shape.schema)) is not None:
            raise UsageError(f"The schema cannot be kept: {why}.", fix="Simplify it.")
        return shape

    @classmethod
    def _of_any(cls, schema: Schema, kind: object = None) -> "AnswerShape":
        if schema.get("type") == "object":
            return cls(schema, kind)
        definitions: Schema = {}
        properties = {_WRAPPER: with_definitions(schema, definitions)}
        whole: Schema = {"type": "object", "properties": properties, "required": [_WRAPPER]}
        whole |= {"additionalProperties": False}
        if definitions:
            whole["$defs"] = definitions
        return cls(whole, kind, is_wrapped=True)

    @property
    def terms(self) -> dict[str, Any]:  # Any: JSON
        """The terms of a message whose reply must have it, with its `response_format`."""
        described = {"name": _WRAPPER, "schema": self.schema}
        return {"shape": {"type": "json_schema", "json_schema": described}}

    def value(self, answer: Mapping[str, Any]) -> Any:  # Any: JSON, or what the type makes of it
        """Return the value of an answer that fits the schema, made of its type if there is one.

        Raises:
            TurnError: the type does not take it.
        """
        value = answer[_WRAPPER] if self.is_wrapped else answer
        if self.kind is None:
            return value
        try:
            return annotations.build(value, self.kind, _WRAPPER)
        except annotations.Unfit as error:
            raise TurnError(f"The answer does not fit: {one_line(str(error), 600)}.") from error

    def read(self, reply: str) -> Any:  # Any: as `value` returns it
        """Return the value of a reply that ended a turn with this shape.

        Raises:
            TurnError: the type does not take it, or the reply has another shape.
        """
        try:
            answer = read_json(reply)
        except Malformed:
            answer = None
        if not isinstance(answer, dict) or (self.is_wrapped and _WRAPPER not in answer):
            came = one_line(reply, 600)
            raise TurnError(f"The reply has another shape than was asked for. What came: {came}")
        return self.value(answer)

    def fault(self, answer: Mapping[str, Any]) -> str:  # Any: JSON
        """Return why the type does not take an answer that fits the schema, or an empty text."""
        try:
            self.value(answer)
        except TurnError as error:
            return error.message
        return ""


def schema_fault(schema: Schema) -> str | None:
    """Return why replies are not kept to a schema here, or None."""
    if schema.get("type") != "object":
        return 'it has to be of {"type": "object"}'
    if len(json.dumps(schema)) > MAX_SCHEMA_BYTES:
        return f"it has more than {MAX_SCHEMA_BYTES >> 10} KiB"
    if (problem := check_schema(schema)) is not None:
        return problem.message
    for keyword in _UNCHECKED:
        if any(keyword in part for part in schemas_in(schema)):
            return f"`{keyword}` is not checked here, since it can take without end"
    return None


def _fields_schema(text: str) -> Schema:
    """Return the schema of an object with the fields in a text, separated by commas, or one on each line.

    Raises:
        UsageError: a field has no name or no such type.
    """
    inputs: dict[str, str] = {}
    for field in _split(text, "\n" if "\n" in text else ","):
        named, *described = _split(field, ":", most=1)
        name, *typed = named.split(None, 1)
        kind = typed[0] if typed else "str"
        if described:
            kind = f"Annotated[{kind}, {described[0]!r}]"
        if name in inputs:
            raise UsageError(f"`{one_line(name, 80)}` is there twice.", fix=_FIELDS_FIX)
        inputs[name] = kind
    if not inputs:
        raise UsageError("The shape of the answer has no fields.", fix=_FIELDS_FIX)
    read = read_signature(
        Signature(_WRAPPER, "", inputs, "None"), _WRAPPER, _WRAPPER, lambda _: Place(_WRAPPER)
    )
    if isinstance(read, tuple):
        problems = "; ".join(dict.fromkeys(problem.message for problem in read))
        raise UsageError(f"The shape of the answer cannot be read: {problems}.", fix=_FIELDS_FIX)
    return read.parameters


def _split(text: str, mark: str, most: int = -1) -> Iterator[str]:
    """Yield the parts of a text between marks that are in no brackets, at most so many marks; no empty parts."""
    depth = 0
    start = 0
    for place, sign in enumerate(text):
        if sign in _OPENING_BRACKETS:
            depth += 1
        elif sign in _CLOSING_BRACKETS:
            depth = max(depth - 1, 0)
        elif sign == mark and not depth and most:
            if part := text[start:place].strip():
                yield part
            start = place + 1
            most -= 1
    if part := text[start:].strip():
        yield part
