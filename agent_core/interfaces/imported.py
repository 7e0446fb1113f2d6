"""What an import or an export did, as lines."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from .spans import Line, Role, Span, indented, line
from .verdicts import problem_line

Document: TypeAlias = Mapping[str, Any]  # Any: JSON of the report

_MARKS: dict[str, tuple[Role, str]] = {
    "joined": ("ok", "✓ "),
    "mended": ("ok", "✓ "),
    "skipped": ("dim", "· "),
    "refused": ("bad", "✗ "),
}


def function_lines(row: Document, *, is_tried: bool) -> list[Line]:
    """One function: what became of it, its mends, its problems with their mends."""
    outcome = row["outcome"]
    said = {
        "joined": f" {'could join' if is_tried else 'joins'} {row['module']} as {row['standing']}",
        "mended": f" {'could join' if is_tried else 'joins'} {row['module']} as {row['standing']}, mended",
        "skipped": f" is in {row['module']} already",
        "refused": " refused",
    }[outcome]
    tail: Span = ("dim", f"  {row['from']}")
    return [
        line(_MARKS[outcome], ("name", row["name"]), said, tail),
        *indented(line(("warn", "~ "), ("dim", "mended: "), str(mend["message"])) for mend in row["mends"]),
        *indented(problem_line(problem) for problem in row["problems"] if problem.get("severity") != "warns"),
    ]


def summary_lines(report: Document) -> list[Line]:
    """What was passed over, the modules that were written, the counts."""
    lines = [
        line(("dim", "· "), f"{one['path']} passed over: {one['message']}")
        if one["code"] == "passed-over"
        else line(("warn", "! "), f"{one['path']} {one['code']}: {one['message']}")
        for one in report["files"]
    ]
    for module in report["modules"]:
        verb = "written" if module["written"] else "would be written"
        lines.append(line(("name", module["path"]), f" {verb}"))
    counts = report["summary"]
    shown = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "no function"
    mark: Span = ("bad", "✗ ") if counts["refused"] else ("ok", "✓ ")
    return [*lines, line(mark, f"{report['from']}: {shown}")]


def export_lines(report: Document) -> list[Line]:
    """The package, its functions, and what could not be taken along."""
    lines = [line(("warn", "! "), f"{one['name']}: {one['message']}") for one in report["notes"]]
    count = len(report["functions"])
    told = f"{count} function{'' if count == 1 else 's'} in {report['folder']}, package {report['package']}"
    return [*lines, line(("ok", "✓ "), told)]
