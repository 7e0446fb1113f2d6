"""Values that are too large for a frame: what passes, what is refused, and what a hostile worker or file changes."""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent_core.storage import ValueFiles
from sandbox import FunctionCall, Job, Killed, Limits, Outcome, Raised, Refused, Returned, Sandbox
from sandbox.errors import ProtocolError
from sandbox.processes.large import LargeExchange
from sandbox.wire.large import Large
from sandbox.wire.values import LARGE
from tests.sandbox.support import modules

WORLD = modules(
    values="""
    import json, os, sys
    from decimal import Decimal

    def deep(levels: int) -> list:
        value = ["x" * 1_200_000]
        for _ in range(levels):
            value = [value]
        return value

    def keys(count: int) -> dict:
        return {str(n): n for n in range(count)}

    def digits(count: int) -> list:
        sys.set_int_max_str_digits(0)
        return ["x" * 1_200_000, 10 ** count]

    def tagged(count: int) -> list:
        return [(Decimal(n) / 100, {n}, b"ab", None, 1e400, {"$": n}) for n in range(count)]

    def lone() -> str:
        return "x" * 1_200_000 + chr(0xD800)

    def controls(count: int) -> str:
        return chr(1) * count + "𝄞" * count

    def letters(count: int) -> str:
        return "x" * count

    def same(value: object) -> object:
        return value

    def size(value: object) -> int:
        return len(value)

    def say(*frames: dict) -> None:
        for frame in frames:
            body = json.dumps(frame).encode()
            os.write(3, len(body).to_bytes(4, "big") + body)
        os._exit(0)
    """
)


@pytest.fixture
def files(tmp_path: Path) -> ValueFiles:
    """Return a folder for large values."""
    return ValueFiles(tmp_path)


async def call(
    sandbox: Sandbox, files: ValueFiles, name: str, limits: Limits | None = None, **arguments: Any
) -> Outcome:
    """Call one of the functions."""
    limits = limits or Limits(wall_s=60)
    return await sandbox.run(
        Job(WORLD, "values", FunctionCall(name, arguments), limits, large=files)
    )


@pytest.mark.parametrize(
    ("name", "argument", "size"),
    [
        pytest.param("deep", 97, 1, id="deeply-nested"),
        pytest.param("keys", 200_000, 200_000, id="many-keys"),
        pytest.param("tagged", 20_000, 20_000, id="no-json"),
        pytest.param("controls", 200_000, 400_000, id="characters-that-json-escapes"),
    ],
)
async def test_a_large_value_of_any_form_passes(
    sandbox: Sandbox, files: ValueFiles, name: str, argument: int, size: int
) -> None:
    arguments: dict[str, Any] = {"levels" if name == "deep" else "count": argument}
    made = await call(sandbox, files, name, **arguments)
    assert isinstance(made, Returned)
    assert isinstance(made.value, Large)
    again = await call(sandbox, files, "same", value=made.value)
    assert isinstance(again, Returned)
    assert again.value == made.value
    assert getattr(await call(sandbox, files, "size", value=again.value), "value", None) == size


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        pytest.param("deep", {"levels": 5_000}, "nested deeper than 100", id="too-deep"),
        pytest.param(
            "digits",
            {"count": 1_000_000},
            "more than 4300 digits",
            id="a-number-of-a-million-digits",
        ),
        pytest.param("lone", {}, "lone surrogate", id="half-a-character"),
        pytest.param(
            "letters", {"count": 67_200_000}, "may take 67108864: return less", id="too-large"
        ),
        pytest.param(
            "controls",
            {"count": 16_000_000},
            "no memory is left to write the result",
            id="no-memory",
        ),
    ],
)
async def test_a_value_that_cannot_pass_ends_its_call_with_the_reason(
    sandbox: Sandbox, files: ValueFiles, name: str, arguments: dict[str, Any], says: str
) -> None:
    ended = await call(sandbox, files, name, **arguments)
    assert isinstance(ended, Raised)
    assert says in ended.failure.message
    assert not files.kept()


PIECE = {"kind": "piece", "text": "[1]"}
END = {"kind": "large", "type": "list", "count": 1}
RETURNS: dict[str, Any] = {"kind": "returned", "shown": ""}


@pytest.mark.parametrize(
    ("frames", "says"),
    [
        pytest.param([END], "where none may be", id="an-end-without-a-beginning"),
        pytest.param([PIECE, RETURNS | {"value": 1}], "in the middle", id="a-reply-in-the-middle"),
        pytest.param(
            [PIECE, {"kind": "request", "name": "secret", "arguments": {}}],
            "in the middle",
            id="a-request",
        ),
        pytest.param(
            [PIECE, {"kind": "large", "type": 5, "count": 1}],
            "where none may be",
            id="a-type-that-is-none",
        ),
        pytest.param(
            [{"kind": "piece", "text": "x" * 900_000}] * 3, "bytes of a large value", id="too-much"
        ),
        pytest.param([PIECE, END] * 5_001, "large values, and the most is", id="too-many"),
        pytest.param(
            [{"kind": "piece", "text": "x" * 900_000}, END] * 36, "32,000,000", id="too-much-in-all"
        ),
    ],
)
async def test_a_worker_that_breaks_the_rules_of_large_values_is_stopped(
    files: ValueFiles, frames: list[dict[str, Any]], says: str
) -> None:
    exchange = LargeExchange(files, Limits(value=2_000_000))

    async def take_all() -> None:
        for frame in frames:
            await exchange.take(frame)

    with pytest.raises(ProtocolError, match=says):
        await take_all()
    await exchange.close()
    assert not list(files.folder.glob(".*.part"))


@pytest.mark.parametrize("reference", [[2], [0], [-1], ["a" * 64], [1, 1], [True, 2], []])
async def test_a_worker_can_refer_only_to_what_it_has_sent(
    sandbox: Sandbox, files: ValueFiles, reference: list[Any]
) -> None:
    reply = RETURNS | {"value": {"$": LARGE, "v": reference}}
    ended = await call(sandbox, files, "say", frames=[PIECE, END, reply])
    assert isinstance(ended, Killed)
    assert "a value tagged 'large' cannot be read" in ended.reason


async def test_only_calls_of_functions_take_large_values(
    sandbox: Sandbox, files: ValueFiles
) -> None:
    request = {"kind": "request", "name": "progress", "arguments": {"done": {"$": LARGE, "v": [1]}}}
    ended = await call(sandbox, files, "say", frames=[PIECE, END, request])
    assert isinstance(ended, Killed)
    assert "no value is tagged 'large'" in ended.reason


async def test_a_value_that_is_no_json_fails_only_the_call_that_gets_it(
    sandbox: Sandbox, files: ValueFiles
) -> None:
    forged = {"kind": "piece", "text": "[" * 100_000}
    made = await call(
        sandbox, files, "say", frames=[forged, END, RETURNS | {"value": {"$": LARGE, "v": [1]}}]
    )
    assert isinstance(made, Returned)
    got = await call(sandbox, files, "size", value=made.value)
    assert isinstance(got, Raised)
    assert "a large value cannot be read" in got.failure.message


async def made_by(sandbox: Sandbox, files: ValueFiles) -> tuple[Large, Path]:
    """Return a large value with its file."""
    made = await call(sandbox, files, "keys", count=200_000)
    assert isinstance(made, Returned)
    return made.value, files.folder / made.value.digest


async def test_a_file_that_was_changed_is_not_taken_for_the_value(
    sandbox: Sandbox, files: ValueFiles
) -> None:
    value, file = await made_by(sandbox, files)
    data = file.read_bytes()
    file.write_bytes(data.replace(b"77", b"78", 1))
    refused = await call(sandbox, files, "size", value=value)
    assert isinstance(refused, Refused)
    assert f"(SHA-256 {value.digest[:12]}…) is not kept here any longer" in refused.reason
    assert not file.exists()


async def test_no_link_is_followed_to_a_value_or_from_its_folder(
    sandbox: Sandbox, files: ValueFiles
) -> None:
    value, file = await made_by(sandbox, files)
    file.rename(files.folder.parent / "elsewhere")
    file.symlink_to(files.folder.parent / "elsewhere")
    assert isinstance(await call(sandbox, files, "size", value=value), Refused)
    files.folder.rename(files.folder.parent / "moved")
    files.folder.symlink_to(files.folder.parent / "moved")
    ended = await call(sandbox, files, "keys", count=200_000)
    assert isinstance(ended, Killed)
    assert "a large value of it could not be kept: it is a link, or not a folder" in ended.reason


async def test_a_value_stays_for_a_week_after_each_use(files: ValueFiles) -> None:
    day, began = 86_400, time.time()
    writer = files.receive()
    await writer.write("[1]")
    large = await writer.finish("list", 1)
    for days, is_used, is_kept in ((6, True, True), (12, False, True), (14, False, False)):
        files.now = lambda: began + days * day  # noqa: B023 - called in this turn alone
        files.tidy()
        assert files.has(large.digest) is is_kept, days
        if is_used:
            assert [piece async for piece in files.pieces(large.digest)] == ["[1]"]


def test_what_a_killed_process_left_unfinished_goes_after_an_hour(files: ValueFiles) -> None:
    files.make_folder()
    old, new = files.folder / f".{'a' * 16}.part", files.folder / f".{'b' * 16}.part"
    whole = files.folder / hashlib.sha256(b"1").hexdigest()
    for file in (old, new, whole):
        file.write_bytes(b"1")
    hours = time.time() - 7_200
    os.utime(old, (hours, hours))
    os.utime(whole, (hours, hours))
    files.tidy()
    assert sorted(files.folder.iterdir()) == sorted([new, whole])
    files.tidy(named=())
    assert [*files.folder.iterdir()] == [new]


THROUGH = """
import asyncio, resource, sys
from pathlib import Path
from agent_core.storage import ValueFiles
from sandbox import FunctionCall, Job, Limits, Sandbox
from tests.sandbox.test_large_values import WORLD, call

async def main():
    files = ValueFiles(Path(sys.argv[1]))
    async with await Sandbox.start() as sandbox:
        small = (await call(sandbox, files, "keys", count=100_000)).value
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        value = (await call(sandbox, files, "controls", count=5_900_000)).value
        value = (await call(sandbox, files, "same", value=value)).value
        count = (await call(sandbox, files, "size", value=value)).value
        print(value.size >> 20, count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)

asyncio.run(main())
"""


def test_the_host_holds_only_pieces_of_a_value_of_the_largest_size(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", THROUGH, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        timeout=170,
    )
    size, count, more = map(int, done.stdout.split())
    assert (size, count) == (56, 11_800_000)
    assert more < 24  # MiB; the value takes 56 as JSON
