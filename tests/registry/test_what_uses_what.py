"""Which functions use which, and the hash of all the code that determines a function's results."""

import os
import subprocess
import sys

from agent_core.registry.depends import callees, callers, code_hash, dependents, using_modules
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource


def snapshot_of(**modules: str) -> Snapshot:
    snapshot = Snapshot.empty()
    for module, text in modules.items():
        snapshot = snapshot.with_module(read_module(ModuleSource.of(module, text)))
    return snapshot


ADD = "def add(a: int, b: int) -> int:\n    return a + b\n"
TWICE = "from functions.lib import add\n\n\ndef twice(n: int) -> int:\n    return add(n, n)\n"
FAR = "from functions import near\n\n\ndef fourfold(n: int) -> int:\n    return near.twice(near.twice(n))\n"
LIBRARY = snapshot_of(lib=ADD, near=TWICE, far=FAR)


def test_what_uses_a_function_is_listed_from_near_to_far() -> None:
    assert dependents(["add"], LIBRARY) == ["twice", "fourfold"]
    assert dependents(["fourfold"], LIBRARY) == []
    assert (callers("add", LIBRARY), callees("fourfold", LIBRARY)) == (["twice"], ["twice"])
    assert (using_modules("lib", LIBRARY), using_modules("far", LIBRARY)) == (["near", "far"], [])


HELPED = (
    "LIMIT = 9\n\n\ndef _cap(n: int) -> int:\n    return min(n, LIMIT)\n\n\ndef "
    "f(n: int) -> int:\n    return _cap(n)\n"
)


def test_the_hash_of_code_follows_what_the_code_uses() -> None:
    rows: list[tuple[str, str, str, bool]] = [
        ("constant-of-a-helper", "LIMIT = 9", "LIMIT = 8", False),
        ("helper", "min(n", "max(n", False),
        ("words-of-a-helper", "return min", '"""Hold down."""\n    return min', True),
        ("what-it-does-not-use", "LIMIT = 9", "LIMIT = 9\nOTHER = 1", True),
        ("what-the-module-does", "LIMIT = 9", "import random\nrandom.seed(1)\nLIMIT = 9", False),
    ]
    for case, old, new, is_same in rows:
        one, other = snapshot_of(lib=HELPED), snapshot_of(lib=HELPED.replace(old, new))
        assert (
            code_hash(one.functions["f"], one) == code_hash(other.functions["f"], other)
        ) is is_same, case


def test_the_hash_of_code_reaches_into_other_modules() -> None:
    other = snapshot_of(lib=ADD.replace("a + b", "a - b"), near=TWICE, far=FAR)
    hashes = [code_hash(snapshot.functions["fourfold"], snapshot) for snapshot in (LIBRARY, other)]
    assert hashes[0] != hashes[1]
    called = "def by_name(self, a: int) -> int:\n    return self.call('add', a=a, b=a)\n"
    one, two = (
        snapshot_of(lib=ADD, by=called),
        snapshot_of(lib=ADD.replace("a + b", "a - b"), by=called),
    )
    assert code_hash(one.functions["by_name"], one) != code_hash(two.functions["by_name"], two)


QUOTED = """class Query:
    LIMIT = 9


Alias = Optional["Query"]


def f(query: "Query") -> int:
    return query.LIMIT


def g(query: Alias) -> int:
    return query.LIMIT
"""


def test_the_hash_of_code_follows_names_in_quotes() -> None:
    one, other = snapshot_of(lib=QUOTED), snapshot_of(lib=QUOTED.replace("9", "8"))
    for name in ("f", "g"):
        assert code_hash(one.functions[name], one) != code_hash(other.functions[name], other), name


def test_functions_that_use_each_other_have_a_hash_too() -> None:
    ping = "from functions.pong import pong\n\n\ndef ping(n: int) -> int:\n    return n and pong(n - 1)\n"
    pong = ping.replace("ping", "x").replace("pong", "ping").replace("def x", "def pong")
    one, other = (
        snapshot_of(ping=ping, pong=pong),
        snapshot_of(ping=ping, pong=pong.replace("n - 1", "n - 2")),
    )
    assert dependents(["ping"], one) == ["pong"]
    assert code_hash(one.functions["ping"], one) != code_hash(other.functions["ping"], other)


def test_code_that_is_nested_very_deeply_has_a_hash() -> None:
    deep = f"DEEP = {'-' * 90}1\n\n\ndef f(n: int) -> int:\n    return n + DEEP\n"
    one, other = snapshot_of(lib=deep), snapshot_of(lib=deep.replace("1\n", "2\n", 1))
    assert code_hash(one.functions["f"], one) != code_hash(other.functions["f"], other)


PARTS = """
from agent_core.registry.approved import approved_parts

pairs = [("Any", "Dict"), ("Final", "List"), ("Set", "Tuple"), ("Text", "Type")]
lines = [f"from typing import {one}\\nfrom typing import {one}, {other}" for one, other in pairs]
hints = ", ".join(f"{name.lower()}: {name}" for pair in pairs for name in pair)
text = "\\n".join([*lines, f"def f({hints}): pass", ""])
found = approved_parts(("m", "f"), (("m", text),))
print(found.texts, found.statements, found.digest)
"""


def test_the_parts_that_a_yes_is_for_read_alike_in_every_process() -> None:
    shown = {
        subprocess.run(
            [sys.executable, "-c", PARTS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "012"
    }
    assert len(shown) == 1
