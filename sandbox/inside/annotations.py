"""What annotations mean: hints as objects, arguments built from JSON, results checked, JSON Schemas of parameters.

An argument is converted to its annotated type, or an Unfit names the path, the expected and the actual. For a union,
the first member that fits is used; members of exactly the value's type come first. Dates, decimals, durations and
base64 bytes are parsed from text only if nothing is lost. Unknown types are left to pydantic, if it can be imported;
the schemas of all others are written here.
"""

import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import importlib
import inspect
import pathlib
import re
import sys
import types
import typing
import uuid
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Set
from functools import partial
from typing import Any, Final

from ..wire.definitions import with_definitions
from .failure import attempt, message_of

_NOTHING_TO_CHECK = (Any, object, typing.NoReturn, typing.Never, typing.Self)
_PLAIN = frozenset({int, str, float, bool, None})
_OTHER_TYPED_DICT: Final = "typing_extensions._TypedDictMeta"
_WRAPPERS: tuple[Any, ...] = (
    typing.Annotated,
    typing.Required,
    typing.NotRequired,
    typing.Final,
    typing.ClassVar,
)

Hint = Any  # anything that an annotation can be
Schema = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Unresolvable:
    """The annotation of a parameter or a result that does not resolve, with what it raised."""

    reason: str


def function_hints(function: Callable[..., Any]) -> dict[str, Hint]:
    """Return the function's annotations; one that does not resolve is Unresolvable, and leaves the others alone."""
    try:
        written = getattr(function, "__annotations__", {})
    except NameError:  # newer versions of Python evaluate annotations only now
        annotations: Any = importlib.import_module("annotationlib")
        written = annotations.get_annotations(function, format=annotations.Format.FORWARDREF)
    if all(isinstance(hint, type) and hint in _PLAIN for hint in written.values()):
        return dict(written)
    resolved = attempt(lambda: typing.get_type_hints(function, include_extras=True))
    if not isinstance(resolved, BaseException):
        return resolved
    known = getattr(function, "__globals__", {})
    spec, is_for_checkers = known.get("__spec__"), known.get("TYPE_CHECKING") is False
    if not is_for_checkers and typing in known.values() and spec is not None:
        is_for_checkers = "TYPE_CHECKING" in (spec.loader.get_source(spec.name) or "")
    variables = getattr(function, "__type_params__", ())

    def hint_of(hint: Hint) -> Hint:
        """Resolve one hint; return Any for a name that only a type checker may import."""
        holder = types.SimpleNamespace(__annotations__={"hint": hint}, __type_params__=variables)
        hints = attempt(lambda: typing.get_type_hints(holder, known, include_extras=True))
        if isinstance(hints, NameError) and is_for_checkers:
            return Any
        return (
            Unresolvable(message_of(hints)) if isinstance(hints, BaseException) else hints["hint"]
        )

    return {name: hint_of(hint) for name, hint in written.items()}


def class_hints(kind: type) -> dict[str, Hint]:
    """Return the annotations of a class's fields; that of an `InitVar[T]` is `T`."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        name: hint.type if isinstance(hint, dataclasses.InitVar) else hint
        for name, hint in hints.items()
    }


def init_fields(kind: Any) -> list[dataclasses.Field[Any]]:
    """Return the fields that a dataclass takes when it is made, also those that it does not keep."""
    hints, fields = class_hints(kind), kind.__dataclass_fields__.values()
    return [
        field
        for field in fields
        if field.init and origin_of(hints[field.name]) is not typing.ClassVar
    ]


def peel(hint: Hint) -> Hint:
    """Return the hint without wrappers such as Annotated, Required or NewType; a type variable becomes its bound."""
    while True:
        if type(hint) is type:  # the common case
            return hint
        if any(origin_of(hint) is wrapper for wrapper in _WRAPPERS):
            hint = typing.get_args(hint)[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif isinstance(hint, typing.TypeVar):
            hint = hint.__bound__ or Any
        else:
            return type(None) if hint is None else hint


def alternatives(hint: Hint) -> tuple[Hint, ...]:
    """Return the alternative types of a value: the members of a union, or the bound or constraints of a variable."""
    if isinstance(hint, typing.TypeVar):
        return (hint.__bound__,) if hint.__bound__ else hint.__constraints__
    return typing.get_args(hint) if is_union(origin_of(hint)) else ()


def unpacked(hint: Hint) -> Hint | None:
    """Return the type in `Unpack[…]`, or after a star; None if the hint is neither."""
    if isinstance(hint, types.GenericAlias) and hint.__unpacked__:
        return types.GenericAlias(tuple, typing.get_args(hint))
    is_marked = str(typing.get_origin(hint)) in ("typing.Unpack", "typing_extensions.Unpack")
    return typing.get_args(hint)[0] if is_marked else None


def variadic(hint: Hint, container: type) -> Hint:
    """Return the type of all values of `*args` or `**kwargs` together, which come in a list or a dict."""
    whole = unpacked(hint)
    if isinstance(whole, typing.TypeVarTuple) or isinstance(
        hint, typing.ParamSpecArgs | typing.ParamSpecKwargs
    ):
        return container
    return whole if whole is not None else list[hint] if container is list else dict[str, hint]


def _pattern(inner: tuple[Hint, ...]) -> tuple[list[Hint], list[Hint], list[Hint]]:
    """Return the types of a tuple's first items, of all that may follow (one type or none), and of its last items."""
    if inner[-1:] == (Ellipsis,):
        return [], [inner[0]], []
    before, repeated, after = list[Hint](), list[Hint](), list[Hint]()
    for part in inner:
        whole = unpacked(part)
        first, some, last = [part], list[Hint](), list[Hint]()
        if isinstance(whole, typing.TypeVarTuple):
            first, some = [], [Any]
        elif whole is not None:
            first, some, last = _pattern(typing.get_args(whole))
        (after if repeated else before).extend(first)
        repeated += some
        after += last
    return before, repeated[:1], after


def _types_of_items(inner: tuple[Hint, ...], count: int) -> list[Hint] | None:
    """Return the types of the items of a tuple with this many; None if it cannot have so many."""
    before, repeated, after = _pattern(inner)
    more = count - len(before) - len(after)
    return [*before, *repeated * more, *after] if more == 0 or (more > 0 and repeated) else None


def is_typeddict(kind: Any) -> bool:
    """Return whether this is a TypedDict, of `typing` or of `typing_extensions`."""
    return (
        typing.is_typeddict(kind)
        or f"{type(kind).__module__}.{type(kind).__name__}" == _OTHER_TYPED_DICT
    )


def required_keys(kind: Any) -> list[str]:
    """Return the required keys of a TypedDict. `__required_keys__` is wrong if annotations are text."""
    origins = {key: origin_of(hint) for key, hint in class_hints(kind).items()}
    required = {key for key, origin in origins.items() if origin is typing.Required}
    return sorted(
        required | {key for key in kind.__required_keys__ if origins[key] is not typing.NotRequired}
    )


def origin_of(hint: Hint) -> Any:
    """Return the origin: `list` for `list[int]`, the hint itself if it takes no parameters."""
    origin: Any = typing.get_origin(hint)
    return hint if origin is None else origin


def is_union(origin: object) -> bool:
    """Return whether this is the origin of `X | Y`, `Union` or `Optional`."""
    return origin is typing.Union or origin is types.UnionType


def words(hint: Hint) -> str:
    """Return the hint as source text."""
    if isinstance(hint, type) and not typing.get_args(hint):
        return "None" if hint is type(None) else hint.__qualname__
    return str(hint).replace("typing.", "").replace("datetime.", "").replace("decimal.", "")


Make = Callable[
    [Any], Any
]  # a JSON value → a value; raises ValueError or TypeError if it does not fit

_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<weeks>[\d.]+)W)?(?:(?P<days>[\d.]+)D)?"
    r"(?:T(?:(?P<hours>[\d.]+)H)?(?:(?P<minutes>[\d.]+)M)?(?:(?P<seconds>[\d.]+)S)?)?"
)
_CLOCK = re.compile(r"(?P<hours>\d+):(?P<minutes>\d\d)(?::(?P<seconds>\d\d(?:\.\d+)?))?")


def _nothing(_value: Any) -> None:
    raise TypeError


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, _WHOLE) or value != int(value):
        raise TypeError
    return int(value)


def _plain_number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, decimal.Decimal) and value != float(value):
        raise ValueError
    number = float(value if isinstance(value, decimal.Decimal) else _plain_number(value))
    return (
        number if number == value else value
    )  # a whole number that a float cannot hold stays an int


def _text(value: Any) -> str:
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if not isinstance(value, str):
        raise TypeError
    return value


def _from_text(parse: Make) -> Make:
    return lambda value: parse(_text(value))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else a2b_base64(_text(value), strict_mode=True)


def _decimal(value: Any) -> decimal.Decimal:
    try:
        return decimal.Decimal(value if isinstance(value, str) else str(_plain_number(value)))
    except decimal.InvalidOperation as error:
        raise ValueError from error


def _complex(value: Any) -> complex:
    return complex(value if isinstance(value, str) else _number(value))


def _duration(value: Any) -> datetime.timedelta:
    if not isinstance(value, str):
        return datetime.timedelta(seconds=_number(value))
    match = _DURATION.fullmatch(value) or _CLOCK.fullmatch(value)
    parts = (
        {
            name: float(text)
            for name, text in match.groupdict("").items()
            if text not in ("", "-", "+")
        }
        if match
        else {}
    )
    if not match or not parts:
        raise ValueError
    length = datetime.timedelta(**parts)
    return -length if match.groupdict().get("sign") == "-" else length


def _date(value: Any) -> datetime.date:
    return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(_text(value))


_WHOLE: Final = (int, float, decimal.Decimal)
_PATH: Final[Schema] = {"type": "string", "format": "path"}
_SCALARS: Final[
    dict[Any, tuple[Make, str, Schema]]
] = {  # type → how it is made, what is expected, its schema
    type(None): (_nothing, "null", {"type": "null"}),
    bool: (_boolean, "true or false", {"type": "boolean"}),
    int: (_integer, "a whole number", {"type": "integer"}),
    float: (_number, "a number", {"type": "number"}),
    str: (_text, "text", {"type": "string"}),
    bytes: (_bytes, "base64 text", {"type": "string", "contentEncoding": "base64"}),
    complex: (_complex, "a number, or text like '1+2j'", {"type": "string"}),
    decimal.Decimal: (
        _decimal,
        "a decimal number",
        {"type": ["string", "number"], "format": "decimal"},
    ),
    datetime.datetime: (
        _from_text(datetime.datetime.fromisoformat),
        "a date and time like 2024-05-01T12:30:00",
        {"type": "string", "format": "date-time"},
    ),
    datetime.date: (
        _date,
        "a date like 2024-05-01",
        {"type": "string", "format": "date"},
    ),
    datetime.time: (
        _from_text(datetime.time.fromisoformat),
        "a time like 12:30:00",
        {"type": "string", "format": "time"},
    ),
    datetime.timedelta: (
        _duration,
        "seconds, or a duration like PT1H30M",
        {"type": "string", "format": "duration"},
    ),
    uuid.UUID: (_from_text(uuid.UUID), "a UUID", {"type": "string", "format": "uuid"}),
    pathlib.Path: (_from_text(pathlib.Path), "a path", _PATH),
    pathlib.PurePath: (_from_text(pathlib.PurePath), "a path", _PATH),
    pathlib.PosixPath: (_from_text(pathlib.PosixPath), "a path", _PATH),
    pathlib.PurePosixPath: (_from_text(pathlib.PurePosixPath), "a path", _PATH),
}


_PATHS: Final = tuple(
    kind for kind in _SCALARS if isinstance(kind, type) and issubclass(kind, pathlib.PurePath)
)


Maker = Callable[[Any, Hint, str], Any]  # value, hint, path → value


class Unfit(Exception):
    """The job does not fit the code. The message is for the requester."""


def build(value: Any, hint: Hint, path: str) -> Any:
    """Convert a value to the type of a hint. Raise Unfit if it does not fit."""
    hint = peel(hint)
    if isinstance(hint, Unresolvable):
        raise Unfit(f"{path}: its type cannot be resolved: {hint.reason}")
    if hint in _SCALARS:
        make, expected, _schema_of_it = _SCALARS[hint]
        if type(value) is hint:
            return value
        try:
            return make(value)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise _unfit(value, expected, path) from error
    if _is_free(hint):
        return value
    origin = origin_of(hint)
    if is_union(origin):
        return _union(value, hint, path)
    if origin is typing.Literal:
        return _choice(value, hint, path)
    maker = _CONTAINERS.get(origin) or _maker_of_class(origin)
    return maker(value, hint, path)


def _is_free(hint: Hint) -> bool:
    """Return whether any value fits a hint as it is."""
    return any(hint is free for free in _NOTHING_TO_CHECK) or isinstance(
        hint, str | typing.ForwardRef
    )


def _all_fit(values: Iterable[Any], hint: Hint) -> bool:
    """Return whether each value fits a hint as it is, so that none needs to be converted: there may be a million."""
    hint = peel(hint)
    return _is_free(hint) or (hint in _SCALARS and all(type(value) is hint for value in values))


def _unfit(value: Any, expected: str, path: str) -> Unfit:
    return Unfit(f"{path}: expected {expected}, got {_shown(value)}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _choices(hint: Hint) -> list[tuple[Any, Any]]:
    """Return what an enumeration or a `Literal` allows: each value as it is in JSON, and as the function gets it."""
    allowed: Iterable[Any] = typing.get_args(hint) if origin_of(hint) is typing.Literal else ()
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        allowed = [member for name, member in hint.__members__.items() if member.name == name]
    return [
        (choice.value if isinstance(choice, enum.Enum) else choice, choice) for choice in allowed
    ]


def _choice(value: Any, hint: Hint, path: str) -> Any:
    choices = _choices(hint)
    for plain, choice in choices:
        if plain == value and type(plain) is type(value):
            return choice
    for _, choice in choices if isinstance(value, str) else ():
        if isinstance(choice, enum.Enum) and type(choice).__members__.get(value) is choice:
            return choice
    raise _unfit(value, "one of " + ", ".join(repr(plain) for plain, _ in choices), path)


def _union(value: Any, hint: Hint, path: str) -> Any:
    members = typing.get_args(hint)
    exact = [member for member in members if peel(member) is type(value)]
    paths = [
        member
        for member in members
        if isinstance(value, pathlib.PurePath) and peel(member) in _PATHS
    ]
    for member in (*exact, *paths, *members):
        try:
            return build(value, member, path)
        except Unfit:
            continue
    raise _unfit(value, words(hint), path)


def _items(value: Any, expected: str, path: str) -> list[Any]:
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        raise _unfit(value, expected, path)
    return list(value)


def _collection(kind: Callable[[list[Any]], Any]) -> Maker:
    def make(value: Any, hint: Hint, path: str) -> Any:
        (inner,) = typing.get_args(hint)[:1] or (Any,)
        items = _items(value, "a list", path)
        if _all_fit(items, inner):
            return kind(items)
        if inner in (dict, list) and all(type(item) is inner for item in items):
            return kind([inner(item) for item in items])
        return kind([build(item, inner, f"{path}[{at}]") for at, item in enumerate(items)])

    return make


def _iterator(value: Any, hint: Hint, path: str) -> Any:
    return iter(_collection(list)(value, hint, path))


def _tuple(value: Any, hint: Hint, path: str) -> Any:
    inner = typing.get_args(hint) or (Any, ...)
    items = _items(value, "a list", path)
    wanted = _types_of_items(inner, len(items))
    if wanted is None:
        before, repeated, after = _pattern(inner)
        size = f"{'at least ' if repeated else ''}{len(before) + len(after)}"
        raise _unfit(value, f"a list of {size} items", path)
    return tuple(
        build(item, want, f"{path}[{at}]")
        for at, (item, want) in enumerate(zip(items, wanted, strict=True))
    )


def _mapping(value: Any, hint: Hint, path: str) -> Any:
    if not isinstance(value, dict):
        raise _unfit(value, "an object", path)
    key, item = (
        (*typing.get_args(hint), int)[:2] if typing.get_args(hint) else (Any, Any)
    )  # of a Counter, counts
    if _all_fit(value, key) and _all_fit(value.values(), item):
        mapping = dict(value)
    else:
        mapping = {
            _key(name, key, path): build(element, item, f"{path}.{name}")
            for name, element in value.items()
        }
    kind = origin_of(hint)
    if kind is collections.defaultdict:
        return collections.defaultdict(None, mapping)
    return (
        kind(mapping)
        if isinstance(kind, type) and kind in (collections.OrderedDict, collections.Counter)
        else mapping
    )


def _key(name: Any, hint: Hint, path: str) -> Any:
    """Convert a key, which is always text in JSON."""
    hint = peel(hint)
    if isinstance(name, str) and hint in (int, float):
        try:
            return hint(name)
        except ValueError as error:
            raise _unfit(name, f"a key that is {_SCALARS[hint][1]}", path) from error
    if isinstance(name, str) and hint is bool and name in ("true", "false"):
        return name == "true"
    for plain, choice in _choices(hint):
        if str(plain) == name:
            return choice
    is_sum = (
        isinstance(hint, type)
        and issubclass(hint, enum.Flag)
        and str(name).removeprefix("-").isdecimal()
    )
    return build(int(name) if is_sum else name, hint, f"{path} (key)")


def _maker_of_class(kind: Any) -> Maker:
    if not isinstance(kind, type):
        return _by_pydantic
    if issubclass(kind, enum.Enum):
        return _enum
    if dataclasses.is_dataclass(kind) and not hasattr(kind, "__pydantic_validator__"):
        return _dataclass
    if is_typeddict(kind):
        return _typed_dict
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _named_tuple
    return _by_pydantic


def _enum(value: Any, hint: Hint, path: str) -> Any:
    if isinstance(value, hint):
        return value
    if not issubclass(hint, enum.Flag) or isinstance(value, str):
        return _choice(value, hint, path)
    sums = "a sum of any of " + ", ".join(str(member.value) for member in hint)
    try:
        number = _integer(value)
        flags = hint(number)
    except (ValueError, TypeError) as error:
        raise _unfit(value, sums, path) from error
    unknown = number if number >= 0 else ~number
    for member in hint.__members__.values():
        unknown &= ~member.value
    if unknown and hint._boundary_ is not enum.KEEP:  # Python 3.11.2 drops unknown bits by default
        raise _unfit(value, sums, path)
    return flags


def _fields(
    value: Any, fields: dict[str, Hint], required: Iterable[str], path: str
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unfit(value, "an object", path)
    if unknown := [name for name in value if name not in fields]:
        raise Unfit(
            f"{path}.{unknown[0]}: there is no such field; the fields are {', '.join(fields)}"
        )
    if missing := [name for name in required if name not in value]:
        raise Unfit(f"{path}.{missing[0]}: is missing")
    return {name: build(item, fields[name], f"{path}.{name}") for name, item in value.items()}


def _dataclass(value: Any, hint: Hint, path: str) -> Any:
    hint = origin_of(hint)  # of a generic one
    if isinstance(value, hint):
        return value
    fields = init_fields(hint)
    hints = class_hints(hint)
    absent = dataclasses.MISSING
    required = [
        field.name
        for field in fields
        if field.default is absent and field.default_factory is absent
    ]
    return hint(
        **_fields(value, {field.name: hints[field.name] for field in fields}, required, path)
    )


def _typed_dict(value: Any, hint: Hint, path: str) -> Any:
    hint = origin_of(hint)
    return _fields(value, class_hints(hint), required_keys(hint), path)


def _named_tuple(value: Any, hint: Hint, path: str) -> Any:
    hint = origin_of(hint)
    hints = {name: class_hints(hint).get(name, Any) for name in hint._fields}
    if not isinstance(value, dict):
        value = dict(zip(hint._fields, _items(value, "a list or an object", path), strict=False))
    return hint(
        **_fields(value, hints, [name for name in hints if name not in hint._field_defaults], path)
    )


def _by_pydantic(value: Any, hint: Hint, path: str) -> Any:
    if isinstance(hint, type) and isinstance(value, hint):
        return value
    try:
        pydantic = importlib.import_module("pydantic")
        return pydantic.TypeAdapter(hint).validate_python(value)
    except ImportError as error:
        raise _unfit(value, words(hint), path) from error
    except ValueError as error:
        raise Unfit(f"{path}: {error}") from error
    except pydantic.errors.PydanticUserError as error:  # a class that pydantic does not support
        raise _unfit(value, words(hint), path) from error


_CONTAINERS: dict[Any, Maker] = {
    list: _collection(list),
    set: _collection(set),
    frozenset: _collection(frozenset),
    collections.deque: _collection(collections.deque),
    collections.abc.Sequence: _collection(list),
    collections.abc.MutableSequence: _collection(list),
    collections.abc.Iterable: _collection(list),
    collections.abc.Iterator: _iterator,
    collections.abc.Container: _collection(list),
    collections.abc.Collection: _collection(list),
    collections.abc.Set: _collection(set),
    collections.abc.MutableSet: _collection(set),
    tuple: _tuple,
    dict: _mapping,
    collections.abc.Mapping: _mapping,
    collections.abc.MutableMapping: _mapping,
    collections.defaultdict: _mapping,
    collections.OrderedDict: _mapping,
    collections.Counter: _mapping,
}


_NUMBERS = {float: (int, float), complex: (int, float, complex)}
_CHECKED_SEQUENCES = (
    list,
    set,
    frozenset,
    collections.abc.Sequence,
    collections.abc.Set,
    collections.deque,
)
_CHECKED_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class ReturnTypeError(TypeError):
    """A function returned something other than it declares."""


def check(value: Any, hint: Hint) -> None:
    """Raise ReturnTypeError, naming the place, if a result does not fit its hint."""
    if misfit := _misfit(value, hint, "the result"):
        raise ReturnTypeError(misfit)


def _misfit(value: Any, hint: Hint, path: str) -> str:
    hint = peel(hint)
    if any(hint is free for free in _NOTHING_TO_CHECK) or isinstance(hint, str | Unresolvable):
        return ""
    origin = origin_of(hint)
    if is_union(origin):
        fits = any(not _misfit(value, member, path) for member in typing.get_args(hint))
        return "" if fits else _mismatch(value, hint, path)
    if origin is typing.Literal:
        return "" if value in typing.get_args(hint) else _mismatch(value, hint, path)
    if is_typeddict(origin):
        return _misfit_of_fields(value, origin, path)
    try:
        fits = isinstance(value, _NUMBERS.get(origin, origin))
    except TypeError:  # a protocol or a special form cannot be checked
        fits = True
    if not fits:
        return _mismatch(value, hint, path)
    return _misfit_of_items(value, origin, typing.get_args(hint), path)


def _misfit_of_items(value: Any, origin: Any, arguments: tuple[Hint, ...], path: str) -> str:
    if not arguments:
        return ""
    if origin is tuple:
        wanted = _types_of_items(arguments, len(value))
        if wanted is None:
            before, repeated, after = _pattern(arguments)
            size = f"{'at least ' if repeated else ''}{len(before) + len(after)}"
            return f"{path}: expected {size} items, got {len(value)}"
        pairs = zip(value, wanted, strict=True)
        return _first(_misfit(item, hint, f"{path}[{at}]") for at, (item, hint) in enumerate(pairs))
    if origin in _CHECKED_SEQUENCES:
        return _first(_misfit(item, arguments[0], f"{path}[{at}]") for at, item in enumerate(value))
    if origin in _CHECKED_MAPPINGS:
        keys = (_misfit(key, arguments[0], f"{path}'s key {key!r}") for key in value)
        items = (_misfit(item, arguments[1], f"{path}[{key!r}]") for key, item in value.items())
        return _first(keys) or _first(items)
    return ""


def _misfit_of_fields(value: Any, kind: Any, path: str) -> str:
    if not isinstance(value, dict):
        return _mismatch(value, kind, path)
    hints = class_hints(kind)
    missing = [key for key in required_keys(kind) if key not in value]
    if missing:
        return f"{path}: the key {missing[0]!r} is missing"
    unknown = [key for key in value if key not in hints]
    if unknown:
        return f"{path}: {kind.__name__} has no key {unknown[0]!r}"
    return _first(_misfit(item, hints[key], f"{path}[{key!r}]") for key, item in value.items())


def _first(misfits: Iterable[str]) -> str:
    return next((misfit for misfit in misfits if misfit), "")


def _mismatch(value: Any, hint: Hint, path: str) -> str:
    return f"{path}: expected {words(hint)}, got {_shown(value)} ({type(value).__name__})"


def defaults(function: types.FunctionType) -> dict[str, Any]:
    """Return the default of each parameter that has one."""
    names, given = (
        function.__code__.co_varnames[: function.__code__.co_argcount],
        function.__defaults__ or (),
    )
    return {
        **dict(zip(names[len(names) - len(given) :], given, strict=True)),
        **(function.__kwdefaults__ or {}),
    }


_UNREADABLE = (
    NameError,
    TypeError,
    AttributeError,
    ValueError,
    RecursionError,
)  # what an odd annotation raises


_HAS_REST, _HAS_KEYWORDS = 0x04, 0x08  # the code flags of *rest and **keywords


def rest_names(function: types.FunctionType) -> tuple[str, str]:
    """Return the names of `*args` and `**kwargs`, each empty if there is none."""
    code = function.__code__
    at = code.co_argcount + code.co_kwonlyargcount
    rest = code.co_varnames[at] if code.co_flags & _HAS_REST else ""
    return rest, code.co_varnames[at + bool(rest)] if code.co_flags & _HAS_KEYWORDS else ""


def schemas_of(function: object, name: str) -> dict[str, Any]:
    """Return parameter → JSON Schema, or the reason why it has none. Raise Unfit if there is no such function."""
    if not isinstance(function, types.FunctionType):
        raise Unfit(f"{name}: there is no such function")
    hints = function_hints(function)
    hints.pop("return", None)
    given = defaults(function)
    claims: dict[str, Schema | str] = {}
    for parameter, container in zip(rest_names(function), (list, dict), strict=True):
        if parameter in hints and not isinstance(hints[parameter], Unresolvable):
            hints[parameter] = variadic(hints[parameter], container)
    for parameter, hint in hints.items():
        claim = attempt(partial(_claim, hint, given.get(parameter, Ellipsis)))
        claims[parameter] = _reason(claim) if isinstance(claim, BaseException) else claim
    return claims


def _claim(hint: Hint, default: object) -> Schema | str:
    """Return the schema of a parameter, or the reason why it has none."""
    if isinstance(hint, Unresolvable):
        return hint.reason
    if _is_pydantic(default):  # a `Field(…)`, which may limit and describe it
        return schema_of(typing.Annotated[hint, default])
    schema = schema_of(hint)
    return schema | _default_keyword(default) if isinstance(schema, dict) else schema


def _reason(error: BaseException) -> str:
    return message_of(error).partition("\n")[0] or type(error).__name__


def schema_of(hint: Hint) -> Schema | str:
    """Return the schema of a hint (for a union, of the members that have one), or the reason why there is none."""
    try:
        writer = _Writer()
        written = writer.of(hint)
        return _inline(written | ({"$defs": writer.definitions} if writer.definitions else {}))
    except (Unfit, *_UNREADABLE) as error:
        reason = str(error).partition("\n")[0]
    try:
        pydantic = importlib.import_module("pydantic")
        maker = importlib.import_module("pydantic.json_schema").GenerateJsonSchema
        maker = type("Schemas", (maker,), {"field_title_should_be_set": _no_title})
        return _inline(
            _without_infinite(pydantic.TypeAdapter(hint).json_schema(schema_generator=maker))
        )
    except ImportError:
        return reason
    except (pydantic.errors.PydanticUserError, *_UNREADABLE) as error:
        definitions: Schema = {}
        members = [schema_of(member) for member in alternatives(hint)]
        known = [
            with_definitions(member, definitions) for member in members if isinstance(member, dict)
        ]
        is_narrower = isinstance(error, NameError | ValueError | RecursionError) and len(
            known
        ) < len(members)
        any_of = {"anyOf": known, **({"$defs": definitions} if definitions else {})}
        return any_of if known and not is_narrower else str(error).partition("\n")[0]


def _without_infinite(node: Any) -> Any:
    """Return a schema without the numbers that JSON does not have, such as a default or a limit that is infinite."""
    if isinstance(node, list):
        return [_without_infinite(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without_infinite(part)
        for key, part in node.items()
        if not isinstance(part, int | float) or _is_finite(part)
    }


def _is_finite(number: int | float) -> bool:
    return abs(number) <= sys.float_info.max


def _no_title(_maker: object, _schema: object) -> bool:
    return False  # it would repeat the name of the field


def _is_pydantic(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "pydantic"


_SETS: Final = frozenset({set, frozenset, collections.abc.Set, collections.abc.MutableSet})
_LISTS: Final = frozenset({
    list, collections.deque, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Iterable,
    collections.abc.Iterator, collections.abc.Container, collections.abc.Collection,
})  # fmt: skip
_OBJECTS: Final = frozenset({
    dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.defaultdict, collections.OrderedDict,
    collections.Counter,
})  # fmt: skip
_BOUNDS: Final = {
    "gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum", "multiple_of": "multipleOf",
}  # fmt: skip
_MOST_PARTS, _LONGEST_DEFAULT, _LARGEST = (
    1_000,
    4_000,
    10**40,
)  # parts of an inlined schema; size of a shown default


class _Inexpressible(Unfit):
    """A type without a JSON form, which a union can do without."""


class _Writer:
    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._names: dict[type, str] = {}

    def of(self, hint: Hint) -> Schema:
        """Return the schema of one annotation."""
        if origin_of(hint) is typing.Annotated:
            annotated, *marks = typing.get_args(hint)
            return _add_marks(self.of(annotated), marks)
        if origin_of(hint) in (typing.Required, typing.NotRequired):
            return self.of(typing.get_args(hint)[0])
        if members := alternatives(hint):
            return self._union(members)
        hint = peel(hint)
        if hint in _NOTHING_TO_CHECK or isinstance(
            hint, str | typing.ForwardRef
        ):  # within a recursive alias
            return {}
        origin, inner = origin_of(hint), typing.get_args(hint)
        if origin is typing.Literal:
            values = [
                each.value if isinstance(each, enum.Enum) and _default_keyword(each) else each
                for each in inner
            ]
            return _enum_schema(
                [each.name if isinstance(each, enum.Enum) else each for each in values]
            )
        if origin in (collections.abc.Callable, type):
            raise _Inexpressible(f"{words(hint)} cannot be written as JSON")
        try:
            return (
                {**_SCALARS[hint][2]} if hint in _SCALARS else self._container(origin, inner, hint)
            )
        except TypeError as error:  # not hashable
            raise Unfit(f"{words(hint)} has no schema") from error

    def _union(self, members: tuple[Hint, ...]) -> Schema:
        written: list[Schema] = []
        for member in members:
            try:
                written.append(self.of(member))
            except _Inexpressible:
                continue
        if not written or all(schema == {"type": "null"} for schema in written):
            raise _Inexpressible(f"none of {', '.join(map(words, members))} can be written as JSON")
        return {"anyOf": written} if len(written) > 1 else written[0]

    def _container(self, origin: Any, inner: tuple[Hint, ...], hint: Hint) -> Schema:
        if origin in _SETS:
            return {
                "type": "array",
                "items": self.of(inner[0] if inner else Any),
                "uniqueItems": True,
            }
        if origin in _LISTS:
            return {"type": "array", "items": self.of(inner[0] if inner else Any)}
        if origin is tuple:
            before, repeated, after = _pattern(inner or (Any, ...))
            schema: Schema = {"type": "array"}
            if before or not repeated:
                schema["prefixItems"] = [self.of(member) for member in before]
            if repeated:
                schema["items"] = {} if after else self.of(repeated[0])
            least = {"minItems": len(before) + len(after)} if before or after else {}
            return schema | (
                least if repeated else {"minItems": len(before), "maxItems": len(before)}
            )
        if origin in _OBJECTS:
            inner = (
                (*inner, int) if origin is collections.Counter and inner else inner or (str, Any)
            )
            if len(inner) != 2:
                raise Unfit(f"{words(hint)} has not two types")
            key, value = inner
            names, values = self.of(key), self.of(value)
            rule: Schema = {"pattern": "^-?[0-9]+$"} if names.get("type") == "integer" else {}
            if listed := names.get("enum", [names["const"]] if "const" in names else []):
                rule = {"enum": [str(name) for name in listed]}
            return {
                "type": "object",
                **({"propertyNames": rule} if rule else {}),
                "additionalProperties": values,
            }
        if isinstance(origin, type):
            return self._class(origin)
        raise Unfit(f"{words(hint)} has no schema")

    def _class(self, kind: type) -> Schema:
        if issubclass(kind, enum.Flag):
            parts = ", ".join(f"{member.value} ({member.name})" for member in kind)
            return {
                "type": "integer",
                "description": " ".join([*_summary(kind).values(), f"The sum of any of {parts}."]),
            }
        if issubclass(kind, enum.Enum):
            values = [member.value if _default_keyword(member) else member.name for member in kind]
            return _enum_schema(values) | _summary(kind)
        if dataclasses.is_dataclass(kind) and not hasattr(kind, "__pydantic_validator__"):
            absent = dataclasses.MISSING
            fields = init_fields(kind)
            needed = {
                field.name
                for field in fields
                if field.default is absent and field.default_factory is absent
            }
            return self._define(kind, {field.name: field.default for field in fields}, needed)
        if is_typeddict(kind):
            return self._define(
                kind, dict.fromkeys(class_hints(kind), Ellipsis), {*required_keys(kind)}
            )
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            given: dict[str, Any] = getattr(kind, "_field_defaults", {})
            return self._define(
                kind, dict.fromkeys(kind._fields, Ellipsis) | given, {*kind._fields} - given.keys()
            )
        raise Unfit(
            f"{kind.__qualname__} has no schema without pydantic, which functions cannot import here"
        )

    def _define(self, kind: type, fields: dict[str, Any], needed: Set[str]) -> Schema:
        """Return a reference to the schema of a class with these fields and defaults; it may be recursive."""
        name = self._names.get(kind, "")
        if not name:
            name = re.sub(r"\W", "_", kind.__name__)
            name = self._names[kind] = (
                f"{name}_{len(self._names)}" if name in self._names.values() else name
            )
            hints = class_hints(kind)
            properties = {
                field: self.of(hints.get(field, Any)) | _default_keyword(fields[field])
                for field in fields
            }
            required = [field for field in fields if field in needed]
            closed = {"properties": properties, "required": required, "additionalProperties": False}
            self.definitions[name] = {"type": "object", **_summary(kind), **closed}
        return {"$ref": f"#/$defs/{name}"}


def _summary(kind: type) -> Schema:
    """Return the docstring of a class as its description, unless Python made it."""
    text = kind.__dict__.get("__doc__") or ""
    return (
        {}
        if not text or text.startswith(f"{kind.__name__}(")
        else {"description": inspect.cleandoc(text)}
    )


def _default_keyword(default: object) -> Schema:
    """Return a default in the form of a schema, if it is a short scalar of JSON or a member with such a value."""
    value = default.value if isinstance(default, enum.Enum) else default
    is_short = isinstance(value, str) and len(value) <= _LONGEST_DEFAULT
    is_number = (
        isinstance(value, int | float) and abs(value) < _LARGEST
    )  # neither infinite nor too long to be written
    return {"default": value} if value is None or is_short or is_number else {}


def _inline(schema: Schema) -> Schema:
    """Return a schema with its definitions in place of the references, unless one is recursive or it grows too large.

    Models and programs that show it read it more easily.
    """
    definitions = schema.get("$defs", {})
    parts = 0

    def put(node: Any, around: tuple[str, ...]) -> Any:
        nonlocal parts
        if isinstance(node, list):
            return [put(part, around) for part in node]
        if not isinstance(node, dict):
            return node
        parts += 1
        name = str(node.get("$ref")).removeprefix("#/$defs/")
        if name in around or parts > _MOST_PARTS:
            raise RecursionError
        is_union = "oneOf" in node  # whose `discriminator` names definitions
        own = {
            key: put(part, around)
            for key, part in node.items()
            if not (is_union and key == "discriminator")
        }
        if name not in definitions:
            return own
        own.pop("$ref")
        return {**put(definitions[name], (*around, name)), **own}

    try:
        inlined: Schema = put({key: part for key, part in schema.items() if key != "$defs"}, ())
    except RecursionError:
        return schema
    return inlined


def _enum_schema(values: list[Any]) -> Schema:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    found = {
        kinds.get(next((kind for kind in kinds if isinstance(value, kind)), object))
        for value in values
    }
    only = found.pop() if len(found) == 1 else None
    listed: Schema = {"const": values[0]} if len(values) == 1 else {"enum": values}
    return ({"type": only} if only else {}) | listed


def _add_marks(schema: Schema, marks: list[Any]) -> Schema:
    """Return a schema with a type's metadata: a description, or limits as in `annotated_types`.

    Raise Unfit for the metadata of pydantic.
    """
    sizes = {"array": "Items", "object": "Properties"}.get(str(schema.get("type")), "Length")
    for mark in marks:
        if _is_pydantic(mark):
            raise Unfit(
                "pydantic's limits have no schema without pydantic, which functions cannot import here"
            )
        text = mark if isinstance(mark, str) else getattr(mark, "documentation", None)
        if isinstance(text, str):
            schema = {"description": text.strip(), **schema}
        for name, key in {
            **_BOUNDS,
            "min_length": f"min{sizes}",
            "max_length": f"max{sizes}",
        }.items():
            if isinstance(value := getattr(mark, name, None), int | float) and _is_finite(value):
                schema[key] = value
    return schema
