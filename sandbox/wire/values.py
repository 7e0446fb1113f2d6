"""The values that are sent between host and worker, as tagged JSON, never pickle.

JSON types are sent unchanged; all others are `{"$": tag, "v": text or list}`. The host accepts only values of built-in
and standard-library types, and rejects unknown tags. It keeps sets and mappings in order and never in a hash table: an
attacker who chooses values also chooses their hashes, and colliding values are compared pairwise, so a set of 30,000
numbers can take a minute to build. Comparisons use a canonical text, whose hash no one can choose.
"""

import datetime
import decimal
import hashlib
import importlib
import json
import math
import pathlib
import re
import uuid
from base64 import b64decode, b64encode
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any, Final, Literal, TypeAlias, TypeVar

from ..errors import ProtocolError
from .large import Large

Encoded: TypeAlias = Any  # None, bool, int, float, str, list of Encoded, dict of str to Encoded
Value: TypeAlias = Any  # of a type in `_ENCODERS`
Simplify: TypeAlias = Callable[[Value], Value]
_Build: TypeAlias = Callable[[list[Value]], Value]

TAG, BODY = "$", "v"
LARGE = "large"
_Moment = TypeVar("_Moment", datetime.datetime, datetime.time)
_ZONED: Final = re.compile(r"\[([A-Za-z][A-Za-z0-9_+/-]{0,63})\]\Z")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_MARKED: Final = b'"$":"large"'
_REFERENCE: Final = re.compile(rb'\{"\$":"large","v":\["([0-9a-f]{64})"')
MAX_DEPTH = 100
_OF_ONE_HASH: Final = 64  # values with the same hash, which are compared pairwise
_MANY: Final = 2_000
_AS_THEY_ARE: Final = frozenset({type(None), bool, int})
_SCALARS: Final = frozenset({type(None), bool, int, float, str})
MAX_DIGITS = 4300  # Python's own limit for integers as text
_MAX_BITS = 14_000
_MAX_EXPONENT: Final = 10_000


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Members:
    """A set or frozenset in its original order. `digest` is computed from the hashes of its items."""

    kind: Literal["set", "frozenset"]
    items: tuple[Value, ...]
    digest: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Members | set | frozenset):
            return NotImplemented
        return canonical(self) == canonical(other)

    def __hash__(self) -> int:
        if self.kind == "set":
            raise TypeError("unhashable type: 'set'")
        return self.digest

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        inside = f"{{{', '.join(map(repr, self.items))}}}" if self.items else ""
        return f"frozenset({inside})" if self.kind == "frozenset" else inside or "set()"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pairs:
    """A dictionary in its original order, with some keys that are not text."""

    items: tuple[tuple[Value, Value], ...]

    def __eq__(self, other: object) -> bool:
        return (
            canonical(self) == canonical(other)
            if isinstance(other, Pairs | dict)
            else NotImplemented
        )

    __hash__ = None  # type: ignore[assignment] # like a dictionary

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{key!r}: {value!r}' for key, value in self.items)}}}"

    def as_object(self) -> dict[str, Value]:
        """Return the JSON object of the dictionary.

        Raises:
            TypeError: JSON cannot write the type of a key as text.
        """
        written: dict[str, Value] = {}
        for key, value in self.items:
            if key is not None and not isinstance(key, str | int | float):
                raise TypeError(
                    f"keys must be str, int, float, bool or None, not {type(key).__name__}"
                )
            written[key if isinstance(key, str) else json.dumps(key)] = value
        return written


@dataclass(frozen=True, slots=True)
class _Tagged:
    """A collection of a type that only a worker builds, under its tag."""

    tag: str
    items: tuple[Value, ...]


def in_kind(value: Value) -> Value | None:
    """Return what stands for a collection of `collections`, so that another worker builds the same; None for others."""
    kind = type(value)
    if kind is defaultdict and value.default_factory in _FACTORIES:
        return _Tagged(
            _tag_of_default(value.default_factory), tuple([key, value[key]] for key in value)
        )
    if kind in (Counter, OrderedDict):
        return _Tagged(kind.__name__, tuple([key, value[key]] for key in value))
    if kind is deque and value.maxlen is None:
        return _Tagged("deque", tuple(value))
    return None


def _tag_of_default(factory: Callable[[], Value] | None) -> str:
    return f"defaultdict of {getattr(factory, '__name__', factory)}"


def canonical(value: Value) -> str:
    """Return the same text for values that are equal in Python, in any order; 2 equals 2.0."""
    return json.dumps(_form(value), separators=(",", ":"))


def by_text(mapping: dict[Value, Value] | Pairs) -> dict[str, Value]:
    """Return the values of a mapping by the canonical texts of their keys."""
    return {canonical(key): value for key, value in _items(mapping)}


def _form(value: Value) -> Any:  # Any: JSON
    match value:
        case None | str():
            return value
        case int() | float():
            is_whole = isinstance(value, int) or value.is_integer()
            return ["number", str(int(value)) if is_whole else repr(value)]
        case list() | tuple():
            return [type(value).__name__, *map(_form, value)]
        case set() | frozenset() | Members():
            items = value.items if isinstance(value, Members) else value
            return ["members", *sorted(set(map(_digest, items)))]
        case dict() | Pairs():
            return [
                "mapping",
                *sorted({_digest(key): _digest(entry) for key, entry in _items(value)}.items()),
            ]
        case _:
            return [type(value).__name__, str(value)]


def _items(mapping: dict[Value, Value] | Pairs) -> Iterable[tuple[Value, Value]]:
    return mapping.items if isinstance(mapping, Pairs) else mapping.items()


def _digest(value: Value) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Written:
    """A value in its encoded form, so that it is not encoded again when it is sent."""

    encoded: Encoded


class Unsendable(TypeError):
    """A value that cannot be sent. The message names its path and type."""


def _unknown(value: Value) -> Value:
    raise Unsendable(f"{_kind(value)} cannot be sent as JSON")


def encode(value: Value, simplify: Simplify = _unknown, depth: int = 0) -> Encoded:
    """Encode a value as JSON. Values of unknown types go through `simplify` first."""
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
        raise Unsendable(
            "text with a lone surrogate cannot be sent; encode it, or replace what is not UTF-8"
        )
    return value


def _integer(value: int, _simplify: Simplify, _depth: int) -> Encoded:
    if value.bit_length() > _MAX_BITS:
        raise Unsendable(
            f"an integer of more than {MAX_DIGITS} digits cannot be sent; return it as text or rounded"
        )
    return value


def _number(value: float, _simplify: Simplify, _depth: int) -> Encoded:
    return value if math.isfinite(value) else {TAG: "float", BODY: repr(value)}


def _decimal_text(value: decimal.Decimal) -> str:
    if not _is_moderate(value):
        raise Unsendable(
            f"a decimal number with an exponent beyond {_MAX_EXPONENT:,} cannot be sent; return it as text"
        )
    return str(value)


def _is_moderate(value: decimal.Decimal) -> bool:
    """Check the exponent: the time of a hash grows with it, and the hashes of a set are one step."""
    return not value.is_finite() or abs(value.adjusted()) <= _MAX_EXPONENT


def _list(value: list[Value], simplify: Simplify, depth: int) -> Encoded:
    if depth > MAX_DEPTH:
        return [encode(item, simplify, depth) for item in value]
    # Most items are short texts; a call for each would take twice as long.
    return [
        item if type(item) is str and item.isascii() else encode(item, simplify, depth)
        for item in value
    ]


def _dict(value: dict[Value, Value], simplify: Simplify, depth: int) -> Encoded:
    if TAG not in value and _has_plain_keys(value):
        return {key: encode(item, simplify, depth) for key, item in value.items()}
    return _pairs(value.items(), simplify, depth)


def _pairs(items: Iterable[tuple[Value, Value]], simplify: Simplify, depth: int) -> Encoded:
    pairs = [
        [
            key if type(key) is str and key.isascii() else encode(key, simplify, depth),
            encode(item, simplify, depth),
        ]
        for key, item in items
    ]
    return {TAG: "dict", BODY: pairs}


def _members(members: Members, simplify: Simplify, depth: int) -> Encoded:
    return {TAG: members.kind, BODY: [encode(item, simplify, depth) for item in members.items]}


def _tagged_list(tag: str) -> Callable[[Any, Simplify, int], Encoded]:
    return lambda value, simplify, depth: {
        TAG: tag,
        BODY: [encode(item, simplify, depth) for item in value],
    }


def _tagged_text(tag: str, write: Callable[[Any], str]) -> Callable[[Any, Simplify, int], Encoded]:
    return lambda value, _simplify, _depth: {TAG: tag, BODY: write(value)}


class ZoneClaim(datetime.tzinfo):
    """A time zone by its name, as a worker named it, with the offset that it stated; the host looks up no zone."""

    def __init__(self, key: str, offset: datetime.timedelta | None) -> None:
        self.key = key
        self._offset = offset

    def utcoffset(self, _moment: datetime.datetime | None) -> datetime.timedelta | None:
        """Return the offset that the worker stated."""
        return self._offset

    def dst(self, _moment: datetime.datetime | None) -> None:
        """Return nothing: it is not stated."""

    def tzname(self, _moment: datetime.datetime | None) -> str:
        """Return the name of the zone."""
        return self.key

    def __getinitargs__(self) -> tuple[str, datetime.timedelta | None]:
        return self.key, self._offset

    def __repr__(self) -> str:
        return f"zoneinfo.ZoneInfo(key={self.key!r})"


def _moment_text(value: datetime.datetime | datetime.time) -> str:
    """Return a moment as text, with the name of its zone in brackets if it has one, as RFC 9557 writes it."""
    key = getattr(value.tzinfo, "key", None)
    named = isinstance(key, str) and _ZONED.fullmatch(f"[{key}]")
    return f"{value.isoformat()}[{key}]" if named else value.isoformat()


def _moment(
    kind: type[_Moment], zone: Callable[[str, _Moment], _Moment]
) -> Callable[[str], _Moment]:
    """Return the reader of a moment of this type; `zone` gives one the zone of a name."""

    def read_moment(text: str) -> _Moment:
        found = _ZONED.search(text)
        if found is None:
            return kind.fromisoformat(text)
        return zone(found[1], kind.fromisoformat(text[: found.start()]))

    return read_moment


def _with_claim(key: str, moment: _Moment) -> _Moment:
    return moment.replace(tzinfo=ZoneClaim(key, moment.utcoffset()))


def _with_zone(key: str, moment: _Moment) -> _Moment:
    """Return a moment in a zone; in a worker. One that the zone knows no such offset for keeps its offset only."""
    try:
        named = moment.replace(tzinfo=importlib.import_module("zoneinfo").ZoneInfo(key))
    except (KeyError, ValueError, OSError):  # there is no such zone here
        return moment
    same = (
        each for each in (named, named.replace(fold=1)) if each.utcoffset() == moment.utcoffset()
    )
    return next(same, moment)


def _seconds(value: datetime.timedelta) -> str:
    return f"{value.days} {value.seconds} {value.microseconds}"


_FACTORIES: Final = (
    None,
    int,
    float,
    str,
    bool,
    list,
    dict,
    set,
    tuple,
)  # of a `defaultdict` that is kept
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
    Members: _members,
    _Tagged: lambda value, simplify, depth: {
        TAG: value.tag,
        BODY: [encode(item, simplify, depth) for item in value.items],
    },
    Pairs: lambda value, simplify, depth: _pairs(value.items, simplify, depth),
    Written: lambda value, _simplify, _depth: value.encoded,
    bytes: _tagged_text("bytes", lambda value: b64encode(value).decode()),
    complex: _tagged_text("complex", repr),
    decimal.Decimal: _tagged_text("Decimal", _decimal_text),
    datetime.datetime: _tagged_text("datetime", _moment_text),
    datetime.date: _tagged_text("date", datetime.date.isoformat),
    datetime.time: _tagged_text("time", _moment_text),
    datetime.timedelta: _tagged_text("timedelta", _seconds),
    uuid.UUID: _tagged_text("UUID", str),
    pathlib.PurePosixPath: _tagged_text("Path", str),
    pathlib.PosixPath: _tagged_text("Path", str),
    Large: lambda value, _simplify, _depth: {
        TAG: LARGE,
        BODY: [value.digest, value.size, value.kind, value.count],
    },
}


def lean(value: Value, simplify: Simplify = _unknown) -> Encoded:
    """Encode a value; one that JSON can hold as it is, is returned itself, because a copy may not fit into memory."""
    return value if is_plain(value) else encode(value, simplify)


def is_plain(value: Value) -> bool:
    """Return whether JSON holds a value as it is, so that it is the same when it is read again."""
    level = [value]
    for _ in range(MAX_DEPTH):
        if not level:
            return True
        below: list[Value] = []
        for item in level:
            kind = type(item)
            if kind is list:
                below += item
            elif kind is dict:
                if TAG in item or not _has_plain_keys(item):
                    return False
                below += item.values()
            elif not _is_plain_scalar(item, kind):
                return False
        level = below
    return not level


def _has_plain_keys(mapping: dict[Value, Value]) -> bool:
    for key in mapping:  # noqa: SIM110 - a generator would take three times as long for a small one
        if type(key) is not str or not (key.isascii() or _is_utf8(key)):
            return False
    return True


def _is_plain_scalar(item: Value, kind: type) -> bool:
    if kind is str:
        return bool(item.isascii() or _is_utf8(item))
    if kind is int:
        return bool(item.bit_length() <= _MAX_BITS)
    if kind is float:
        return math.isfinite(item)
    return item is None or kind is bool


def decode(encoded: Encoded, given: Callable[[str], Value] | None = None) -> Value:
    """Decode a value in a worker. Raise ProtocolError if it is invalid.

    `given` returns a large value by its digest.
    """
    readers = _IN_A_WORKER
    if given is not None:
        readers = replace(readers, lists={**readers.lists, LARGE: lambda row: given(row[0])})
    return _decode(encoded, readers, 0)


def read(encoded: Encoded, received: Sequence[Large] = ()) -> Value:
    """Decode a value in the host. Sets, and mappings with keys other than text, are not put into hash tables.

    `received` are the large values that the worker has sent in this conversation, which it may refer to by number.

    Raises:
        ProtocolError: it is invalid.
    """
    readers = _IN_THE_HOST
    if received:
        readers = replace(
            readers, lists={**readers.lists, LARGE: lambda row: _received(row, received)}
        )
    return _decode(encoded, readers, 0)


def _received(row: list[Value], received: Sequence[Large]) -> Large:
    match row:
        case [int(number)] if 0 < number <= len(received):
            return received[number - 1]
        case _:
            raise ValueError("it sent no such value")


def read_row(encoded: Encoded) -> Value:
    """Decode a value that this program stored; see `read`. Large values in it may not be kept any longer."""
    return _decode(encoded, _OF_A_ROW, 0)


def _stored(row: list[Value]) -> Large:
    match row:
        case [str(digest), int(size), str(kind), int() | None as count] if _DIGEST.fullmatch(
            digest
        ):
            return Large(digest, size, kind, count)
        case _:
            raise ValueError("a large value has another shape")


def large_in(frame: bytes) -> dict[str, None]:
    """Return the digests of the large values that a frame of the host refers to, in order.

    In a text of JSON the quotes would be escaped, and a dictionary with that key is sent as pairs.
    """
    return (
        dict.fromkeys(digest.decode() for digest in _REFERENCE.findall(frame))
        if _MARKED in frame
        else {}
    )


def kind_of(encoded: Encoded) -> tuple[str, int | None]:
    """Return the type of an encoded value and the number of its items."""
    if isinstance(encoded, dict) and TAG in encoded:
        kind, body = str(encoded[TAG]), encoded[BODY]
        return kind, len(body) if isinstance(body, list) else None
    return type(encoded).__name__, len(encoded) if isinstance(encoded, str | list | dict) else None


def is_large(encoded: Encoded) -> bool:
    """Return whether JSON or a value has so many parts that processing it would block the event loop noticeably."""
    waiting, count = [encoded], 0
    while (
        waiting and count <= _MANY
    ):  # no `match`, which takes several times as long: every call is looked at
        part = waiting.pop()
        if isinstance(part, (list, tuple)):
            count += len(part)
            waiting += [item for item in part[:_MANY] if type(item) not in _SCALARS]
        elif isinstance(part, dict):
            count += len(part)
            waiting += [item for item in islice(part.values(), _MANY) if type(item) not in _SCALARS]
        elif isinstance(part, (Members, Pairs)):
            waiting.append(part.items)
        elif isinstance(part, (set, frozenset)):
            count += len(part)
            waiting += islice(part, _MANY)
        elif isinstance(part, Written):
            waiting.append(part.encoded)
    return count > _MANY


@dataclass(frozen=True, slots=True)
class _Readers:
    """What builds a tagged value: of the values in a list, or of a text."""

    lists: Mapping[str, _Build]
    texts: Mapping[str, Callable[[str], Value]]


def _decode(encoded: Encoded, readers: _Readers, depth: int) -> Value:
    if depth > MAX_DEPTH:  # an accepted value can be sent again
        raise ProtocolError("a value is nested too deep")
    match encoded:
        case str() if not _is_utf8(encoded):
            raise ProtocolError("a text holds a lone surrogate")
        case None | bool() | int() | str():
            return encoded
        case float() if math.isfinite(encoded):
            return encoded
        case list():
            is_done = depth < MAX_DEPTH and _AS_THEY_ARE.issuperset(map(type, encoded))
            return encoded if is_done else [_decode(item, readers, depth + 1) for item in encoded]
        case dict() if TAG in encoded:
            return _decode_tagged(encoded, readers, depth + 1)
        case dict():
            if not all(map(_is_utf8, encoded)):
                raise ProtocolError("a text holds a lone surrogate")
            return {key: _decode(item, readers, depth + 1) for key, item in encoded.items()}
        case _:
            raise ProtocolError(f"a {_kind(encoded)} is no value")


def _decode_tagged(encoded: dict[str, Encoded], readers: _Readers, depth: int) -> Value:
    tag, body = encoded[TAG], encoded.get(BODY)
    if encoded.keys() != {TAG, BODY} or not isinstance(tag, str):
        raise ProtocolError("a tagged value has another shape")
    try:
        if isinstance(body, str) and tag in readers.texts:
            return readers.texts[tag](body)
        if isinstance(body, list) and tag == "dict":
            pairs = [
                (_decode(key, readers, depth), _decode(item, readers, depth)) for key, item in body
            ]
            return readers.lists[tag](pairs)
        if isinstance(body, list) and tag in readers.lists:
            return readers.lists[tag]([_decode(item, readers, depth) for item in body])
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ProtocolError(f"a value tagged {tag[:20]!r} cannot be read") from error
    raise ProtocolError(f"no value is tagged {tag[:20]!r}")


def _non_finite(text: str) -> float:
    value = float(text)
    if math.isfinite(value):
        raise ValueError(text)
    return value


def _decimal(text: str) -> decimal.Decimal:
    value = decimal.Decimal(text)
    if not _is_moderate(value):
        raise ValueError(text)
    return value


def _timedelta(text: str) -> datetime.timedelta:
    days, seconds, microseconds = text.split()
    return datetime.timedelta(int(days), int(seconds), int(microseconds))


def _hashes(items: Iterable[Value]) -> tuple[int, ...]:
    """Return the sorted hashes of values. Raise TypeError if one is unhashable, ValueError if too many collide."""
    hashes = tuple(sorted(map(hash, items)))
    if any(sum(1 for _ in same) > _OF_ONE_HASH for _, same in groupby(hashes)):
        raise ValueError("values that collide")
    return hashes


def _builder_of(kind: type[set[Value]] | type[frozenset[Value]]) -> _Build:
    def build(items: list[Value]) -> Value:
        _hashes(items)
        return kind(items)

    return build


def _built_dict(items: list[Value]) -> dict[Value, Value]:
    _hashes(key for key, _ in items)
    return dict(items)


def _default_builder(factory: Callable[[], Value] | None) -> _Build:
    return lambda items: defaultdict(factory, _built_dict([(key, item) for key, item in items]))


def _member_claim(kind: Literal["set", "frozenset"]) -> _Build:
    return lambda items: Members(kind, tuple(items), hash(_hashes(items)))


def _claimed_dict(items: list[Value]) -> Value:
    pairs = tuple((key, value) for key, value in items)
    _hashes(key for key, _ in pairs)
    return dict(pairs) if all(type(key) is str for key, _ in pairs) else Pairs(pairs)


_FROM_TEXT: dict[str, Callable[[str], Value]] = {
    "float": _non_finite,
    "bytes": lambda text: b64decode(text, validate=True),
    "complex": complex,
    "Decimal": _decimal,
    "datetime": _moment(datetime.datetime, _with_claim),
    "date": datetime.date.fromisoformat,
    "time": _moment(datetime.time, _with_claim),
    "timedelta": _timedelta,
    "UUID": uuid.UUID,
    "Path": pathlib.PurePosixPath,
}
_BUILT: dict[str, _Build] = {
    "tuple": tuple,
    "set": _builder_of(set),
    "frozenset": _builder_of(frozenset),
    "dict": _built_dict,
}
_OF_COLLECTIONS: dict[str, _Build] = {
    "Counter": lambda items: Counter(_built_dict([(key, item) for key, item in items])),
    "OrderedDict": lambda items: OrderedDict(_built_dict([(key, item) for key, item in items])),
    "deque": deque,
    **{_tag_of_default(factory): _default_builder(factory) for factory in _FACTORIES},
}
_CLAIMED: dict[str, _Build] = {
    "tuple": tuple,
    "set": _member_claim("set"),
    "frozenset": _member_claim("frozenset"),
    "dict": _claimed_dict,
}
_IN_A_WORKER: Final = _Readers(
    {**_BUILT, **_OF_COLLECTIONS},
    {
        **_FROM_TEXT,
        "datetime": _moment(datetime.datetime, _with_zone),
        "time": _moment(datetime.time, _with_zone),
        "Path": pathlib.Path,
    },
)
_IN_THE_HOST: Final = _Readers(_CLAIMED, _FROM_TEXT)
_OF_A_ROW: Final = _Readers({**_CLAIMED, LARGE: _stored}, _FROM_TEXT)


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
    return (
        kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    )
