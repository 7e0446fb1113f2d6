"""The audit of a library as lines: the score with its parts, then each finding with its proposal and what to type."""

from typing import TYPE_CHECKING

from agent_core.base.untrusted import one_line

from ..columns import columns
from ..spans import Line, Span, indented, line
from .statistics import SLASH

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.service.audit import AuditFinding, AuditReport

_MOST = 10  # of one kind, for people


def audit_lines(report: "AuditReport", typed: str) -> list[Line]:
    """Return the report; of each kind the first few findings."""
    mark: Span = ("ok", "✓ ") if not report.findings else ("warn", "~ ")
    count = f"{report.functions} function{'' if report.functions == 1 else 's'}"
    lines = [line(mark, ("strong", f"{report.score} of 100"), f": {count}")]
    rows = [(part.code, f"{part.points:g} of {part.most}", _affected(part.functions)) for part in report.parts]
    lines += indented(columns(rows, ("name", "", "dim")))
    for part in report.parts:
        findings = [finding for finding in report.findings if finding.problem.code == part.code]
        lines += [row for finding in findings[:_MOST] for row in _finding(finding, typed)]
        if len(findings) > _MOST:
            lines.append(line(("dim", f"  and {len(findings) - _MOST} more {part.code}; --json has all")))
    return lines


def _affected(functions: int) -> str:
    return f"{functions} function{'' if functions == 1 else 's'}" if functions else ""


def _finding(finding: "AuditFinding", typed: str) -> list[Line]:
    problem = finding.problem
    head = line(
        ("warn", "~ "),
        ("name", finding.function),
        ("dim", f" {problem.where} · {problem.code}"),
        f": {one_line(problem.message)}",
    )
    way = line(("dim", f"{finding.proposal}: "), one_line(problem.fix or ""))
    return [head, *indented([way, line(("strong", _command(finding, typed)))])]


def _command(finding: "AuditFinding", typed: str) -> str:
    """Return the command as it is typed here; the prompt has a form of its own for an example."""
    verb, *words = finding.steps
    if typed == SLASH and verb == "add-example":
        name, _, call, _, result = words
        return f"/example {name} {call} = {result}"
    return f"{SLASH}{' '.join(finding.steps)}" if typed == SLASH else finding.command
