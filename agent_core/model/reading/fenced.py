"""Calls in a code fence that ends the text."""

import re
from dataclasses import dataclass
from typing import Final

from .forms import MOST_PARTS, forms
from .found import ParsedCall, Shown
from .objects import read_objects
from .python import read_python

_OPEN: Final = re.compile(r"^[ \t]*```", re.MULTILINE)
_CLOSE: Final = re.compile(r"```[ \t]*$", re.MULTILINE)
_LANGUAGE: Final = re.compile(r"[ \t]*(\w*)[ \t]*\n?")


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code, and the language that it declares."""

    language: str
    text: str


def split_fenced(text: str) -> tuple[str, tuple[Fence, ...]] | None:
    """Return the lead-in and the fences, if nothing stands between or after them."""
    opening = _OPEN.search(text)
    fences: list[Fence] = []
    remaining = text[opening.start() :].strip() if opening else ""
    while remaining:
        closing = _CLOSE.search(remaining, 3)
        if closing is None or not remaining.startswith("```") or len(fences) == MOST_PARTS:
            return None
        head = _LANGUAGE.match(remaining, 3, closing.start())
        begins = head.end() if head else 3
        fences.append(Fence(head[1].lower() if head else "", remaining[begins : closing.start()]))
        remaining = remaining[closing.end() :].strip()
    return (text[: opening.start()], tuple(fences)) if opening and fences else None


def read_fence(fence: Fence, shown: Shown, *, alone: bool) -> tuple[ParsedCall, ...]:
    """Return the calls in a fence; Python after a lead-in is taken for an example."""
    if fence.language in forms().object_fences:
        calls = read_objects(fence.text, shown, marked=False)
        return calls or (read_python(fence.text, shown) if alone and not fence.language else ())
    return read_python(fence.text, shown) if alone and fence.language in forms().python_fences else ()
