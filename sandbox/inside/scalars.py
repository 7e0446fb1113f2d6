"""Single values from JSON values: `"2024-05-01"` → a date, `"1.50"` → a Decimal.

Bytes are base64 text, as their schema says. A duration is a number of seconds, ISO 8601 text
(`P1DT2H`) or `H:MM:SS`. Nothing is taken that would lose something.
"""

import datetime
import decimal
import pathlib
import re
import uuid
from binascii import a2b_base64
from collections.abc import Callable
from typing import Any

Make = Callable[[Any], Any]  # a JSON value → a value; ValueError or TypeError where it is none

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
    return float(value)


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
