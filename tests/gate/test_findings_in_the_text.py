"""The stages "conform", "substance" and "capability": what a text alone shows."""

from typing import get_args

import pytest

from agent_core.functions.gate import Policy

from .support import codes, function, on_text, snapshot_of, warnings

DOCUMENTED = '"""Do.\n\n    Args:\n        a: A value.\n    """'


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("def f(a: int) -> int:\n    return a + 1\n", {"no-docstring", "undescribed-parameter"}, id="bare"),
        pytest.param(f"def f(a) -> int:\n    {DOCUMENTED}\n    return a + 1\n", {"no-type"}, id="no-type"),
        pytest.param(f"def f(a: int):\n    {DOCUMENTED}\n    return a + 1\n", {"no-return-type"}, id="no-return-type"),
        pytest.param(
            f"def f(**a: int) -> int:\n    {DOCUMENTED}\n    return sum(a.values())\n", {"star-parameter"}, id="star"
        ),
        pytest.param(
            f"def f(a: list[int] = []) -> int:\n    {DOCUMENTED}\n    return sum(a)\n",
            {"mutable-default"},
            id="mutable",
        ),
        pytest.param(
            f"def f(a: int, self: int) -> int:\n    {DOCUMENTED}\n    return a + self\n".replace(
                "a: A", "self: A\n        a: A"
            ),
            {"self-not-first"},
            id="self-not-first",
        ),
    ],
)
def test_what_a_model_could_not_call_is_refused(code: str, expected: set[str]) -> None:
    assert codes(on_text(code)) == expected


def test_a_parameter_that_hides_a_builtin_is_told_with_a_better_name() -> None:
    (problem,) = on_text(function("return len(list) + b", parameters="list: list[int], b: int")).problems
    assert (problem.code, problem.severity) == ("hides-builtin", "warns")
    assert problem.fix == "rename `list` to `list_value`, in the body and under `Args:` too"


def test_a_name_that_nothing_defines_is_refused_with_its_line() -> None:
    (problem,) = on_text(function("return swap(a, b)")).problems
    assert (problem.code, problem.where.line) == ("undefined-name", 8)


def test_a_name_that_the_module_around_defines_is_known() -> None:
    assert (
        codes(on_text(function("return _swap(a, b)"), snapshot=snapshot_of(lib="def _swap(a, b):\n    return b\n")))
        == set()
    )


def test_every_problem_of_every_stage_is_told_at_once() -> None:
    draft = on_text("def f(list, *rest):\n    open('x')\n    return 1\n")
    found = codes(draft)
    assert "hides-builtin" in warnings(draft)
    assert {"no-docstring", "no-return-type", "star-parameter", "constant", "needs-files"} <= found


@pytest.mark.parametrize("policy", ["human", "import"])
def test_missing_words_only_warn_where_they_were_never_promised(policy: Policy) -> None:
    draft = on_text("def f(list):\n    return sum(list) + 1\n", policy=policy)
    assert codes(draft) == set()
    assert warnings(draft) == {"no-docstring", "no-type", "no-return-type", "undescribed-parameter", "hides-builtin"}


def test_what_cannot_be_called_refuses_under_every_policy() -> None:
    text = "import typing\n\n\ndef f(act: typing.Callable[[], int]) -> int:\n    return act()\n"
    for policy in get_args(Policy):
        assert "inexpressible-type" in codes(on_text(text, policy=policy)), policy


def test_what_is_passed_in_another_form_than_it_is_declared_refuses_only_a_model() -> None:
    for signature, code in (
        ("*rest", "star-parameter"),
        ("**rest: int", "star-parameter"),
        ("rest: list, /", "positional-only"),
    ):
        text = f"def f({signature}) -> int:\n    return len(rest)\n"
        assert code in codes(on_text(text)), signature
        for policy in ("human", "import"):
            draft = on_text(text, policy=policy)
            assert (code in codes(draft), code in warnings(draft)) == (False, True), signature


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param("pass", "placeholder", id="pass"),
        pytest.param("...", "placeholder", id="dots"),
        pytest.param("", "placeholder", id="docstring-alone"),
        pytest.param("'''later'''\npass", "placeholder", id="text-and-pass"),
        pytest.param("raise NotImplementedError", "not-implemented", id="not-implemented"),
        pytest.param("if a:\n    return b\nraise NotImplementedError('b')", "not-implemented", id="half-implemented"),
        pytest.param("return 42", "constant", id="constant"),
        pytest.param("return None", "constant", id="none"),
        pytest.param("total = a + b", "constant", id="nothing-returned"),
        pytest.param("total = a + b\nreturn 3", "constant", id="computed-for-nothing"),
        pytest.param("result = 7\nreturn result", "constant", id="constant-by-name"),
        pytest.param("if a > b:\n    return 1\nelse:\n    return 1", "constant", id="same-on-both-ways"),
        pytest.param(
            "try:\n    a / b\nexcept ZeroDivisionError:\n    return 0\nreturn 0", "constant", id="same-in-handler"
        ),
        pytest.param("return a", "echo", id="echo"),
        pytest.param("return a\nreturn a + b", "echo", id="echo-before-work"),
        pytest.param("print('Done!')", "print-only", id="print"),
        pytest.param("print('Saved', a)\nreturn True", "print-only", id="print-and-success"),
        pytest.param("return 'TODO'", "constant", id="todo-as-result"),
    ],
)
def test_a_hollow_body_is_refused(body: str, code: str) -> None:
    assert code in codes(on_text(function(body)))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return a + b", id="sum"),
        pytest.param("if a < 0 or b < 0:\n    raise ValueError('negative')\nreturn True", id="validates-by-raising"),
        pytest.param("while True:\n    a, b = b, a % b\n    if b == 0:\n        return a", id="returns-from-a-loop"),
        pytest.param("a += b\nreturn a", id="argument-made-new"),
        pytest.param("a = max(a, b)\nreturn a", id="argument-bound-anew"),
        pytest.param("for n in range(a):\n    if n == b:\n        return True\nreturn False", id="two-constants"),
        pytest.param("status = 'TODO'\nreturn [status] * (a + b)", id="todo-as-data"),
        pytest.param("return {'todo': a, 'done': b}", id="todo-as-key"),
        pytest.param("found = 0\nfor n in range(a):\n    found = n\nreturn found + b", id="name-bound-in-a-loop"),
        pytest.param("print(a)\nreturn a + b", id="prints-and-computes"),
        pytest.param("yield a\nyield b", id="generator"),
        pytest.param(
            "match a:\n    case 0:\n        return 'zero'\n    case _:\n        return 'more' * b", id="match"
        ),
        pytest.param("try:\n    return a / b\nexcept ZeroDivisionError:\n    return None", id="handler"),
        pytest.param("def inner():\n    return 1\nreturn inner() + a + b", id="constant-of-an-inner-function"),
        pytest.param("return [a for _ in range(b)]", id="comprehension"),
    ],
)
def test_a_body_that_computes_is_not_called_hollow(body: str) -> None:
    assert codes(on_text(function(body))) == set()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("a.sort()\nreturn a", id="sorted-in-place"),
        pytest.param("a[0] = b\nreturn a", id="item-set"),
        pytest.param("heapq.heapify(a)\na += [b]\nreturn a", id="handed-on"),
        pytest.param("row = a\nrow.append(b)\nreturn a", id="through-another-name"),
        pytest.param("for row in a:\n    row.append(b)\nreturn a", id="its-parts"),
    ],
)
def test_an_argument_that_is_changed_is_no_echo(body: str) -> None:
    assert "echo" not in codes(on_text(function(body, parameters="a: list, b: int")))


def test_a_parameter_that_is_never_used_is_named() -> None:
    (problem,) = on_text(function("return a + 1")).problems
    assert (problem.code, problem.where.line, problem.where.column) == ("dead-parameter", 1, 15)
    assert "`b`" in problem.message


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("_ = {1: 2}[b]\nreturn a + 1", id="may-raise"),
        pytest.param("last = b\ndef add():\n    return a + last\nreturn add()", id="read-by-an-inner-function"),
        pytest.param("global _kept\n_kept = b\nreturn a + 1", id="kept-by-the-module"),
    ],
)
def test_a_parameter_that_something_hangs_on_is_not_dead(body: str) -> None:
    assert "dead-parameter" not in codes(on_text(function(body)))


def test_a_stub_is_refused_by_both_strict_policies_and_a_human_is_warned() -> None:
    for policy in ("agent", "import"):
        assert codes(on_text("def f(a, b):\n    pass\n", policy=policy)) >= {"placeholder"}
    for body, policy, warned in (("pass", "human", "placeholder"), ("return a + 1", "import", "dead-parameter")):
        draft = on_text(function(body), policy=policy)
        assert (codes(draft), warnings(draft)) == (set(), {warned})


_HOOKED = """
from html.parser import HTMLParser


class Reader(HTMLParser):
    def handle_comment(self, data):
        pass


def _scale(unit):
    if unit == "km":
        return 1000
    raise NotImplementedError(unit)


def _letters():
    return "abc"


"""


def test_hooks_constants_and_what_is_not_supported_are_no_missing_work() -> None:
    body = """
    Reader().feed("x")
    # The unit goes here, before the number.
    return a * _scale("km") + len(_letters()) + b
    """
    draft = on_text(_HOOKED + function(body))
    assert codes(draft) == set()


def test_a_method_that_another_class_overrides_may_be_unwritten() -> None:
    shapes = """
class Shape:
    def area(self):
        raise NotImplementedError


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side ** 2
"""
    assert codes(on_text(shapes + function("shape: Shape = Square(a)\nreturn shape.area() + b"))) == set()


def test_the_self_of_a_class_is_no_context_of_a_call() -> None:
    counter = """
class Counter:
    def __init__(self):
        self.memory = {}
        self.secret = 0

    def add(self, key):
        self.memory[key] = self.memory.get(key, 0) + 1
        self.secret += 1
        return self.memory
"""
    draft = on_text(counter + function("return Counter().add(a)[a] + b"))
    assert not draft.needs.is_outward
    assert codes(draft) == set()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param("import socket\nreturn socket.socket().fileno() + a + b", "needs-network", id="socket"),
        pytest.param(
            "from urllib.request import urlopen\nreturn len(urlopen('http://a.example/').read()) + a + b",
            "needs-network",
            id="urllib",
        ),
        pytest.param("import websockets\nreturn len(str(websockets)) + a + b", "needs-network", id="websockets"),
        pytest.param("return len(open('data/' + 'x').read()) + a + b", "needs-files", id="open"),
        pytest.param("return len(Path('data/x').read_text()) + a + b", "needs-files", id="path-read"),
        pytest.param("import os\nos.remove('data/x')\nreturn a + b", "needs-files", id="remove"),
        pytest.param("import shutil\nshutil.rmtree('data/x')\nreturn a + b", "needs-files", id="shutil"),
        pytest.param("import subprocess\nreturn subprocess.call([str(a)]) + b", "needs-processes", id="subprocess"),
        pytest.param("import os\nreturn os.system(str(a)) + b", "needs-processes", id="system"),
        pytest.param("import os\nreturn len(os.environ) + a + b", "needs-secrets", id="environment"),
        pytest.param("from os import getenv\nreturn len(getenv(str(a))) + b", "needs-secrets", id="getenv"),
        pytest.param("import numpy\nreturn numpy.add(a, b)", "needs-packages", id="package"),
        pytest.param("return eval(f'{a}+{b}')", "dynamic-code", id="eval"),
        pytest.param("return __import__('os').getpid() + a + b", "dynamic-code", id="import-by-name"),
        pytest.param("import ctypes\nreturn ctypes.sizeof(ctypes.c_int) + a + b", "native-code", id="ctypes"),
        pytest.param("return int(input('more?')) + a + b", "needs-terminal", id="input"),
        pytest.param("return len(self.fetch('http://a.example/').text) + a + b", "needs-network", id="fetch"),
        pytest.param("return len(self.secret('key')) + a + b", "needs-secrets", id="secret"),
    ],
)
def test_a_use_that_needs_a_grant_is_refused_by_its_name(body: str, code: str) -> None:
    assert codes(on_text(function(body))) == {code}


@pytest.mark.parametrize(
    ("body", "host"),
    [
        ("from urllib.request import urlopen\nreturn len(urlopen('http://a.example/x').read())", "a.example"),
        ("from http.client import HTTPSConnection\nreturn len(str(HTTPSConnection('a.example')))", "a.example"),
        ("import http.client as h\nreturn len(str(h.HTTPConnection('a.example', 8080)))", "a.example:8080"),
    ],
)
def test_the_host_that_a_text_names_is_what_is_asked_for(body: str, host: str) -> None:
    assert on_text(function(f"{body} + a + b")).needs.network == (host,)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("(self.scratch / 'x').write_text(str(a))\nreturn b", id="write-below-scratch"),
        pytest.param("return len(open(str(a)).read()) + b", id="a-file-that-a-call-asks-for"),
        pytest.param("return len(Path(str(a)).read_text()) + b", id="a-path-that-a-call-asks-for"),
        pytest.param("return len(self.fetch(str(a)).text) + b", id="a-host-that-a-call-asks-for"),
        pytest.param("from urllib.request import urlopen\nreturn len(urlopen(str(a)).read()) + b", id="by-urllib"),
        pytest.param(
            "path = self.scratch / 'x'\npath.write_text(str(a))\nreturn len(path.read_text()) + b", id="by-name"
        ),
        pytest.param(
            "with open(self.scratch / 'x', 'w') as file:\n    file.write(str(a))\nreturn b", id="open-below-scratch"
        ),
        pytest.param("import io\nreturn len(io.StringIO(str(a)).read()) + b", id="string-io"),
        pytest.param("from urllib.parse import quote\nreturn len(quote(str(a))) + b", id="urllib-parse"),
        pytest.param("import os.path\nreturn len(os.path.join(str(a), str(b)))", id="path-arithmetic"),
        pytest.param("return len(str(a).replace('1', '2')) + b", id="replace-of-a-text"),
        pytest.param(
            "from pydantic import TypeAdapter\nreturn TypeAdapter(int).validate_python(a) + b", id="allowed-package"
        ),
        pytest.param("import ast\nreturn ast.literal_eval(str(a)) + b", id="literal-eval"),
        pytest.param("return self.call('other', a=a) + b", id="another-function"),
    ],
)
def test_what_needs_no_grant_passes(body: str) -> None:
    assert codes(on_text(function(body))) == set()


def test_a_library_that_evaluates_code_is_only_warned_of() -> None:
    draft = on_text(function("return eval(f'{a}+{b}')"), policy="import")
    assert (codes(draft), warnings(draft)) == (set(), {"dynamic-code"})
