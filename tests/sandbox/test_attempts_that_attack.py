"""A hostile attempt: the host neither hangs nor grows nor crashes, and the attempts after it still run."""

import json
import resource
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest

from sandbox import (
    Attempt,
    Attempts,
    Evaluation,
    Job,
    Killed,
    Limits,
    Outcome,
    Raised,
    Returned,
    Sandbox,
    TimedOut,
)
from tests.sandbox.support import modules

HOSTILE = modules(
    hostile="""
    import builtins, os, signal, sys, threading, time

    def _say(body: bytes, size: int | None = None) -> None:
        os.write(3, (len(body) if size is None else size).to_bytes(4, "big") + body)

    def calm() -> str:
        return "calm"

    def leave() -> None:
        os._exit(0)

    def exits() -> None:
        sys.exit(3)

    def crash() -> None:
        import ctypes
        ctypes.string_at(0)

    def close() -> None:
        os.close(3)

    def close_and_stay() -> None:
        os.close(3)
        time.sleep(60)

    def swap() -> None:
        os.dup2(os.open("/dev/null", os.O_RDWR), 3)

    def fork() -> str:
        try:
            os.fork()
        except OSError:
            return "no fork"
        return "forked"

    def allocate() -> int:
        return len(bytes(4 << 30))

    def flood_output() -> None:
        while True:
            os.write(1, b"x" * 65536)

    def flood_replies() -> None:
        while True:
            _say(b'{"kind":"tried","reply":{"kind":"returned","value":1,"shown":"1"},"output":""}')

    def flood_requests() -> None:
        while True:
            _say(b'{"kind":"module","module":"nothing"}')
            os.read(3, 1 << 16)

    def huge_frame() -> None:
        _say(b"x", 0xFFFFFFF0)
        time.sleep(60)

    def half_a_frame() -> None:
        _say(b"{", 100)
        time.sleep(60)

    def swallow() -> None:
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            try:
                time.sleep(1)
            except BaseException:
                pass

    def spoil() -> str:
        sys.stdout = sys.stderr = None
        sys.meta_path.clear()
        sys.modules.clear()
        return "spoiled"

    def mute() -> str:
        sys.stdout.close()
        return "muted"

    def threads() -> str:
        def spin():
            while True:
                pass
        for _ in range(20):
            threading.Thread(target=spin, daemon=True).start()
        return "spinning"

    def write(data: bytes) -> str:
        os.write(3, data)
        return "written"
    """
)
LIMITS = Limits(wall_s=20, requests=300, output=20_000)


async def tries(
    sandbox: Sandbox, *names: str, each_s: float = 0.4, limits: Limits = LIMITS
) -> list[Outcome | None]:
    attempts = [Attempt(Evaluation((), f"{name}()")) for name in names]
    return list(
        await sandbox.attempt(
            Job(HOSTILE, "hostile", Attempts("calm", attempts, each_s), limits=limits)
        )
    )


ENDS: dict[type, str] = {
    Killed: "leave crash close close_and_stay swap flood_output flood_requests huge_frame",
    Raised: "exits allocate",
    Returned: "fork mute",
    TimedOut: "half_a_frame swallow",
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind, names in ENDS.items() for name in names.split()]
)
async def test_what_one_attempt_does_ends_it_and_not_those_around_it(
    sandbox: Sandbox, name: str, kind: type
) -> None:
    before, attacked, after = await tries(
        sandbox, "calm", name, "calm", each_s=0.4 if kind is TimedOut else 10
    )
    assert isinstance(before, Returned), before
    assert isinstance(attacked, kind), attacked
    assert isinstance(after, Returned), after
    assert after.value == "calm"


async def test_what_spoils_its_worker_costs_the_host_nothing(sandbox: Sandbox) -> None:
    for name in ("flood_replies", "spoil", "threads"):
        outcomes = await tries(sandbox, name, *["calm"] * 5)
        assert all(
            isinstance(outcome, Returned | Raised | Killed | TimedOut) for outcome in outcomes
        ), outcomes
        honest = await tries(sandbox, "calm")
        assert [getattr(outcome, "value", outcome) for outcome in honest] == ["calm"]


async def test_a_forged_reply_is_a_claim_and_a_malformed_one_kills(sandbox: Sandbox) -> None:
    forged = {
        "kind": "tried",
        "reply": {"kind": "returned", "value": 42, "shown": "42"},
        "output": "",
    }
    wrong: list[Any] = [
        forged | {"output": 1},
        forged | {"reply": {"kind": "no"}},
        {"kind": "loaded"},
        [],
        "x",
    ]
    for frame in [*wrong, forged]:
        body = json.dumps(frame).encode()
        data = len(body).to_bytes(4, "big") + body
        work = Evaluation((), f"write({data!r})")
        outcomes = await sandbox.attempt(
            Job(HOSTILE, "hostile", Attempts("calm", [Attempt(work)] * 2, 2), limits=LIMITS)
        )
        told = [getattr(outcome, "value", "killed") for outcome in outcomes]
        assert told == ([42, "written"] if frame is forged else ["killed", "killed"]), frame


async def test_replies_without_end_do_not_fill_the_memory_of_the_host(sandbox: Sandbox) -> None:
    body = {
        "kind": "tried",
        "reply": {"kind": "returned", "value": [[]] * 20_000, "shown": ""},
        "output": "",
    }
    data = b64encode(json.dumps(body).encode()).decode()
    forge = f"exec('while True: _say(data)', {{**globals(), 'data': __import__('base64').b64decode({data!r})}})"
    attempts = [Attempt(Evaluation((), forge))] + [Attempt(Evaluation((), "calm()"))] * 3000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = await sandbox.attempt(
        Job(
            HOSTILE,
            "hostile",
            Attempts("calm", attempts, 1),
            limits=replace(LIMITS, result=1 << 18),
        )
    )
    assert outcomes[-1] is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


async def test_dying_again_and_again_ends_with_the_time_of_the_whole(sandbox: Sandbox) -> None:
    outcomes = await tries(sandbox, *["leave"] * 3000, limits=Limits(wall_s=1))
    assert isinstance(outcomes[0], Killed)
    assert outcomes[-1] is None
