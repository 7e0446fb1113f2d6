"""The values that cross between host and worker, as tagged JSON; never pickle.

JSON's own types cross as themselves; everything else is `{"$": tag, "v": text or list}`. The host
decodes to built-in and standard-library values only, and whatever it does not know is refused.
"""

import datetime
import decimal
import math
import pathlib
import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from .errors import ProtocolError

Encoded: TypeAlias = Any  # None, bool, int, float, str, list of Encoded, dict of str to Encoded
Value: TypeAlias = Any  # what the docstring of this module names
Simplify: TypeAlias = Callable[[Value], Value]

TAG, BODY = "$", "v"
MAX_DEPTH = 100
_FEW: Final = 64  # so many values are compared each with each in no time
MAX_DIGITS = 4300  # Python's own limit for integers as text
_MAX_BITS = 14_000


class Unsendable(TypeError):
    """A value that cannot cross; the message names its path and type."""


def _unknown(value: Value) -> Value:
    raise Unsendable(f"{_kind(value)} cannot be sent as JSON")


def encode(value: Value, simplify: Simplify = _unknown, depth: int = 0) -> Encoded:
    """The JSON of a value; what is of no known type goes through `simplify` first."""
    if depth > MAX_DEPTH:
        raise Unsendable(f"a value nested deeper than {MAX_DEPTH} levels cannot be sent")
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value, simplify, depth + 1)
    return encode(simplify(value), simplify, depth + 1)


def _itself(value: Value, _simplify: Simplify, _depth: int) -> Encoded:
    return value


def _text(value: str, _simplify: Simplify, _depth: int) -> Encoded:
    if not _is_utf8(value):
        raise Unsendable("text with a lone surrogate cannot be sent; encode it, or replace what is not UTF-8")
    return value


def _integer(value: int, _simplify: Simplify, _depth: int) -> Encoded:
    if value.bit_length() > _MAX_BITS:
        raise Unsendable(f"an integer of more than {MAX_DIGITS} digits cannot be sent; return it as text or rounded")
    return value


def _number(value: float, _simplify: Simplify, _depth: int) -> Encoded:
    return value if math.isfinite(value) else {TAG: "float", BODY: repr(value)}


def _list(value: list[Value], simplify: Simplify, depth: int) -> Encoded:
    return [encode(item, simplify, depth) for item in value]


def _dict(value: dict[Value, Value], simplify: Simplify, depth: int) -> Encoded:
    if TAG not in value and all(type(key) is str and _is_utf8(key) for key in value):
        return {key: encode(item, simplify, depth) for key, item in value.items()}
    pairs = [[encode(key, simplify, depth), encode(item, simplify, depth)] for key, item in value.items()]
    return {TAG: "dict", BODY: pairs}


def _tagged_list(tag: str) -> Callable[[Any, Simplify, int], Encoded]:
    return lambda value, simplify, depth: {TAG: tag, BODY: [encode(item, simplify, depth) for item in value]}


def _tagged_text(tag: str, write: Callable[[Any], str]) -> Callable[[Any, Simplify, int], Encoded]:
    return lambda value, _simplify, _depth: {TAG: tag, BODY: write(value)}


def _seconds(value: datetime.timedelta) -> str:
    return f"{value.days} {value.seconds} {value.microseconds}"


_ENCODERS: dict[type, Callable[[Any, Simplify, int], Encoded]] = {
    type(None): _itself,
    bool: _itself,
    int: _integer,
    str: _text,
    float: _number,
    list: _list,
    dict: _dict,
    tuple: _tagged_list("tuple"),
    set: _tagged_list("set"),
    frozenset: _tagged_list("frozenset"),
    bytes: _tagged_text("bytes", lambda value: b64encode(value).decode()),
    complex: _tagged_text("complex", repr),
    decimal.Decimal: _tagged_text("Decimal", str),
    datetime.datetime: _tagged_text("datetime", datetime.datetime.isoformat),
    datetime.date: _tagged_text("date", datetime.date.isoformat),
    datetime.time: _tagged_text("time", datetime.time.isoformat),
    datetime.timedelta: _tagged_text("timedelta", _seconds),
    uuid.UUID: _tagged_text("UUID", str),
    pathlib.PurePosixPath: _tagged_text("Path", str),
    pathlib.PosixPath: _tagged_text("Path", str),
}


def decode(encoded: Encoded, depth: int = 0) -> Value:
    """The value in this JSON, which is not trusted; ProtocolError where it is none."""
    if depth > MAX_DEPTH:  # what is taken can be sent again
        raise ProtocolError("a value is nested too deep")
    match encoded:
        case str() if not _is_utf8(encoded):
            raise ProtocolError("a text holds a lone surrogate")
        case None | bool() | int() | str():
            return encoded
        case float() if math.isfinite(encoded):
            return encoded
        case list():
            return [decode(item, depth + 1) for item in encoded]
        case dict() if TAG in encoded:
            return _decode_tagged(encoded, depth + 1)
        case dict():
            return {str(decode(key)): decode(item, depth + 1) for key, item in encoded.items()}
        case _:
            raise ProtocolError(f"a {_kind(encoded)} is no value")


def _decode_tagged(encoded: dict[str, Encoded], depth: int) -> Value:
    tag, body = encoded[TAG], encoded.get(BODY)
    if set(encoded) != {TAG, BODY} or not isinstance(tag, str):
        raise ProtocolError("a tagged value has another shape")
    try:
        if isinstance(body, str) and tag in _FROM_TEXT:
            return _FROM_TEXT[tag](body)
        if isinstance(body, list) and tag == "dict":
            return _pairs([(decode(key, depth), decode(item, depth)) for key, item in body])
        if isinstance(body, list) and tag in _FROM_LIST:
            return _FROM_LIST[tag]([decode(item, depth) for item in body])
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ProtocolError(f"a value tagged {tag[:20]!r} cannot be read") from error
    raise ProtocolError(f"no value is tagged {tag[:20]!r}")


def _non_finite(text: str) -> float:
    value = float(text)
    if math.isfinite(value):
        raise ValueError(text)
    return value


def _timedelta(text: str) -> datetime.timedelta:
    days, seconds, microseconds = text.split()
    return datetime.timedelta(int(days), int(seconds), int(microseconds))


def _path(text: str) -> pathlib.PurePath:
    return pathlib.PurePosixPath(text)


def _pairs(items: list[tuple[Value, Value]]) -> dict[Value, Value]:
    _check_hashes([key for key, _ in items])
    return dict(items)


def _members(items: list[Value]) -> set[Value]:
    _check_hashes(items)
    return set(items)


def _check_hashes(items: list[Value]) -> None:
    # Values of one hash are compared each with each: 40,000 of them held the host up for 12 seconds.
    if len(items) > _FEW and 2 * len(set(map(hash, items))) < len(items):
        raise ValueError("values that collide")


_FROM_TEXT: dict[str, Callable[[str], Value]] = {
    "float": _non_finite,
    "bytes": lambda text: b64decode(text, validate=True),
    "complex": complex,
    "Decimal": decimal.Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": _timedelta,
    "UUID": uuid.UUID,
    "Path": _path,
}
_FROM_LIST: dict[str, Callable[[list[Value]], Value]] = {
    "tuple": tuple,
    "set": _members,
    "frozenset": lambda items: frozenset(_members(items)),
}


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
