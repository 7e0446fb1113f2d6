"""Calls in a code fence, which must end the text."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from .forms import forms
from .found import Found, Shown
from .objects import read_objects
from .python import read_python

_FENCES: Final = re.compile(r"^[ \t]*```[ \t]*(\w*)[ \t]*\n?(.*?)\n?[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code, and the language that it says to be in."""

    language: str
    text: str


def split_fenced(text: str) -> tuple[str, tuple[Fence, ...]] | None:
    """The lead-in, and the fences, if nothing stands between and behind them."""
    fences = list(_FENCES.finditer(text))
    if not fences:
        return None
    behind = [text[one.end() : other.start()] for one, other in pairwise(fences)]
    if "".join([*behind, text[fences[-1].end() :]]).strip():
        return None
    return text[: fences[0].start()], tuple(Fence(fence[1].lower(), fence[2]) for fence in fences)


def read_fence(fence: Fence, shown: Shown, *, alone: bool) -> tuple[Found, ...]:
    """The calls in a fence; Python behind a lead-in is taken for an example."""
    if fence.language in forms().object_fences:
        calls = read_objects(fence.text, shown, marked=False)
        return calls or (read_python(fence.text, shown) if alone and not fence.language else ())
    return read_python(fence.text, shown) if alone and fence.language in forms().python_fences else ()
