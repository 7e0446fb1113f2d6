"""The results of an import or an export, as lines."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agent_core.base.problem import Problem
from agent_core.functions.gate.rules import UNPROVEN
from sandbox.wire.lines import bare_lines

from ..spans import Line, Role, Span, indented, line
from .verdicts import problem_line, standing_words
from .versions import coloured

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.service.export import ExportReport
    from agent_core.functions.service.library import ImportedFunction, ImportReport

_SHOWN = 12  # lines of what differs in one file
_DRAFTS = UNPROVEN | {"stub-passes", "weak-examples"}
_MARKS: dict[str, tuple[Role, str]] = {
    "joined": ("ok", "✓ "),
    "fixed": ("ok", "✓ "),
    "skipped": ("dim", "· "),
    "refused": ("bad", "✗ "),
}


def function_lines(function: "ImportedFunction", *, is_tried: bool) -> list[Line]:
    """Return one function's result, its fixes, and its problems with their fixes."""
    added = f" {'would be added' if is_tried else 'added'} to {function.module}{standing_words(function.standing)}"
    text = {
        "joined": added,
        "fixed": f"{added}, fixed",
        "skipped": " is not taken" if function.problems else f" is in {function.module} already",
        "refused": " refused",
    }[function.outcome]
    why = ", ".join(dict.fromkeys(problem.code for problem in function.problems if problem.code in _DRAFTS))
    tail: Span = ("dim", f"  {function.from_}{f' · {why}' if why and function.standing == 'draft' else ''}")
    return [
        line(_MARKS[function.outcome], ("name", function.name), text, tail),
        *indented(line(("warn", "~ "), ("dim", "fixed: "), fix.message) for fix in function.fixes),
        *indented(problem_line(problem) for problem in function.problems if _is_shown(problem)),
    ]


def _is_shown(problem: Problem) -> bool:
    return problem.severity != "warns" or problem.code == "here-already"


def summary_lines(report: "ImportReport") -> list[Line]:
    """Return what was skipped, the modules that were written, and the counts."""
    lines = [
        line(("dim", "· "), f"{file.path} passed over: {file.message}")
        if file.code == "passed-over"
        else line(("warn", "! "), f"{file.path} {file.code}: {file.message}")
        for file in report.files
    ]
    for module in report.modules:
        changes = [row for row in bare_lines(module.diff)[2:] if row[:1] in "+-"]
        count = max(sum(row[0] == mark for row in changes) for mark in "+-")
        differ = "1 line differs" if count == 1 else f"{count} lines differ"
        many = f"; {differ} from its author's" if changes else ""
        lines.append(line(("name", module.path), f" {'written' if module.written else 'would be written'}{many}"))
        lines += indented(coloured(changes[:_SHOWN]))
    if drafts := sum(function.standing == "draft" for function in report.functions):
        words = "a draft: its results are" if drafts == 1 else f"{drafts} drafts: their results are"
        lines.append(line(("dim", f"{words} marked as unproven until examples are added, or enough calls return")))
    counts = report.summary
    shown = ", ".join(_counted(counts, is_tried=report.dry_run)) or "no function"
    mark: Span = ("bad", "✗ ") if report.has_failed else ("ok", "✓ ")
    return [*lines, line(mark, f"{report.from_}: {shown}")]


def _counted(counts: Mapping[str, int], *, is_tried: bool) -> Iterator[str]:
    """Yield how many functions were added, those that were fixed among them, skipped and refused."""
    if added := counts["joined"] + counts["fixed"]:
        fixed = f" ({counts['fixed']} of them fixed)" if counts["fixed"] else ""
        yield f"{added} {'would be added' if is_tried else 'added'}{fixed}"
    yield from (f"{counts[outcome]} {outcome}" for outcome in ("skipped", "refused") if counts[outcome])


def export_lines(report: "ExportReport") -> list[Line]:
    """Return the package, its functions, and what could not be included."""
    lines = [line(("warn", "! "), f"{note.name}: {note.message}") for note in report.notes]
    count = len(report.functions)
    summary = f"{count} function{'' if count == 1 else 's'} in {report.folder}, package {report.package}"
    return [*lines, line(("ok", "✓ "), summary)]
