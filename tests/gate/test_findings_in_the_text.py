"""The stages "conform", "substance" and "capability": what a text alone shows."""

from typing import get_args

import pytest

from agent_core.functions.gate import Policy

from .support import codes, function, on_text, snapshot_of, warnings

DOCUMENTED = '"""Do.\n\n    Args:\n        a: A value.\n    """'


def test_what_a_model_could_not_call_is_refused() -> None:
    cases: list[tuple[str, set[str]]] = [
        ("def f(a: int) -> int:\n    return a + 1\n", {"no-docstring"}),  # bare
        (f"def f(a) -> int:\n    {DOCUMENTED}\n    return a + 1\n", {"no-type"}),  # no type
        (
            f"def f(a: int):\n    {DOCUMENTED}\n    return a + 1\n",
            {"no-return-type"},
        ),  # no return type
        (
            f"def f(**a: int) -> int:\n    {DOCUMENTED}\n    return sum(a.values())\n",
            {"star-parameter"},
        ),  # star
        (
            f"def f(a: list[int] = []) -> int:\n    {DOCUMENTED}\n    a.append(1)\n    return sum(a)\n",
            {"mutable-default"},
        ),
        (
            f"def f(a: list[int] = []) -> list[int]:\n    {DOCUMENTED}\n    return a\n",
            {"mutable-default", "echo"},
        ),
        (
            f"def f(a: list[int] = []) -> int:\n    {DOCUMENTED}\n    a += [1]\n    return len(a)\n",
            {"mutable-default"},
        ),
        (
            f"def f(a: dict[str, int] = {{}}) -> int:\n    {DOCUMENTED}\n    a['x'] = 1\n    return len(a)\n",
            {"mutable-default"},
        ),
        (
            f"def f(a: list[int] = []) -> int:\n    {DOCUMENTED}\n    return g(a)\n",
            {"mutable-default", "undefined-name"},
        ),
        (
            f"def f(a: int, self: int) -> int:\n    {DOCUMENTED}\n    return a + self\n".replace(
                "a: A", "self: A\n        a: A"
            ),
            {"self-not-first"},
        ),
    ]
    for code, expected in cases:
        assert codes(on_text(code)) == expected, code


def test_a_default_that_is_only_read_is_as_good_as_one_that_cannot_change() -> None:
    for body in (
        "return sum(a)",
        "return len([each for each in a if each])",
        "total = 0\n    for each in a:\n        total += each\n    return total",
        "a = [*a, 1]\n    return len(a)",
        "return a[0] if a else ', '.join(map(str, a)).count('x')",
        "return sorted(a)[0] + a.index(1) + len(a.copy())",
    ):
        code = f"def f(a: list[int] = []) -> int:\n    {DOCUMENTED}\n    {body}\n"
        assert codes(on_text(code)) == set(), body
    draft = on_text(f"def f(a: list[int] = []) -> int:\n    {DOCUMENTED}\n    return a.pop()\n")
    assert codes(draft) == {"mutable-default"}


def test_a_parameter_without_a_description_is_told_and_refuses_nothing() -> None:
    for words in (
        '"""Double a number."""',
        '"""Double a number.\n\n    Args:\n        a:\n    """',
        '"""Double a number.\n\n    Returns:\n        The double.\n    """',
        '"""Double a number.\n\n    :returns: The double.\n    """',
        '"""Double a number.\n\n    >>> f(2)\n    4\n    """',
    ):
        draft = on_text(f"def f(a: int) -> int:\n    {words}\n    return a * 2\n")
        assert (codes(draft), warnings(draft)) == (set(), {"undescribed-parameter"}), words
        assert "`Args:`" in (draft.problems[0].fix or ""), words


def test_a_parameter_that_hides_a_builtin_is_told_with_a_better_name() -> None:
    (problem,) = on_text(
        function("return len(list) + b", parameters="list: list[int], b: int")
    ).problems
    assert (problem.code, problem.severity) == ("hides-builtin", "warns")
    assert problem.fix == "rename `list` to `list_value`, in the body and under `Args:` too"


def test_a_missing_docstring_is_answered_with_the_skeleton_to_write() -> None:
    found = on_text("def f(a: int) -> int:\n    return a + 1\n").problems
    (problem,) = [one for one in found if one.code == "no-docstring"]
    for part in ("Args:\n    a: …", "Returns:", ">>> f(…)"):
        assert part in str(problem.fix)


def test_a_name_that_nothing_defines_is_refused_with_its_line() -> None:
    (problem,) = on_text(function("return swap(a, b)")).problems
    assert (problem.code, problem.where.line) == ("undefined-name", 8)


def test_a_name_that_the_module_around_defines_is_known() -> None:
    assert (
        codes(
            on_text(
                function("return _swap(a, b)"),
                snapshot=snapshot_of(lib="def _swap(a, b):\n    return b\n"),
            )
        )
        == set()
    )


def test_every_problem_of_every_stage_is_told_at_once() -> None:
    draft = on_text("def f(list, *rest):\n    open('x')\n    return 1\n")
    found = codes(draft)
    assert "hides-builtin" in warnings(draft)
    assert {"no-docstring", "no-return-type", "star-parameter", "constant", "needs-files"} <= found


def test_missing_words_only_warn_where_they_were_never_promised() -> None:
    cases: list[Policy] = ["human", "import"]
    for policy in cases:
        draft = on_text("def f(list):\n    return sum(list) + 1\n", policy=policy)
        assert codes(draft) == set(), policy
        assert warnings(draft) == {
            "no-docstring",
            "no-type",
            "no-return-type",
            "undescribed-parameter",
            "hides-builtin",
        }, policy


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


def test_further_arguments_whose_types_are_declared_only_warn_a_model() -> None:
    for rest in ("*rest: int", "**rest: Unpack[Rest]", "**rest: typing.Unpack[Rest]"):
        draft = on_text(f"def f({rest}) -> int:\n    return len(rest)\n")
        found = codes(draft), warnings(draft)
        assert ("star-parameter" in found[0], "rest-parameter" in found[1]) == (False, True), rest


def test_a_hollow_body_is_refused() -> None:
    for body, code in (
        ("pass", "placeholder"),  # pass
        ("...", "placeholder"),  # dots
        ("", "placeholder"),  # docstring alone
        ("'''later'''\npass", "placeholder"),  # text and pass
        ("raise NotImplementedError", "not-implemented"),  # not implemented
        (
            "if a:\n    return b\nraise NotImplementedError('b')",
            "not-implemented",
        ),  # half implemented
        ("return 42", "constant"),  # constant
        ("return None", "constant"),  # none
        ("total = a + b", "constant"),  # nothing returned
        ("total = a + b\nreturn 3", "constant"),  # computed for nothing
        ("result = 7\nreturn result", "constant"),  # constant by name
        ("if a > b:\n    return 1\nelse:\n    return 1", "constant"),  # same on both ways
        (
            "try:\n    a / b\nexcept ZeroDivisionError:\n    return 0\nreturn 0",
            "constant",
        ),  # same in handler
        ("return a", "echo"),  # echo
        ("return a\nreturn a + b", "echo"),  # echo before work
        ("print('Done!')", "print-only"),  # print
        ("print('Saved', a)\nreturn True", "print-only"),  # print and success
        ("return 'TODO'", "constant"),  # a promise as result
    ):
        assert code in codes(on_text(function(body))), body


def test_a_body_that_computes_is_not_called_hollow() -> None:
    for body in (
        "return a + b",  # sum
        "if a < 0 or b < 0:\n    raise ValueError('negative')\nreturn True",  # validates by raising
        "while True:\n    a, b = b, a % b\n    if b == 0:\n        return a",  # returns from a loop
        "a += b\nreturn a",  # argument made new
        "a = max(a, b)\nreturn a",  # argument bound anew
        "for n in range(a):\n    if n == b:\n        return True\nreturn False",  # two constants
        "status = 'TODO'\nreturn [status] * (a + b)",  # the word as data
        "return {'todo': a, 'done': b}",  # the word as key
        "found = 0\nfor n in range(a):\n    found = n\nreturn found + b",  # name bound in a loop
        "print(a)\nreturn a + b",  # prints and computes
        "yield a\nyield b",  # generator
        "match a:\n    case 0:\n        return 'zero'\n    case _:\n        return 'more' * b",  # match
        "try:\n    return a / b\nexcept ZeroDivisionError:\n    return None",  # handler
        "def inner():\n    return 1\nreturn inner() + a + b",  # constant of an inner function
        "return [a for _ in range(b)]",  # comprehension
    ):
        assert codes(on_text(function(body))) == set(), body


def test_an_argument_that_is_changed_is_no_echo() -> None:
    for body in (
        "a.sort()\nreturn a",  # sorted in place
        "a[0] = b\nreturn a",  # item set
        "heapq.heapify(a)\na += [b]\nreturn a",  # handed on
        "row = a\nrow.append(b)\nreturn a",  # through another name
        "for row in a:\n    row.append(b)\nreturn a",  # its parts
    ):
        assert "echo" not in codes(on_text(function(body, parameters="a: list, b: int"))), body


def test_a_parameter_that_is_never_used_is_named() -> None:
    (problem,) = on_text(function("return a + 1")).problems
    assert (problem.code, problem.where.line, problem.where.column) == ("dead-parameter", 1, 15)
    assert "`b`" in problem.message


@pytest.mark.parametrize(
    "body",
    [
        "return a + 1 if b else a + 1",
        "if b:\n    return a + 1\nelse:\n    return a + 1",
        "if b > 3 and b:\n    a += 1\nelse:\n    a += 1\nreturn a",
        "return [each for each in a if (each if not b else each)]",
        "with open(a) as file:\n    text = file.read()\nreturn text if b else text",
    ],
)
def test_a_parameter_of_which_both_ways_do_the_same_is_dead(body: str) -> None:
    assert "dead-parameter" in codes(on_text(function(body)))


def test_a_parameter_that_something_hangs_on_is_not_dead() -> None:
    for body in (
        "return a + 1 if {1: 2}[b] else a + 1",  # the test may raise
        "if b.close():\n    return a\nelse:\n    return a",  # or act
        "return a + 1 if b else a + 2",
        "if b:\n    a += 1\nreturn a",
        "_ = {1: 2}[b]\nreturn a + 1",  # may raise
        "last = b\ndef add():\n    return a + last\nreturn add()",  # read by an inner function
        "global _kept\n_kept = b\nreturn a + 1",  # kept by the module
    ):
        assert "dead-parameter" not in codes(on_text(function(body))), body


def test_a_stub_is_refused_by_both_strict_policies_and_a_human_is_warned() -> None:
    strict: tuple[Policy, ...] = ("agent", "import")
    for policy in strict:
        assert codes(on_text("def f(a, b):\n    pass\n", policy=policy)) >= {"placeholder"}
    warns: dict[Policy, tuple[str, str]] = {
        "human": ("pass", "placeholder"),
        "import": ("return a + 1", "dead-parameter"),
    }
    for policy, (body, warned) in warns.items():
        draft = on_text(function(body), policy=policy)
        assert (codes(draft), warnings(draft)) == (set(), {warned})


def test_a_result_that_is_not_returned_is_told_as_that() -> None:
    for body, fix in (
        ("total = a + b\nprint(total)", "return the result instead of printing it"),
        ("total = a + b", "end with `return` and the result"),
    ):
        (problem,) = on_text(function(body)).problems
        assert (problem.code, problem.fix) == ("constant", fix), body


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
    assert (
        codes(on_text(shapes + function("shape: Shape = Square(a)\nreturn shape.area() + b")))
        == set()
    )


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


def test_a_use_that_needs_a_grant_is_refused_by_its_name() -> None:
    for body, code in (
        ("import socket\nreturn socket.socket().fileno() + a + b", "needs-network"),  # socket
        (
            "from urllib.request import urlopen\nreturn len(urlopen('http://a.example/').read()) + a + b",
            "needs-network",
        ),
        ("import websockets\nreturn len(str(websockets)) + a + b", "needs-network"),  # websockets
        ("return len(open('data/' + 'x').read()) + a + b", "needs-files"),  # open
        ("return len(Path('data/x').read_text()) + a + b", "needs-files"),  # path read
        ("import os\nos.remove('data/x')\nreturn a + b", "needs-files"),  # remove
        ("import shutil\nshutil.rmtree('data/x')\nreturn a + b", "needs-files"),  # shutil
        (
            "import subprocess\nreturn subprocess.call([str(a)]) + b",
            "needs-processes",
        ),  # subprocess
        ("import os\nreturn os.system(str(a)) + b", "needs-processes"),  # system
        ("import os\nreturn len(os.environ) + a + b", "needs-secrets"),  # environment
        ("from os import getenv\nreturn len(getenv(str(a))) + b", "needs-secrets"),  # getenv
        ("import numpy\nreturn numpy.add(a, b)", "needs-packages"),  # package
        ("return eval(f'{a}+{b}')", "dynamic-code"),  # eval
        ("return __import__('os').getpid() + a + b", "dynamic-code"),  # import by name
        ("import ctypes\nreturn ctypes.sizeof(ctypes.c_int) + a + b", "native-code"),  # ctypes
        ("return int(input('more?')) + a + b", "needs-terminal"),  # input
        ("return len(self.fetch('http://a.example/').text) + a + b", "needs-network"),  # fetch
        ("return len(self.secret('key')) + a + b", "needs-secrets"),  # secret
    ):
        assert codes(on_text(function(body))) == {code}, body


def test_a_problem_says_the_grant_and_what_to_do_without_it() -> None:
    (problem,) = on_text(function("return len(open('data/x').read()) + a + b")).problems
    assert "the grant `files`" in problem.message
    assert problem.fix is not None
    assert problem.fix.startswith("take the content as a parameter")


def test_the_host_that_a_text_names_is_what_is_asked_for() -> None:
    for body, host in (
        (
            "from urllib.request import urlopen\nreturn len(urlopen('http://a.example/x').read())",
            "a.example",
        ),
        (
            "from http.client import HTTPSConnection\nreturn len(str(HTTPSConnection('a.example')))",
            "a.example",
        ),
        (
            "import http.client as h\nreturn len(str(h.HTTPConnection('a.example', 8080)))",
            "a.example:8080",
        ),
    ):
        assert on_text(function(f"{body} + a + b")).needs.network == (host,), body


def test_what_needs_no_grant_passes() -> None:
    for body in (
        "(self.scratch / 'x').write_text(str(a))\nreturn b",  # write below scratch
        "return len(open(str(a)).read()) + b",  # a file that a call asks for
        "return len(Path(str(a)).read_text()) + b",  # a path that a call asks for
        "return len(self.fetch(str(a)).text) + b",  # a host that a call asks for
        "from urllib.request import urlopen\nreturn len(urlopen(str(a)).read()) + b",  # by urllib
        "path = self.scratch / 'x'\npath.write_text(str(a))\nreturn len(path.read_text()) + b",  # by name
        "with open(self.scratch / 'x', 'w') as file:\n    file.write(str(a))\nreturn b",  # open below scratch
        "import io\nreturn len(io.StringIO(str(a)).read()) + b",  # string io
        "from urllib.parse import quote\nreturn len(quote(str(a))) + b",  # urllib parse
        "import os.path\nreturn len(os.path.join(str(a), str(b)))",  # path arithmetic
        "return len(str(a).replace('1', '2')) + b",  # replace of a text
        "from pydantic import TypeAdapter\nreturn TypeAdapter(int).validate_python(a) + b",  # allowed package
        "import ast\nreturn ast.literal_eval(str(a)) + b",  # literal eval
        "return self.call('other', a=a) + b",  # another function
    ):
        assert codes(on_text(function(body))) == set(), body


def test_a_library_that_evaluates_code_is_only_warned_of() -> None:
    draft = on_text(function("return eval(f'{a}+{b}')"), policy="import")
    assert (codes(draft), warnings(draft)) == (set(), {"dynamic-code"})
