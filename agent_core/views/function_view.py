"""Functions as lines: lists, facts, statistics of their calls, quarantine, and their versions."""

import ast
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_core.base import syntax
from agent_core.base.clock import shown_time, time_of_id
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import one_line
from agent_core.registry.function import reach_words
from sandbox.wire.lines import bare_lines

from .styled_lines import Choice, Line, Span, Table, columns, counted, cut, duration, indented, line
from .verdicts import COMMAND, coloured, moment, problem_lines, stage_lines, verdict_lines

if TYPE_CHECKING:
    from agent_core.base.events import Quarantined
    from agent_core.functions.search import SearchReport
    from agent_core.functions.service.call_records import FunctionStatistics
    from agent_core.functions.service.function_facts import (
        FunctionDetails,
        FunctionListing,
        FunctionSummary,
    )
    from agent_core.functions.service.history import (
        FunctionHistory,
        HistoryEntry,
        Version,
        VersionDiff,
    )
    from agent_core.functions.service.judgment import PendingCandidate


MARK = "❱ "  # same as in highlighted source
MOST_MISSED = 20
MOST_OF_STATE = 400  # characters
DESCRIBED = 120
MOST_REACHED = 40  # columns for a function's reach in a list
_STANDINGS: Final = {
    "draft": "no example proves it yet",
    "trial": "it passed the gate, and is new",
    "trusted": "its calls keep returning",
    "quarantined": "its calls kept failing, so the model does not see it",
}
HEADS = ("function", "module", "standing", "by", "calls", "reaches", "what it does")


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A line of source; if it `is_next`, it runs next, and if it `is_armed`, it has a breakpoint."""

    number: int
    text: str
    is_next: bool = False
    is_armed: bool = False

    @property
    def gutter(self) -> str:
        """The text in front of the source line."""
        return f"{'●' if self.is_armed else ' '}{'→' if self.is_next else ' '}{self.number:4} "


def list_lines(listing: "FunctionListing", *, heads: bool = False) -> list[Line]:
    """Return lines for functions, with module, standing, author, calls and first sentence, then rejected candidates."""
    rows = []
    for row in listing.functions:
        reach = cut(one_line(reach_words(row.reach)), MOST_REACHED)
        rows.append(
            (
                row.name,
                row.module,
                row.standing,
                f"{row.source}, pinned" if row.pinned else row.source,
                f"{row.calls or ''}",
                reach,
                row.description,
            )
        )
    lines = columns(rows, ("name", "dim", "", "dim", "", "dim", ""), heads=HEADS if heads else ())
    lines += standing_words({row.standing for row in listing.functions}) if heads else []
    if listing.rejected:
        lines += [line(("bad", "rejected:")), *indented(problem_lines(listing.rejected))]
    return lines


def standing_words(standings: Iterable[str]) -> list[Line]:
    """Return a line that says what these standings mean."""
    told = [
        f"{standing}: {words}" for standing, words in _STANDINGS.items() if standing in standings
    ]
    return [line(("dim", " · ".join(told)))] if told else []


def match_lines(report: "SearchReport") -> list[Line]:
    """Return lines for each search result: its name and description, why it matches, how it differs, what it needs."""
    lines: list[Line] = []
    for match in report.results:
        lines.append(
            line(
                ("name", match.function.name),
                f"  {one_line(match.function.description, DESCRIBED)}",
            )
        )
        told = (("why", match.why), ("differs", match.differs), ("needs", ", ".join(match.needs)))
        lines += indented(
            [line(("dim", f"{word}: "), one_line(text)) for word, text in told if text]
        )
    return lines


def facts_lines(details: "FunctionDetails", typed: str = COMMAND) -> list[Line]:
    """Return everything about a function except its source."""
    function = details.function
    place: Span = ("dim", f" · {function.path}:{function.line}")
    lines = [line(("name", function.name), f" · {details.standing}", place)]
    if details.quarantine:
        lines += quarantine_lines(details.quarantine, typed)
    else:
        lines += standing_words({details.standing})
    if details.pinned:
        lines.append(line(("dim", "pinned: only you change it")))
    lines += statistics_lines(details.statistics)
    lines.append(line(("dim", "reach: "), one_line(reach_words(details.reach))))
    if may := details.grants.sentences():
        lines.append(line(("dim", "it may: "), "; ".join(may)))
    if details.maker:
        lines.append(line(("dim", "made by: "), one_line(details.maker)))
    if details.state:
        value = cut(json.dumps(details.state.value, ensure_ascii=False), MOST_OF_STATE)
        lines.append(
            line(
                ("dim", f"state, kept {shown_time(details.state.at)}: "),
                one_line(value, MOST_OF_STATE),
            )
        )
    for word, neighbours in (("callers", details.callers), ("callees", details.callees)):
        lines += [line(("dim", f"{word}: "), ", ".join(neighbours))] if neighbours else []
    if verdict := details.verdict:
        if verdict.thumb == "bad":
            note = f": {one_line(verdict.note, 400)}" if verdict.note else ""
            lines.append(line(("warn", "~ "), "rated bad", note))
        elif verdict.thumb:
            lines.append(line(("ok", "✓ "), "rated good"))
        judged = replace(verdict, reach=None)  # the reach is shown above and may have changed since
        lines += [*verdict_lines(judged), *stage_lines(verdict)]
    coverage = details.coverage
    if missed := coverage.missed:
        more = f" and {len(missed) - MOST_MISSED} more" if len(missed) > MOST_MISSED else ""
        summary = f"its examples reach {coverage.reached} of {coverage.lines} lines; none reaches "
        listed = ", ".join(map(str, missed[:MOST_MISSED]))
        lines.append(line(("warn", "~ "), summary, listed, more, ("dim", " (marked below)")))
    return lines


def brief_lines(details: "FunctionDetails") -> list[Line]:
    """Return a function's signature from the source, its docstring and its standing."""
    function, node = details.function, syntax.parse(details.source).body[0]
    head = words = ""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        keyword = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        head = f"{keyword} {node.name}({ast.unparse(node.args)}){gives}"
        words = ast.get_docstring(node) or ""
    place: Span = ("dim", f" · {function.path}:{function.line}")
    lines = [line(("name", function.name), f" · {details.standing}", place)]
    if details.quarantine:
        lines += quarantine_lines(details.quarantine)
    else:
        lines += standing_words({details.standing})
    return [
        *lines,
        *(line(("strong", row)) for row in bare_lines(head)),
        *indented(map(line, bare_lines(words))),
    ]


def source_lines(source: str, first: int, marked: Collection[int] = ()) -> list[Line]:
    """Return the source with line numbers and some lines marked."""
    numbered = enumerate(bare_lines(source), first)
    return [
        line(
            ("warn", f"{MARK}{number:4} ")
            if number in marked
            else ("dim", f"{'':{len(MARK)}}{number:4} "),
            text,
        )
        for number, text in numbered
    ]


def row_lines(rows: Iterable[SourceRow]) -> list[Line]:
    """Return the source rows without colors."""
    return [line(("strong" if row.is_next else "dim", row.gutter), row.text) for row in rows]


_KINDS, _VERSIONS, _SHORT = 5, 5, 8
_WAYS = {"rollback": "to go back", "release": "to show it to the model anyway"}


def quarantine_lines(quarantined: "Quarantined", typed: str = COMMAND) -> list[Line]:
    """Return the reason that a function is in quarantine, the last version that worked, and the command to type."""
    below = [line(("dim", "lately: "), failure) for failure in quarantined.failures]
    worked = "no call of it ever returned"
    if quarantined.worked_at is not None:
        version = quarantined.worked_version
        which = "this version" if version == quarantined.version else f"version {version[:_SHORT]}"
        worked = f"{which}, {moment(quarantined.worked_at)}"
    below.append(line(("dim", "last worked: "), worked))
    below += [
        line(("dim", f"{_WAYS[option.split()[0]]}: "), ("strong", f"{typed}{option}"))
        for option in quarantined.ways
    ]
    message = " kept failing and is quarantined: the model no longer sees it"
    return [line(("bad", "✗ "), ("name", quarantined.name), message), *indented(below)]


def statistics_lines(statistics: "FunctionStatistics") -> list[Line]:
    """Return the outcomes of calls in total, by kind of failure, and by version, or a line that there were none."""
    totals = statistics.totals
    if not totals.calls:
        return [
            line(("dim", "no calls on record; those of functions test and trace are not recorded"))
        ]
    calls, last = f"called {totals.calls} ×", f"last {moment(totals.last_called)}"
    usual, longest = duration(totals.median_s or 0.0), duration(totals.longest_s)
    text = f"{usual} a call (median), {longest} at most, {duration(totals.seconds)} in all"
    if totals.cpu_s is not None:
        text += f", {duration(totals.cpu_s)} of it on a processor"
    text += f", {totals.memory / 2**20:.0f} MiB at most" if totals.memory else ""
    lines = [
        line(f"{calls}: {totals.returned} returned, {totals.failed} failed, {last}"),
        line(("dim", text)),
    ]
    if kinds := statistics.kinds:
        shown = []
        for kind in kinds[:_KINDS]:
            documented = " (documented)" if kind.outcome == "documented" else ""
            shown.append(
                f"{kind.error or kind.outcome.replace('_', ' ')}{documented} {kind.calls} ×"
            )
        shown += ["…"] if len(kinds) > _KINDS else []
        lines.append(line(("dim", "ended otherwise: "), ", ".join(shown)))
    if turns := statistics.turns:
        last_turn = time_of_id(turns[0])
        when = f", the last at {shown_time(last_turn)}" if last_turn is not None else ""
        lines.append(line(("dim", f"lately in {counted(len(turns), 'turn')}{when}")))
    if released := statistics.released:
        lines.append(line(("dim", f"released from quarantine {moment(released[-1][1])}")))
    versions = statistics.versions
    if len(versions) < 2:
        return lines
    rows = [
        [
            version.version[:_SHORT],
            "now" if version.present else "",
            f"{version.totals.calls} ×",
            f"{version.totals.failed} failed",
            duration(version.totals.mean_s),
            f"last {moment(version.totals.last_called)}",
        ]
        for version in versions[:_VERSIONS]
    ]
    older = (
        [line(("dim", f"and {len(versions) - _VERSIONS} older"))]
        if len(versions) > _VERSIONS
        else []
    )
    table = [*columns(rows, ("name", "ok", "", "", "dim", "dim")), *older]
    return [*lines, line(("dim", "called in versions:")), *indented(table)]


def unused_lines(listing: "FunctionListing", typed: str = COMMAND) -> list[Line]:
    """Return each function that has been unused for long, since when, and the command that deletes it."""
    rows = []
    for function in listing.functions:
        if (since := function.unused_since) is not None:
            label = (
                "last called"
                if function.last_called == since
                else "no calls on record since it was added"
            )
            rows.append(
                [function.name, f"{label} {moment(since)[:10]}", f"{typed}delete {function.name}"]
            )
    return columns(rows, ("name", "dim", ""))


def unused_hint(listing: "FunctionListing", typed: str) -> list[Line]:
    """Return a line about unused functions, to show below a list."""
    many = listing.unused
    hint = f"{counted(many, 'function')} not called for a long time: {typed}"
    return [line(("dim", hint))] if many else []


def shown_line(shown: int, known: int, own: int) -> Line:
    """Return a line that explains the counts in the status bar: functions of the workspace, and Knapper's `own`."""
    told = f"; the model was last shown {shown}" if shown else ""
    text = f"This workspace has {counted(known, 'function')}{told}. {own} more are Knapper's own."
    return line(("dim", text))


def history_lines(entries: Iterable["HistoryEntry"]) -> list[Line]:
    """Return the versions, newest first: number, hash, time, author, size of the change, standing, and reason."""
    newest_first = [*entries][::-1]
    rows = [
        [
            f"{entry.version.number}{' *' if entry.is_current else ''}",
            entry.version.short or entry.version.change_kind,
            entry.version.when,
            _who(entry.version),
            f"+{entry.version.added} -{entry.version.removed}",
            entry.standing,
            entry.version.row.reason,
        ]
        for entry in newest_first
    ]
    shown = columns(rows, ("name", "", "dim", "", "", "", ""))
    lines: list[Line] = []
    for head, entry in zip(shown, newest_first, strict=True):
        notes = [f"{call}: its result was confirmed, not predicted" for call in entry.confirmed]
        weak = [
            line("     ", ("warn", "~ "), ("dim", one_line(text, 400)))
            for text in (*notes, *entry.dropped)
        ]
        lines += [head, *weak]
    return lines


def diff_lines(version_diff: "VersionDiff") -> list[Line]:
    """Return a diff in the usual colors."""
    lines = bare_lines(version_diff.diff)
    if not lines:
        return [
            line(
                ("dim", f"Version {version_diff.from_.number} is the current one: nothing differs.")
            )
        ]
    return coloured(lines)


def pending_lines(candidates: Mapping[str, "PendingCandidate"]) -> list[Line]:
    """Return every rejected candidate with the problems that cause the rejection."""
    lines: list[Line] = []
    for name, candidate in candidates.items():
        lines.append(
            line(
                ("bad", "✗ "),
                ("name", name),
                f" would be added to {candidate.module}; "
                + ("it waits for you" if candidate.waits_for_a_person else "it is rejected"),
            )
        )
        lines += indented(problem_lines(candidate.verdict.refusals))
        lines += [
            (("", "    "), *spans) for spans in coloured(bare_lines(candidate.conflict or ""))
        ]
    return lines


def pending_hint(
    candidates: Mapping[str, "PendingCandidate"], command: str, drop: str, typed: str
) -> str:
    """Return the next command for a candidate that waits, after an edit conflict, or if only results block one.

    Commands about functions begin with what is `typed` before their verb.
    """
    reaching = [name for name, found in candidates.items() if found.verdict.lacks_only_grants]
    if reaching:
        return f"To allow what it reaches, and join it: {typed}grant {reaching[0]}"
    join = f"{typed}join"
    waiting = [name for name, candidate in candidates.items() if candidate.waits_for_a_person]
    if waiting:
        return f"To join it: {join} {waiting[0]}; all that wait: {join} '*'"
    met = [name for name, candidate in candidates.items() if candidate.conflict]
    if met:
        return f"To use the kept version: {command} {met[0]}; to discard it: {drop.replace('NAME', met[0])}"
    asked = [name for name, candidate in candidates.items() if candidate.verdict.challenges]
    if asked:
        return f"Say what the calls must return: {command} {asked[0]}, with each result"
    ready = [name for name, candidate in candidates.items() if candidate.verdict.can_be_confirmed]
    return f"If the returned results are right: {command} {ready[0]}" if ready else ""


def _who(version: "Version") -> str:
    return f"{version.who} {version.row.turn[-8:]}".rstrip()


# Functions, and the versions of one function, as tables to browse.

_HEAD = line("version · what · when · who · lines · standing · why")


def functions_table(
    listing: "FunctionListing", source: Callable[[str], str], below: tuple[Line, ...]
) -> Table:
    """Return a table of listed functions with their source, followed by the lines `below`."""
    head, *lines = list_lines(replace(listing, rejected=()), heads=True)

    def choice(summary: "FunctionSummary", shown: Line) -> Choice:
        text = f"{summary.name} {summary.module} {summary.standing} {summary.description}"
        return Choice(summary.name, shown, text, list, lambda: (source(summary.name), 1, ()))

    return Table("functions", head, tuple(map(choice, listing.functions, lines)), below=below)


def versions_table(history: "FunctionHistory") -> Table:
    """Return a table of the versions of a function, newest first, each with its change."""
    choices, before = [], None
    for entry in history.versions:
        shown, *_ = history_lines([entry])
        text, lines = (
            "".join(part for _, part in shown),
            partial(_difference, history.name, before, entry.version),
        )
        choices.append(Choice(f"{entry.version.number}", shown, text, lines))
        before = entry.version
    return Table(f"versions of {history.name}", _HEAD, tuple(choices[::-1]), keeps_order=True)


def _difference(name: str, before: "Version | None", version: "Version") -> list[Line]:
    from agent_core.functions.service.history import diff  # noqa: PLC0415 - `--help` loads no service

    old = f"{name} {before.number} ({before.short})" if before else "nothing"
    new = f"{name} {version.number} ({version.short or version.change_kind})"
    return coloured(bare_lines(diff(before.source if before else "", version.source, (old, new))))
