"""Sources as documents and as lines: what became of each that was added, and which an agent has."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from agent_core.clock import shown_time
from agent_core.memory.sources import Report
from agent_core.storage import DocumentRow

from .columns import columns
from .spans import Line, line
from .status_line import CELLS, StatusLine

Json = dict[str, Any]  # Any: JSON


class Bar:
    """How far the passages of a source are kept: a bar on a terminal, nothing elsewhere."""

    def __init__(self) -> None:
        self._line = StatusLine()

    def __enter__(self) -> "Bar":
        self._line.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._line.__exit__(*error)

    def hear(self, done: int, total: int, name: str) -> None:
        """What `Sources.add` tells."""
        if self._line.shown:
            filled = round(done / total * CELLS) if total else 0
            bar = "█" * filled + "░" * (CELLS - filled)
            self._line.show(f"{bar} {done:,} of {total:,} passages · {name}")


def report_lines(reports: Iterable[Report]) -> list[Line]:
    """What became of each source."""
    return [
        line(("bad", "✗ ") if one.outcome == "refused" else ("ok", "✓ "), ("name", one.name), str(one)[len(one.name) :])
        for one in reports
    ]


def report_json(report: Report) -> Json:
    """The same as a document."""
    return asdict(report)


def source_json(row: DocumentRow) -> Json:
    """A source as a document; `passages` are kept, of `total`."""
    facts: Json = {"name": row.name, "kind": row.kind, "hash": row.hash, "at": row.at}
    return {**facts, "passages": row.done, "total": row.total, "complete": row.complete}


def source_lines(rows: Sequence[DocumentRow]) -> list[Line]:
    """The sources as a table."""
    return columns([_row(row) for row in rows], ["name", "", "dim", "dim", "dim"]) if rows else []


def _row(row: DocumentRow) -> tuple[str, ...]:
    at = shown_time(row.at)
    many = f"{row.done:,} passage{'s' * (row.done != 1)}"
    if not row.complete:
        many = f"{row.done:,} of {row.total:,} passages; add it again to go on"
    return row.name, row.kind, row.hash[:8], at, many
