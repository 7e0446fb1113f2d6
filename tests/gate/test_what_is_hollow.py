"""The stage "substance": a body that does nothing with its arguments."""

import pytest

from agent_core.functions.gate import Policy

from .support import codes, function, on_text, warnings


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


@pytest.mark.parametrize("policy", ["agent", "import"])
def test_a_stub_is_refused_by_both_strict_policies(policy: Policy) -> None:
    assert codes(on_text("def f(a, b):\n    pass\n", policy=policy)) >= {"placeholder"}


def test_a_stub_that_a_human_saved_is_only_warned_of() -> None:
    draft = on_text(function("pass"), policy="human")
    assert (codes(draft), warnings(draft)) == (set(), {"placeholder"})


def test_an_unused_parameter_of_a_library_only_warns() -> None:
    draft = on_text(function("return a + 1"), policy="import")
    assert (codes(draft), warnings(draft)) == (set(), {"dead-parameter"})


@pytest.mark.parametrize(
    ("body", "fix"),
    [
        pytest.param("total = a + b\nprint(total)", "return the result instead of printing it", id="printed"),
        pytest.param("total = a + b", "end with `return` and the result", id="forgotten"),
    ],
)
def test_a_result_that_is_not_returned_is_told_as_that(body: str, fix: str) -> None:
    (problem,) = on_text(function(body)).problems
    assert (problem.code, problem.fix) == ("constant", fix)


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
