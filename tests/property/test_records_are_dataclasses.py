"""Classes of `agent_core.base.records` behave like the standard library's, from their first use on."""

import copy
import dataclasses
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agent_core
from agent_core.base import records
from agent_core.base.problem import Place


def made(dataclass: Callable[..., Any]) -> dict[str, Any]:  # Any: classes
    """Return the same classes, made by one of the two decorators."""

    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: float = 0.5
        names: tuple[str, ...] = ()
        notes: list[str] = dataclasses.field(default_factory=list, compare=False)
        secret: str = dataclasses.field(default="s", repr=False)

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named(Point):
        label: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and self.label == other.label

    @dataclass(slots=True)
    class Counted:
        start: int
        step: dataclasses.InitVar[int] = 2
        total: int = 0

        def __post_init__(self, step: int) -> None:
            self.total = self.start + step

    @dataclass(frozen=True)
    class Open:
        x: int = 1

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        x: int

    @dataclass(eq=False, slots=True)
    class Same:
        x: int

    return {kind.__name__: kind for kind in (Point, Named, Counted, Open, Ordered, Same)}


ATTEMPTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "repr": lambda k: [repr(kind(1)) for name, kind in k.items() if name != "Named"],
    "repr of keywords": lambda k: repr(k["Named"](3, label="n")),
    "defaults are each instance's own": lambda k: k["Point"](1).notes is not k["Point"](1).notes,
    "equality": lambda k: [
        k["Point"](1) == k["Point"](1, notes=["a"]),
        k["Point"](1) == k["Point"](2),
    ],
    "equality with others": lambda k: [
        k["Point"](1) == 1,
        k["Point"](1) == k["Named"](1, label="n"),
    ],
    "an equality of its own": lambda k: k["Named"](1, label="n") == k["Named"](2, label="n"),
    "hash": lambda k: [
        hash(k["Point"](1)) == hash(k["Point"](1, notes=["a"])),
        hash(k["Named"](1, label="n")) != 0,
    ],
    "no hash": lambda k: hash(k["Counted"](1)),
    "identity": lambda k: k["Same"](1) == k["Same"](1),
    "set": lambda k: setattr(k["Point"](1), "x", 2),
    "set in a class without slots": lambda k: setattr(k["Open"](1), "x", 2),
    "delete": lambda k: delattr(k["Point"](1), "x"),
    "set another name": lambda k: setattr(k["Counted"](1), "z", 2),
    "after the fields": lambda k: [k["Counted"](1).total, k["Counted"](1, 5).total],
    "too few arguments": lambda k: k["Point"](),
    "too many arguments": lambda k: k["Counted"](1, 2, 3, 4),
    "replace": lambda k: [
        repr(dataclasses.replace(k["Point"](1), y=2.0)),
        dataclasses.asdict(k["Point"](1)),
    ],
    "order": lambda k: k["Ordered"](1) < k["Ordered"](2),
    "copies": lambda k: [
        repr(copy.copy(k["Point"](1))),
        repr(copy.deepcopy(k["Open"](7))),
        repr(copy.copy(k["Same"](1))),
    ],
    "fields": lambda k: [[field.name for field in dataclasses.fields(kind)] for kind in k.values()],
    "names in patterns": lambda k: [kind.__match_args__ for kind in k.values()],
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_does_what_the_standard_library_does(attempt: str) -> None:
    assert _end(attempt, made(records.dataclass)) == _end(attempt, made(dataclasses.dataclass))


def _end(attempt: str, kinds: dict[str, Any]) -> object:  # Any: classes
    try:
        return ATTEMPTS[attempt](kinds)
    except (AttributeError, TypeError) as error:
        return type(error)


def test_a_pickle_is_read_and_compared_by_a_process_that_made_none() -> None:
    script = "import pickle, sys; a, b = pickle.load(sys.stdin.buffer); print(a == b, hash(a) == hash(b), repr(a))"
    places = pickle.dumps((Place("a.py", 3), Place("a.py", 3)))
    ran = subprocess.run(
        [sys.executable, "-c", script], input=places, capture_output=True, check=True
    )
    assert ran.stdout.decode().startswith("True True Place("), ran.stdout


def test_the_program_defines_its_dataclasses_with_no_other_decorator() -> None:
    program = Path(agent_core.__file__).parent
    texts = {
        path.relative_to(program).as_posix(): path.read_text("utf-8")
        for path in program.rglob("*.py")
    }
    others = [
        path
        for path, text in texts.items()
        if re.search(r"from dataclasses import [^\n]*\bdataclass\b", text)
    ]
    assert others == ["base/records.py"]
