"""Promise 1: no line that an agent wrote ever runs in the host process.

The canary is a file that only the host may write, and the process number that the code sees.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox import (
    Evaluation,
    FunctionCall,
    Job,
    ModuleImport,
    Outcome,
    Returned,
    Sandbox,
    SchemaRequest,
)
from tests.sandbox.support import modules

# Wherever this runs, it tries to write the canary, and patches what the host would notice.
_STRIKE = """
import builtins, os, sys
PID = os.getpid()
def strike():
    builtins.struck = True
    sys.modules["struck"] = sys
    try:
        open({canary!r}, "a").write("struck by %d" % os.getpid())
    except OSError:
        pass
    return PID
"""

_PLACES = {
    "at import": "strike()\ndef probe() -> int:\n    return PID\n",
    "in the call": "def probe() -> int:\n    return strike()\n",
    "in a decorator": "def mark(f):\n    strike()\n    return f\n@mark\ndef probe() -> int:\n    return PID\n",
    "in a default": "def probe(a: int = strike()) -> int:\n    return PID\n",
    "in an annotation": "def probe(a: [strike(), int][1] = 1) -> int:\n    return PID\n",
    "in a written annotation": "def probe(a: '[strike(), int][1]' = 1) -> int:\n    return PID\n",
    "in a base class": "class Base(strike() and object):\n    pass\ndef probe() -> int:\n    return PID\n",
    "in a metaclass": (
        "class Meta(type):\n    def __new__(cls, *a, **k):\n        strike()\n        return super().__new__(cls, *a)\n"
        "class Made(metaclass=Meta):\n    pass\ndef probe() -> int:\n    return PID\n"
    ),
    "in a module's getattr": "def __getattr__(name):\n    return strike()\ndef probe() -> int:\n    return PID\n",
    "in a value's reduce": (
        "class Value(dict):\n    def __reduce__(self):\n        strike()\n        return (strike, ())\n"
        "def probe() -> dict:\n    return Value(pid=PID)\n"
    ),
    "in a value's repr": (
        "class Value(int):\n    def __repr__(self):\n        strike()\n        return '{0.__class__}'\n"
        "def probe() -> int:\n    return Value(PID)\n"
    ),
    "in a value's format": (
        "class Value(str):\n    def __format__(self, spec):\n        strike()\n        return ''\n"
        "def probe() -> str:\n    return Value('{0.__init__.__globals__}')\n"
    ),
    "in an exception's text": (
        "class Bad(Exception):\n    def __str__(self):\n        strike()\n        return '%s{0}'\n"
        "def probe() -> int:\n    raise Bad\n"
    ),
    "in a finalizer": (
        "class Late:\n    def __del__(self):\n        strike()\ndef probe() -> int:\n    Late()\n    return PID\n"
    ),
    "in an exit handler": "import atexit\natexit.register(strike)\ndef probe() -> int:\n    return PID\n",
    "in a type's conversion": (
        "import enum\nclass Kind(enum.Enum):\n    A = 1\n    @classmethod\n    def _missing_(cls, value):\n"
        "        strike()\n        return cls.A\ndef probe(kind: Kind = Kind.A) -> int:\n    return PID\n"
    ),
}


@pytest.fixture
def sandbox(one_sandbox: Sandbox) -> Sandbox:
    return one_sandbox


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path / "canary"


def _was_struck(canary: Path) -> bool:
    return canary.exists()


def _values(outcome: Outcome) -> Any:
    return outcome.value if isinstance(outcome, Returned) else None


async def test_code_runs_in_a_worker_wherever_it_is_written(sandbox: Sandbox, canary: Path) -> None:
    before = set(sys.modules)
    for place, text in _PLACES.items():
        world = modules(probe=_STRIKE.format(canary=str(canary)) + text)
        outcomes = [
            await sandbox.run(Job(world, "probe", ModuleImport())),
            await sandbox.run(Job(world, "probe", FunctionCall("probe", {}))),
            await sandbox.run(Job(world, "probe", Evaluation(("strike()",), "probe()"))),
            await sandbox.run(Job(world, "probe", SchemaRequest(["probe"]))),
        ]
        assert not _was_struck(canary), place
        assert not hasattr(__import__("builtins"), "struck"), place
        assert "struck" not in sys.modules, place
        assert not {name for name in set(sys.modules) - before if name.startswith("functions")}, (
            place
        )
        assert os.getpid() not in [_values(outcome) for outcome in outcomes], place


async def test_values_arrive_as_plain_types_and_never_as_the_agents_own(sandbox: Sandbox) -> None:
    text = """
    import dataclasses, enum, collections

    class Text(str): ...
    class Kind(enum.Enum):
        A = "a"
    @dataclasses.dataclass
    class Point:
        x: int
        kind: Kind
    Pair = collections.namedtuple("Pair", "left right")

    def probe():
        return [Text("t"), Kind.A, Point(1, Kind.A), Pair(1, Text("r")), collections.Counter("aa")]
    """
    outcome = await sandbox.run(Job(modules(plain=text), "plain", FunctionCall("probe", {})))
    assert _values(outcome) == [
        "t",
        "a",
        {"x": 1, "kind": "a"},
        {"left": 1, "right": "r"},
        {"a": 2},
    ]
    assert {type(value) for value in _values(outcome)} == {str, dict}


async def test_compiling_happens_in_a_worker_that_runs_nothing(
    sandbox: Sandbox, canary: Path
) -> None:
    world = modules(probe=_STRIKE.format(canary=str(canary)) + "strike()\ndef f(:\n")
    await sandbox.run(Job(world, "probe", ModuleImport()))
    assert not _was_struck(canary)
