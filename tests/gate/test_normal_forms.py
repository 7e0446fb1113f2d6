"""Equal forms compute the same: differences that are ignored, and others; the index of forms follows the library."""

from textwrap import dedent

from agent_core.functions.gate.clones import Alike, normal_form, sketch

from .support import ADD, snapshot_of


def digest(text: str, around: str = "") -> tuple[str, ...]:
    form = normal_form("f", dedent(text), dedent(around))
    assert form is not None
    return form


SAME = {
    "names-and-words": (
        "def f(a, b):\n '''Do.'''\n c: int = a - b\n return c",
        "def f(x: int, y: int) -> int:\n z = x - y\n pass\n return z",
    ),
    "keywords": (
        "def f(a):\n return sorted(a, key=len, reverse=True)",
        "def f(a):\n return sorted(a, reverse=True, key=len)",
    ),
    "imports": (
        "import math\ndef f(a):\n return math.sqrt(a)",
        "def f(a):\n from math import sqrt as q\n return q(a)",
    ),
    "helpers-in-another-order": (
        "def _h(x):\n return x + 1\ndef _g(x):\n return x * 2\ndef f(a):\n return _h(_g(a))",
        "def _k(y):\n return y * 2\ndef _l(y):\n return y + 1\ndef f(a):\n return _l(_k(a))",
    ),
    "constants": ("K = 3\ndef f(a):\n return a * K", "THREE = 3\ndef f(a):\n return a * THREE"),
    "classes": (
        "class _P:\n n = 1\ndef f(a):\n return _P().n + a",
        "class _P:\n n = 1\ndef f(b):\n return _P().n + b",
    ),
    "inner-functions": (
        "def f(a):\n def g(x):\n  return x + a\n return [g(i) for i in a if (lambda q: q)(i)]",
        "def f(b):\n def h(y):\n  return y + b\n return [h(j) for j in b if (lambda p: p)(j)]",
    ),
    "handlers-and-patterns": (
        "def f(a):\n try:\n  match a:\n   case [x, *y]: return y\n except E as e:\n  return e",
        "def f(b):\n try:\n  match b:\n   case [p, *q]: return q\n except E as g:\n  return g",
    ),
    "itself": ("def f(n):\n return n and f(n - 1)", "def f(m):\n return m and f(m - 1)"),
}
OTHER = {
    "sums-of-unknowns": ("def f(a, b):\n return a + b", "def f(a, b):\n return b + a"),
    "order-of-parameters": ("def f(a, b):\n return a - b", "def f(b, a):\n return a - b"),
    "inner-parameters": (
        "def f(a):\n return (lambda x, y: x - y)(a, 1)",
        "def f(a):\n return (lambda y, x: x - y)(a, 1)",
    ),
    "changes": (
        "def f(a):\n a.append(1)\n a.sort()\n return a",
        "def f(a):\n a.sort()\n a.append(1)\n return a",
    ),
    "second-names": (
        "def f(a):\n x = []\n y = x\n x.append(a)\n y.append(1)\n return x, y",
        "def f(a):\n x = []\n y = x\n y.append(1)\n x.append(a)\n return x, y",
    ),
    "guarded": (
        "def f(x):\n return x is not None and len(x) > 0",
        "def f(x):\n return len(x) > 0 and x is not None",
    ),
    "one-shot": (
        "def f(a):\n i = iter(a)\n x = next(i)\n y = next(i)\n return x - y",
        "def f(a):\n i = iter(a)\n y = next(i)\n x = next(i)\n return x - y",
    ),
    "calls": (
        "def f(g):\n x = g(1)\n y = g(2)\n return x - y",
        "def f(g):\n y = g(2)\n x = g(1)\n return x - y",
    ),
    "constants": ("def f(a):\n return a == 1", "def f(a):\n return a == True"),
    "defaults": ("def f(a=1):\n return a * 2", "def f(a=2):\n return a * 2"),
    "helpers": (
        "def _h(x):\n return x + 1\ndef f(a):\n return _h(a)",
        "def _h(x):\n return x + 2\ndef f(a):\n return _h(a)",
    ),
    "lists-in-place": (
        "def f(a, b):\n c = a\n c += b\n return a",
        "def f(a, b):\n c = a\n c = c + b\n return a",
    ),
    "keywords-with-effects": (
        "def f(g, h):\n return g(a=h(1), b=h(2))",
        "def f(g, h):\n return g(b=h(2), a=h(1))",
    ),
    "attributes-in-patterns": (
        "def f(a):\n match a:\n  case int(real=real): return real",
        "def f(a):\n match a:\n  case int(imag=imag): return imag",
    ),
    "inner-name-and-outer-name": (
        "def f(a):\n return [len for len in a] + [len(a)]",
        "def f(a):\n return [sum for sum in a] + [sum(a)]",
    ),
    "decorators-and-defaults": ("K = 1\n@K\ndef f(a): return a", "K = 1\ndef f(a=K): return a"),
    "classes": (
        "K = 1\nclass _P:\n n = K\ndef f(a):\n return _P().n",
        "K = 2\nclass _P:\n n = K\ndef f(a):\n return _P().n",
    ),
    "locals": ("def f(a):\n x = 1\n return locals()", "def f(a):\n y = 1\n return locals()"),
}


def test_what_computes_the_same_has_one_form() -> None:
    for one, other in SAME.values():
        assert digest(one) == digest(other), one


def test_what_may_compute_something_else_has_another_form() -> None:
    for one, other in OTHER.values():
        assert digest(one) != digest(other), one


def test_a_helper_of_the_module_counts_by_what_it_does() -> None:
    body = "def f(a):\n return _h(a)"
    assert digest(body, "def _h(x):\n return -x") == digest(body, "def _h(y):\n return -y")
    assert digest(body, "def _h(x):\n return -x") != digest(body, "def _h(x):\n return abs(x)")


def test_what_is_nested_too_deeply_has_no_form() -> None:
    assert normal_form("f", f"def f(a):\n return {'-' * 3000}a") is None
    assert normal_form("f", "def g(a):\n return a") is None


LIBRARY = snapshot_of(
    sums=ADD, other=ADD.replace("add", "twice_added").replace("a + b", "a + b + b")
)
LEANING = "def one(a):\n    return two(a)\n\n\ndef two(a):\n    return a + {}\n"


async def test_a_function_that_leans_on_another_is_looked_at_again_with_it() -> None:
    same, _size = sketch("one", "def one(b):\n    return two(b)\n", LEANING.format(1))
    alike = Alike()
    for number, expected in ((1, ["one"]), (2, []), (1, ["one"])):
        await alike.see(snapshot_of(lib=LEANING.format(number)))
        assert alike.copies(same) == expected


async def test_an_index_for_which_time_is_up_goes_on_at_the_next_look() -> None:
    alike = Alike()
    assert [await alike.see(LIBRARY, 0) for _ in range(2)] == [1, 0]
    assert alike.copies(sketch("plus", ADD.replace("add", "plus"))[0]) == ["add"]
    assert await alike.see(snapshot_of()) == 0
    assert alike.copies(sketch("plus", ADD.replace("add", "plus"))[0]) == []
