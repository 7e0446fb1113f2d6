"""Whatever a worker sends on its socket, the host gives an outcome, and the next call is well."""

import json
import random
from base64 import b64encode

import pytest

from sandbox import Killed, Limits, Raised, Refused, Returned, Sandbox
from tests.sandbox.support import modules

LIAR = modules(liar="import os\ndef lie(data: bytes) -> None:\n    os.write(3, data)\n    os._exit(0)\n")
HONEST = [
    {"kind": "returned", "value": [1, {"$": "tuple", "v": [1, "x"]}], "shown": "[1, (1, 'x')]"},
    {"kind": "raised", "type": "E", "message": "m", "frames": [["functions/liar.py", 2, "lie", [["a", "1"]]]]},
    {"kind": "refused", "reason": "no"},
    {"kind": "request", "name": "progress", "arguments": {"done": 1}},
    {"kind": "module", "module": "liar"},
]


def _lie(seed: int) -> bytes:
    """An honest frame with something changed: a byte, the length, the end, or one frame too many."""
    luck = random.Random(seed)
    body = bytearray(json.dumps(luck.choice(HONEST)).encode())
    for _change in range(luck.randrange(4)):
        body[luck.randrange(len(body))] = luck.randrange(256)
    length = len(body) if luck.random() < 0.8 else luck.randrange(1 << luck.choice([4, 12, 32]))
    return (length.to_bytes(4, "big") + bytes(body)) * luck.choice([1, 1, 1, 2])


@pytest.mark.parametrize("seeds", [range(0, 30), range(30, 60)], ids=["first", "second"])
async def test_whatever_a_worker_sends_becomes_an_outcome(sandbox: Sandbox, seeds: range) -> None:
    for seed in seeds:
        data = b64encode(_lie(seed)).decode()
        outcome = await sandbox.call(LIAR, "liar", "lie", {"data": data})
        assert isinstance(outcome, Returned | Raised | Refused | Killed), (seed, outcome)
    honest = await sandbox.call(modules(m="def f() -> int:\n    return 1\n"), "m", "f", {})
    assert isinstance(honest, Returned), honest


async def test_a_forged_reply_is_only_a_claim_about_a_value(sandbox: Sandbox) -> None:
    body = json.dumps({"kind": "returned", "value": 42, "shown": "'anything'"}).encode()
    data = b64encode(len(body).to_bytes(4, "big") + body).decode()
    outcome = await sandbox.call(LIAR, "liar", "lie", {"data": data})
    assert isinstance(outcome, Returned)
    assert (outcome.value, outcome.shown) == (42, "'anything'")


async def test_zygotes_for_other_needs_end_when_there_are_too_many(sandbox: Sandbox) -> None:
    world = modules(m="def f() -> int:\n    return 1\n")
    for size in range(1, 10):
        outcome = await sandbox.call(world, "m", "f", {}, limits=Limits(scratch=size << 20))
        assert isinstance(outcome, Returned), outcome
    assert sandbox.zygotes <= 6


COLLIDING = modules(
    crowd="""
    def members() -> set:
        return {i * (2**61 - 1) for i in range(1, 5_000)}

    def keys() -> dict:
        return {i * (2**61 - 1): i for i in range(1, 5_000)}

    def honest() -> set:
        return {i * 3 for i in range(5_000)}
    """
)


@pytest.mark.parametrize(("function", "kind"), [("members", Killed), ("keys", Killed), ("honest", Returned)])
async def test_values_that_all_collide_do_not_hold_the_host_up(sandbox: Sandbox, function: str, kind: type) -> None:
    outcome = await sandbox.call(COLLIDING, "crowd", function, {}, limits=Limits(wall_s=30))
    assert isinstance(outcome, kind), outcome
