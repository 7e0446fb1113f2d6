"""Versions, diffs, blame and rejected candidates of functions as lines."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from agent_core.base.untrusted import one_line
from sandbox.wire.lines import bare_lines

from ..columns import columns
from ..spans import Line, Role, line
from .verdicts import problem_lines

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.service.history import BlamedLine, HistoryEntry, Version, VersionDiff
    from agent_core.functions.service.judgment import PendingCandidate

_MARKS: dict[str, Role] = {"+": "ok", "-": "bad", "@": "dim"}


def history_lines(entries: Iterable["HistoryEntry"]) -> list[Line]:
    """Return the versions, newest first: number, hash, when, who, how much changed, standing, and why."""
    newest_first = [*entries][::-1]
    shown = columns([_row(entry) for entry in newest_first], ("name", "", "dim", "", "", "", ""))
    return [part for line_, entry in zip(shown, newest_first, strict=True) for part in (line_, *_weak(entry))]


def _row(entry: "HistoryEntry") -> list[str]:
    version = entry.version
    return [
        f"{version.number}{' *' if entry.is_current else ''}",
        version.short or version.change_kind,
        version.when,
        _who(version),
        f"+{version.added} -{version.removed}",
        entry.standing,
        version.row.reason,
    ]


def _weak(entry: "HistoryEntry") -> list[Line]:
    notes = [f"{call}: its result was confirmed, not predicted" for call in entry.confirmed]
    return [line("     ", ("warn", "~ "), ("dim", one_line(text, 400))) for text in (*notes, *entry.dropped)]


def diff_lines(version_diff: "VersionDiff") -> list[Line]:
    """Return a diff in the usual colors."""
    lines = bare_lines(version_diff.diff)
    if not lines:
        return [line(("dim", f"Version {version_diff.from_.number} is the current one: nothing differs."))]
    return coloured(lines)


def coloured(lines: Iterable[str]) -> list[Line]:
    """Return the lines of a unified diff in the usual colors."""
    return [line(("strong" if text.startswith(("+++", "---")) else _MARKS.get(text[:1], ""), text)) for text in lines]


def blame_lines(lines: Sequence["BlamedLine"]) -> list[Line]:
    """Return each source line after the version that introduced it: who, when, why."""
    heads = columns([_blame(row) for row in lines], ("name", "dim", "", "dim", "dim", "dim"), gap=1)
    return [(*head, ("", f" {row.text}")) for head, row in zip(heads, lines, strict=True)]


def _blame(blamed: "BlamedLine") -> list[str]:
    version, reason = blamed.version, one_line(blamed.version.row.reason, 30)
    return [str(version.number), version.short, _who(version), version.when, reason, f"{blamed.line}"]


def pending_lines(candidates: Mapping[str, "PendingCandidate"]) -> list[Line]:
    """Return every rejected candidate, with the problems that keep it out."""
    lines: list[Line] = []
    for name, candidate in candidates.items():
        lines.append(line(("bad", "✗ "), ("name", name), f" would be added to {candidate.module}; it is rejected"))
        lines += [(("", "  "), *spans) for spans in problem_lines(candidate.verdict.refusals)]
        lines += [(("", "    "), *spans) for spans in coloured(bare_lines(candidate.conflict or ""))]
    return lines


def pending_hint(candidates: Mapping[str, "PendingCandidate"], command: str, drop: str) -> str:
    """Return the next command to type after an edit conflict, or if only results of examples keep a candidate out."""
    met = [name for name, candidate in candidates.items() if candidate.conflict]
    if met:
        return f"To use the kept version: {command} {met[0]}; to discard it: {drop.replace('NAME', met[0])}"
    asked = [name for name, candidate in candidates.items() if candidate.verdict.challenges]
    if asked:
        return f"Say what the calls must return: {command} {asked[0]}, with each result"
    ready = [name for name, candidate in candidates.items() if candidate.verdict.can_be_confirmed]
    return f"If the returned results are right: {command} {ready[0]}" if ready else ""


def _who(version: "Version") -> str:
    return f"{version.who} {version.row.turn[-8:]}".rstrip()
