"""Facts about functions as text for a model: short, in pages, and with the next step."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agent_core.base.clock import shown_time
from agent_core.base.problem import Problem
from agent_core.base.untrusted import block, fence, one_line, shorten, visible
from agent_core.functions.answers import CallReport
from agent_core.functions.gate.verdict import WEAK_EXAMPLES
from agent_core.functions.service.call_records import FunctionStatistics
from agent_core.functions.service.function_facts import (
    FunctionDetails,
    FunctionListing,
    FunctionSummary,
    FunctionTestReport,
    Usage,
    kind_of,
)
from agent_core.functions.service.history import FunctionHistory
from agent_core.functions.service.judgment import PendingCandidate
from agent_core.registry.function import Function, reach_words, signature
from sandbox.wire.lines import bare_lines

if TYPE_CHECKING:
    from agent_core.functions.search import SearchReport
    from agent_core.registry.registry import RegistryChange

PAGE = 40
_MOST_VERSIONS = 20
_MOST_CALLERS = 3
_MOST_IDLE = 40
_WEAK_NOTES = 2
_MAX_SOURCE = 8_000


@runtime_checkable
class ToldToModels(Protocol):
    """The result of an operation of an extension that has a text for models."""

    def told_to_models(self) -> str:
        """Return what a model reads: short, and with the next step."""


def text_of(result: object, *, grows: bool = True) -> str:
    """Return the result of an operation for a model that makes and changes functions (`grows`) or not."""
    match result:
        case FunctionHistory():
            return history(result, grows=grows)
        case ToldToModels():
            return result.told_to_models()
    raise TypeError(f"there is no text of {type(result).__name__}")


def listing(function_listing: FunctionListing, page: int, own: Sequence[Function] = ()) -> str:
    """Return a page of functions, one line each, and the number of the others; `own` are those of the program."""
    rows = [
        f"- {row.name} ({row.module}, {row.standing}, {one_line(reach_words(row.reach), 200)}{_usage_of(row)}):"
        f" {shorten(row.description, 120)}"
        for row in function_listing.functions
    ]
    both = [
        *rows,
        *(
            f"- {one.name} ({kind_of(one)}): {shorten(one.description.split(chr(10))[0], 120)}"
            for one in own
        ),
    ]
    pages = max((len(both) + PAGE - 1) // PAGE, 1)
    page = min(max(page, 1), pages)
    many = f"{len(rows)} function{'' if len(rows) == 1 else 's'}"
    lines = [f"{many}, page {page} of {pages}." if rows else "There are no such functions."]
    if own:
        lines[0] += (
            f" Of the program itself there are {len(own)}, marked meta or memory, which cannot be edited."
        )
    lines += both[(page - 1) * PAGE : page * PAGE]
    lines += [f"Rejected: {_problem(problem)}" for problem in function_listing.rejected[:5]]
    if idle := [row.name for row in function_listing.functions if row.is_idle]:
        names = ", ".join(idle[:_MOST_IDLE]) + (
            f" and {len(idle) - _MOST_IDLE} more" if len(idle) > _MOST_IDLE else ""
        )
        lines.append(f"Never called, and used by nothing that was: {names}.")
    if page < pages:
        lines.append(f"Next: list_functions(page={page + 1}).")
    return "\n".join(lines)


def of_the_program(pattern: str, functions: Sequence[Function]) -> str:
    """Return the program's functions of a kind by name, if none of them fits a pattern."""
    names = ", ".join(function.name for function in functions)
    return (
        f"None of the program's functions has {fence(pattern, 60)} in its name or description. There are: {names}."
        " introspect_function shows each. What only the user can do is a command: `/help` at the prompt and `knapper"
        " --help` in a shell list them (functions export DIR, secrets set NAME, …). An export is used so: `pip install"
        " ./DIR`, then `from DIR import NAME` in Python; `knapper functions call NAME --args JSON` needs no export."
    )


def _usage_of(summary: FunctionSummary) -> str:
    """Return how often a function was called, alone and within the functions that use it, and which ones do."""
    if summary.source == "foreign":
        return ""
    last = max(filter(None, (summary.last_called, summary.usage.last)), default=None)
    within = f" and {summary.usage.calls} × within what uses it" if summary.usage.calls else ""
    parts = [
        f"called {summary.calls} ×{within}, last {shown_time(last, '%Y-%m-%d')}"
        if last
        else "never called"
    ]
    parts += ["a starter"] if summary.source == "starter" else []
    if summary.pinned:
        parts.append("pinned")
    if summary.callers:
        more = (
            f" and {len(summary.callers) - _MOST_CALLERS} more"
            if len(summary.callers) > _MOST_CALLERS
            else ""
        )
        parts.append(f"used by {', '.join(summary.callers[:_MOST_CALLERS])}{more}")
    return f"; {'; '.join(parts)}"


def search(report: "SearchReport", *, grows: bool = True) -> str:
    """Return the results of a search, with the reasons, and what to do with them, for an agent that `grows` or not."""
    if not report.results and not grows:
        return "No function serves this."
    if not report.results:
        return "No function serves this. Next: create_function."
    lines = [
        f"{len(report.results)} functions, the best first; they can be called in your next step."
    ]
    for match in report.results:
        lines.append(f"- {signature(match.function)}: {shorten(match.function.description, 120)}")
        notes = [f"why: {match.why}", f"differs: {match.differs}" if match.differs else ""]
        notes.append(f"needs: {', '.join(match.needs)}" if match.needs else "")
        lines.append(f"  ({'; '.join(note for note in notes if note)})")
    if grows:
        lines.append("If none of them does it: create_function.")
    return "\n".join(lines)


def own_function(function: Function, schema: Mapping[str, Any]) -> str:  # Any: JSON Schema
    """Return the facts about a function of the program; the schema is the one that the model gets."""
    about = "about memory" if kind_of(function) == "memory" else "a meta-function"
    return "\n".join(
        [
            f"`{function.name}` is part of the program ({about}); it cannot be edited.",
            function.description,
            _schema(schema),
        ]
    )


def _schema(schema: Mapping[str, Any]) -> str:  # Any: JSON Schema
    """Return the schema of a function's arguments, which its source may not show completely."""
    return f"Schema: {json.dumps(schema, ensure_ascii=False)}"


def _weak_notes(details: FunctionDetails) -> list[str]:
    """Return the notes about changes of the body that no example notices, the first ones."""
    if details.verdict is None:
        return []
    notes = [f"Note: {each}" for each in details.verdict.problems if each.code == WEAK_EXAMPLES]
    return notes[:_WEAK_NOTES]


def introspection(
    details: FunctionDetails,
    schema: Mapping[str, Any],  # Any: JSON Schema
    *,
    grows: bool = True,
) -> str:
    """Return a function's source with line numbers, the schema that the model gets, and the known facts about it."""
    function, kept = details.function, len(details.versions)
    reached = one_line(reach_words(details.reach), 400)
    granted = details.grants.sentences()
    late = (
        details.verdict.late if details.verdict else ()
    )  # the gate's stages that it has not passed
    lines = [f"`{function.name}` in {function.path}, standing {details.standing}; {reached}."]
    lines.append(f"{signature(function)}: {visible(function.description)}".rstrip(": "))
    if (quarantined := details.quarantine) is not None:
        back = "rollback_function, " if len(quarantined.ways) > 1 else ""
        failed = "; ".join(fence(failure, 160) for failure in quarantined.failures)
        mend = "Tell the user."
        if grows:
            mend = f"Fix it with edit_function, {back}or tell the user."
        lines.append(f"It kept failing, so you cannot call it: {failed}. {mend}")
    if details.pinned:
        lines.append(
            "It is pinned: you cannot change it. The user can join a new version that you propose."
        )
    if details.imports:
        lines.append(f"Imported in its module: {one_line('; '.join(details.imports), 1_000)}.")
    lines += [
        block(_numbered_lines(details.source, function.line), _MAX_SOURCE),
        _schema(schema),
        *_statistics(details.statistics, details.usage),
        *([f"A human lets it: {one_line('; '.join(granted), 1_000)}."] if granted else []),
        f"Used by: {', '.join(details.callers) or 'no other'}. Uses: {', '.join(details.callees) or 'none'}.",
        f"{_versions(kept)} of its module {'is' if kept == 1 else 'are'} kept.",
        *_confirmed_lines(details.verdict.confirmed if details.verdict else ()),
        *([f"Not checked to the end: {one_line('; '.join(late), 600)}."] if late else []),
        *_weak_notes(details),
    ]
    coverage = details.coverage
    if missed := ", ".join(map(str, coverage.missed[:20])):
        lines.append(
            f"Its examples reach {coverage.reached} of {coverage.lines} lines; none reaches: {missed}."
        )
    return "\n".join(lines)


def _confirmed_lines(calls: Sequence[str]) -> list[str]:
    """Return the examples that are weaker evidence, if any."""
    return (
        [f"Taken as they came back, not as predicted: {'; '.join(map(fence, calls))}."]
        if calls
        else []
    )


def history(history: FunctionHistory, *, grows: bool = True) -> str:
    """Return the versions of a function, newest first, and how to go back to one."""
    entries = history.versions
    has = "is deleted; it had" if history.deleted else "has"
    lines = [f"`{history.name}` {has} {_versions(len(entries))}, the newest first:"]
    for entry in reversed(entries[-_MOST_VERSIONS:]):
        version, reason = entry.version, entry.version.row.reason
        name = f"{version.number} ({version.short})" if version.hash else f"{version.number}"
        who = one_line(version.who, 80)
        made = f"{version.change_kind} {version.when} by {who}, +{version.added} -{version.removed}"
        why = f" Why: {one_line(reason, 200)}" if reason else ""
        lines.append(
            f"- {name}{', the current one' if entry.is_current else ''}: {made} lines.{why}"
        )
        below = [
            *_confirmed_lines(entry.confirmed),
            *(f"{shorten(text, 400)}." for text in entry.dropped),
        ]
        lines += [f"  {text}" for text in below]
    if len(entries) > _MOST_VERSIONS:
        lines.append(f"- and {len(entries) - _MOST_VERSIONS} older ones.")
    if len({entry.version.hash for entry in entries} - {""}) == 1 and not history.deleted:
        return "\n".join([*lines, "There is no other text of it to go back to."])
    if not grows:
        return "\n".join(lines)
    which = f"rollback_function(function_name={history.name!r}"
    if not history.goes_back:
        return "\n".join(
            [
                *lines,
                f"{which}, version=…) puts another one back; there is none before the current one.",
            ]
        )
    brings = "brings it back" if history.deleted else "puts the one before the current back"
    return "\n".join([*lines, f"{which}) {brings}; with version=… another one."])


def _versions(count: int) -> str:
    return f"{count} version{'' if count == 1 else 's'}"


def pending(name: str, candidate: PendingCandidate) -> str:
    """Return a rejected candidate: its text, and the reasons for the rejection."""
    reasons = [f"- {_problem(problem)}" for problem in candidate.verdict.refusals]
    text = block(_numbered_lines(candidate.text, 1), _MAX_SOURCE)
    return "\n".join([f"`{name}` is not a function yet: it is rejected.", text, *reasons])


def reloaded(change: "RegistryChange") -> str:
    """Return the changes found in the folder."""
    names = {"loaded": change.loaded, "changed": change.changed, "removed": change.removed}
    parts = [f"{verb}: {', '.join(functions)}." for verb, functions in names.items() if functions]
    lines = [" ".join(parts).capitalize() if parts else "Nothing changed."]
    lines += [f"Rejected: {_problem(problem)}" for problem in change.rejected]
    return "\n".join(lines)


def tested(report: FunctionTestReport) -> str:
    """Return the result of examples, or of one call."""
    if report.outcome is not None:
        return outcome(report.outcome)
    results = report.examples
    if not results:
        return f"`{report.name}` has no examples. Give it some, or test it with arguments."
    lines = [f"{sum(result.agreed for result in results)} of {len(results)} examples hold."]
    for result in results:
        if result.unrun:
            lines.append(f"- did not run: {fence(result.call)}: {result.unrun}")
            continue
        word = "holds" if result.agreed else "DIFFERS"
        printed = f" and printed {fence(result.printed)}" if result.printed else ""
        expected = "" if result.agreed else f", expected {fence(result.expected)}"
        lines.append(
            f"- {word}: {fence(result.call)} gave {fence(result.value)}{printed}{expected}"
        )
    return "\n".join(lines)


def _statistics(statistics: FunctionStatistics, usage: Usage) -> list[str]:
    totals = statistics.totals
    within = []
    if usage.calls and usage.last:
        within.append(
            f"What uses it was called {usage.calls} times, last on {shown_time(usage.last, '%Y-%m-%d')}."
        )
    if not totals.calls:
        return within or ["No calls of it are on record; tests are not recorded."]
    now = next((version.totals.calls for version in statistics.versions if version.present), 0)
    counted = (
        f"Called {totals.calls} times, {now} of them in this version: {totals.returned} returned"
    )
    kinds = [
        f"{fence(kind.error or kind.outcome, 80)} {kind.calls} ×" for kind in statistics.kinds[:5]
    ]
    ended = f"; ended otherwise: {', '.join(kinds)}" if kinds else ""
    usual, longest = (totals.median_s or 0.0) * 1000, totals.longest_s * 1000
    cost = ""
    if totals.cpu_s is not None and totals.memory:
        spent, most = totals.cpu_s * 1000 / totals.calls, totals.memory / 2**20
        cost = f" It computes for {spent:.0f} ms a call and has taken {most:.0f} MiB at most."
    return [
        f"{counted}, {totals.failed} failed{ended}.",
        f"A call takes {usual:.0f} ms, at most {longest:.0f} ms.{cost}",
        *within,
    ]


def _numbered_lines(source: str, first: int) -> str:
    return "\n".join(
        f"{number:4} {line}"
        for number, line in enumerate(map(visible, bare_lines(source.rstrip("\r\n"))), first)
    )


def outcome(report: CallReport) -> str:
    """Return how one call ended."""
    error = report.error
    result = fence(f"{error.type}: {error.message}") if error else fence(repr(report.value), 2_000)
    printed = f"\nIt printed:\n{block(report.output, 2_000)}" if report.output.strip() else ""
    debugged = f"\n{report.debugged}" if report.debugged else ""
    return f"{report.outcome} in {report.seconds * 1000:.1f} ms: {result}{printed}{debugged}"


def _problem(problem: Problem) -> str:
    fix = f" Fix: {problem.fix}" if problem.fix else ""
    return f"{problem.where.path}:{problem.where.line} {problem.message}.{fix}"
