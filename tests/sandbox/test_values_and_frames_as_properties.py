"""Properties: values cross unchanged, and no input harms the host."""

import datetime
import decimal
import json
import math
import pathlib
import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sandbox.errors import ProtocolError
from sandbox.processes.sessions import judge
from sandbox.wire.protocol import FrameBuffer, pack, read_frame, unpack
from sandbox.wire.values import MAX_DEPTH, Unsendable, decode, encode
from tests.kit.drawing import drawn

quick = settings(max_examples=drawn(200), suppress_health_check=[HealthCheck.too_slow])

_text = st.text(st.characters(exclude_categories=["Cs"]))
_plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), _text, st.binary()
)
_times = st.one_of(st.dates(), st.datetimes(), st.times(), st.timedeltas())
_others = st.one_of(st.decimals(allow_nan=False), st.uuids(), st.complex_numbers(allow_nan=False))
_paths = _text.filter(lambda text: "\0" not in text).map(pathlib.PurePosixPath)
_leaves = st.one_of(_plain, _times, _others, _paths)
_keys = st.one_of(
    st.none(), st.booleans(), st.integers(), _text, st.dates(), st.tuples(st.integers(), _text)
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.one_of(st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple))
    sets = st.one_of(st.sets(_keys, max_size=4), st.frozensets(_keys, max_size=4))
    return st.one_of(
        lists,
        sets,
        st.dictionaries(_text | st.just("$"), inner, max_size=4),
        st.dictionaries(_keys, inner, max_size=4),
    )


values = st.recursive(_leaves, _nested, max_leaves=12)
json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(st.text(max_size=5), st.sampled_from(["$", "v", "kind", "value"])),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


def _alike(one: Any, other: Any) -> bool:
    return (
        type(one) is type(other) and repr(one) == repr(other)
        if isinstance(one, float | complex)
        else one == other
    )


@quick
@given(values)
@example({"$": "tuple", "v": [1]})
@example({1: {"$": 1}, (2, "x"): {3}})
@example([True, 1, 1.0, "1", decimal.Decimal("1.0"), b"1"])
def test_every_value_that_is_sent_arrives_as_itself(value: Any) -> None:
    arrived = decode(unpack(pack({"kind": "x", "value": encode(value)})[4:])["value"])
    assert _alike(arrived, value)
    assert type(arrived) is type(value) or isinstance(value, pathlib.PurePath)


def test_values_at_the_edge_arrive_as_themselves() -> None:
    edges = [
        math.inf,
        -math.inf,
        decimal.Decimal("sNaN"),
        datetime.timedelta.max,
        uuid.UUID(int=0),
        complex("inf+nanj"),
    ]
    for value in (*edges, complex("inf+nanj")):
        assert repr(decode(json.loads(json.dumps(encode(value))))) == repr(value)
    assert math.isnan(decode(encode([math.nan]))[0])


def test_a_value_that_cannot_cross_says_why() -> None:
    for value, says in (
        ("\ud800", "lone surrogate"),
        ({"\ud800": 1}, "lone surrogate"),
        (10**5000, "more than 4300 digits"),
        (object(), "object cannot be sent"),
    ):
        with pytest.raises(Unsendable, match=says):
            encode(value)


def test_a_value_that_is_nested_too_deep_is_refused_on_both_sides() -> None:
    value: list[Any] = []
    encoded: list[Any] = []
    for _level in range(MAX_DEPTH + 1):
        value = [value]
    for _level in range(3 * MAX_DEPTH):
        encoded = [encoded]
    with pytest.raises(Unsendable, match="deeper"):
        encode(value)
    with pytest.raises(ProtocolError, match="deep"):
        decode(encoded)


_FIELDS = ["kind", "value", "shown", "type", "message", "frames", "reason", "cause", "was_handling"]
_tagged = st.fixed_dictionaries(
    {
        "$": st.sampled_from(
            [
                "tuple",
                "set",
                "dict",
                "bytes",
                "Decimal",
                "date",
                "timedelta",
                "UUID",
                "float",
                "Path",
                "?",
            ]
        )
    },
    optional={"v": json_values, "w": json_values},
)


@quick
@given(st.one_of(json_values, _tagged, st.lists(_tagged)))
def test_whatever_json_arrives_is_a_plain_value_or_a_protocol_error(encoded: Any) -> None:
    try:
        value = decode(encoded)
    except ProtocolError:
        return
    assert encode(value) is not None or value is None


@quick
@given(st.dictionaries(st.sampled_from(_FIELDS), json_values))
@example({"kind": "raised", "type": "E", "message": "m", "frames": [["p", 1, "f", [["a", 1]]]]})
@example(
    {"kind": "raised", "type": "E", "message": "m", "frames": [["p", 1, "f", [["a", "b", "c"]]]]}
)
@example({"kind": "raised", "type": "E", "message": "m", "frames": [], "cause": {"type": "E"}})
@example(
    {"kind": "raised", "type": "E", "message": "m", "frames": [], "cause": [], "was_handling": 3}
)
@example({"kind": "returned", "value": 1})
def test_whatever_reply_arrives_is_judged_or_a_protocol_error(reply: dict[str, Any]) -> None:
    try:
        judge(reply, "", 0.0)
    except ProtocolError:
        return


@quick
@given(
    st.lists(
        st.dictionaries(_text, st.integers(), max_size=3).map(lambda body: body | {"kind": "k"}),
        max_size=5,
    ),
    st.data(),
)
def test_frames_survive_being_cut_anywhere(
    frames: list[dict[str, Any]], data: st.DataObject
) -> None:
    stream = b"".join(pack(frame) for frame in frames)
    buffer, arrived = FrameBuffer(cap=10_000), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        buffer.feed(stream[:size])
        stream = stream[size:]
        while (frame := buffer.next()) is not None:
            arrived.append(frame)
    assert arrived == frames
    assert buffer.is_empty


@quick
@given(st.binary(max_size=100))
@example(b"\xff\xff\xff\xff")
def test_the_workers_side_reads_a_frame_or_an_end_or_a_protocol_error(data: bytes) -> None:
    left = bytearray(data)

    def read(count: int) -> bytes:
        piece = bytes(left[: min(count, 3)])
        del left[: len(piece)]
        return piece

    try:
        frame = read_frame(read, 90)
    except ProtocolError:
        return
    assert frame is None or isinstance(frame["kind"], str)


@pytest.mark.parametrize("text", ["1e-999999999999999999", "1e10001", "0e-20000"])
def test_a_decimal_whose_hash_takes_long_is_sent_by_neither_side(text: str) -> None:
    with pytest.raises(Unsendable, match="an exponent beyond 10,000"):
        encode({decimal.Decimal(text)})
    with pytest.raises(ProtocolError):
        decode({"$": "set", "v": [{"$": "Decimal", "v": text}]})
