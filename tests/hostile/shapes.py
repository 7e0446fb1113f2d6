"""Python in thirty shapes, each as long as its entry takes: as a candidate `f`, as a program, or as a saved file."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Final, Literal, TypeAlias

from tests.kit.desk import VOWELS

Entry: TypeAlias = Literal["candidate", "program", "file"]
_DOC: Final = '    """Do it.\n\n    Args:\n        a: It.\n\n    >>> f(1)\n    3\n    >>> f(-2)\n    -3\n    """\n'
_HEAD: Final = f"def f(a: int) -> int:\n{_DOC}"
_ROOM: Final = 400  # bytes for the function around the shape
PLAIN: Final[Mapping[Entry, str]] = {
    "candidate": VOWELS,
    "program": "sum(range(9))",
    "file": VOWELS,
}
Shape: TypeAlias = Callable[[Entry, int], str]


def _inside(text: str, entry: Entry) -> str:
    """Return statements as the body of `f`, or as they are."""
    if entry == "program":
        return f"a = 1\n{text}\n"
    body = "".join(f"        {line}\n" for line in text.split("\n"))
    return f"{_HEAD}    if a == 77:\n{body}    return a * 2 + 1\n"


def _lines(line: Callable[[int], str], *, end: str = "") -> Shape:
    """Return the shape of as many lines as fit."""

    def text(entry: Entry, size: int) -> str:
        found, length = list[str](), 0
        for number in count():
            found.append(line(number))
            length += len(found[-1].encode()) + 1 + 8 * (1 + found[-1].count("\n"))
            if length > size - _ROOM:
                return _inside("\n".join(found[:-1] + [end] * bool(end)), entry)
        raise AssertionError

    return text


def _chain(
    part: Callable[[int], str],
    between: str,
    *,
    head: str = "b = ",
    end: str = "",
    most: int = 1 << 30,
) -> Shape:
    """Return the shape of one statement of as many parts as fit."""

    def text(entry: Entry, size: int) -> str:
        parts, length = list[str](), len(head) + len(end)
        for number in range(most):
            parts.append(part(number))
            length += len((parts[-1] + between).encode())
            if length > size - _ROOM:
                parts.pop()
                break
        return _inside(head + between.join(parts) + end, entry)

    return text


def _nested(opened: str, inner: str, closed: str, depth: int, *, head: str = "b = ") -> Shape:
    """Return the shape of an expression in itself, so often."""
    return lambda entry, size: _inside(head + opened * depth + inner + closed * depth, entry)


def _blocks(line: str, depth: int) -> Shape:
    """Return the shape of a block in a block, so often, and as many lines in the last one as fit."""

    def text(entry: Entry, size: int) -> str:
        rows = [" " * at + line for at in range(depth)]
        left = size - _ROOM - sum(len(row) + 9 for row in rows)
        return _inside(
            "\n".join([*rows, *[" " * depth + "a += 1"] * max(1, left // (depth + 15))]), entry
        )

    return text


def _top(line: Callable[[int], str]) -> Shape:
    """Return the shape of as many statements at the top as fit, before `f`."""

    def text(entry: Entry, size: int) -> str:
        found, length = list[str](), 0
        for number in count():
            found.append(line(number))
            length += len(found[-1].encode()) + 1
            if length > size - _ROOM:
                top = "\n".join(found[:-1]) + "\n"
                return top if entry == "program" else f"{top}{_HEAD}    return a * 2 + 1\n"
        raise AssertionError

    return text


def _headed(head: Callable[[int], str]) -> Shape:
    """Return the shape of a `def` with this many of something, as fits."""

    def text(entry: Entry, size: int) -> str:
        most = next(number for number in count(1, 50) if len(head(number)) > size - _ROOM) - 50
        return f"{head(most)}{_DOC}    return a * 2 + 1\n"

    return text


def _documented(lines: Callable[[int], str]) -> Shape:
    def text(entry: Entry, size: int) -> str:
        rows, length = list[str](), 0
        for number in count():
            rows.append("    " + lines(number))
            length += len(rows[-1]) + 1
            if length > size - _ROOM:
                return (
                    _HEAD.replace('-3\n    """', "-3\n" + "\n".join(rows[:-1]) + '\n    """')
                    + "    return a * 2 + 1\n"
                )
        raise AssertionError

    return text


SHAPES: Final[Mapping[str, Shape]] = {
    "constants": _lines(lambda n: f"b = {n}"),
    "constants on one line": _chain(lambda n: f"b = {n}", "; ", head=""),
    "names on one line": _chain(lambda n: "a", ";", head=""),
    "assignments at the top": _top(lambda n: f"B{n} = {n}"),
    "one line at the top": _top(lambda n: "b=1;" * 12_000 if n == 0 else f"B{n} = 1"),
    "a tuple": _chain(str, ","),
    "strings in a list": _chain(lambda n: f"'{n}'", ",", head="b = [", end="]"),
    "a sum of 190": _chain(lambda n: "a", " + ", most=190),
    "a sum of 100 in lists": _chain(
        lambda n: "a", " + ", head="b = " + "[" * 40, end="]" * 40, most=100
    ),
    "a sum of 400": _chain(lambda n: "a", " + ", most=400),
    "a sum of 5000": _chain(lambda n: "a", " + ", most=5_000),
    "a sum of all": _chain(lambda n: "a", "+"),
    "conditions": _chain(lambda n: f"a > {n}", " and "),
    "comparisons": _chain(lambda n: "a", " < "),
    "parentheses": _nested("(", "a", ")", 190),
    "lists": _nested("[", "a", "]", 95),
    "comprehensions": _nested("[", "a", " for a in a]", 150),
    "ninety comprehensions": _nested("[", "a", " for a in a]", 90),
    "generators": _nested("(", "a", " for a in a)", 95),
    "lambdas": _nested("lambda:", "a", "", 2_000),
    "lambdas in calls": _nested("(lambda: ", "a", ")()", 90),
    "minus signs": _nested("-", "a", "", 20_000),
    "nots": _nested("not ", "a", "", 900),
    "170 conditionals": _nested("a if a else ", "a", "", 170),
    "conditionals": _nested("a if a else ", "a", "", 900),
    "calls of calls": _chain(lambda n: "()", "", head="b = a"),
    "900 calls of calls": _chain(lambda n: "()", "", head="b = a", most=900),
    "attributes": _chain(lambda n: ".b", "", head="b = a", most=900),
    "subscripts": _chain(lambda n: "[0]", "", head="b = a", most=900),
    "calls in calls": _nested("f(", "a", ")", 95),
    "dictionaries": _nested("{1:", "a", "}", 95),
    "f-strings": _lines(lambda n: f"b = f'{{a}}{{a!r:>{n}}}{{a + {n}}}'"),
    "nested f-strings": _chain(lambda n: "f'{a}'", " ", head="b = "),
    "one f-string": _chain(lambda n: "{a}", "", head="b = f'", end="'"),
    "walruses": _nested("(b := ", "a", ")", 95),
    "stars": _chain(lambda n: "*a", ",", head="b = [", end="]"),
    "awaits": _nested("await ", "a", "", 900),
    "ifs": _blocks("if a:", 90),
    "fors": _blocks("for a in a:", 18),
    "withs": _blocks("with a:", 90),
    "tries": _lines(lambda n: f"try:\n    a = {n}\nexcept E{n}:\n    a = 1"),
    "elifs": _lines(lambda n: f"{'el' if n else ''}if a == {n}:\n    a = {n}"),
    "170 elifs": lambda entry, size: _inside(
        "\n".join(f"{'el' if n else ''}if a == {n}:\n    a = {n}" for n in range(170)), entry
    ),
    "cases": lambda entry, size: _lines(
        lambda n: f"    case {n}:\n        a = {n}" if n else "match a:"
    )(entry, size),
    "a long pattern": _chain(str, " | ", head="match a:\n    case ", end=":\n        a = 1"),
    "parameters": _headed(
        lambda n: f"def f({', '.join(f'a{m}: int' for m in range(n))}) -> int:\n"
    ),
    "parameters with values": _headed(
        lambda n: f"def f({', '.join(f'a{m}: int = {m}' for m in range(n))}) -> int:\n"
    ),
    "a union": _headed(lambda n: f"def f(a: {' | '.join(['int', 'str'] * n)}) -> int:\n"),
    "a literal type": _headed(
        lambda n: f"def f(a: Literal[{', '.join(map(str, range(n)))}]) -> int:\n"
    ),
    "decorators": _headed(lambda n: "@d\n" * n + "def f(a: int) -> int:\n"),
    "returns": _lines(lambda n: f"if a == {n}: return {n}"),
    "inner functions": _lines(lambda n: f"def g{n}(x): return x"),
    "inner classes": _lines(lambda n: f"class G{n}: pass"),
    "functions": _top(lambda n: f"def g{n}(a: int) -> int:\n    return a"),
    "documented functions": _top(
        lambda n: f'def g{n}(a: int) -> int:\n    """Do {n}."""\n    return a + {n}'
    ),
    "helpers": _top(lambda n: f"def _g{n}(a): return _g{n + 1}(a)"),
    "helpers on one line": _top(
        lambda n: (
            "".join(f"_g{m} = lambda: _g{m + 1}; " for m in range(1_500)) if n == 0 else f"b{n} = 1"
        )
    ),
    "classes": _top(lambda n: f"class G{n}: pass"),
    "imports": _top(lambda n: f"import m{n}"),
    "a dotted import": _chain(lambda n: "a", ".", head="import "),
    "a long import": lambda entry, size: _inside(
        f"from functions.{'a' * (size // 2)} import {', '.join(f'b{n}' for n in range(size // 16))}",
        entry,
    ),
    "one import": _chain(lambda n: f"m{n}", ", ", head="from os import "),
    "imports on one line": _chain(lambda n: f"import m{n}", "; ", head=""),
    "globals": _chain(lambda n: f"x{n}", ", ", head="global "),
    "global statements": _lines(lambda n: f"global x{n}"),
    "targets": _chain(lambda n: f"x{n}", " = ", head="", end=" = a"),
    "deletions": _chain(lambda n: f"x{n}", ", ", head="del "),
    "a string": _chain(lambda n: "abc def ", "", head="b = '", end="'"),
    "joined strings": _chain(lambda n: "'a'", " "),
    "escapes": _chain(lambda n: "\\\\d", "", head="b = '", end="'"),
    "a number": _chain(lambda n: "1", "", most=4_200),
    "a long number": _chain(lambda n: "1", ""),
    "a hexadecimal number": _chain(lambda n: "f", "", head="b = 0x"),
    "numbers": _chain(lambda n: "9" * 4_000, ","),
    "unicode names": _lines(lambda n: f"ä{n} = {n}"),
    "unnormalized names": _lines(lambda n: f"ﬁ{n} = {n}"),
    "returns of carriages": _lines(lambda n: "b = 1\r"),
    "form feeds": _lines(lambda n: "\x0cb = 1"),
    "comments": _lines(lambda n: "# a"),
    "type comments": _lines(lambda n: f"b = {n}  # type: int"),
    "blank lines": _lines(lambda n: ""),
    "backslashes": _chain(lambda n: "1", " + \\\n    "),
    "examples": _documented(lambda n: f">>> f({n})\n    {n}"),
    "long examples": _documented(lambda n: f">>> f({'+'.join('1' * 300)})\n    300"),
    "markers": _documented(lambda n: ">>> "),
    "calls of f": _lines(lambda n: f"f({n})"),
    "calls of many": _lines(lambda n: f"g{n}({n})"),
    "fences": lambda entry, size: "```python\n" * (size // 10),
    "semicolons alone": lambda entry, size: "a;" * (size // 2 - 200),
    "open brackets": lambda entry, size: "(" * (size - 10),
    "numbers that collide": _chain(lambda n: str(n * (2**61 - 1)), ",", head="b = {", end="}"),
}
"""Shapes by name."""
