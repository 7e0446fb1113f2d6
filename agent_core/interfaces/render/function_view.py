"""A list of functions, and the details of one, as lines."""

import ast
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_core.base import syntax
from agent_core.base.clock import shown_time
from agent_core.base.untrusted import one_line
from agent_core.registry.function import reach_words
from sandbox.wire.lines import bare_lines

from ..columns import columns, cut
from ..spans import Line, Span, indented, line
from .statistics import COMMAND, quarantine_lines, statistics_lines
from .verdicts import problem_lines, stage_lines, verdict_lines

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.gate.verdict import Survivor
    from agent_core.functions.search import SearchReport
    from agent_core.functions.service.effects import FunctionEffect
    from agent_core.functions.service.function_facts import (
        Coverage,
        FunctionDetails,
        FunctionListing,
        FunctionSummary,
    )
    from agent_core.functions.service.judgment import Judgment

MARK = "❱ "  # as the highlighted source has it
MOST_MISSED = 20
MOST_OF_STATE = 400  # characters
DESCRIBED = 120
MOST_REACHED = 40  # columns of what a function reaches in a list
HEADS = ("function", "module", "standing", "by", "calls", "reaches", "what it does")


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One line of source: `is_next` runs next, `is_armed` has a breakpoint."""

    number: int
    text: str
    is_next: bool = False
    is_armed: bool = False

    @property
    def gutter(self) -> str:
        """The text in front of the source line."""
        return f"{'●' if self.is_armed else ' '}{'→' if self.is_next else ' '}{self.number:4} "


def list_lines(listing: "FunctionListing", *, heads: bool = False) -> list[Line]:
    """Return each function with its module, standing, author, calls and first sentence; then what was rejected."""
    rows = [
        (row.name, row.module, _standing(row), row.source, f"{row.calls or ''}", _reach(row.reach), row.description)
        for row in listing.functions
    ]
    lines = columns([*([HEADS] if heads else []), *rows], ("name", "dim", "", "dim", "", "dim", "")) if rows else []
    if heads and lines:
        lines[0] = tuple(("dim", text) for _, text in lines[0])
    if listing.rejected:
        lines += [line(("bad", "rejected:")), *indented(problem_lines(listing.rejected))]
    return lines


def _standing(summary: "FunctionSummary") -> str:
    """Return the standing, with the measured worth where there is one."""
    return summary.standing if summary.worth in (None, "unknown") else f"{summary.standing}, {summary.worth}"


def _reach(reached: Sequence[str]) -> str:
    return cut(one_line(reach_words(reached)), MOST_REACHED)


def match_lines(report: "SearchReport") -> list[Line]:
    """Return each result of a search: its name and description, why it matches, how it differs, what it needs."""
    lines: list[Line] = []
    for match in report.results:
        lines.append(line(("name", match.function.name), f"  {one_line(match.function.description, DESCRIBED)}"))
        told = (("why", match.why), ("differs", match.differs), ("needs", ", ".join(match.needs)))
        lines += indented([line(("dim", f"{word}: "), one_line(text)) for word, text in told if text])
    return lines


def facts_lines(details: "FunctionDetails", typed: str = COMMAND) -> list[Line]:
    """Return everything about a function except its source."""
    function = details.function
    place: Span = ("dim", f" · {function.path}:{function.line}")
    lines = [line(("name", function.name), f" · {details.standing}", place)]
    if details.quarantine:
        lines += quarantine_lines(details.quarantine, typed)
    lines += statistics_lines(details.statistics)
    lines.append(line(("dim", "reach: "), one_line(reach_words(details.reach))))
    if may := details.grants.sentences():
        lines.append(line(("dim", "it may: "), "; ".join(may)))
    if details.maker:
        lines.append(line(("dim", "made by: "), one_line(details.maker)))
    lines += _effect_lines(details.effect) if details.effect else []
    if details.state:
        value = cut(json.dumps(details.state.value, ensure_ascii=False), MOST_OF_STATE)
        lines.append(line(("dim", f"state, kept {shown_time(details.state.at)}: "), one_line(value, MOST_OF_STATE)))
    for word, neighbours in (("callers", details.callers), ("callees", details.callees)):
        lines += [line(("dim", f"{word}: "), ", ".join(neighbours))] if neighbours else []
    if details.verdict:
        lines += _thumb_lines(details.verdict)
        judged = replace(details.verdict, reach=None)  # which may have been so when it was judged
        lines += [*verdict_lines(judged), *stage_lines(details.verdict)]
    return [*lines, *_coverage_lines(details.coverage), *survivor_lines(details.survivors)]


def _effect_lines(effect: "FunctionEffect") -> list[Line]:
    """Return what showing the function was worth, with the intervals."""
    said: Mapping[str, Span] = {
        "helps": ("ok", "✓ helps"),
        "harms": ("bad", "✗ harms"),
        "unknown": ("dim", "~ no effect is certain yet"),
    }
    parts = [
        f"{name} {', '.join(f'{change * factor:+.{digits}f}' for change in (one.low, one.change, one.high))}{unit}"
        for name, one, factor, digits, unit in (
            ("tokens", effect.tokens, 100, 0, " %"),
            ("requests", effect.requests, 1, 1, ""),
            ("turns not sent again", effect.right, 100, 0, " points"),
        )
    ]
    among = f" in {effect.shown} turns with it and {effect.masked} without"
    models = f", with {', '.join(effect.models)}" if effect.models else ""
    details = f" (least, middle, most): {'; '.join(parts)}{one_line(models)}"
    return [line(said[effect.worth], among, ("dim", details))]


def _thumb_lines(judgment: "Judgment") -> list[Line]:
    """Return what a human said of a function's results, if anything."""
    if judgment.thumb == "bad":
        return [line(("warn", "~ "), "rated bad", f": {one_line(judgment.note, 400)}" if judgment.note else "")]
    return [line(("ok", "✓ "), "rated good")] if judgment.thumb else []


def brief_lines(details: "FunctionDetails") -> list[Line]:
    """Return a function's signature as it is written, its docstring and its standing."""
    function, (head, words) = details.function, _head_and_words(details.source)
    place: Span = ("dim", f" · {function.path}:{function.line}")
    lines = [line(("name", function.name), f" · {details.standing}", place)]
    if details.quarantine:
        lines += quarantine_lines(details.quarantine)
    return [*lines, *(line(("strong", row)) for row in bare_lines(head)), *indented(map(line, bare_lines(words)))]


def _head_and_words(source: str) -> tuple[str, str]:
    """Return the first line of a function, as it would be on one, and its docstring."""
    node = syntax.parse(source).body[0]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return "", ""
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{word} {node.name}({ast.unparse(node.args)}){gives}", ast.get_docstring(node) or ""


def _coverage_lines(coverage: "Coverage") -> list[Line]:
    missed = coverage.missed
    if not missed:
        return []
    more = f" and {len(missed) - MOST_MISSED} more" if len(missed) > MOST_MISSED else ""
    summary = f"its examples reach {coverage.reached} of {coverage.lines} lines; none reaches "
    return [line(("warn", "~ "), summary, ", ".join(map(str, missed[:MOST_MISSED])), more, ("dim", " (marked below)"))]


def survivor_lines(survivors: Sequence["Survivor"]) -> list[Line]:
    """Return the changes of a body that no example notices, each with the kind of example that would."""
    lines = [line(("warn", "~ "), "no example detects these changes of its body:")] if survivors else []
    for survivor in survivors:
        changed = bare_lines(survivor.diff)
        lines += indented(line(("bad" if text.startswith("-") else "ok", text)) for text in changed)
        lines += indented([line(("dim", "  noticed by "), survivor.kind_of_example)])
    return lines


def source_lines(source: str, first: int, marked: Collection[int] = ()) -> list[Line]:
    """Return the source with its line numbers, some of them marked."""
    numbered = enumerate(bare_lines(source), first)
    return [
        line(("warn", f"{MARK}{number:4} ") if number in marked else ("dim", f"{'':{len(MARK)}}{number:4} "), text)
        for number, text in numbered
    ]


def row_lines(rows: Iterable[SourceRow]) -> list[Line]:
    """Return the source without colors."""
    return [line(("strong" if row.is_next else "dim", row.gutter), row.text) for row in rows]
