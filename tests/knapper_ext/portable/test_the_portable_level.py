"""Level `portable` itself, whatever level the other tests use: its isolation, its ends, and its stored code."""

import asyncio
import gc
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from knapper_ext.portable.component import TESTED, NoComponent, engine, find_or_build, lacks
from sandbox import (
    Access,
    Code,
    FunctionCall,
    Job,
    Killed,
    Limits,
    Outcome,
    Raised,
    Refused,
    Returned,
    Sandbox,
    SandboxUnavailable,
    TimedOut,
)
from sandbox.beside import LevelsBeside, Tell
from sandbox.job import DEFAULT
from tests.attacks.outside import is_zygote, zygotes_of
from tests.attacks.world import REPOSITORY
from tests.kit.drawing import sampled
from tests.kit.levels import BESIDE, IS_PORTABLE, STORE, lend, require_namespaces, skip_here
from tests.kit.program import children
from tests.kit.terminal import Terminal
from tests.sandbox.support import modules

pytestmark = pytest.mark.skipif(bool(lacks()), reason="the extra `portable` is not installed")
SHORT = Limits(wall_s=1.5)
TEXT = """
import asyncio, os, subprocess, threading, time

def add(a: int, b: int) -> int:
    return a + b

def spin():
    while True:
        pass

def nap():
    time.sleep(60)

def nest():
    value = []
    for _ in range(100_000):
        value = [value]
    return repr(value)

def take():
    return len(bytearray(1 << 30))

def fill(self):
    with open(self.scratch / "much", "wb") as file:
        while True:
            file.write(bytes(1 << 20))

def name(self):
    for number in range(100_000):
        (self.scratch / str(number)).touch()

def talk():
    while True:
        print("x" * 4000)

def thread():
    threading.Thread(target=print).start()

def start():
    subprocess.run(["true"])

def native(name: str):
    __import__(name)

def look():
    return [sorted(os.listdir(path)) for path in ("/", "/usr")], dict(os.environ), os.getcwd()

def keep(self, text: str) -> list[str]:
    (self.scratch / "kept").write_text(text)
    return os.listdir(self.scratch)

async def gather(self):
    calls = [asyncio.to_thread(self.call, "double", k=number) for number in range(5)]
    return await asyncio.gather(*calls)

def forge(frame: str):
    import wit_world
    wit_world.say(frame)
    return "honest"

def forge_until_the_end(frame: str):
    import wit_world
    while True:
        wit_world.say(frame)

def forge_at_length(size: int):
    import wit_world
    wit_world.say("x" * size)

def print_at_once(size: int):
    print("x" * size)

def open_a_file(path: str):
    return open(path).read()

def write_a_file(path: str):
    open(path, "w").write("x")
"""


@pytest_asyncio.fixture(scope="module")
async def portable() -> AsyncIterator[Sandbox]:
    async with await start_in(STORE) as started:
        yield started


async def called(
    sandbox: Sandbox, function: str, limits: Limits = DEFAULT, /, **arguments: Any
) -> Outcome:
    async def answer(name: str, given: dict[str, Any], /) -> object:
        if name.startswith("file_"):
            return {"real": True}
        return given["arguments"]["k"] * 2

    texts: dict[str, Code] = modules(work=TEXT)
    return await sandbox.run(
        Job(texts, "work", FunctionCall(function, arguments), limits, handler=answer)
    )


async def start_in(store: Path, tell: Tell = print) -> Sandbox:
    """Start the level with its own folder, which has its name."""
    beside = LevelsBeside(BESIDE.offers, store.parent, tell)
    return await Sandbox.start(level="portable", beside=beside)


runners = partial(children, b"knapper_ext.portable.runner")


async def test_what_never_returns_is_ended_with_its_process_and_the_next_call_works(
    portable: Sandbox,
) -> None:
    running = [
        asyncio.ensure_future(called(portable, function, SHORT)) for function in ("spin", "nap")
    ]
    there = set[int]()
    while not all(call.done() for call in running):
        there |= runners()
        await asyncio.sleep(0.05)
    assert [type(call.result()) for call in running] == [TimedOut] * 2
    async with asyncio.timeout(10):
        while sys.platform == "linux" and len(there - runners()) < 2:  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(0.02)
    outcome = await called(portable, "add", a=2, b=3)
    assert isinstance(outcome, Returned)
    assert (portable.level, outcome.value) == ("portable", 5)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param("nest", "recursion that is too deep for C", id="recursion-in-c"),
        pytest.param("take", "MemoryError", id="memory"),
        pytest.param("fill", "No space left", id="scratch"),
        pytest.param("name", "No space left", id="files"),
        pytest.param("thread", "threads do not run", id="threads"),
        pytest.param("start", "OSError", id="processes"),
        pytest.param("talk", "printed far more", id="output"),
    ],
)
async def test_what_there_is_not_is_told(portable: Sandbox, function: str, expected: str) -> None:
    outcome = await called(portable, function, Limits(wall_s=60, output=1000))
    said = outcome.reason if isinstance(outcome, Killed) else ""
    said += (
        f"{outcome.failure.type}: {outcome.failure.message}" if isinstance(outcome, Raised) else ""
    )
    assert expected in said


async def test_the_time_of_a_call_that_used_it_up_is_unknown_and_not_none_at_all(
    portable: Sandbox,
) -> None:
    outcome = await called(portable, "spin", Limits(wall_s=60, cpu_s=1))
    assert isinstance(outcome, Killed), outcome
    assert outcome.cpu_s is None or outcome.cpu_s > 0.5


async def test_what_needs_native_code_names_the_levels_that_have_it(portable: Sandbox) -> None:
    for name in ("pydantic", "fcntl", "ctypes.util"):
        outcome = await called(portable, "native", name=name)
        assert isinstance(outcome, Raised)
        named = f"No module named {name.partition('.')[0]!r}: it needs native code"
        assert outcome.failure.message.startswith(named)
        assert "level `full` or `core`, does" in outcome.failure.message


@pytest.mark.skipif(sys.platform == "win32", reason="no folder is opened there")
async def test_a_granted_package_is_imported_from_a_folder_that_stays_as_it_is(
    portable: Sandbox, tmp_path: Path
) -> None:
    code = (
        "site/fast/__init__.py",
        "site/fast/core.abi3.so",
        "site/fast/other.cpython-314-x86_64-linux-gnu.so",
    )
    for name in (*code, "site/pure/__init__.py", "site/neighbor.py", "secret"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)  # the child is another user
    access = Access(packages=tuple((name, str(tmp_path / "site")) for name in ("pure", "fast")))
    for function, given, expected in (
        ("native", "pure", "returned"),
        ("native", "neighbor", "No module named 'neighbor'"),  # not granted
        ("native", "fast.core", "fast.core is native code, which"),
        ("native", "fast.other", "fast.other is native code, which"),
        ("open_a_file", "site/pure/__init__.py", "returned"),
        ("open_a_file", "secret", "FileNotFoundError"),
        ("open_a_file", "site/../secret", "FileNotFoundError"),
        ("write_a_file", "site/pure/__init__.py", "PermissionError"),
        ("write_a_file", "site/pure/new", "PermissionError"),
    ):
        arguments = {"name": given} if function == "native" else {"path": str(tmp_path / given)}
        job = Job(modules(work=TEXT), "work", FunctionCall(function, arguments), access=access)
        outcome = await portable.run(job)
        said = (
            f"{outcome.failure.type}: {outcome.failure.message}"
            if isinstance(outcome, Raised)
            else "returned"
        )
        assert expected in said, (given, outcome)
    assert (tmp_path / "site" / "pure" / "__init__.py").read_text() == ""
    assert not (tmp_path / "site" / "pure" / "new").exists()


async def test_nothing_of_the_machine_and_nothing_of_another_call_is_there(
    portable: Sandbox, tmp_path: Path
) -> None:
    outcome = await called(portable, "look")
    assert isinstance(outcome, Returned)
    assert outcome.value == (
        [["scratch", "usr"], ["share"]],
        {"HOME": "/scratch", "TMPDIR": "/scratch"},
        "/scratch",
    )
    kept = [await called(portable, "keep", text="x") for _ in range(2)]
    assert [getattr(each, "value", each) for each in kept] == [["kept"], ["kept"]]
    (tmp_path / "secret").write_text("secret")
    outcome = await called(portable, "open_a_file", path=str(tmp_path / "secret"))
    assert isinstance(outcome, Raised)
    assert outcome.failure.type == "FileNotFoundError"


async def test_calls_of_the_host_can_be_gathered(portable: Sandbox) -> None:
    outcome = await called(portable, "gather")
    assert getattr(outcome, "value", outcome) == [0, 2, 4, 6, 8]


async def test_a_call_from_another_event_loop_is_refused_at_once_and_does_not_last_its_whole_time(
    portable: Sandbox,
) -> None:
    job = Job(modules(work=TEXT), "work", FunctionCall("add", {"a": 1, "b": 2}))

    def elsewhere() -> Outcome:
        return asyncio.run(portable.run(job))

    outcome = await asyncio.to_thread(elsewhere)
    assert isinstance(outcome, Refused), outcome
    assert "another event loop" in outcome.reason
    assert isinstance(await portable.run(job), Returned)


async def test_a_malformed_frame_ends_the_call(portable: Sandbox) -> None:
    named = [
        '{"kind": 1}',
        '{"kind": "module"}',
        '{"kind": "request", "name": "x", "arguments": 1}',
    ]
    for frame in ("", "[]", "{}", *named, "{" * 1000):
        assert isinstance(await called(portable, "forge", frame=frame), Killed), frame


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at")
async def test_a_violation_ends_the_child_even_if_its_function_returns(portable: Sandbox) -> None:
    assert isinstance(await called(portable, "add", a=1, b=1), Returned)
    await asyncio.sleep(1)  # until the idle children are there
    before = runners()
    assert isinstance(await called(portable, "forge", frame="null"), Killed)
    for _time in range(50):  # longer than an instance may take to end by itself
        await asyncio.sleep(0 if before - runners() else 0.02)
    assert before - runners()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a peak of memory is in other units there")
async def test_a_frame_of_any_length_does_not_fill_the_host(portable: Sandbox) -> None:
    before = _peak_mib()
    outcome = await called(portable, "forge_at_length", Limits(wall_s=30), size=100_000_000)
    assert isinstance(outcome, Killed), outcome
    assert "a frame of 100000000 bytes is longer than" in outcome.reason
    assert _peak_mib() < before + 50


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@pytest.mark.parametrize("size", [pytest.param(3_000_000, marks=pytest.mark.slow), 0])
async def test_output_in_one_piece_is_cut_and_ends_no_call(portable: Sandbox, size: int) -> None:
    outcome = await called(portable, "print_at_once", Limits(wall_s=60), size=size)
    assert isinstance(outcome, Returned), outcome
    assert outcome.output.startswith("x" * min(size, DEFAULT.output))
    assert outcome.output.endswith(f"[output cut after {DEFAULT.output} bytes]" if size else "\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at")
async def test_a_child_that_cannot_be_started_refuses_the_call(portable: Sandbox) -> None:
    assert isinstance(await called(portable, "add", a=1, b=1), Returned)
    resource = pytest.importorskip("resource")
    before, seen = resource.getrlimit(resource.RLIMIT_NOFILE), set[int]()
    while not seen or seen != runners():  # until none is being started
        seen = runners()
        await asyncio.sleep(1)
    next_file = os.dup(0)
    os.close(next_file)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_file, before[1]))
    try:
        await _kill(seen)
        outcome = await called(portable, "add", a=1, b=1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert isinstance(outcome, Refused)
    assert "Too many open files" in outcome.reason
    assert isinstance(await called(portable, "add", a=1, b=1), Returned)


async def test_a_forged_reply_is_a_claim_and_no_second_one_is_taken(portable: Sandbox) -> None:
    frame = '{"kind": "returned", "value": 1, "shown": "1"}'
    outcome = await called(portable, "forge", frame=frame)
    assert isinstance(outcome, Killed)
    assert "after its reply" in outcome.reason
    assert isinstance(
        await called(portable, "forge_until_the_end", SHORT, frame=frame), Killed | TimedOut
    )


# It asks without hearing the answers, so that they wait in its child. Should one of its calls begin with another's job,
# it runs with what that one may do.
UNHEARD = """
import json, sys, time

def tidy(text: str) -> str:
    host = sys.modules["wit_world"]
    ask = lambda name: host.say(json.dumps({"kind": "request", "name": name, "arguments": {}}))
    ask("progress")
    frame = json.loads(host.hear())
    if frame["kind"] != "answer":
        ask("secret")
        return "tidy ran as " + frame["function"]
    for _ in range(5):
        ask("progress")
    time.sleep(0.3)  # the host answers them
    return text.strip()
"""


async def test_what_one_call_did_not_hear_is_heard_by_no_other(portable: Sandbox) -> None:
    asked: list[str] = []

    async def nothing(name: str, _given: dict[str, Any], /) -> object:
        assert name == "progress"
        return None

    async def granted(name: str, _given: dict[str, Any], /) -> object:
        asked.append(name)
        return "s3cret"

    texts = modules(tidy=UNHEARD, weather="def weather(city: str):\n    return 'fair in ' + city\n")
    for _ in range(4):
        call = FunctionCall("tidy", {"text": " a "})
        outcome = await portable.run(Job(texts, "tidy", call, handler=nothing))
        assert isinstance(outcome, Returned), outcome
        assert outcome.value == "a"
    for city in ("Paris", "Rome", "Bonn", "Bern"):
        call = FunctionCall("weather", {"city": city})
        outcome = await portable.run(Job(texts, "weather", call, handler=granted))
        assert isinstance(outcome, Returned), outcome
        assert outcome.value == f"fair in {city}"
    assert not asked


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at")
async def test_a_child_that_is_killed_ends_its_call_alone_and_none_outlives_the_sandbox() -> None:
    before = runners()
    async with await start_in(STORE) as sandbox:
        running = asyncio.ensure_future(called(sandbox, "nap"))
        await asyncio.sleep(1)
        await _kill(runners() - before)
        assert isinstance(await running, Killed)
        assert isinstance(await called(sandbox, "add", a=1, b=1), Returned)
    assert runners() <= before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at")
async def test_children_that_die_at_their_start_refuse_the_call() -> None:
    before = runners()

    async def kill_all() -> None:
        while True:
            for pid in runners() - before:
                os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0.01)

    async with await start_in(STORE) as sandbox:
        killing = asyncio.ensure_future(kill_all())
        await asyncio.sleep(0.5)
        outcomes = [await called(sandbox, "add", a=1, b=1) for _ in range(3)]
        killing.cancel()
        assert {type(outcome) for outcome in outcomes} <= {Refused, Killed}
        assert isinstance(await called(sandbox, "add", a=1, b=1), Returned)


_TAKEN_OVER = """
import os, struct, sys, time

def send(letter, data, size=None):
    os.write(1, struct.pack(">cIIII", letter, 1, 0, 0, len(data) if size is None else size) + data)

send(b"h", b"{}")
send(b"f", b'{"kind": "ready"}')
os.read(0, 1 << 20)
"""
LIES = (
    ("send(b'e', b'{}')", "killed"),
    ("send(b'e', b'[]')", "killed"),
    ("send(b'e', b'{')", "killed"),
    ("""send(b'e', b'{"how": "trap", "why": 5}')""", "killed"),
    ("""send(b'e', b'{"how": "trap", "why": "exit status "}')""", "exit status 1"),
    ("send(b'h', b'[]')", "killed"),
    ("send(b'x', b'')", "killed"),
    ("send(b'e', b'', 0xFFFFFFFF)", "killed"),
    ("send(b'f', b'', 0xFFFFFFFF)", "a frame of 4294967295 bytes is longer"),
    ("send(b'o', b'', 0xFFFFFFFF)", "printed far more"),
)


@pytest.mark.sampled
@pytest.mark.skipif(sys.platform == "win32", reason="a child is killed by a signal")
async def test_a_child_that_was_taken_over_and_lies_ends_its_call_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = runners()
    async with await start_in(STORE) as sandbox:
        for number, (lie, reason) in enumerate(sampled(LIES, 4)):
            program = f"{_TAKEN_OVER}{lie}\nos.write(1, bytes(1 << 24))\ntime.sleep(60)"
            (tmp_path / f"{number}" / "wasmtime").mkdir(parents=True)
            (tmp_path / f"{number}" / "wasmtime" / "__init__.py").write_text(program)
            with monkeypatch.context() as patched:
                patched.syspath_prepend(tmp_path / f"{number}")
                await _kill(runners() - before)
                async with asyncio.timeout(30):
                    outcome = await called(sandbox, "add", a=1, b=1)
            assert isinstance(outcome, Killed), lie
            assert reason in outcome.reason, lie
            await _kill(runners() - before)
            assert isinstance(await called(sandbox, "add", a=1, b=1), Returned), lie


async def _kill(pids: set[int]) -> None:
    """Kill children, and wait until the host has learned of it."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in pids:
        with suppress(ProcessLookupError):
            while True:
                os.kill(pid, 0)
                await asyncio.sleep(0.01)  # until the host has reaped it
    await asyncio.sleep(0.05)


def test_the_pinned_engine_is_named_with_what_is_known_against_it() -> None:
    pins = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert f"wasmtime=={TESTED}" in pins["portable"]
    assert f"\nwasmtime=={TESTED}\n" in (REPOSITORY / "constraints.txt").read_text()
    known = r"; known against it on \d{4}-\d\d-\d\d: GHSA(-[2-9a-z]{4}){3} "
    assert re.match(re.escape(TESTED) + known, engine())


_BESIDE = "from functools import partial; from agent_core.base.extensions import LEVELS, offers; "
_BESIDE += "from sandbox.beside import LevelsBeside; beside = LevelsBeside(partial(offers, LEVELS), Path(sys.argv[1]))"
_START = "import asyncio, resource, sys; from pathlib import Path; from sandbox import Sandbox; "
_START += f"{_BESIDE}; "
_START += "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
_START += "asyncio.run(Sandbox.start(level='portable', beside=beside))"


def _require_a_limit_on_memory() -> None:
    """Skip the test if a limit on address space has no effect, as below qemu."""
    takes_more = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29)); bytearray(1 << 30)"
    if (
        subprocess.run(
            [sys.executable, "-c", takes_more], capture_output=True, check=False
        ).returncode
        == 0
    ):
        skip_here("the kernel enforces no limit on address space")


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="macOS has no limit on address space, Windows no such limits"
)
def test_too_little_memory_for_an_instance_is_named(portable: Sandbox) -> None:
    _require_a_limit_on_memory()
    start = [sys.executable, "-c", _START, str(STORE.parent)]
    done = subprocess.run(
        start, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=100
    )
    assert "SandboxUnavailable: " in done.stderr
    assert "Cannot allocate memory" in done.stderr
    assert "escaped" not in done.stderr


HOST = """
import asyncio, sys
from tests.kit.levels import start
from tests.knapper_ext.portable.test_the_portable_level import FunctionCall, Job, modules

async def noted(name, given):
    with open(sys.argv[1], "a") as notes:
        notes.write(f"{given['arguments']['k']}\\n")

async def main():
    work = modules(work="def note(self, k: int):\\n    self.call('note', k=k)\\n")
    async with await start() as sandbox:
        print("ready", flush=True)
        for number in range(10**6):
            await sandbox.run(Job(work, "work", FunctionCall("note", {"k": number}), handler=noted))

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("who", ["host", "child"])
def test_who_is_killed_at_any_instant_leaves_nothing_and_makes_no_call_twice(
    tmp_path: Path, portable: Sandbox, who: str
) -> None:
    instants = random.Random(44)
    environment = {**os.environ, "KNAPPER_SANDBOX_LEVEL": "portable"}
    killed = calls = 0
    while killed < 100:  # the host dies with each kill; only some of its children do
        notes = tmp_path / str(killed)
        start = [sys.executable, "-c", HOST, str(notes)]
        with subprocess.Popen(
            start, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE
        ) as host:
            assert host.stdout is not None
            assert host.stdout.readline() == b"ready\n"
            for _time in range(25 if who == "child" else 0):
                time.sleep(instants.uniform(0, 0.2))
                for pid in sorted(zygotes_of(host.pid))[:1]:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            if who == "host":
                time.sleep(instants.uniform(0, 0.3))
                killed += 1
            left = zygotes_of(host.pid)
            host.kill()
        patience = time.monotonic() + 20
        while any(map(is_zygote, left)) and time.monotonic() < patience:
            time.sleep(0.02)
        assert not any(map(is_zygote, left))
        made = notes.read_text().split() if notes.exists() else []
        assert made == sorted({*made}, key=int)
        calls += len(made)
    assert calls > killed  # the kills came during calls, not before them


@pytest.mark.slow
async def test_a_call_that_is_cancelled_while_its_child_starts_leaves_no_error(
    portable: Sandbox,
) -> None:
    told: list[dict[str, Any]] = []  # Any: as asyncio has it
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: told.append(context))
    for busy_s in (
        0,
        3,
    ):  # the host is busy: a child has sent its greeting, and the host has not read it
        calls = [asyncio.ensure_future(called(portable, "nap")) for _ in range(4)]
        await asyncio.sleep(0.1)
        time.sleep(busy_s)  # noqa: ASYNC251 - as said
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    await asyncio.sleep(0.5)
    gc.collect()
    loop.set_exception_handler(None)
    assert told == []


def _copied(tmp_path: Path) -> Path:
    store = tmp_path / "portable"
    store.mkdir(mode=0o700)
    code = find_or_build(STORE, print)
    assert (
        code.path.lstat().st_mtime_ns in code.identity
    )  # so a child's start need not read all of it
    for path in (code.path, code.path.with_suffix(".note")):
        shutil.copy(path, store)
        (store / path.name).chmod(0o600)
    return store


async def test_code_that_others_could_write_or_a_link_in_its_place_is_not_loaded(
    tmp_path: Path, portable: Sandbox
) -> None:
    store = _copied(tmp_path)
    for paths in ([store], [*store.glob("*.compiled")], [*store.glob("*.note")]):
        for path in paths:
            path.chmod(0o777 if path == store else 0o666)
        with pytest.raises(SandboxUnavailable, match="not this user's alone"):
            await start_in(store)
        for path in paths:
            path.chmod(0o700 if path == store else 0o600)
    for path in [*store.glob("*.compiled")]:
        path.rename(tmp_path / path.name)
        path.symlink_to(tmp_path / path.name)
    with pytest.raises(SandboxUnavailable, match="not this user's alone"):
        await start_in(store)


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform == "win32", reason="no folder is opened there, and an open file is not replaced"
)
async def test_code_that_is_changed_while_it_is_in_use_is_not_loaded(
    tmp_path: Path, portable: Sandbox
) -> None:
    async with await start_in(_copied(tmp_path)) as sandbox:

        async def with_a_new_child(name: str) -> Outcome:
            job = Job(modules(work=TEXT), "work", FunctionCall("add", {"a": 2, "b": 3}))
            return await sandbox.run(replace(job, access=Access(packages=((name, str(tmp_path)),))))

        for path in (tmp_path / "portable").glob("*.compiled"):
            os.utime(path)  # as the start of another program does
        assert isinstance(await with_a_new_child("first"), Returned)
        for path in (tmp_path / "portable").glob("*.compiled"):
            data = bytearray(path.read_bytes())
            data[1000] ^= 1
            path.unlink()
            path.touch(0o600)
            path.write_bytes(data)
        outcome = await with_a_new_child("second")
        assert isinstance(outcome, Refused)
        assert "was changed while it was in use: start Knapper again" in outcome.reason
        for path in (tmp_path / "portable").glob("*.compiled"):
            path.chmod(0o666)
        assert "not this user's alone" in getattr(await with_a_new_child("third"), "reason", "")


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="another processor needs a mount of root's"
)
def test_code_that_was_compiled_for_another_processor_is_not_taken(
    tmp_path: Path, portable: Sandbox
) -> None:
    require_namespaces("another processor is a mount")
    facts = Path("/proc/cpuinfo").read_text()
    program = (
        "import sys; from pathlib import Path; from knapper_ext.portable.component import find_or_build; "
        "find_or_build(Path(sys.argv[1]), sys.exit); sys.exit('taken')"
    )
    command = [
        "sh",
        "-c",
        'mount --bind "$0" /proc/cpuinfo && exec "$@"',
        str(tmp_path / "cpuinfo"),
    ]
    start = ["unshare", "--mount", *command, sys.executable, "-c", program, str(_copied(tmp_path))]
    lacking = re.sub(r"(?m)^(flags.*|Features.*) \S+$", r"\1", facts)
    for found, expected in ((lacking, "building"), (facts, "taken")):
        (tmp_path / "cpuinfo").write_text(found)
        done = subprocess.run(
            start, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.stderr.startswith(expected)


def _damage(store: Path, damage: str) -> None:
    for path in store.glob("*.note" if damage == "no note" else "*.compiled"):
        if damage == "no note":
            path.unlink()
        else:
            data = bytearray(path.read_bytes())
            data[1000] ^= 1
            path.write_bytes(data[: len(data) // 2] if damage == "cut" else data)


class _Building(Exception):
    """A build began."""


@pytest.mark.parametrize("damage", ["cut", "changed", "no note"])
def test_code_that_is_not_what_was_stored_is_not_taken(
    tmp_path: Path, portable: Sandbox, damage: str
) -> None:
    def begin(_told: str) -> None:
        raise _Building

    find_or_build(store := _copied(tmp_path), begin)
    _damage(store, damage)
    with pytest.raises(_Building):
        find_or_build(store, begin)
    assert not [*store.glob(".building-*")]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_code_that_is_not_what_was_stored_is_built_again(
    tmp_path: Path, portable: Sandbox
) -> None:
    _damage(store := _copied(tmp_path), "changed")
    told: list[str] = []
    async with await start_in(store, tell=told.append) as sandbox:
        assert isinstance(await called(sandbox, "add", a=1, b=1), Returned)
    assert told[0].startswith("building")


@pytest.mark.slow
async def test_foreign_code_under_the_right_name_is_not_run_and_says_what_to_do(
    tmp_path: Path, portable: Sandbox
) -> None:
    store = _copied(tmp_path)
    major = int(TESTED.partition(".")[0])
    for foreign, reason in (
        (None, "was compiled with incompatible version"),
        (b"foreign", "(Invalid ELF header"),
    ):
        for path in store.glob("*.compiled"):
            data = path.read_bytes()
            data = foreign or data.replace(
                b"\x02%d" % major, b"\x02%d" % (major - 1), 1
            )  # in its header
            path.write_bytes(data)
            path.with_suffix(".note").write_text(f"{len(data)} {hashlib.sha256(data).hexdigest()}")
        with pytest.raises(
            SandboxUnavailable, match=r"wasmtime cannot load .*\.compiled .*remove it"
        ) as told:
            await start_in(store)
        assert reason in str(told.value)
        assert "Traceback" not in str(told.value)


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can give a file away"
)
def test_code_of_another_owner_is_not_taken(tmp_path: Path, portable: Sandbox) -> None:
    store = _copied(tmp_path)
    for paths in ([store], [*store.glob("*.compiled")], [*store.glob("*.note")]):
        for path in paths:
            os.chown(path, 65534, -1)
        with pytest.raises(NoComponent, match="not this user's alone"):
            find_or_build(store, print)
        for path in paths:
            os.chown(path, 0, -1)


_FIND = "import sys; from pathlib import Path; from knapper_ext.portable.component import find_or_build; "
_FIND += "find_or_build(Path(sys.argv[1]), lambda _told: None)"


def _not_built(store: Path, *around: str, program: str = _FIND) -> str:
    """Return the last line of a program that cannot build the component."""
    start = [*around, sys.executable, "-B", "-c", program, str(store)]
    done = subprocess.run(
        start, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=100
    )
    assert "NoComponent: " in done.stderr
    assert not [path for path in store.glob("*") if path.is_dir() or path.suffix == ".compiled"]
    return done.stderr.rpartition("NoComponent: ")[2]


def _builds(store: Path) -> tuple[set[Path], set[int]]:
    """Return the folders of builds in a store, and the processes that compile there."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (
                b"componentize" in (command := (place / "cmdline").read_bytes())
                and str(store).encode() in command
            ):
                found.add(int(place.name))
    return {*store.glob(".building-*")}, found


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="/proc is looked at, and only Linux ends a process with another"
)
def test_a_build_ends_with_its_program_and_the_next_one_clears_it_away(tmp_path: Path) -> None:
    folders: list[set[Path]] = []
    for _program in range(2):
        with subprocess.Popen(
            [sys.executable, "-B", "-c", _FIND, str(tmp_path / "portable")], cwd=REPOSITORY
        ) as program:
            while not _builds(tmp_path / "portable")[1] and program.poll() is None:
                time.sleep(0.02)
            folders.append(_builds(tmp_path / "portable")[0])
            program.kill()
        patience = time.monotonic() + 3
        while (left := _builds(tmp_path / "portable")[1]) and time.monotonic() < patience:
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left
    first, second = folders
    assert len(first) == len(second) == 1
    assert first != second


_BUILD_TWICE = """
import fcntl, os, sys
from pathlib import Path
from knapper_ext.portable import component

whole, os.fsync = os.fsync, lambda file: whole(file) if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_RDWR else sys.exit(9)
component.platform.machine = lambda: sys.argv[2]
print(component.find_or_build(Path(sys.argv[1]), lambda told: print(told, file=sys.stderr)).digest)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform == "win32", reason="a program stands in for one on Windows")
async def test_programs_that_build_at_once_get_the_same_code_and_what_is_in_use_stays(
    tmp_path: Path, portable: Sandbox
) -> None:
    store = _copied(tmp_path)
    async with await start_in(store) as sandbox:
        for path in [*store.iterdir()]:
            long_ago = time.time() - 4 * 86_400
            os.utime(path, (long_ago, long_ago))
            shutil.copy2(path, store / f"unused{path.suffix}")
        assert isinstance(await called(sandbox, "add", a=1, b=1), Returned)
        start = [sys.executable, "-B", "-c", _BUILD_TWICE, str(store), "another machine"]
        building = [
            await asyncio.create_subprocess_exec(*start, cwd=REPOSITORY, stdout=subprocess.PIPE)
            for _ in "ab"
        ]
        digests = {(await program.communicate())[0] for program in building}
        assert [program.returncode for program in building] == [0, 0]
        assert len(digests) == 1
        assert len([*store.glob("*.compiled")]) == len([*store.glob("*.note")]) == 2
        job = Job(modules(work=TEXT), "work", FunctionCall("add", {"a": 2, "b": 3}))
        in_a_new_child = replace(job, access=Access(packages=(("other", str(tmp_path)),)))
        assert isinstance(await sandbox.run(in_a_new_child), Returned)


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or IS_PORTABLE, reason="a filter of Linux takes the other levels away"
)
def test_where_only_the_extra_is_missing_the_message_names_it(tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path = [p for p in sys.path if not p.endswith('site-packages')]; {_AUTO}"
    )
    around = [sys.executable, "-m", "tests.sandbox.lacking", "landlock", "namespaces", "--"]
    start = [*around, sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(
        start, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=100
    )
    assert "SandboxUnavailable: The sandbox cannot be enforced here: " in done.stderr
    assert (
        "is not installed: add the extra `portable`"
        in done.stderr.rpartition("SandboxUnavailable: ")[2]
    )


_AUTO = "import asyncio, sys; from pathlib import Path; from sandbox import Sandbox; "
_AUTO += f"{_BESIDE}; "
_AUTO += "asyncio.run(Sandbox.start(packages=(), beside=beside))"


def test_without_its_compiler_that_is_said(tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path = [p for p in sys.path if not p.endswith('site-packages')]; {_FIND}"
    )
    assert "componentize-py, wasmtime, tzdata is not installed" in _not_built(
        tmp_path / "portable", program=program
    )


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="a full disk needs a mount of root's"
)
@pytest.mark.parametrize("size", ["300k", "1m"])
def test_a_disk_that_is_full_is_named(tmp_path: Path, size: str) -> None:
    require_namespaces("a full disk is a mount")
    mount = f'mount -t tmpfs -o mode=700,size={size} none "$0" && exec "$@"'
    around = ("unshare", "--mount", "sh", "-c", mount, str(tmp_path))
    told = _not_built(tmp_path, *around)
    assert "cannot be stored in" in told
    assert "No space left on device" in told
    assert told.count(str(tmp_path)) <= 2  # of the files that did not fit, one is named


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="macOS has no limit on address space, Windows no such limits"
)
def test_too_little_memory_for_the_build_is_named(tmp_path: Path) -> None:
    _require_a_limit_on_memory()
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29)); {_FIND}"
    )
    assert "the component could not be built: " in _not_built(
        tmp_path / "portable", program=program
    )


async def test_where_it_cannot_be_stored_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SandboxUnavailable, match="cannot be stored"):
        await start_in(tmp_path / "file" / "portable")


def _behind_one_wall(data: Path, *command: str) -> dict[str, Any]:  # Any: what starts a program
    """Return how to start our command where neither Landlock nor namespaces are available."""
    around = [sys.executable, "-m", "tests.sandbox.lacking", "landlock", "namespaces", "--"]
    environment = {
        "PYTHONPATH": str(REPOSITORY),
        "PATH": os.environ["PATH"],
        "XDG_DATA_HOME": str(data),
    }
    return {
        "command": [*around, sys.executable, "-m", "knapper", *command],
        "environment": environment,
    }


def _doctor(data: Path, cwd: Path) -> dict[str, Any]:  # Any: JSON
    start = _behind_one_wall(data, "doctor", "--json")
    done = subprocess.run(
        start["command"], env=start["environment"], cwd=cwd, capture_output=True, check=False
    )
    report: dict[str, Any] = json.loads(done.stdout)["sandbox"]
    return report


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or IS_PORTABLE, reason="a filter of Linux takes the other wall away"
)
@pytest.mark.parametrize(
    ("answer", "level", "told"),
    [
        pytest.param("y", "portable", "you agreed to one", id="yes"),
        pytest.param("n", "none", "said no", id="no"),
    ],
)
def test_where_there_is_one_wall_the_user_is_asked_once(
    tmp_path: Path, answer: str, level: str, told: str
) -> None:
    data = tmp_path / "data"
    lend(data, always=True)
    (tmp_path / "knapper.toml").touch()
    if answer == "n":
        (data / "knapper" / "portable" / "one-wall").write_bytes(
            b"\xff\n"
        )  # a damaged answer is none
    before = _doctor(data, tmp_path)
    assert before["level"] == "none"
    assert "`knapper run` asks you once" in before["missing"][-1]
    start = _behind_one_wall(data, "run", "--model", "tour")
    for is_first in (True, False):
        with closing(Terminal(**start, cwd=tmp_path, columns=110, rows=40)) as screen:
            screen.wait_for("/help lists")
            if is_first:
                screen.wait_for("Run functions so on this machine?")
                screen.answer(answer)
            screen.wait_for(f"sandbox {level}")
            assert is_first or "Run functions so" not in screen.scrolled()
    after = _doctor(data, tmp_path)
    assert after["level"] == level
    assert told in after["missing"][-1]


_ON_MACOS = """
import os, sys
from tests.kit.elsewhere import leave_linux
leave_linux()
sys.platform = "darwin"
from agent_core.base import machine
from sandbox import Access
from sandbox.access import AccessRefused
from sandbox.confine.opened_grants import opened

for path in sys.argv[1:]:
    try:
        with opened(Access(readable=(path,)), ()) as (grant,):
            print(os.read(machine.reopen(grant.descriptor, grant.path, os.O_RDONLY), 99).decode())
    except AccessRefused as refusal:
        print(refusal)
"""
_ON_WINDOWS = """
import os, sys, time
from tests.kit.elsewhere import leave_linux
leave_linux()
del os.O_CLOEXEC, os.pread, time.clock_gettime
sys.platform = "win32"
from sandbox.processes.ends import ProcessorWait, WorkerUsage

usage = WorkerUsage.of(os.getppid())
print(usage.used().cpu_s, usage.waited(), ProcessorWait(usage).seconds())
"""


def _elsewhere(program: str, *arguments: str) -> str:
    start = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        start, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="parts of Linux are taken away")
def test_without_a_list_of_mounts_granted_files_are_opened_and_pipes_block_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("granted")
    os.mkfifo(tmp_path / "pipe")
    told = _elsewhere(_ON_MACOS, str(tmp_path / "file"), str(tmp_path / "pipe"))
    assert told == f"granted\n{tmp_path / 'pipe'} is neither a file nor a folder\n"


@pytest.mark.skipif(sys.platform != "linux", reason="parts of Linux are taken away")
def test_without_the_kernels_counters_the_usage_is_unknown() -> None:
    assert _elsewhere(_ON_WINDOWS) == "None 0.0 0.0\n"
