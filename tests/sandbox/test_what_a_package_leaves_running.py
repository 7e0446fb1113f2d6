"""A package that continues after its import: it starts nothing that stays, and between calls nothing of it runs."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sandbox import Access, FunctionCall, Job, Limits, Outcome, Refused, Returned, Sandbox
from sandbox.processes.startup import LEVELS, Level
from tests.attacks.outside import zygotes_of
from tests.attacks.session import sandbox_at
from tests.kit.drawing import crossed, sampled
from tests.kit.levels import require_imports_ahead
from tests.sandbox.support import modules

pytestmark = pytest.mark.sampled
REPOSITORY = Path(__file__).resolve().parents[2]
QUIET_S = 0.6
SETTLED_S = 0.6  # longer than a zygote or a spare takes to be paused
CODE = modules(m="import noisy\n\ndef f() -> str:\n    return str(getattr(noisy, 'SAID', ''))\n")
BEAT = """
import os, signal, sys, threading, time
def beat(*_any):
    with open({out!r} + '/beat', 'w') as file:
        file.write(str(time.time_ns()))
def beat_on():
    while True:
        beat()
        time.sleep(0.05)
"""
FORGOTTEN = """
if os.fork() == 0:
    if os.fork() == 0:
        for number in set(range(1, 32)) - {9, 19}:
            signal.signal(number, signal.SIG_IGN)
        os.closerange(0, 500)
        beat_on()
    os._exit(0)
"""
IN_A_TIMER = (
    "signal.signal(signal.SIGALRM, beat)\nsignal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\n"
)
IN_SPARES = f"os.register_at_fork(after_in_child=lambda: exec({IN_A_TIMER!r}, globals()))\n"
IN_A_THREAD = "threading.Thread(target=beat_on, daemon=True).start()\n"
IN_A_LATE_THREAD = (
    f"os.register_at_fork(after_in_parent=lambda: exec({IN_A_THREAD!r}, globals()))\n"
)
TAKES_LEAVE_FOR_ITSELF = """
fork = os.fork
def full(message, dumps=sys.modules['json'].dumps):
    return dumps({'kind': 'full'} if message['kind'] == 'forked' else message)
os.fork = lambda: beat_on() if fork() == 0 else 12345
os.pidfd_open = lambda pid: os.dup(0)
sys.modules['json'].dumps = full
sys.modules['sandbox.processes.zygote'].struct.pack = lambda *_any: b''
"""

TAKES_LEAVE_BEHIND_ANOTHER = """
fork, pidfd_open, first = os.fork, os.pidfd_open, []
def fork_for_itself():
    pid = fork()
    return beat_on() if pid == 0 and first else pid
def the_first(pid):
    first.append(pidfd_open(pid))
    return os.dup(first[0])
os.fork, os.pidfd_open = fork_for_itself, the_first
"""


@pytest_asyncio.fixture(scope="module", loop_scope="package", params=sampled(LEVELS, 2))
async def there(request: pytest.FixtureRequest) -> AsyncIterator[Sandbox]:
    level: Level = request.param
    async with sandbox_at(level) as found:
        if isinstance(found, str):
            pytest.skip(f"no level {level} here: {found}")
        yield found[0]


def package(folder: Path, text: str) -> Access:
    """Return a package that does this when imported, with access to a writable folder."""
    for name in ("site/noisy", "out"):
        (folder / name).mkdir(parents=True)
    out = str(folder / "out")
    (folder / "site/noisy/__init__.py").write_text(BEAT.format(out=out) + text)
    return Access(writable=(out,), packages=(("noisy", str(folder / "site")),), preload=("noisy",))


async def called(sandbox: Sandbox, access: Access) -> Outcome:
    return await sandbox.run(
        Job(CODE, "m", FunctionCall("f", {}), access=access, limits=Limits(wall_s=5))
    )


async def is_quiet(folder: Path) -> bool:
    """Check whether nothing beats in the folder."""
    beat = folder / "out/beat"
    before = beat.read_text() if beat.exists() else ""
    await asyncio.sleep(QUIET_S)
    return before == (beat.read_text() if beat.exists() else "")


FORKED_AHEAD = [level for level in LEVELS if level != "apart"]
LEAVES = [
    pytest.param(
        f"try:\n    {FORGOTTEN.strip().replace(chr(10), chr(10) + '    ')}\nexcept OSError: pass",
        id="fork",
    ),
    pytest.param(IN_A_TIMER, id="a-timer"),
    pytest.param(IN_SPARES, id="a-timer-in-workers-that-wait"),
    pytest.param(IN_A_THREAD, id="a-thread"),
    pytest.param(IN_A_LATE_THREAD, id="a-thread-at-the-first-fork"),
    pytest.param(TAKES_LEAVE_FOR_ITSELF, id="a-fork-that-was-ordered"),
    pytest.param(TAKES_LEAVE_BEHIND_ANOTHER, id="a-fork-that-is-said-to-be-an-earlier-one"),
    pytest.param("beat_on()", id="an-import-without-end"),
]


@pytest.mark.parametrize(
    ("text", "there"),
    [*sampled(crossed(LEAVES, FORKED_AHEAD), 3), *sampled(crossed(LEAVES, ["apart"]), len(LEAVES))],
    indirect=["there"],
)
async def test_nothing_of_a_package_runs_between_calls(
    there: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("sandbox.processes.pool.START_S", 5.0)
    await called(there, package(tmp_path, text))
    await asyncio.sleep(SETTLED_S)
    assert await is_quiet(tmp_path)


async def test_a_package_with_threads_is_imported_by_each_call_and_not_ahead(
    there: Sandbox, tmp_path: Path
) -> None:
    access = package(tmp_path, f"{IN_A_THREAD}SAID = os.getpid()\n")
    code = modules(m="import noisy, os\n\ndef f() -> bool:\n    return os.getpid() == noisy.SAID\n")
    for _time in range(2):
        outcome = await there.run(Job(code, "m", FunctionCall("f", {}), access=access))
        assert isinstance(outcome, Returned), outcome
        assert outcome.value is True
    assert await is_quiet(tmp_path)


async def test_a_package_that_forks_finds_what_a_function_finds(
    there: Sandbox, tmp_path: Path
) -> None:
    outcome = await called(
        there, package(tmp_path, "try:\n    os.fork()\nexcept OSError as error:\n    SAID = error")
    )
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == "[Errno 1] Operation not permitted"


async def test_a_package_that_tries_to_fork_again_and_again_is_ended(
    there: Sandbox, tmp_path: Path
) -> None:
    require_imports_ahead(there)
    text = (
        "for _time in range(3000):\n    try:\n        os.fork() or os._exit(0)\n    "
        "except OSError:\n        continue\n"
    )
    outcome = await called(there, package(tmp_path, text))
    assert isinstance(outcome, Refused), outcome
    assert outcome.reason == "the zygote has ended"


async def test_what_a_package_leaves_in_scratch_is_gone_before_its_first_call(
    there: Sandbox, tmp_path: Path
) -> None:
    if there.layers["namespaces"]:
        pytest.skip("scratch is not seen from outside")
    access = package(
        tmp_path,
        "os.makedirs(os.environ['HOME'] + '/a/b')\nSAID = os.listdir(os.environ['HOME'])\n",
    )
    outcome = await called(there, access)
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == "['a']"
    place = Path(there.plan.scratch_folder)
    first_slots = list(place.parent.glob(f"{place.name}-*/0"))
    assert first_slots
    assert not any(list(slot.iterdir()) for slot in first_slots)


async def test_a_package_has_the_memory_of_a_call_and_no_more(
    there: Sandbox, tmp_path: Path
) -> None:
    require_imports_ahead(there)
    outcome = await called(there, package(tmp_path, "SAID = len(bytearray(1 << 30))"))
    assert isinstance(outcome, Refused), outcome
    assert "noisy cannot be imported: MemoryError" in outcome.reason


PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.attacks.session import sandbox_at
from tests.sandbox.test_what_a_package_leaves_running import called, package
async def main():
    async with sandbox_at({level!r}) as (sandbox, _pool):
        await called(sandbox, package(Path({folder!r}), {text!r}))
        print("called", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
asyncio.run(main())
"""
STAYS = """
for number in set(range(1, 32)) - {9, 17, 19}:
    signal.signal(number, signal.SIG_IGN)
zygote = sys.modules['sandbox.processes.zygote'].WarmProcess
zygote.serve = lambda self, serve=zygote.serve: (
    setattr(os, '_exit', lambda status: beat_on()), serve(self)
)
try:
    if os.fork() == 0:
        os.closerange(0, 500)
        beat_on()
except OSError:
    pass
"""
ENDS = ["is killed", "ends"]


@pytest.mark.parametrize(
    ("end", "level"), sampled([*crossed(ENDS, ["full"]), *crossed(ENDS, ["core", "apart"])], 3)
)
def test_what_a_package_left_ends_with_the_program(tmp_path: Path, end: str, level: str) -> None:
    command = [
        sys.executable,
        "-B",
        "-c",
        PROGRAM.format(level=level, folder=str(tmp_path), text=STAYS),
    ]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        if program.stdout.readline() != b"called\n":
            pytest.skip(f"no level {level} here")
        started = zygotes_of(program.pid)
        if end == "is killed":
            program.send_signal(signal.SIGKILL)
    assert started
    patience = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in started) and time.monotonic() < patience:
        time.sleep(0.05)
    assert [pid for pid in started if Path(f"/proc/{pid}").exists()] == []
    assert asyncio.run(is_quiet(tmp_path))
