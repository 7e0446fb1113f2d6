r"""The lines of a text as Python's parser counts them: only \n, \r\n and \r end a line.

All code that shows, compares or numbers lines uses this, here and in `agent_core`. `str.splitlines` also splits at form
feeds, U+2028 and others, so it would show the rest of a comment as if it were code.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import islice

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_END = re.compile(r"\r\n?")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, each with its end."""
    return _LINE.findall(text)


@lru_cache(maxsize=8)
def kept_lines(text: str) -> tuple[str, ...]:
    """Return the same lines, remembered: for what looks at one function of a module after the other."""
    return tuple(_LINE.findall(text))


def bare_lines(text: str) -> list[str]:
    """Return the lines of a text without their ends."""
    lines = _END.sub("\n", text).split("\n")
    return lines if lines[-1] else lines[:-1]


def first_lines(text: str, count: int) -> list[str]:
    """Return the first lines of a text without their ends, without scanning the rest."""
    return [match[0].rstrip("\r\n") for match in islice(_LINE.finditer(text), count)]


def reader_of(text: str) -> Callable[[], str]:
    r"""Return a `readline` for `tokenize`: the next line, ended by \n."""
    return iter(lines_of(_END.sub("\n", text))).__next__


def place_of(text: str, at: int) -> tuple[int, int]:
    """Return the line and the column, both from 1, of the character at an index."""
    before = lines_of(text[:at] + "x")
    return len(before), len(before[-1])
