"""Sources as documents and as lines: the result of each that was added, and those that an agent has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent_core.base.clock import shown_time

from ..progress import CELLS, StatusLine
from ..spans import Line, columns, line

if TYPE_CHECKING:
    from agent_core.memory.source_catalog import SourceReport
    from agent_core.storage import DocumentRow

_FILES = {"added": "added", "replaced": "replaced", "resumed": "resumed", "there": "there already"}
_NAMED = 5
Json = dict[str, Any]  # Any: JSON


class SourceProgressBar:
    """A progress bar for storing the passages of a source; shown on a terminal only."""

    def __init__(self) -> None:
        self._line = StatusLine()

    def __enter__(self) -> "SourceProgressBar":
        self._line.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._line.__exit__(*error)

    def hear(self, done: int, total: int, name: str) -> None:
        """Take the progress that `Sources.add` reports."""
        if self._line.shown:
            filled = round(done / total * CELLS) if total else 0
            bar = "█" * filled + "░" * (CELLS - filled)
            self._line.show(f"{bar} {done:,} of {total:,} passages · {name}")


def report_lines(reports: Sequence["SourceReport"]) -> list[Line]:
    """Return the result for each source as a line; that of a folder is one line."""
    if len(reports) > 1 and reports[0].folder:
        return [_folder_line(reports)]
    return [
        line(
            ("bad", "✗ ") if report.outcome == "refused" else ("ok", "✓ "),
            ("name", report.name),
            str(report)[len(report.name) :],
        )
        for report in reports
    ]


def _folder_line(reports: Sequence["SourceReport"]) -> Line:
    folder, files = reports[0].folder, Counter(str(report.outcome) for report in reports)
    parts = [f"{files[outcome]:,} {words}" for outcome, words in _FILES.items() if files[outcome]]
    passages = sum(report.passages for report in reports if report.outcome != "there")
    refused = [report.name.removeprefix(f"{folder.rstrip('/')}/") for report in reports if report.outcome == "refused"]
    names = ", ".join(refused[:_NAMED]) + (", …" if len(refused) > _NAMED else "")
    left_out = f"; left out {len(refused):,} without text to read: {names}" if refused else ""
    many = f"{passages:,} passage{'s' * (passages != 1)}"
    told = f": {len(reports):,} files, {', '.join(parts) or 'none added'}; {many}{left_out}."
    is_any = len(refused) < len(reports)
    return line(("ok", "✓ ") if is_any else ("bad", "✗ "), ("name", folder), told)


def report_json(report: "SourceReport") -> Json:
    """Return the same as a document."""
    return asdict(report)


def source_json(row: "DocumentRow") -> Json:
    """Return a source as a document, with the stored `passages` and their `total`."""
    facts: Json = {"name": row.name, "kind": row.kind, "hash": row.hash, "at": row.at}
    return {**facts, "passages": row.done, "total": row.total, "complete": row.complete}


def source_lines(rows: Sequence["DocumentRow"]) -> list[Line]:
    """Return the sources as a table."""
    return columns([_row(row) for row in rows], ["name", "", "dim", "dim", "dim"]) if rows else []


def _row(row: "DocumentRow") -> tuple[str, ...]:
    at = shown_time(row.at)
    many = f"{row.done:,} passage{'s' * (row.done != 1)}"
    if not row.complete:
        many = f"{row.done:,} of {row.total:,} passages; add it again to continue"
    return row.name, row.kind, row.hash[:8], at, many
