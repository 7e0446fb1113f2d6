"""The audit of a library as lines: the score with its parts, then each finding with its proposal and what to type."""

from typing import TYPE_CHECKING

from agent_core.base.untrusted import one_line
from sandbox.wire.lines import bare_lines

from ..columns import columns
from ..spans import Line, Span, indented, line
from .statistics import SLASH

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.service.audit import AuditFinding, AuditReport
    from agent_core.functions.service.tending import TendingReport, UndoneStep

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


_DONE = {
    "merge": "now stands for",
    "mend": "was mended",
    "archive": "was archived: search finds it, and it can be called",
}


def tending_lines(report: "TendingReport", typed: str) -> list[Line]:
    """Return what was done, then what is proposed and what was left, each with its reason."""
    lines: list[Line] = []
    for step in sorted(report.steps, key=lambda step: (bool(step.why_not), not step.done)):
        mark: Span = ("ok", "✓ ") if step.done else ("dim", "· ") if step.why_not else ("warn", "~ ")
        deed = _DONE[step.kind] if step.done else f"left as it is ({step.kind})" if step.why_not else step.kind
        name = step.others[0] if step.done and step.kind == "merge" else step.function
        about = f" `{step.function}`" if step.done and step.kind == "merge" else ""
        lines.append(line(mark, ("name", name), f" {deed}{about}: {one_line(step.reason)}"))
        facts = [step.why_not] if step.why_not else [*step.evidence]
        lines += indented([line(("dim", one_line(fact, 400))) for fact in facts])
        lines += indented([line(text) for text in bare_lines(step.diff)]) if step.diff else []
    done, open_steps = (
        [step for step in report.steps if step.done],
        [step for step in report.steps if not (step.done or step.why_not)],
    )
    lines.append(line(("dim", f"{len(done)} done, {len(open_steps)} proposed, {report.tokens:,} tokens")))
    if report.stopped:
        lines.append(line(("warn", f"It ended before all was looked at: {report.stopped}.")))
    ways = ["tend --undo takes all of it back"] if done else ["tend --apply does it"] if open_steps else []
    return [*lines, *(line(("strong", f"{typed} {way}".lstrip())) for way in ways)]


def undone_lines(steps: "list[UndoneStep]") -> list[Line]:
    """Return what was taken back, and what was not."""
    if not steps:
        return [line(("dim", "There is nothing to take back."))]
    return [
        line(("ok", "✓ "), ("name", step.function), " is as it was")
        if step.undone
        else line(("bad", "✗ "), ("name", step.function), f" was not taken back: {one_line(step.why_not, 300)}")
        for step in steps
    ]


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
