"""What a person is shown of an import, and of an exported package."""

from typing import TYPE_CHECKING

from agent_core.functions.gate.verdict import UNPROVEN
from agent_core.views.styled_lines import Line, Role, Span, counted, indented, line
from agent_core.views.verdicts import coloured, problem_line, standing_words
from sandbox.wire.lines import bare_lines

if TYPE_CHECKING:  # for annotations
    from .export import ExportReport
    from .library import ImportedFunction, ImportReport

_MAX_CHANGES = 12  # lines shown of the differences in one file
_DRAFTS = UNPROVEN | {"stub-passes", "weak-examples"}
_MARKS: dict[str, tuple[Role, str]] = {
    "joined": ("ok", "✓ "),
    "fixed": ("ok", "✓ "),
    "skipped": ("dim", "· "),
    "refused": ("bad", "✗ "),
}


def function_lines(function: "ImportedFunction", *, is_tried: bool) -> list[Line]:
    """Return the result for one imported function, its fixes, and its problems with their fixes."""
    added = f" {'would be added' if is_tried else 'added'} to {function.module}{standing_words(function.standing)}"
    text = {
        "joined": added,
        "fixed": f"{added}, fixed",
        "skipped": " is not taken" if function.problems else f" is in {function.module} already",
        "refused": " refused",
    }[function.outcome]
    why = ", ".join(
        dict.fromkeys(problem.code for problem in function.problems if problem.code in _DRAFTS)
    )
    tail: Span = (
        "dim",
        f"  {function.from_}{f' · {why}' if why and function.standing == 'draft' else ''}",
    )
    return [
        line(_MARKS[function.outcome], ("name", function.name), text, tail),
        *indented(line(("warn", "~ "), ("dim", "fixed: "), fix.message) for fix in function.fixes),
        *indented(
            problem_line(problem)
            for problem in function.problems
            if problem.severity != "warns" or problem.code == "here-already"
        ),
    ]


def summary_lines(report: "ImportReport") -> list[Line]:
    """Return the skipped functions, the written modules, and the counts."""
    lines = [
        line(("dim", "· "), f"{file.where} passed over: {file.message}")
        if file.code == "passed-over"
        else line(("warn", "! "), f"{file.where} {file.code}: {file.message}")
        for file in report.files
    ]
    for module in report.modules:
        changes = [row for row in bare_lines(module.diff)[2:] if row[:1] in "+-"]
        count = max(sum(row[0] == mark for row in changes) for mark in "+-")
        differ = "1 line differs" if count == 1 else f"{count} lines differ"
        many = f"; {differ} from its author's" if changes else ""
        lines.append(
            line(
                ("name", module.path),
                f" {'written' if module.written else 'would be written'}{many}",
            )
        )
        lines += indented(coloured(changes[:_MAX_CHANGES]))
    if drafts := sum(function.standing == "draft" for function in report.functions):
        words = "a draft: its results are" if drafts == 1 else f"{drafts} drafts: their results are"
        lines.append(
            line(
                (
                    "dim",
                    f"{words} marked as unproven until examples are added, or enough calls return",
                )
            )
        )
    counts = report.summary
    shown = [
        f"{counts[outcome]} {outcome}" for outcome in ("skipped", "refused") if counts[outcome]
    ]
    if added := counts["joined"] + counts["fixed"]:
        fixed = f" ({counts['fixed']} of them fixed)" if counts["fixed"] else ""
        shown = [f"{added} {'would be added' if report.dry_run else 'added'}{fixed}", *shown]
    mark: Span = ("bad", "✗ ") if report.has_failed else ("ok", "✓ ")
    return [*lines, line(mark, f"{report.from_}: {', '.join(shown) or 'no function'}")]


def export_lines(report: "ExportReport") -> list[Line]:
    """Return lines about an exported package: its functions, and what could not be included."""
    lines = [line(("warn", "! "), f"{note.name}: {note.message}") for note in report.notes]
    summary = (
        f"{counted(len(report.functions), 'function')} in {report.folder}, package {report.package}"
    )
    return [*lines, line(("ok", "✓ "), summary)]
