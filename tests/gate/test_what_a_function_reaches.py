"""`reach`: what a function accesses besides its arguments, in a few words; "nothing" only for a pure computation."""

import ast

import pytest

from agent_core.access.grants import Grants
from agent_core.functions.gate.capability import (
    needs_with_callees,
    reach,
    reach_in,
)
from agent_core.functions.gate.running import (
    is_by_chance,
    quiet_functions,
    spare_functions,
    text_reaching,
    text_running,
    uses_context,
)
from agent_core.functions.gate.tree import parse
from agent_core.functions.gate.uses import gives_text_to_packages
from agent_core.registry.depends import SpareFunctions
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource

ONLY_COMPUTES = [
    pytest.param("def f(a):\n    return sum(a)", id="builtins"),
    pytest.param(
        "import csv, io\ndef f(a):\n    return list(csv.reader(io.StringIO(a)))",
        id="a-stream-in-memory",
    ),
    pytest.param(
        "import collections.abc\ndef f(a):\n    return isinstance(a, collections.abc.Sized)",
        id="inner-module",
    ),
    pytest.param(
        "import datetime\ndef f():\n    return datetime.datetime.now()", id="a-name-like-a-module"
    ),
    pytest.param(
        "from urllib.parse import quote\ndef f(a):\n    return quote(a)",
        id="of-urllib-what-computes",
    ),
    pytest.param(
        "def f(self, n):\n    self.progress(n)\n    return str(self.scratch)",
        id="progress-and-scratch",
    ),
    pytest.param(
        "class A:\n    def __init__(self):\n        self.open_ = 1\ndef f():\n    return A()",
        id="a-class",
    ),
]
REACHES = [
    pytest.param(
        'def f(self):\n    return self.fetch("https://api.example.org/x")',
        "fetches api.example.org",
        id="host",
    ),
    pytest.param(
        "def f(self, u):\n    return self.fetch(u)", "fetches hosts that you name", id="any-host"
    ),
    pytest.param(
        "def f(self, u):\n    g = self.fetch\n    return g(u)",
        "fetches hosts that you name",
        id="by-a-name",
    ),
    pytest.param("def f(p):\n    return open(p).read()", "reads files that you name", id="file"),
    pytest.param(
        'def f():\n    return open("data/a.csv").read()', "reads data/a.csv", id="a-certain-file"
    ),
    pytest.param(
        'def f(p):\n    open(p, "w").write("")', "writes files that you name", id="writes"
    ),
    pytest.param(
        "import numpy as np\ndef f(n):\n    return np.array(n)", "imports numpy", id="package"
    ),
    pytest.param(
        'def f(self):\n    self.memory.append("human", "x")', "changes the block human", id="memory"
    ),
    pytest.param('def f(self):\n    return self.secret("KEY")', "uses the secret KEY", id="secret"),
    pytest.param(
        "from functions.words import g\ndef f(a):\n    return g(a)", "calls g", id="import"
    ),
    pytest.param('def f(self):\n    return self.call("g")', "calls g", id="call"),
    pytest.param(
        "def f(self, n):\n    return self.call(n)",
        "calls functions that it names as it runs",
        id="any-call",
    ),
    pytest.param("def f(a):\n    return g(a)", "uses g of its module", id="of-its-module"),
]
NOBODY_KNOWS = [
    "import os\ndef f(a):\n    return os.path.join(a, a)",
    "import subprocess\ndef f(a):\n    return subprocess.run(a)",
    "import builtins\ndef f(a):\n    return builtins.open(a)",
    "import io\ndef f(a):\n    return io.open_code(a)",
    "import json\ndef f(a):\n    return json.codecs.open(a)",
    "import json\nm = json\ndef f(a):\n    return m.codecs.open(a)",
    "import random\ndef f(a):\n    return random._os.system(a)",
    "from random import _os\ndef f(a):\n    return _os.system(a)",
    "import collections.abc\ndef f(a):\n    return collections.abc.sys.modules[a]",
    "import typing\ndef f(a):\n    return typing.get_type_hints(a)",
    "import string\ndef f(a):\n    return string.Formatter().get_field(a, a, a)",
    "import types\ndef f(a):\n    return types.CodeType(a)",
    "def f(a):\n    return eval(a)",
    "def f(a):\n    g = open\n    return g(a)",
    "def f(a):\n    return ().__class__.__base__.__subclasses__()",
    'def f(self, a):\n    return getattr(self, "fe" + "tch")(a)',
    'def f(self, a):\n    return self._channel.request("fetch", {})',
    "def f(self, a):\n    return [self][0]",
    "def f(a:\n    return a",
]


@pytest.mark.parametrize("text", ONLY_COMPUTES)
def test_what_has_no_way_out_of_the_sandbox_only_computes(text: str) -> None:
    assert reach(text) == ()


@pytest.mark.parametrize(("text", "says"), REACHES)
def test_what_a_text_reaches_is_said_in_a_few_words(text: str, says: str) -> None:
    assert reach(text) == (says,)


def test_of_what_a_text_does_not_tell_it_is_said_that_it_may_ask() -> None:
    for text in NOBODY_KNOWS:
        assert reach(text) == ("may ask as it runs",), text


def test_grants_count_though_the_text_needs_none_and_many_items_are_counted() -> None:
    hosts = tuple(f"h{number}.example.org" for number in range(9))
    grants = Grants(network=hosts, read=("data/",))
    assert reach("def f():\n    return 1", grants) == (
        "fetches h0.example.org, h1.example.org, h2.example.org, 6 more",
        "reads data/",
    )


MODULE = '''\
"""Rates."""
import json
import urllib.request

HOST = "https://rates.example.org/"


def _read(path: str) -> str:
    with urllib.request.urlopen(HOST + path) as answer:
        return answer.read().decode()


def rate_of(code: str) -> float:
    """Return a rate."""
    return json.loads(_read(code))["rate"]


def rounded(rate: float) -> float:
    """Round a rate."""
    return round(rate, 2)
'''


def test_a_function_reaches_what_the_helpers_constants_and_imports_of_its_module_reach() -> None:
    assert reach_in(MODULE, "rate_of") == ("fetches rates.example.org",)
    assert reach_in(MODULE, "rounded") == ()
    assert reach_in(MODULE + "\nprint(open('x'))\n", "rounded") == ("reads x",)


FETCHING = """from functions.others import elsewhere


def base(self, number: int) -> int:
    return len(self.fetch("https://api.example.org/"))


"""
HANDED: list[tuple[str, bool]] = [
    ("self, number: int) -> int:\n    return base(self, number)", True),
    ("self, number: int) -> int:\n    return base(self, base(self, number))", True),
    ("self, number: int) -> int:\n    return base(self, self.now())", False),
    ("self, number: int) -> int:\n    other = self\n    return base(other, number)", False),
    ("self, base: int) -> int:\n    return base(self, 1)", False),
    ("self, number: int) -> int:\n    base = number\n    return base(self, 1)", False),
    ("self, number: int) -> int:\n    return elsewhere(self, number)", False),
    ("self, number: int) -> int:\n    return base(number, self)", False),
    ("self, number: int) -> int:\n    return base(self, number, self)", False),
]


def _handing(rest: str) -> str:
    top = "def top(self, number: int) -> int:\n    return hand(self, number)\n"
    return f"{FETCHING}def hand({rest}\n\n\n{top}"


@pytest.mark.parametrize(("rest", "is_quiet"), HANDED)
def test_a_function_is_quiet_if_it_only_hands_its_self_on(rest: str, is_quiet: bool) -> None:
    assert ("hand" in quiet_functions(_handing(rest))) == is_quiet


@pytest.mark.parametrize("rest", [rest for rest, is_quiet in HANDED if is_quiet])
def test_a_function_reaches_what_it_hands_its_self_to_over_others(rest: str) -> None:
    snapshot = Snapshot.empty().with_module(read_module(ModuleSource.of("shop", _handing(rest))))
    assert needs_with_callees("top", snapshot).network == ("api.example.org",)


BODIES: dict[str, tuple[str, str]] = {
    "nothing": ("number", "number"),
    "a-file": ("number", "open('a.csv').read()"),
    "two-files": ("open('b.csv').read()", "open('a.csv').read()"),
    "a-host-named-elsewhere": ("'https://api.example.org/'", "urllib.request.urlopen({below})"),
    "a-path-made-elsewhere": ("pathlib.Path(str(number))", "{below}.exists()"),
    "a-path": ("number", "os.path.join('a', str(number))"),
    "a-pattern": ("number", "WORD.findall('a')"),
    "chance": ("random.random()", "number"),
    "a-package": ("number", "numpy.array(number)"),
    "a-missing-name": ("number", "undefined(number)"),
    "a-called-function": ("number", "self.call('other')"),
    "a-state": ("number", "self.state"),
    "a-secret": ("number", "self.secret('KEY')"),
}
"""What the first function of a chain does, and what all others do, `{below}` being the one that each calls."""
TOP = """import os
import pathlib
import random
import re
import urllib.request
import numpy

WORD = re.compile('a')


"""


@pytest.mark.parametrize(("first", "each"), BODIES.values(), ids=BODIES)
def test_what_a_long_chain_reaches_is_what_all_of_its_text_reaches(first: str, each: str) -> None:
    own = "self, number" if "self" in each else "number"
    chain = [f"def f0({own}):\n    return {first}\n"]
    for at in range(1, 20):
        below = f"f{at - 1}({own})"
        shown = each.format(below=below) if "{below}" in each else f"{below}, {each}"
        chain.append(f"def f{at}({own}):\n    return {shown}\n")
    text = TOP + "\n\n".join(chain)
    assert spare_functions(text).groups or spare_functions(text).silent
    whole = text_running(text, "f19", SpareFunctions())
    assert whole is not None
    assert reach_in(text, "f19") == reach(whole)
    part = parse(text_reaching(text, "f19") or "")
    assert isinstance(part, ast.Module)
    tree = ast.parse(whole)
    assert is_by_chance(part) == is_by_chance(tree)
    assert gives_text_to_packages(part, ()) == gives_text_to_packages(tree, ())
    assert uses_context(part) == uses_context(tree)
