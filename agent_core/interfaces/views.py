"""A list of functions and one function laid open, from their published JSON to lines."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent_core.grants import Grants
from sandbox.lines import bare_lines

from .columns import columns
from .spans import Line, indented, line
from .standings import COMMAND, quarantine_lines, statistics_lines
from .verdicts import problem_lines, verdict_lines

Document: TypeAlias = dict[str, Any]  # Any: JSON of a shape that the design publishes

MARK = "❱ "  # as the highlighted source has it
MOST_MISSED = 20
HEADS = ("function", "module", "standing", "by", "calls", "what it does")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of source: `is_next` runs next, `is_armed` has a breakpoint."""

    number: int
    text: str
    is_next: bool = False
    is_armed: bool = False

    @property
    def gutter(self) -> str:
        """What stands before the text."""
        return f"{'●' if self.is_armed else ' '}{'→' if self.is_next else ' '}{self.number:4} "


def list_lines(found: Document, *, heads: bool = False) -> list[Line]:
    """Each function with its module, standing, author, calls and first sentence; then what was rejected."""
    rows = [
        [
            str(function["name"]),
            str(function["module"]),
            str(function["standing"]),
            str(function["source"]),
            f"{function['calls'] or ''}",
            str(function["description"]).partition("\n")[0],
        ]
        for function in found["functions"]
    ]
    lines = columns([*([HEADS] if heads else []), *rows], ("name", "dim", "", "dim", "", "")) if rows else []
    if heads and lines:
        lines[0] = tuple(("dim", text) for _, text in lines[0])
    if found["rejected"]:
        lines += [line(("bad", "rejected:")), *indented(problem_lines(found["rejected"]))]
    return lines


def introspection_lines(found: Document) -> list[Line]:
    """One function laid open: where it is, what it has been through, who calls it, and its numbered source."""
    return [*facts_lines(found), *source_lines(found["source"], found["line"], missed_by_examples(found))]


def facts_lines(found: Document, typed: str = COMMAND) -> list[Line]:
    """Everything about a function but its source."""
    lines = [line(("name", found["name"]), f" · {found['standing']}", ("dim", f" · {found['path']}:{found['line']}"))]
    if case := found.get("quarantine"):
        lines += quarantine_lines(case, typed)
    lines += statistics_lines(found["statistics"])
    if may := Grants.from_json(found.get("grants") or {}).sentences():
        lines.append(line(("dim", "it may: "), "; ".join(may)))
    neighbours = [key for key in ("callers", "callees") if found.get(key)]
    lines += [line(("dim", f"{key}: "), ", ".join(map(str, found[key]))) for key in neighbours]
    if found.get("verdict"):
        lines += verdict_lines(found["verdict"])
    return [*lines, *_coverage_lines(found), *survivor_lines(found["survivors"])]


def missed_by_examples(found: Document) -> Sequence[int]:
    """The lines of a function that none of its examples reaches; nothing where it has none, or they do not agree."""
    coverage = found.get("coverage") or {}
    return coverage.get("missed") or ()


def _coverage_lines(found: Document) -> list[Line]:
    missed = missed_by_examples(found)
    if not missed:
        return []
    coverage = found["coverage"]
    more = f" and {len(missed) - MOST_MISSED} more" if len(missed) > MOST_MISSED else ""
    told = f"its examples reach {coverage['reached']} of {coverage['lines']} lines; none reaches "
    return [line(("warn", "~ "), told, ", ".join(map(str, missed[:MOST_MISSED])), more, ("dim", " (marked below)"))]


def survivor_lines(survivors: Sequence[Document]) -> list[Line]:
    """The changes of a body that no example notices, each with the kind of example that would."""
    lines = [line(("warn", "~ "), "no example notices these changes of its body:")] if survivors else []
    for one in survivors:
        changed = bare_lines(one["diff"])
        lines += indented(line(("bad" if text.startswith("-") else "ok", text)) for text in changed)
        lines += indented([line(("dim", "  noticed by "), one["kind_of_example"])])
    return lines


def source_lines(source: str, first: int, marked: Collection[int] = ()) -> list[Line]:
    """The source with its line numbers, some of them marked."""
    numbered = enumerate(bare_lines(source), first)
    return [
        line(("warn", f"{MARK}{number:4} ") if number in marked else ("dim", f"{'':{len(MARK)}}{number:4} "), text)
        for number, text in numbered
    ]


def row_lines(found: Iterable[Row]) -> list[Line]:
    """Source without its colours."""
    return [line(("strong" if row.is_next else "dim", row.gutter), row.text) for row in found]
