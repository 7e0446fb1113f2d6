"""Equal forms compute the same: what may be written otherwise, and what may not."""

from textwrap import dedent

import pytest

from agent_core.functions.gate.clones.normal_form import normal_form


def digest(text: str, around: str = "") -> str:
    form = normal_form("f", dedent(text), dedent(around))
    assert form is not None
    return form.digest


SAME = {
    "names-and-words": (
        "def f(a, b):\n '''Do.'''\n c = a - b\n return c",
        "def f(x: int, y: int) -> int:\n return x - y",
    ),
    "operands": ("def f(a: int, b):\n return a + b * 2", "def f(a: int, b):\n return 2 * b + a"),
    "comparisons": ("def f(a, b):\n return not a > b", "def f(a, b):\n return not b < a"),
    "not-equal": ("def f(a, b):\n return a != b", "def f(a, b):\n return not b == a"),
    "in-place": (
        "def f(a):\n s = 0\n for i in a: s += i\n return s",
        "def f(a):\n s = 0\n for i in a: s = s + i\n return s",
    ),
    "statements": ("def f(a):\n x = a * 2\n y = [1]\n return x, y", "def f(a):\n y = [1]\n x = 2 * a\n return x, y"),
    "fresh-lists": (
        "def f(a):\n x = []\n y = []\n x.append(a)\n y.append(1)\n return x, y",
        "def f(a):\n y, x = [], []\n y.append(1)\n x.append(a)\n return x, y",
    ),
    "guards": ("def f(a):\n if not a: return 1\n return 2", "def f(a):\n if a:\n  return 2\n else:\n  return 1"),
    "choices": ("def f(a):\n return 1 if a else 2", "def f(a):\n if a: return 1\n return 2"),
    "truth": ("def f(a):\n if a == 1: return True\n return False", "def f(b):\n return 1 == b"),
    "continue": (
        "def f(a):\n r = []\n for x in a:\n  if x < 0: continue\n  r.append(x)\n return r",
        "def f(q):\n s = list()\n for y in q:\n  if not 0 > y: s.append(y)\n return s",
    ),
    "imports": ("import math\ndef f(a):\n return math.sqrt(a)", "def f(a):\n from math import sqrt as q\n return q(a)"),
    "helpers": (
        "def _h(x):\n return x + 1\ndef f(a):\n return _h(a)",
        "def _k(y):\n return 1 + y\ndef f(a):\n return _k(a)",
    ),
    "constants": ("K = 3\ndef f(a):\n return a * K", "THREE = 3\ndef f(a):\n return THREE * a"),
    "both": ("def f(x: int, y: int):\n return x > 0 and y > 0", "def f(x: int, y: int):\n return 0 < y and 0 < x"),
    "itself": ("def f(n):\n return n and f(n - 1)", "def f(m):\n return m and f(m - 1)"),
}
OTHER = {
    "sums-of-unknowns": ("def f(a, b):\n return a + b", "def f(a, b):\n return b + a"),
    "order-of-parameters": ("def f(a, b):\n return a - b", "def f(b, a):\n return a - b"),
    "inner-parameters": (
        "def f(a):\n return (lambda x, y: x - y)(a, 1)",
        "def f(a):\n return (lambda y, x: x - y)(a, 1)",
    ),
    "changes": ("def f(a):\n a.append(1)\n a.sort()\n return a", "def f(a):\n a.sort()\n a.append(1)\n return a"),
    "second-names": (
        "def f(a):\n x = []\n y = x\n x.append(a)\n y.append(1)\n return x, y",
        "def f(a):\n x = []\n y = x\n y.append(1)\n x.append(a)\n return x, y",
    ),
    "guarded": ("def f(x):\n return x is not None and len(x) > 0", "def f(x):\n return len(x) > 0 and x is not None"),
    "one-shot": (
        "def f(a):\n i = iter(a)\n x = next(i)\n y = next(i)\n return x - y",
        "def f(a):\n i = iter(a)\n y = next(i)\n x = next(i)\n return x - y",
    ),
    "calls": ("def f(g):\n x = g(1)\n y = g(2)\n return x - y", "def f(g):\n y = g(2)\n x = g(1)\n return x - y"),
    "constants": ("def f(a):\n return a == 1", "def f(a):\n return a == True"),
    "defaults": ("def f(a=1):\n return a * 2", "def f(a=2):\n return a * 2"),
    "helpers": (
        "def _h(x):\n return x + 1\ndef f(a):\n return _h(a)",
        "def _h(x):\n return x + 2\ndef f(a):\n return _h(a)",
    ),
    "lists-in-place": ("def f(a, b):\n c = a\n c += b\n return a", "def f(a, b):\n c = a\n c = c + b\n return a"),
    "locals": ("def f(a):\n x = 1\n return locals()", "def f(a):\n y = 1\n return locals()"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_what_computes_the_same_has_one_form(one: str, other: str) -> None:
    assert digest(one) == digest(other)


@pytest.mark.parametrize(("one", "other"), OTHER.values(), ids=OTHER)
def test_what_may_compute_something_else_has_another_form(one: str, other: str) -> None:
    assert digest(one) != digest(other)


def test_a_helper_of_the_module_counts_by_what_it_does() -> None:
    body = "def f(a):\n return _h(a)"
    assert digest(body, "def _h(x):\n return -x") == digest(body, "def _h(y):\n return -y")
    assert digest(body, "def _h(x):\n return -x") != digest(body, "def _h(x):\n return abs(x)")


def test_what_is_nested_too_deeply_has_no_form() -> None:
    assert normal_form("f", f"def f(a):\n return {'-' * 3000}a") is None
    assert normal_form("f", "def g(a):\n return a") is None
