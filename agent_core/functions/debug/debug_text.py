"""Records and traces as text for a model: each value once, then only the changes."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from sandbox.wire.lines import bare_lines

from agent_core.registry.snapshot import Snapshot
from agent_core.base.untrusted import block, shorten
from .stop import BreakpointRecord, TraceLine
from .stop import At

MOST_CHARS: Final = 4_000
Pairs = Sequence[tuple[str, str]]


def records(entries: Sequence[BreakpointRecord], passed: int, snapshot: Snapshot) -> str:
    """Return what breakpoints saw in a call; empty if none was passed."""
    if not entries:
        return ""
    lines: list[str] = []
    before: dict[tuple[str, int], dict[str, str]] = {}
    for record in entries:
        place = record.at.path, record.at.line
        if place not in before:
            lines.append(f"{_where(record.at)}: {_source(record.at, snapshot).strip()}")
        last_values = before.setdefault(place, {})
        seen = [(name, text) for name, text in (*record.shown, *record.locals) if last_values.get(name) != text]
        last_values |= dict(seen)
        lines.append(f"  hit {record.hits}: {_pairs(seen) or 'nothing is different'}")
    lines += [f"{passed} more hits are not shown."] if passed else []
    return f"Breakpoints were passed and recorded:\n{block(chr(10).join(lines), MOST_CHARS)}"


def trace(lines: Sequence[TraceLine], snapshot: Snapshot, *, is_cut: bool = False, is_whole: bool = True) -> str:
    """Return the lines that ran, in the order of their first run, with the locals that they changed.

    `is_whole` is false where the call was ended from outside: what it did last is not known then.
    """
    if not lines:
        return "No line of it ran." if is_whole else "It was ended before it told which lines ran."
    rows: list[str] = []
    where = ("", "")
    for line in lines:
        if (line.at.path, line.at.function) != where:
            where = line.at.path, line.at.function
            rows.append(f"{line.at.path} in {line.at.function}:")
        rows.append(_line(line, snapshot))
    rows += ["… and more lines."] if is_cut else []
    rows += [] if is_whole else ["The call was ended about here; what it did last may be missing."]
    return block("\n".join(rows), MOST_CHARS * 2)


def _line(line: TraceLine, snapshot: Snapshot) -> str:
    times = f" ×{line.count}" if line.count > 1 else ""
    text = f"{line.at.line:4}{times:6} {_source(line.at, snapshot)}"
    if not line.first:
        return text
    if line.first == line.last or line.count == 1:
        return f"{text}\n             {_pairs(line.first)}"
    return f"{text}\n             first {_pairs(line.first)}\n             last  {_pairs(line.last)}"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} = {shorten(text, 200)}" for name, text in pairs).replace("\n", "\\n")


def _where(at: At) -> str:
    return f"{at.path}:{at.line} in {at.function}"


def _source(at: At, snapshot: Snapshot) -> str:
    text = next((module.text for module in snapshot.modules.values() if module.path == at.path), "")
    lines = bare_lines(text)
    if not 0 < at.line <= len(lines):
        return ""
    return lines[at.line - 1].removeprefix(_indentation(at, lines)).rstrip()[:160]


def _indentation(at: At, lines: Sequence[str]) -> str:
    """Return the indentation of the function itself: what is nested deeper in it stays indented."""
    name = re.escape(at.function.rpartition(".")[2])
    begins = (re.match(rf"(\s*)(?:async\s+)?def\s+{name}\b", text) for text in reversed(lines[: at.line]))
    return next((match[1] for match in begins if match), "")
