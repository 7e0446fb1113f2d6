"""What is known about functions, as text for a model: short, in pages, and with the next thing to do."""

from collections.abc import Mapping
from typing import Any

from .untrusted import block, fence, shorten

PAGE = 40
_MAX_SOURCE = 8_000

Shape = Mapping[str, Any]  # Any: JSON of a published shape


def listing(found: Shape, page: int) -> str:
    """A page of functions, one line each, and how many there are besides."""
    rows = found["functions"]
    pages = max((len(rows) + PAGE - 1) // PAGE, 1)
    page = min(max(page, 1), pages)
    shown = rows[(page - 1) * PAGE : page * PAGE]
    lines = [f"{len(rows)} functions, page {page} of {pages}." if rows else "There are no such functions."]
    lines += [
        f"- {row['name']} ({row['module']}, {row['standing']}): {shorten(row['description'], 120)}" for row in shown
    ]
    lines += [f"Rejected: {_problem(problem)}" for problem in found["rejected"][:5]]
    if page < pages:
        lines.append(f"Next: list_functions(page={page + 1}).")
    return "\n".join(lines)


def introspection(found: Shape) -> str:
    """A function's source with line numbers, and what is known of it."""
    numbered = _numbered(found["source"], found["line"])
    statistics = found["statistics"]
    lines = [
        f"`{found['name']}` in {found['path']}, standing {found['standing']}.",
        block(numbered, _MAX_SOURCE),
        f"Called {statistics['calls']} times, failed {statistics['failed']}.",
        f"Used by: {', '.join(found['callers']) or 'no other'}. Uses: {', '.join(found['callees']) or 'none'}.",
        f"{len(found['versions'])} versions of its module are kept.",
    ]
    return "\n".join(lines)


def pending(name: str, kept: Shape) -> str:
    """A candidate that stands refused: its text, and what is in the way."""
    verdict = kept["verdict"]
    source = verdict["source"] or kept["code"]
    numbered = _numbered(source, 1)
    reasons = [f"- {_problem(problem)}" for problem in verdict["problems"] if problem["severity"] == "refuses"]
    return "\n".join([f"`{name}` is not a function yet: it stands refused.", block(numbered, _MAX_SOURCE), *reasons])


def reloaded(found: Shape) -> str:
    """What a look at the folder changed."""
    parts = [f"{what}: {', '.join(found[what])}." for what in ("loaded", "changed", "removed") if found[what]]
    lines = [" ".join(parts).capitalize() if parts else "Nothing changed."]
    lines += [f"Rejected: {_problem(problem)}" for problem in found["rejected"]]
    return "\n".join(lines)


def tested(found: Shape) -> str:
    """How examples, or one call, went."""
    if found["outcome"] is not None:
        return _outcome(found["outcome"])
    rows = found["examples"]
    if not rows:
        return f"`{found['name']}` has no examples. Give it some, or test it with arguments."
    passed = sum(row["passed"] for row in rows)
    lines = [f"{passed} of {len(rows)} examples hold."]
    lines += [
        f"- {'holds' if row['passed'] else 'DIFFERS'}: {fence(row['call'])} gave {fence(row['returned'])}"
        + ("" if row["passed"] else f", expected {fence(row['expected'])}")
        for row in rows
    ]
    return "\n".join(lines)


def _row(row: Shape) -> str:
    return f"{row['name']} ({row['module']}, {row['standing']}): {shorten(row['description'], 120)}"


def _numbered(source: str, first: int) -> str:
    return "\n".join(f"{number:4} {line}" for number, line in enumerate(source.rstrip("\n").split("\n"), first))


def _outcome(outcome: Shape) -> str:
    error = outcome["error"]
    said = fence(f"{error['type']}: {error['message']}") if error else fence(repr(outcome["value"]), 2_000)
    printed = f"\nIt printed:\n{block(outcome['output'], 2_000)}" if outcome["output"].strip() else ""
    return f"{outcome['outcome']} in {outcome['seconds'] * 1000:.1f} ms: {said}{printed}"


def _problem(problem: Shape) -> str:
    mend = f" Mend: {problem['mend']}" if problem["mend"] else ""
    return f"{problem['path']}:{problem['line']} {problem['message']}.{mend}"
