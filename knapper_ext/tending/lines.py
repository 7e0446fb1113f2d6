"""What a person is shown of an audit, and of what tending did or proposes."""

from typing import TYPE_CHECKING

from agent_core.base.untrusted import one_line
from agent_core.views.styled_lines import Line, Span, columns, counted, indented, line
from agent_core.views.verdicts import SLASH
from sandbox.wire.lines import bare_lines

if TYPE_CHECKING:
    from .audit import AuditReport
    from .tending import TendingReport, TendingStep, UndoneStep

_MAX_FINDINGS = 10  # shown of one kind
_DONE = {
    "merge": "now replaces",
    "mend": "was fixed",
    "archive": "was archived: search finds it, and it can be called",
    "generalize": "was written, and replaces",
    "keep": "was made from a program",
    "reword": "was reworded",
}


def audit_lines(report: "AuditReport", typed: str) -> list[Line]:
    """Return an audit report with the first few findings of each kind."""
    mark: Span = ("ok", "✓ ") if not report.findings else ("warn", "~ ")
    lines = [
        line(
            mark, ("strong", f"{report.score} of 100"), f": {counted(report.functions, 'function')}"
        )
    ]
    rows = [
        (
            part.code,
            f"{part.points:g} of {part.most} points",
            counted(part.functions, "function") if part.functions else "",
        )
        for part in report.parts
    ]
    lines += indented(columns(rows, ("name", "", "dim")))
    for part in report.parts:
        findings = [finding for finding in report.findings if finding.problem.code == part.code]
        for finding in findings[:_MAX_FINDINGS]:
            problem = finding.problem
            place: Span = ("dim", f" {problem.where} · {problem.code}")
            lines.append(
                line(
                    ("warn", "~ "),
                    ("name", finding.function),
                    place,
                    f": {one_line(problem.message)}",
                )
            )
            way = line(("dim", f"{finding.proposal}: "), one_line(problem.fix or ""))
            command = f"{SLASH}{' '.join(finding.steps)}" if typed == SLASH else finding.command
            if (
                typed == SLASH and finding.steps[0] == "add-example"
            ):  # the prompt has a different syntax for examples
                _, name, _, call, _, result = finding.steps
                command = f"/example {name} {call} = {result}"
            lines += indented([way, line(("strong", command))])
        if len(findings) > _MAX_FINDINGS:
            lines.append(
                line(
                    (
                        "dim",
                        f"  and {len(findings) - _MAX_FINDINGS} more {part.code}; --json has all",
                    )
                )
            )
    return lines


def tending_lines(report: "TendingReport", typed: str) -> list[Line]:
    """Return the steps that were done, then the proposed and the skipped ones, each with its reason."""
    lines: list[Line] = []
    for step in sorted(report.steps, key=lambda step: (bool(step.why_not), not step.done)):
        lines += _step_lines(step)
    done = [step for step in report.steps if step.done]
    open_steps = [step for step in report.steps if not (step.done or step.why_not)]
    lines.append(
        line(("dim", f"{len(done)} done, {len(open_steps)} proposed, {report.tokens:,} tokens"))
    )
    if report.stopped:
        lines.append(line(("warn", f"Stopped before everything was checked: {report.stopped}.")))
    command = f"{typed} tend".lstrip()
    if done:
        lines.append(line(("strong", f"To undo all of it: {command} --undo")))
    elif open_steps:
        lines.append(line(("strong", f"To apply it: {command} --apply")))
    return lines


def _step_lines(step: "TendingStep") -> list[Line]:
    mark: Span = ("warn", "~ ")
    phrase: str = step.kind
    if step.done:
        mark = ("ok", "✓ ")
        phrase = _DONE[step.kind]
    elif step.why_not:
        mark = ("dim", "· ")
    if step.why_not:
        phrase = f"left as it is ({step.kind})"
    name = step.function
    about = ""
    if step.done and step.kind == "merge":
        name = step.others[0]
        about = f" `{step.function}`"
    elif step.kind == "generalize" and not step.why_not:
        about = f" {' and '.join(f'`{other}`' for other in step.others)}"
    lines = [line(mark, ("name", name), f" {phrase}{about}: {one_line(step.reason)}")]
    facts = [step.why_not] if step.why_not else [*step.evidence]
    lines += indented([line(("dim", one_line(fact, 400))) for fact in facts])
    lines += indented([line(text) for text in bare_lines(step.diff)]) if step.diff else []
    return lines


def undone_lines(steps: "list[UndoneStep]") -> list[Line]:
    """Return the steps that were undone, and those that were not."""
    if not steps:
        return [line(("dim", "There is nothing to undo."))]
    return [
        line(("ok", "✓ "), ("name", step.function), " was restored")
        if step.undone
        else line(
            ("bad", "✗ "),
            ("name", step.function),
            f" was not undone: {one_line(step.why_not, 300)}",
        )
        for step in steps
    ]
