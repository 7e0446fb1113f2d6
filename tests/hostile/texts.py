"""Texts that are cheap to write and expensive to read, as a model may send them or a file may contain them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

SIZE: Final = 40_000
_DOC: Final = "Do it.\n\n    Args:\n        a: It.\n\n    >>> f(1)\n    1\n    >>> f(2)\n    2"
_HEAD: Final = "def f(a: int) -> int:\n"


def function(body: Iterable[str], docstring: str = _DOC, head: str = _HEAD) -> str:
    """Return a function with these lines."""
    return f'{head}    """{docstring}\n    """\n' + "".join(f"    {line}\n" for line in body)


def many(line: Callable[[int], str], size: int = SIZE) -> str:
    """Return a function with as many lines as the size allows."""
    lines, length, number = list[str](), 0, 0
    while length < size - 500:
        lines.append(line(number))
        length, number = length + len(lines[-1]) + 5, number + 1
    return function([*lines, "return a"])


def _documented(part: str) -> str:
    return function(["return a"], f"Do it.\n\n    {part * ((SIZE - 500) // len(part))}")


def _list(text: Callable[[int], str], count: int, between: str = ", ") -> str:
    return between.join(map(text, range(count)))


def plain() -> Mapping[str, str]:
    """Return texts for any argument, within each parameter's size limit."""
    parts: tuple[str, ...] = (
        "a", " ", "\n", "[", "*a", "`", "(", "ab ", "a, ", "1", "_", '"', "a. ", "e\u0316\u0301", "aA1", "- ",
    )  # fmt: skip
    parts += (
        "the user is not ",
        "a'",
        "f(",
        "2024-01-",
        "a\u200b",
        "\u3000",
        '\\"',
        "```\n",
        "{",
        "\x1b[1m",
        "<a",
    )
    texts: dict[str, str] = {ascii(part): part * (SIZE // len(part)) for part in parts}
    texts["numbers"] = _list(str, SIZE // 6, " ")
    texts["cyclic lines"] = _list(lambda n: f"#{n % 128}", SIZE // 4, "\n")
    texts["names and"] = "A, " * (SIZE // 3) + "and B are friends"
    return texts


_WORST: Final = ("a", " ", "[", '"', "a, ", "e\u0316\u0301", "\u3000", '\\"', "`")


def worst() -> Mapping[str, str]:
    """Return a representative few of them, for every entry point."""
    texts = plain()
    return {
        name: texts[name] for name in (*map(ascii, _WORST), "numbers", "cyclic lines", "names and")
    }


def candidates() -> Mapping[str, str]:
    """Return sources of a function `f`."""
    return {
        "assignments": many(lambda n: f"v{n} = {n}"),
        "equal assignments": many(lambda n: f"v{n} = 0"),
        "chain of numbers": many(lambda n: f"v{n} = v{n - 1}" if n else "v0 = 1"),
        "chain of none": many(lambda n: f"v{n} = v{n - 1}" if n else "v0 = 'x'"),
        "calls": many(lambda n: f"print({n})"),
        "branches": many(lambda n: f"if a > {n}: return {n}"),
        "sums": many(lambda _: "a += 1"),
        "lambdas": many(lambda n: f"v{n} = lambda x: x + {n}"),
        "inner functions": many(lambda n: f"def g{n}(x): return x"),
        "imports": many(lambda n: f"import m{n}"),
        "one import": function([f"from os import {_list(lambda n: f'm{n}', 4_600)}", "return a"]),
        "texts": many(lambda n: f"v = 'abc def {n}'"),
        "fields": many(lambda n: f"v = f'{{a}} {{a:>{n}}}'"),
        "comprehensions": many(lambda n: f"v{n} = [x for x in range({n})]"),
        "semicolons": function([";".join("a" * (SIZE // 2 - 200)), "return a"]),
        "a long list": function([f"return [{_list(str, 7_000)}][a]"]),
        "a long call": function(
            [f"b = g({_list(lambda n: f'x{n}', 4_900)})", "c = 1", "d = 1", "return a"]
        ),
        "names that are tied": function(
            [
                f"{_list(lambda n: f'x{n}', 2_600)} = [0] * 3900",
                f"c = g({_list(lambda n: f'x{n}', 2_600)})",
                "return a",
            ]
        ),
        "values that collide": function(
            [f"return {{{_list(lambda n: str(n * (2**61 - 1)), 1_700)}}}"]
        ),
        "keys that collide": function(
            ["return a"],
            f"Do it.\n\n    >>> f({{{_list(lambda n: f'{n * (2**61 - 1)}: 1', 1_400)}}})\n    1",
        ),
        "conditions": function([f"return {_list(lambda n: f'a > {n}', 3_000, ' and ')}"]),
        "comparisons": function([f"return {' < '.join('a' * 9_500)}"]),
        "a deep sum": function([f"return {'+'.join('a' * 900)}"]),
        "a deep attribute": function([f"return a{'.b' * 900}"]),
        "a long try": function(["try:", *["    a += 1"] * 3_000, "except E: pass", "return a"]),
        "nested branches": function(
            [*(" " * n + "if a:" for n in range(80)), *[" " * 80 + "a += 1"] * 320]
        ),
        "parameters": function(
            ["return 1"], "Do it.", f"def f({_list(lambda n: f'a{n}: int', 3_100)}) -> int:\n"
        ),
        "a long union": function(
            ["return 1"], head=f"def f(a: {' | '.join(['int', 'str'] * 2_700)}) -> int:\n"
        ),
        "a long literal": function(
            ["return 1"], head=f"def f(a: Literal[{_list(str, 6_000)}]) -> int:\n"
        ),
        "helpers": "".join(f"def h{n}(x): return h{n + 1}(x)\n" for n in range(1_050))
        + function(["return h0(a)"]),
        "asserts": function(["return a"])
        + "".join(f"assert f({n}) == {n}\n" for n in range(1_700)),
        "prints": function(["return a"]) + "".join(f"print(f({n}))\n" for n in range(2_100)),
        "decorators": "@d\n" * 12_500 + function(["return a"]),
        "comments": function(["# x"] * 4_600 + ["return a"]),
        "addresses": function(
            [f"self.fetch('http://{'a.' * 19_000}')", "return a"],
            head="def f(self, a: int) -> int:\n",
        ),
        "described parameters": function(
            ["return a"],
            "Do it.\n\n    Args:\n" + _list(lambda n: f"        a{n}: It.", 1_800, "\n"),
        ),
        "examples": function(
            ["return a"], f"Do it.\n\n{_list(lambda n: f'    >>> f({n})', 2_000, chr(10))}"
        ),
        "examples with results": function(
            ["return a"], "Do it.\n\n" + _list(lambda n: f"    >>> f({n})\n    {n}", 1_400, "\n")
        ),
        **{f"docstring of {part!a}": _documented(part) for part in _DOCUMENTED},
        **{f"only {part!a}": part * (SIZE // len(part)) for part in _ALONE},
    }


_DOCUMENTED: Final = (
    " ", "\n", ":", ":param ", ":param\t", "A\n    ---\n    ", "a is a b ", "`a` and ", "a. ", "(",
    "\\\\n", "f(1) -> ", "`", ">>> ", ">>> \n    ", "list of ", "a:\n    ", "@param ", "- a ", "\t",
    "the number of a ", "Example:\n    ", "f(1) == ", ":return:", "Args:\n    ", "\u3000",
)  # fmt: skip
_ALONE: Final = (
    "```python\n", ">>> x\n", "x ", "(", "'", '"""\n', "\\\n", "\t", "a = 1\r", "def f(", "@", "~~~\n",
    "#", "... \n", "\u2028", "lambda:", "not ", "[a for a in ", "if a:\n ", "f'{", "a" * 1_000 + "\n",
)  # fmt: skip
