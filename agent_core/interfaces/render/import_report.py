"""The results of an import or an export, as lines."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from ..spans import Line, Role, Span, indented, line
from .verdicts import problem_line

Document: TypeAlias = Mapping[str, Any]  # Any: JSON of the report

_MARKS: dict[str, tuple[Role, str]] = {
    "joined": ("ok", "✓ "),
    "fixed": ("ok", "✓ "),
    "skipped": ("dim", "· "),
    "refused": ("bad", "✗ "),
}


def function_lines(row: Document, *, is_tried: bool) -> list[Line]:
    """Return one function's result, its fixes, and its problems with their fixes."""
    outcome = row["outcome"]
    text = {
        "joined": f" {'could join' if is_tried else 'joins'} {row['module']} as {row['standing']}",
        "fixed": f" {'could join' if is_tried else 'joins'} {row['module']} as {row['standing']}, fixed",
        "skipped": f" is in {row['module']} already",
        "refused": " refused",
    }[outcome]
    tail: Span = ("dim", f"  {row['from']}")
    return [
        line(_MARKS[outcome], ("name", row["name"]), text, tail),
        *indented(line(("warn", "~ "), ("dim", "fixed: "), str(fix["message"])) for fix in row["fixes"]),
        *indented(problem_line(problem) for problem in row["problems"] if problem.get("severity") != "warns"),
    ]


def summary_lines(report: Document) -> list[Line]:
    """Return what was skipped, the modules that were written, and the counts."""
    lines = [
        line(("dim", "· "), f"{file['path']} passed over: {file['message']}")
        if file["code"] == "passed-over"
        else line(("warn", "! "), f"{file['path']} {file['code']}: {file['message']}")
        for file in report["files"]
    ]
    for module in report["modules"]:
        verb = "written" if module["written"] else "would be written"
        lines.append(line(("name", module["path"]), f" {verb}"))
    counts = report["summary"]
    shown = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "no function"
    mark: Span = ("bad", "✗ ") if counts["refused"] else ("ok", "✓ ")
    return [*lines, line(mark, f"{report['from']}: {shown}")]


def export_lines(report: Document) -> list[Line]:
    """Return the package, its functions, and what could not be included."""
    lines = [line(("warn", "! "), f"{note['name']}: {note['message']}") for note in report["notes"]]
    count = len(report["functions"])
    summary = f"{count} function{'' if count == 1 else 's'} in {report['folder']}, package {report['package']}"
    return [*lines, line(("ok", "✓ "), summary)]
