"""Conversion of JSON-like arguments to the annotated types, or an Unfit naming the path, the expected and the actual.

For a union, the first member that fits is used; members of exactly the value's type come first. Dates, decimals,
durations and base64 bytes are parsed from text only if nothing is lost. Unknown types are left to pydantic, if it can
be imported.
"""

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import importlib
import pathlib
import re
import typing
import uuid
from binascii import a2b_base64
from collections.abc import Callable, Iterable
from typing import Any

from .hints import NOTHING_TO_CHECK, Hint, init_fields, is_union, of_class, origin_of, peel, required_keys, words

Make = Callable[[Any], Any]  # a JSON value → a value; raises ValueError or TypeError if it does not fit

_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<weeks>[\d.]+)W)?(?:(?P<days>[\d.]+)D)?"
    r"(?:T(?:(?P<hours>[\d.]+)H)?(?:(?P<minutes>[\d.]+)M)?(?:(?P<seconds>[\d.]+)S)?)?"
)
_CLOCK = re.compile(r"(?P<hours>\d+):(?P<minutes>\d\d)(?::(?P<seconds>\d\d(?:\.\d+)?))?")


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    number = float(value)
    return number if number == value else value  # a whole number that a float cannot hold stays an int


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _from_text(parse: Make) -> Make:
    return lambda value: parse(_text(value))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else a2b_base64(_text(value), strict_mode=True)


def _decimal(value: Any) -> decimal.Decimal:
    try:
        return decimal.Decimal(value if isinstance(value, str) else str(_finite(value)))
    except decimal.InvalidOperation as error:
        raise ValueError from error


def _finite(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return value


def _complex(value: Any) -> complex:
    return complex(value if isinstance(value, str) else _number(value))


def _duration(value: Any) -> datetime.timedelta:
    if not isinstance(value, str):
        return datetime.timedelta(seconds=_number(value))
    match = _DURATION.fullmatch(value) or _CLOCK.fullmatch(value)
    parts = (
        {name: float(text) for name, text in match.groupdict("").items() if text not in ("", "-", "+")} if match else {}
    )
    if not match or not parts:
        raise ValueError
    length = datetime.timedelta(**parts)
    return -length if match.groupdict().get("sign") == "-" else length


SCALARS: dict[Any, tuple[Make, str]] = {
    bool: (_boolean, "true or false"),
    int: (_integer, "a whole number"),
    float: (_number, "a number"),
    str: (_text, "text"),
    bytes: (_bytes, "base64 text"),
    complex: (_complex, "a number, or text like '1+2j'"),
    decimal.Decimal: (_decimal, "a decimal number"),
    datetime.datetime: (_from_text(datetime.datetime.fromisoformat), "a date and time like 2024-05-01T12:30:00"),
    datetime.date: (_from_text(datetime.date.fromisoformat), "a date like 2024-05-01"),
    datetime.time: (_from_text(datetime.time.fromisoformat), "a time like 12:30:00"),
    datetime.timedelta: (_duration, "seconds, or a duration like PT1H30M"),
    uuid.UUID: (_from_text(uuid.UUID), "a UUID"),
    pathlib.Path: (_from_text(pathlib.Path), "a path"),
    pathlib.PurePath: (_from_text(pathlib.PurePath), "a path"),
    pathlib.PosixPath: (_from_text(pathlib.PosixPath), "a path"),
    pathlib.PurePosixPath: (_from_text(pathlib.PurePosixPath), "a path"),
}


Maker = Callable[[Any, Hint, str], Any]  # value, hint, path → value


class Unfit(Exception):
    """The job does not fit the code. The message is for the requester."""


def build(value: Any, hint: Hint, path: str) -> Any:
    """Convert a value to the type of a hint. Raise Unfit if it does not fit."""
    hint = peel(hint)
    if hint in SCALARS:
        make, expected = SCALARS[hint]
        if type(value) is hint:
            return value
        try:
            return make(value)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise _unfit(value, expected, path) from error
    if any(hint is free for free in NOTHING_TO_CHECK) or isinstance(hint, str | typing.ForwardRef):
        return value
    origin = origin_of(hint)
    if is_union(origin):
        return _union(value, hint, path)
    if origin is typing.Literal:
        return _choice(value, hint, path)
    maker = _CONTAINERS.get(origin) or _maker_of_class(origin)
    return maker(value, hint, path)


def _unfit(value: Any, expected: str, path: str) -> Unfit:
    shown = repr(value)
    return Unfit(f"{path}: expected {expected}, got {shown if len(shown) <= 80 else shown[:79] + '…'}")


def _choices(hint: Hint) -> list[tuple[Any, Any]]:
    """Return what an enumeration or a `Literal` allows: each value as it is in JSON, and as the function gets it."""
    allowed: Iterable[Any] = typing.get_args(hint) if origin_of(hint) is typing.Literal else ()
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        allowed = [member for name, member in hint.__members__.items() if member.name == name]
    return [(choice.value if isinstance(choice, enum.Enum) else choice, choice) for choice in allowed]


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
    for member in (*exact, *members):
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
        return kind([build(item, inner, f"{path}[{at}]") for at, item in enumerate(items)])

    return make


def _iterator(value: Any, hint: Hint, path: str) -> Any:
    return iter(_collection(list)(value, hint, path))


def _tuple(value: Any, hint: Hint, path: str) -> Any:
    inner = typing.get_args(hint)
    items = _items(value, "a list", path)
    if not inner or inner[-1] is Ellipsis:
        inner = (inner[0] if inner else Any,) * len(items)
    if len(items) != len(inner):
        raise _unfit(value, f"a list of {len(inner)} items", path)
    return tuple(build(item, want, f"{path}[{at}]") for at, (item, want) in enumerate(zip(items, inner, strict=True)))


def _mapping(value: Any, hint: Hint, path: str) -> Any:
    if not isinstance(value, dict):
        raise _unfit(value, "an object", path)
    key, item = (*typing.get_args(hint), int)[:2] if typing.get_args(hint) else (Any, Any)  # of a Counter, counts
    mapping = {_key(name, key, path): build(element, item, f"{path}.{name}") for name, element in value.items()}
    kind = origin_of(hint)
    if kind is collections.defaultdict:
        return collections.defaultdict(None, mapping)
    return (
        kind(mapping) if isinstance(kind, type) and kind in (collections.OrderedDict, collections.Counter) else mapping
    )


def _key(name: Any, hint: Hint, path: str) -> Any:
    """Convert a key, which is always text in JSON."""
    hint = peel(hint)
    if isinstance(name, str) and hint in (int, float):
        try:
            return hint(name)
        except ValueError as error:
            raise _unfit(name, f"a key that is {SCALARS[hint][1]}", path) from error
    if isinstance(name, str) and hint is bool and name in ("true", "false"):
        return name == "true"
    for plain, choice in _choices(hint):
        if str(plain) == name:
            return choice
    is_sum = isinstance(hint, type) and issubclass(hint, enum.Flag) and str(name).removeprefix("-").isdecimal()
    return build(int(name) if is_sum else name, hint, f"{path} (key)")


def _nothing(value: Any, _hint: Hint, path: str) -> None:
    if value is not None:
        raise _unfit(value, "null", path)


def _maker_of_class(kind: Any) -> Maker:
    if not isinstance(kind, type):
        return _by_pydantic
    if issubclass(kind, enum.Enum):
        return _enum
    if dataclasses.is_dataclass(kind) and not hasattr(kind, "__pydantic_validator__"):
        return _dataclass
    if typing.is_typeddict(kind):
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


def _fields(value: Any, fields: dict[str, Hint], required: Iterable[str], path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unfit(value, "an object", path)
    if unknown := [name for name in value if name not in fields]:
        raise Unfit(f"{path}.{unknown[0]}: there is no such field; the fields are {', '.join(fields)}")
    if missing := [name for name in required if name not in value]:
        raise Unfit(f"{path}.{missing[0]}: is missing")
    return {name: build(item, fields[name], f"{path}.{name}") for name, item in value.items()}


def _dataclass(value: Any, hint: Hint, path: str) -> Any:
    hint = origin_of(hint)  # of a generic one
    if isinstance(value, hint):
        return value
    fields = init_fields(hint)
    hints = of_class(hint)
    absent = dataclasses.MISSING
    required = [field.name for field in fields if field.default is absent and field.default_factory is absent]
    return hint(**_fields(value, {field.name: hints[field.name] for field in fields}, required, path))


def _typed_dict(value: Any, hint: Hint, path: str) -> Any:
    hint = origin_of(hint)
    return _fields(value, of_class(hint), required_keys(hint), path)


def _named_tuple(value: Any, hint: Hint, path: str) -> Any:
    hint = origin_of(hint)
    hints = {name: of_class(hint).get(name, Any) for name in hint._fields}
    if not isinstance(value, dict):
        value = dict(zip(hint._fields, _items(value, "a list or an object", path), strict=False))
    return hint(**_fields(value, hints, [name for name in hints if name not in hint._field_defaults], path))


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
    type(None): _nothing,
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
