"""A list of functions, and the details of one, as lines, from their published JSON."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent_core.access.grants import Grants
from sandbox.wire.lines import bare_lines

from .columns import columns
from .spans import Line, indented, line
from .standings import COMMAND, quarantine_lines, statistics_lines
from .verdicts import problem_lines, verdict_lines

Document: TypeAlias = dict[str, Any]  # Any: JSON of a shape that the design publishes

MARK = "❱ "  # as the highlighted source has it
MOST_MISSED = 20
HEADS = ("function", "module", "standing", "by", "calls", "what it does")


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


def list_lines(data: Document, *, heads: bool = False) -> list[Line]:
    """Return each function with its module, standing, author, calls and first sentence; then what was rejected."""
    rows = [
        [
            str(function["name"]),
            str(function["module"]),
            str(function["standing"]),
            str(function["source"]),
            f"{function['calls'] or ''}",
            str(function["description"]).partition("\n")[0],
        ]
        for function in data["functions"]
    ]
    lines = columns([*([HEADS] if heads else []), *rows], ("name", "dim", "", "dim", "", "")) if rows else []
    if heads and lines:
        lines[0] = tuple(("dim", text) for _, text in lines[0])
    if data["rejected"]:
        lines += [line(("bad", "rejected:")), *indented(problem_lines(data["rejected"]))]
    return lines


def introspection_lines(data: Document) -> list[Line]:
    """Return the details of one function: its place, its history, its callers, and its numbered source."""
    return [*facts_lines(data), *source_lines(data["source"], data["line"], missed_by_examples(data))]


def facts_lines(data: Document, typed: str = COMMAND) -> list[Line]:
    """Return everything about a function except its source."""
    lines = [line(("name", data["name"]), f" · {data['standing']}", ("dim", f" · {data['path']}:{data['line']}"))]
    if case := data.get("quarantine"):
        lines += quarantine_lines(case, typed)
    lines += statistics_lines(data["statistics"])
    if may := Grants.from_json(data.get("grants") or {}).sentences():
        lines.append(line(("dim", "it may: "), "; ".join(may)))
    neighbours = [key for key in ("callers", "callees") if data.get(key)]
    lines += [line(("dim", f"{key}: "), ", ".join(map(str, data[key]))) for key in neighbours]
    if data.get("verdict"):
        lines += verdict_lines(data["verdict"])
    return [*lines, *_coverage_lines(data), *survivor_lines(data["survivors"])]


def missed_by_examples(data: Document) -> Sequence[int]:
    """Return the lines of a function that none of its examples reaches; nothing if it has none, or they disagree."""
    coverage = data.get("coverage") or {}
    return coverage.get("missed") or ()


def _coverage_lines(data: Document) -> list[Line]:
    missed = missed_by_examples(data)
    if not missed:
        return []
    coverage = data["coverage"]
    more = f" and {len(missed) - MOST_MISSED} more" if len(missed) > MOST_MISSED else ""
    summary = f"its examples reach {coverage['reached']} of {coverage['lines']} lines; none reaches "
    return [line(("warn", "~ "), summary, ", ".join(map(str, missed[:MOST_MISSED])), more, ("dim", " (marked below)"))]


def survivor_lines(survivors: Sequence[Document]) -> list[Line]:
    """Return the changes of a body that no example notices, each with the kind of example that would."""
    lines = [line(("warn", "~ "), "no example detects these changes of its body:")] if survivors else []
    for survivor in survivors:
        changed = bare_lines(survivor["diff"])
        lines += indented(line(("bad" if text.startswith("-") else "ok", text)) for text in changed)
        lines += indented([line(("dim", "  noticed by "), survivor["kind_of_example"])])
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
