"""A breakpoint as the user types it: `[FUNCTION:]LINE [if CONDITION] [after N] [every N] [once]`."""

import ast
import re
from typing import Final

from agent_core.base.errors import UsageError
from .breakpoints import Breakpoint

USAGE: Final = "[if CONDITION] [after N] [every N] [once]"
_COUNT = re.compile(r"(.*?)\b(?:(after|every) +(\d{1,9})|(once))\s*", re.DOTALL)
_IF = re.compile(r"\s+if\b\s*")


def typed_breakpoint(text: str, *, once: bool = False) -> tuple[Breakpoint, int]:
    """Return the breakpoint and its line; line 0 is the function's first, an empty function the stopped one.

    Raises:
        UsageError: a word of it is not understood.
    """
    head, has_if, condition = _halves(text.strip())
    place, _, words = head.partition(" ")
    remainder, before = _counts(words.strip())
    condition, behind = _counts(condition.strip(), is_condition=True)
    if remainder or (has_if and not condition):
        message = f"`{remainder[:40]}` is nothing that a breakpoint knows." if remainder else "`if` needs a condition."
        raise UsageError(message, fix=f"Type it as FUNCTION:LINE {USAGE}.")
    counts = before | behind
    name, line = _place(place)
    return Breakpoint(
        0, name, "", 0, condition, (), counts.get("after", 0), counts.get("every", 1), once or "once" in counts
    ), line


def _halves(text: str) -> tuple[str, bool, str]:
    """Return the text before `if`, or before a comma as in `pdb`, whether there is one, and the condition."""
    parts = _IF.split(text, maxsplit=1)
    if len(parts) == 1:
        head, comma, condition = text.partition(",")
        return head.strip(), bool(comma), condition
    return parts[0].rstrip(", "), True, parts[1]


def _counts(text: str, *, is_condition: bool = False) -> tuple[str, dict[str, int]]:
    """Return the text before the counts at its end, and the counts; they never split a condition."""
    counts: dict[str, int] = {}
    best = text, counts
    while (match := _COUNT.fullmatch(text)) is not None:
        text, counts = match[1].strip(), {match[2] or "once": int(match[3] or 1), **counts}
        if not is_condition or _is_expression(text):
            best = text, counts
    return best


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _place(place: str) -> tuple[str, int]:
    name, colon, line = place.rpartition(":")
    if not colon and not line.isdecimal():
        return line, 0
    if not line.isdecimal():
        raise UsageError(f"{line!r} is no line.", fix=f"Type it as FUNCTION:LINE {USAGE}.")
    return name, int(line)
