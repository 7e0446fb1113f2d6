# Attackers write neither types nor paths by the book; these modules are data that workers run.
# mypy: ignore-errors
"""Attempts on the host through the answer: forged, broken, too large, too deep, too early."""

import ctypes
import gc
import json
import math
import os
import sys


def _frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def claim_four_gigabytes(world: dict) -> None:
    os.write(3, b"\xff\xff\xff\xff" + b"x" * 1000)


def send_half_a_frame(world: dict) -> None:
    os.write(3, b"\0\0\1\0half")
    os._exit(0)


def answer_twice(world: dict) -> int:
    os.write(3, _frame(json.dumps({"kind": "returned", "value": world["mark"], "shown": ""}).encode()))
    return 1


def answer_what_is_no_json(world: dict) -> None:
    os.write(3, _frame(b"not json at all"))
    os._exit(0)


def answer_a_lone_surrogate(world: dict) -> None:
    os.write(3, _frame(b'{"kind":"returned","value":"\\ud800","shown":""}'))
    os._exit(0)


def answer_what_is_no_number(world: dict) -> None:
    os.write(3, _frame(b'{"kind":"returned","value":NaN,"shown":""}'))
    os._exit(0)


def answer_nested_without_end(world: dict) -> None:
    os.write(3, _frame(b'{"kind":"returned","shown":"","value":' + b"[" * 100_000 + b"]" * 100_000 + b"}"))
    os._exit(0)


def answer_a_number_without_end(world: dict) -> None:
    os.write(3, _frame(b'{"kind":"returned","shown":"","value":' + b"9" * 100_000 + b"}"))
    os._exit(0)


def answer_an_unknown_tag(world: dict) -> None:
    os.write(3, _frame(b'{"kind":"returned","shown":"","value":{"$":"pickle","v":"gASV"}}'))
    os._exit(0)


def answer_a_key_that_cannot_be_one(world: dict) -> None:
    os.write(3, _frame(b'{"kind":"returned","shown":"","value":{"$":"dict","v":[[[],1]]}}'))
    os._exit(0)


def answer_nothing(world: dict) -> None:
    os._exit(0)


def say_that_it_was_confined_again(world: dict) -> None:
    os.write(3, _frame(b'{"kind":"ready"}'))


def ask_for_a_module_that_is_no_text(world: dict) -> None:
    os.write(3, _frame(b'{"kind":"module","module":["x"]}'))


def crash_on_purpose(world: dict) -> None:
    ctypes.string_at(0)


def patch_what_writes_the_answer(world: dict) -> int:
    import sandbox.protocol

    sandbox.protocol.pack = lambda _frame: b"\xff" * 64
    sys.modules["sandbox.inside.channel"].pack = lambda _frame: b"\xff" * 64
    return 1


def hunt_for_what_the_host_knows(world: dict) -> list:
    found = [value for value in gc.get_objects() if isinstance(value, str) and "TOOLWRIGHT" in value]
    frame = sys._getframe()
    while frame is not None:
        found += [str(value) for value in frame.f_globals.values() if "secret" in str(value)[:100].lower()]
        frame = frame.f_back
    return [text[:500] for text in found[:1000]]


class _Exploding:
    def __reduce__(self) -> tuple:
        return os.system, ("true",)

    def __repr__(self) -> str:
        raise SystemExit(3)


def return_what_explodes(world: dict) -> object:
    return _Exploding()


def raise_what_explodes(world: dict) -> None:
    class Bad(BaseException):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    raise Bad


def return_numbers_that_are_none(world: dict) -> list:
    return [math.nan, math.inf, -math.inf, 10**4000]
