"""Schemas of strangers, read by the draft that they name, and written anew in the form that this program's own have.

Servers write drafts 3 to 2020-12 and OpenAPI, in languages that have one empty value or write `null` for what is not
there. All of it is understood here, so that no other module knows a second draft. A keyword in a form that no draft
has is left out and named: nobody takes it for checked. Only a schema that cannot be that of a call's arguments, refers
to what is not in it, or is too large cannot be used. Nothing is fetched, and no pattern is run.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote

from agent_core.base.records import dataclass, field
from agent_core.base.untrusted import shorten
from agent_core.registry.validation import check_schema

_TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_SCHEMA: Final = frozenset(
    {
        "items",
        "additionalProperties",
        "propertyNames",
        "contains",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    }
)
_SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED_SCHEMAS: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_WITH_SCHEMAS: Final = _SCHEMA | _SCHEMAS | _NAMED_SCHEMAS | {"dependencies"}
_BOUNDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_COUNTS: Final = frozenset(
    {
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "minContains",
        "maxContains",
    }
)
_TEXTS: Final = frozenset({"title", "description", "$comment", "format", "pattern"})
_NOTES: Final = frozenset(
    {"title", "description", "$comment", "deprecated", "readOnly", "writeOnly", "examples"}
)
_FLAGS: Final = frozenset({"uniqueItems", "deprecated", "readOnly", "writeOnly"})
_MAYBE_NULL: Final = frozenset({"const", "default"})
_EXCLUSIVE: Final = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}
_READ_WITH_OTHERS: Final = frozenset({"id", "definitions", "additionalItems", "nullable"})
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_IDS: Final = ("$id", "id")
_BESIDES_A_REFERENCE: Final = frozenset({*_NOTES, *_IDS, "$schema", "$ref", "$defs", "definitions"})
_LONE_REFERENCE: Final = re.compile(
    r"draft-0[3-7]\b"
)  # in these drafts, nothing next to a `$ref` counts
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME: Final = 60
_MAX_HOPS: Final = 10
_MAX_UNCHECKED: Final = (
    20  # parts of one schema that are told; a stranger's list may have a thousand in each
)
_MAX_PLACE: Final = 200
_NO_OBJECT: Final = "its schema describes no object"
_NOWHERE: Final = "its schema refers to another document, to nothing, or to itself without end"


class UnusableSchema(ValueError):
    """Raised when a schema cannot be that of a call's arguments; the message says why. Internal to the package."""


class _UnreadableKeyword(Exception):
    """Raised when no draft has a keyword in this form."""


@dataclass(frozen=True, slots=True)
class ForeignSchema:
    """The schema of a call's arguments, and where the stranger's has parts that cannot be read and are not checked."""

    schema: Mapping[str, Any] = field(hash=False)  # Any: JSON Schema
    unchecked: tuple[str, ...] = ()  # the first of them, each by its beginning


def read_schema(document: object, *, is_known: bool = False) -> ForeignSchema:
    """Return the schema of a call's arguments, from what a stranger says it is; nothing at all means no parameters.

    One that a person approved `is_known`: it was checked by the standard then, which takes milliseconds.

    Raises:
        UnusableSchema: it describes no object, refers to what is not in it, or is too large.
    """
    reader = _SchemaReader(document)
    try:
        schema = reader.read()
    except RecursionError:
        raise UnusableSchema("it refers on too often, or is nested too deeply") from None
    if not is_known and (problem := check_schema(schema)):
        raise UnusableSchema(problem.message)
    return ForeignSchema(schema, tuple(dict.fromkeys(reader.unchecked)))


class _SchemaReader:
    """One reading of one document. Parts that are referred to become `$defs`, wherever they stand in it."""

    def __init__(self, document: object) -> None:
        self.unchecked: list[str] = []
        self._document = document
        self._definitions: dict[str, Any] = {}  # Any: JSON Schema
        self._names: dict[int, str] = {}  # of definitions, by the ID of their part of the document

    def read(self) -> dict[str, Any]:  # Any: JSON Schema
        """Return the schema of an object."""
        root = self._document
        for _ in range(_MAX_HOPS):
            if not (
                isinstance(root, dict)
                and isinstance(root.get("$ref"), str)
                and root.keys() <= _BESIDES_A_REFERENCE
            ):
                break
            root = self._part(root["$ref"])
        if root is True or root is None or root == []:
            root = {}
        if not isinstance(root, dict):
            raise UnusableSchema(_NO_OBJECT)
        schema = self._object(root, "")
        kinds = schema.get("type", "object")
        if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
            raise UnusableSchema(_NO_OBJECT)
        schema["type"] = "object"
        if self._definitions:
            schema["$defs"] = self._definitions
        return schema

    def _leave_unchecked(self, place: str) -> None:
        if len(self.unchecked) < _MAX_UNCHECKED:
            self.unchecked.append(shorten(place, _MAX_PLACE))

    def _schema(self, given: object, place: str) -> Any:  # Any: a schema may be a boolean
        match given:
            case bool():
                return given
            case None | []:  # an empty object, of languages with one empty value
                return {}
            case dict():
                return self._object(given, place)
        self._leave_unchecked(place)
        return {}

    def _object(self, given: Mapping[str, Any], place: str) -> dict[str, Any]:  # Any: JSON Schema
        schema: dict[str, Any] = {}  # Any: JSON Schema
        references = [given[key] for key in _REFERENCES if isinstance(given.get(key), str)]
        if references:
            schema["$ref"] = self._reference(references[0])
            if self._has_lone_references:
                given = {key: value for key, value in given.items() if key in _NOTES}
        for key, value in given.items():
            inner = f"{place}.{key}".removeprefix(".")
            try:
                if value is not None or key in _MAYBE_NULL:
                    schema |= self._keyword(key, value, given, inner)
            except _UnreadableKeyword:
                self._leave_unchecked(inner)
        required = [*schema.get("required", ()), *_required_by_themselves(given.get("properties"))]
        if required:
            schema["required"] = [*dict.fromkeys(required)]
        if given.get("nullable") is True:
            _add_null(schema)
        if "array" in schema.get("type", ()):
            schema.setdefault("items", {})  # some endpoints refuse an array without
        return schema

    def _keyword(
        self, key: str, value: Any, given: Mapping[str, Any], place: str
    ) -> dict[str, Any]:  # Any: JSON
        """Return what a keyword means in the newest draft; nothing if it is read with another one.

        Raises:
            _UnreadableKeyword: it says nothing that can be understood.
        """
        if key in _READ_WITH_OTHERS or (key.startswith("$") and key not in _TEXTS):
            return {}
        if key in _BOUNDS:
            return _bound(key, value, given)
        if key in _WITH_SCHEMAS:
            return self._with_schemas(key, value, given, place)
        return _plain_keyword(key, value)

    def _with_schemas(
        self, key: str, value: Any, given: Mapping[str, Any], place: str
    ) -> dict[str, Any]:  # Any: JSON Schema
        if key == "items" and isinstance(value, list) and value:  # before the newest draft
            keywords: dict[str, Any] = {
                "prefixItems": self._list_of_schemas(value, place)
            }  # Any: JSON Schema
            rest = given.get("additionalItems")
            if rest is not None:
                keywords["items"] = self._schema(rest, f"{place}.additionalItems")
        elif key in _SCHEMA:
            keywords = {key: self._schema(value, place)}
        elif key == "dependencies" and isinstance(value, dict):
            keywords = self._dependencies(value, place)
        elif key in _NAMED_SCHEMAS and isinstance(value, dict):
            keywords = {
                key: {name: self._schema(part, f"{place}.{name}") for name, part in value.items()}
            }
        elif key in _SCHEMAS and isinstance(value, list) and value:
            keywords = {key: self._list_of_schemas(value, place)}
        elif value in ([], {}):
            keywords = {}
        else:
            raise _UnreadableKeyword
        return keywords

    def _list_of_schemas(self, parts: list[Any], place: str) -> list[Any]:  # Any: JSON
        return [self._schema(part, f"{place}.{at}") for at, part in enumerate(parts)]

    def _dependencies(
        self, given: Mapping[str, Any], place: str
    ) -> dict[str, Any]:  # Any: JSON Schema
        names = {name: part for name, part in given.items() if _are_texts(part)}
        schemas = {
            name: self._schema(part, f"{place}.{name}")
            for name, part in given.items()
            if name not in names
        }
        keywords = {"dependentRequired": names, "dependentSchemas": schemas}
        return {key: parts for key, parts in keywords.items() if parts}

    def _reference(self, reference: str) -> str:
        """Return the reference to a part, as `#` or `#/$defs/NAME`."""
        part = self._part(reference)
        if part is self._document:
            return "#"
        if id(part) not in self._names:
            name = (
                _NO_NAME.sub("_", unquote(reference).rpartition("/")[2].strip("#"))[:_MAX_NAME]
                or "part"
            )
            if name in self._definitions:
                name = f"{name}_{len(self._definitions)}"
            self._names[id(part)] = name  # before it is read: it may contain itself
            self._definitions[name] = {}
            self._definitions[name] = self._schema(part, f"$defs.{name}")
        return f"#/$defs/{self._names[id(part)]}"

    def _part(self, reference: str) -> dict[str, Any]:  # Any: JSON
        """Return the part of the document that a reference names.

        Raises:
            UnusableSchema: the document has no such part.
        """
        reference = reference.removeprefix(self._id)
        part: object = (
            self._document if reference in ("", "#") else self._named_parts.get(reference)
        )
        if reference.startswith("#/"):
            part = self._document
            for step in reference.split("/")[1:]:
                part = _part_below(part, unquote(step).replace("~1", "/").replace("~0", "~"))
        if not isinstance(part, dict):
            raise UnusableSchema(_NOWHERE)
        return part

    @cached_property
    def _has_lone_references(self) -> bool:
        document = self._document
        return isinstance(document, dict) and bool(
            _LONE_REFERENCE.search(str(document.get("$schema")))
        )

    @cached_property
    def _id(self) -> str:
        ids = [self._document.get(key) for key in _IDS] if isinstance(self._document, dict) else []
        return next((text.rstrip("#") for text in ids if isinstance(text, str)), "")

    @cached_property
    def _named_parts(self) -> dict[str, Any]:  # Any: JSON
        """The parts with an anchor or an ID, by what refers to them."""
        parts: dict[str, Any] = {}  # Any: JSON
        waiting: list[object] = [self._document]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict):
                names = [part[key] for key in _IDS if isinstance(part.get(key), str)]
                names += [f"#{part[key]}" for key in _ANCHORS if isinstance(part.get(key), str)]
                parts |= dict.fromkeys(names, part)
                waiting += part.values()
            elif isinstance(part, list):
                waiting += part
        return parts


def _part_below(part: object, name: str) -> object:
    if isinstance(part, dict):
        return part.get(name)
    if isinstance(part, list) and name.isdecimal():
        return next((item for at, item in enumerate(part) if str(at) == name), None)
    return None


def _required_by_themselves(properties: object) -> Iterator[str]:
    """Yield the properties that say of themselves that they are required, as in draft 3."""
    if isinstance(properties, dict):
        for name, part in properties.items():
            if isinstance(part, dict) and part.get("required") is True:
                yield name


def _add_null(schema: dict[str, Any]) -> None:  # Any: JSON Schema
    """Let a schema accept `null`, as OpenAPI writes it."""
    kinds = schema.get("type")
    if isinstance(kinds, str):
        schema["type"] = [*dict.fromkeys([kinds, "null"])]
    if None not in schema.get("enum", [None]):
        schema["enum"] = [*schema["enum"], None]


def _bound(key: str, value: Any, given: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return a bound, which draft 4 makes exclusive by a second keyword that is `true`."""
    if isinstance(value, bool) and key in _EXCLUSIVE.values():
        return {}
    if not _is_number(value):
        raise _UnreadableKeyword
    if given.get(_EXCLUSIVE.get(key, "")) is True:
        key = _EXCLUSIVE[key]
    return {key: value}


def _plain_keyword(key: str, value: Any) -> dict[str, Any]:  # Any: JSON
    """Return a keyword that contains no schema, in the newest draft.

    Raises:
        _UnreadableKeyword: it would be checked, and says nothing that can be understood.
    """
    if key in _MAYBE_NULL:
        return {key: value}
    if (
        key not in _READERS
    ):  # no draft has it, so it is for readers; its inside could be taken for a schema
        parts = value if isinstance(value, list) else [value]
        return {} if any(isinstance(part, dict | list) for part in parts) else {key: value}
    try:
        return {key: _READERS[key](value)}
    except _UnreadableKeyword:
        if key in _NOTES:
            return {}
        raise


def _kinds(value: object) -> str | list[str]:
    names = [str(kind).lower() for kind in (value if isinstance(value, list) else [value])]
    kinds = [*dict.fromkeys(names)]
    if not kinds or not _TYPES.issuperset(kinds):
        raise _UnreadableKeyword
    return kinds[0] if len(kinds) == 1 else kinds


def _names(value: object) -> list[str]:
    if isinstance(value, bool) or value == {}:  # a boolean is for the parent
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not _are_texts(value):
        raise _UnreadableKeyword
    return value


def _lists_of_names(value: object) -> dict[str, list[str]]:
    if not isinstance(value, dict) or not all(map(_are_texts, value.values())):
        raise _UnreadableKeyword
    return value


def _choice(value: object) -> list[object]:
    if not isinstance(value, list) or not value:
        raise _UnreadableKeyword
    return value


def _examples(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _count(value: Any) -> int:  # Any: JSON
    if not _is_number(value) or value < 0 or value != int(value):
        raise _UnreadableKeyword
    return int(value)


def _step(value: Any) -> Any:  # Any: JSON
    if not _is_number(value) or value <= 0:
        raise _UnreadableKeyword
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _UnreadableKeyword
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _UnreadableKeyword
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {  # Any: JSON
    **dict.fromkeys(_COUNTS, _count),
    **dict.fromkeys(_FLAGS, _flag),
    **dict.fromkeys(_TEXTS, _text),
    "type": _kinds,
    "required": _names,
    "dependentRequired": _lists_of_names,
    "enum": _choice,
    "examples": _examples,
    "multipleOf": _step,
}
