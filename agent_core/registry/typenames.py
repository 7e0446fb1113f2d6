"""The meanings of type names, as data: the dotted origin of each spelling, and its schema or kind."""

from typing import Any

Schema = dict[str, Any]  # Any: JSON Schema is JSON


class Unresolved(Exception):
    """Raised when syntax does not determine a type: a worker must import the module. Internal to the package."""


class Impossible(Exception):
    """Raised when no JSON value can represent a type. Internal to the package."""


_TYPING = ("typing", "typing_extensions")
_STRING, _ARRAY, _OBJECT = {"type": "string"}, {"type": "array"}, {"type": "object"}
_BYTES = {"type": "string", "contentEncoding": "base64"}
_PATH = {"type": "string", "format": "path"}


# The kinds of names that `typing` and the modules of collections share.
_ABSTRACT: dict[str, str] = {
    **dict.fromkeys(
        ("List", "Sequence", "MutableSequence", "Iterable", "Collection", "Deque"), "array"
    ),
    **dict.fromkeys(("Iterator", "Container"), "array"),
    **dict.fromkeys(("Set", "FrozenSet", "AbstractSet", "MutableSet"), "set"),
    **dict.fromkeys(("Dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict"), "mapping"),
    **dict.fromkeys(("Final", "Required", "NotRequired", "ReadOnly"), "wrapper"),
    **dict.fromkeys(
        ("Callable", "Type", "Generator", "AsyncIterator", "Awaitable", "Coroutine"), "impossible"
    ),
    "Tuple": "tuple",
    "Union": "union",
    "Optional": "optional",
    "Literal": "literal",
    "Annotated": "annotated",
    "defaultdict": "mapping",
}
# Generic spelling → kind.
GENERIC: dict[str, str] = {
    "builtins.list": "array",
    "builtins.set": "set",
    "builtins.frozenset": "set",
    "builtins.tuple": "tuple",
    "builtins.dict": "mapping",
    "builtins.type": "impossible",
    "collections.deque": "array",
    "dataclasses.InitVar": "wrapper",
    **{
        f"{home}.{name}": kind
        for home in ("typing", "typing_extensions", "collections.abc", "collections")
        for name, kind in _ABSTRACT.items()
    },
}

_OF_KIND: dict[str, Schema] = {
    "array": _ARRAY,
    "tuple": _ARRAY,
    "set": {"type": "array", "uniqueItems": True},
    "mapping": _OBJECT,
}

# Plain spelling → schema.
SIMPLE: dict[str, Schema] = {
    **{name: _OF_KIND[kind] for name, kind in GENERIC.items() if kind in _OF_KIND},
    "builtins.str": _STRING,
    "builtins.int": {"type": "integer"},
    "builtins.float": {"type": "number"},
    "builtins.bool": {"type": "boolean"},
    "builtins.bytes": _BYTES,
    "builtins.bytearray": _BYTES,
    "builtins.object": {},
    "typing.Any": {},
    "typing_extensions.Any": {},
    "typing.Text": _STRING,
    "typing.AnyStr": _STRING,
    "typing.LiteralString": _STRING,
    "types.NoneType": {"type": "null"},
    **{
        f"{home}.{name}": {"type": "integer"}
        for home in _TYPING
        for name in ("SupportsInt", "SupportsIndex")
    },
    **{f"{home}.SupportsFloat": {"type": "number"} for home in _TYPING},
    "typing.Sized": {},
    "collections.abc.Sized": {},
    "typing.Hashable": {},
    "collections.abc.Hashable": {},
    "numbers.Number": {"type": "number"},
    "numbers.Real": {"type": "number"},
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.datetime": {"type": "string", "format": "date-time"},
    "datetime.time": {"type": "string", "format": "time"},
    "datetime.timedelta": {"type": "string", "format": "duration"},
    # A number is exact for what a model writes; a string is exact in every case.
    "decimal.Decimal": {"type": ["string", "number"], "format": "decimal"},
    "uuid.UUID": {"type": "string", "format": "uuid"},
    **{f"pathlib.{name}": _PATH for name in ("Path", "PurePath", "PosixPath", "PurePosixPath")},
}

IMPOSSIBLE = frozenset(
    {
        *(name for name, kind in GENERIC.items() if kind == "impossible"),
        *(f"typing.{name}" for name in ("IO", "TextIO", "BinaryIO", "NoReturn", "Never")),
    }
)

ENUMS = frozenset(f"enum.{name}" for name in ("Enum", "IntEnum", "StrEnum", "ReprEnum"))
FIELD = frozenset({"pydantic.Field", "pydantic.fields.Field"})

# Keywords of `Field(…)`, and classes of `annotated_types`, with a JSON Schema equivalent.
CONSTRAINTS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "min_length": "min",
    "max_length": "max",
    "pattern": "pattern",
    "description": "description",
    "title": "title",
    "examples": "examples",
    "deprecated": "deprecated",
}
# Names for the positional arguments of these classes.
CONSTRAINT_CLASSES: dict[str, tuple[str, ...]] = {
    "annotated_types.Ge": ("ge",),
    "annotated_types.Gt": ("gt",),
    "annotated_types.Le": ("le",),
    "annotated_types.Lt": ("lt",),
    "annotated_types.MultipleOf": ("multiple_of",),
    "annotated_types.Len": ("min_length", "max_length"),
    "annotated_types.MinLen": ("min_length",),
    "annotated_types.MaxLen": ("max_length",),
    "typing_extensions.Doc": ("description",),
}
