"""Frames of any kind, both ways: the host reads a worker, and the worker reads the host; names that climb."""

import _thread
import asyncio
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sandbox import Limits
from sandbox.errors import ProtocolError
from sandbox.inside.channel import Channel
from sandbox.processes.calls import CallServer
from sandbox.processes.compilation import CompiledCache
from sandbox.processes.large import LargeExchange
from sandbox.processes.launch import Worker
from sandbox.processes.pool import Places
from sandbox.processes.sessions import WorkerConversation, judge
from sandbox.wire.protocol import FrameBuffer, pack, read_frame
from sandbox.wire.requests import without_handler
from tests.kit.drawing import drawn

LIMITS = Limits(result=1000, requests=20)
CAP = LIMITS.result + (64 << 10)
many = settings(max_examples=drawn(150), suppress_health_check=[HealthCheck.too_slow])

_keys = st.sampled_from(
    ["kind", "value", "shown", "type", "message", "frames", "reason", "module", "name", "arguments"]
)
_kinds = st.sampled_from(
    ["returned", "raised", "refused", "module", "source", "request", "ready", "loaded", "tried"]
)
_climbing = st.lists(
    st.sampled_from(["..", "/", ".", "a", "\\", "\0", "~", "functions", "\n", "é"]), max_size=9
)
names = st.text(max_size=40) | _climbing.map("".join)
_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | names
    | _kinds
)
_values = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4)
)
frames = st.builds(
    lambda kind, rest: {**rest, "kind": kind}, _kinds, st.dictionaries(_keys, _values, max_size=5)
)


def _bytes_of(frame: dict[str, Any]) -> bytes:
    body = json.dumps(frame).encode()
    return len(body).to_bytes(4, "big") + body


pieces = st.one_of(
    frames.map(_bytes_of), st.binary(max_size=30), frames.map(lambda frame: _bytes_of(frame)[:-1])
)
streams = st.lists(pieces, max_size=6).map(b"".join)


async def _never(_job: dict[str, Any]) -> NoReturn:
    raise AssertionError("something was to be compiled")


async def heard(data: bytes) -> dict[str, Any] | None:
    """Return what the host reads from a worker that sends these bytes and ends."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    output, other = os.pipe()
    os.set_blocking(output, False)
    nobody: Any = None  # the warm process takes no part in a conversation
    talk = WorkerConversation(Worker(nobody, 0, ours, output, -1), LIMITS)
    places = Places(1)
    call = CallServer(
        {}, CompiledCache(_never), places, without_handler, LargeExchange(None, LIMITS)
    )
    try:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(20), places:
            return await talk.hold(b"", call.serve)
    finally:
        for each in (ours, theirs):
            each.close()
        for descriptor in (output, other):
            os.close(descriptor)


@many
@given(streams)
@example(b"\xff\xff\xff\xff")
@example(_bytes_of({"kind": "module", "module": "../x"}) * 30)
@example(_bytes_of({"kind": "request", "name": "call", "arguments": {"$": "set", "v": [[]]}}))
def test_whatever_a_worker_sends_the_host_has_one_reply_or_none_or_a_broken_rule(
    data: bytes,
) -> None:
    try:
        reply = asyncio.run(heard(data))
        outcome = None if reply is None else judge(reply, "", 0.0)
    except ProtocolError:
        return
    assert outcome is None or type(outcome).__name__ in ("Returned", "Raised", "Refused")


def _by_buffer(data: bytes) -> Iterator[dict[str, Any]]:
    buffer = FrameBuffer(CAP)
    buffer.feed(data)
    while (frame := buffer.next()) is not None:
        yield frame


def _by_reading(data: bytes) -> Iterator[dict[str, Any]]:
    left = bytearray(data)

    def read(count: int) -> bytes:
        piece = bytes(left[:count])
        del left[:count]
        return piece

    while len(left) >= 4:
        size = int.from_bytes(left[:4], "big")
        if 4 + size > len(left) and size <= CAP:
            return  # the rest has not arrived yet
        frame = read_frame(read, CAP)
        assert frame is not None
        yield frame


def _all(found: Iterator[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
    taken: list[dict[str, Any]] = []
    try:
        for frame in found:
            taken.append(frame)  # noqa: PERF402 - the frames before a broken one count
    except ProtocolError:
        return taken, False
    return taken, True


@many
@given(streams)
@example(b"\0\0\0\2[]")
@example(b'\0\0\0\x0f{"kind":Infinity}')
def test_both_ends_read_the_same_frames_out_of_the_same_bytes(data: bytes) -> None:
    found = _all(_by_buffer(data))
    assert found == _all(_by_reading(data))
    assert all(isinstance(frame["kind"], str) for frame in found[0])


@many
@given(frames | st.builds(dict, kind=st.just("answer"), value=_values))
def test_whatever_the_host_answers_the_worker_has_a_value_or_an_error(
    frame: dict[str, Any],
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(_bytes_of(frame))
        channel = Channel(ours.fileno(), _thread.allocate_lock())
        try:
            channel.request("progress", {"done": 1})
        except (ProtocolError, PermissionError, KeyError):
            return


@contextmanager
def _nothing_opened() -> Iterator[None]:
    _opened.clear()
    _armed.append(True)
    try:
        yield
    finally:
        _armed.clear()
    assert _opened == []


_armed: list[bool] = []
_opened: list[Any] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _armed and event in ("open", "os.listdir", "os.scandir", "import", "exec", "compile"):
        _opened.append((event, arguments[:1]))


@pytest.fixture(scope="module", autouse=True)
def _listen() -> None:
    sys.addaudithook(_audit)


@many
@given(names, st.sampled_from(["module", "source"]))
@example("../../../etc/passwd", "source")
@example("/etc/passwd", "module")
@example("..functions.honest", "module")
def test_a_name_that_climbs_is_no_module_and_nothing_is_opened_for_it(name: str, kind: str) -> None:
    call = CallServer(
        {}, CompiledCache(_never), Places(1), without_handler, LargeExchange(None, LIMITS)
    )
    loop = asyncio.new_event_loop()
    try:
        with _nothing_opened():
            answer = loop.run_until_complete(call._answer({"kind": kind, "module": name}))
    finally:
        loop.close()
    assert answer in ({"kind": "absent"}, {"kind": "source", "text": None})
    pack(answer)
