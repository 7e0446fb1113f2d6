"""Records and traces as text for a model: what was seen, once, and what became different."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from sandbox.lines import bare_lines

from ..registry.snapshot import Snapshot
from ..untrusted import block, shorten
from .claims import Line, Record
from .stop import At

MOST_CHARS: Final = 4_000
Pairs = Sequence[tuple[str, str]]


def records(found: Sequence[Record], passed: int, snapshot: Snapshot) -> str:
    """What breakpoints saw in a call; empty where none was passed."""
    if not found:
        return ""
    lines: list[str] = []
    before: dict[tuple[str, int], dict[str, str]] = {}
    for one in found:
        place = one.at.path, one.at.line
        if place not in before:
            lines.append(f"{_where(one.at)}: {_source(one.at, snapshot).strip()}")
        known = before.setdefault(place, {})
        seen = [(name, text) for name, text in (*one.shown, *one.locals) if known.get(name) != text]
        known |= dict(seen)
        lines.append(f"  hit {one.hits}: {_pairs(seen) or 'nothing is different'}")
    lines += [f"{passed} more hits are not shown."] if passed else []
    return f"Breakpoints were passed and recorded:\n{block(chr(10).join(lines), MOST_CHARS)}"


def trace(found: Sequence[Line], snapshot: Snapshot, *, is_cut: bool = False, is_whole: bool = True) -> str:
    """The lines that ran, in the order in which they first did, with the locals that they changed.

    `is_whole` is false where the call was ended from outside: what it did last is not known then.
    """
    if not found:
        return "No line of it ran." if is_whole else "It was ended before it told which lines ran."
    rows: list[str] = []
    where = ("", "")
    for one in found:
        if (one.at.path, one.at.function) != where:
            where = one.at.path, one.at.function
            rows.append(f"{one.at.path} in {one.at.function}:")
        rows.append(_line(one, snapshot))
    rows += ["… and more lines."] if is_cut else []
    rows += [] if is_whole else ["The call was ended about here; what it did last may be missing."]
    return block("\n".join(rows), MOST_CHARS * 2)


def _line(one: Line, snapshot: Snapshot) -> str:
    times = f" ×{one.count}" if one.count > 1 else ""
    text = f"{one.at.line:4}{times:6} {_source(one.at, snapshot)}"
    if not one.first:
        return text
    if one.first == one.last or one.count == 1:
        return f"{text}\n             {_pairs(one.first)}"
    return f"{text}\n             first {_pairs(one.first)}\n             last  {_pairs(one.last)}"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} = {shorten(text, 200)}" for name, text in pairs).replace("\n", "\\n")


def _where(at: At) -> str:
    return f"{at.path}:{at.line} in {at.function}"


def _source(at: At, snapshot: Snapshot) -> str:
    text = next((one.text for one in snapshot.modules.values() if one.path == at.path), "")
    lines = bare_lines(text)
    if not 0 < at.line <= len(lines):
        return ""
    return lines[at.line - 1].removeprefix(_indentation(at, lines)).rstrip()[:160]


def _indentation(at: At, lines: Sequence[str]) -> str:
    """That of the function itself: what stands deeper in it does so here."""
    name = re.escape(at.function.rpartition(".")[2])
    begins = (re.match(rf"(\s*)(?:async\s+)?def\s+{name}\b", text) for text in reversed(lines[: at.line]))
    return next((found[1] for found in begins if found), "")
