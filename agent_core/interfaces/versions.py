"""Versions, diffs, blame and rejected candidates of functions as lines, from their JSON."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from agent_core.base.clock import shown_time
from agent_core.base.untrusted import one_line
from sandbox.wire.lines import bare_lines

from .columns import columns
from .spans import Line, Role, line
from .verdicts import problem_lines

Document: TypeAlias = Mapping[str, Any]  # Any: JSON of a shape that the design publishes

_MARKS: dict[str, Role] = {"+": "ok", "-": "bad", "@": "dim"}


def history_lines(data: Document) -> list[Line]:
    """Return the versions, newest first: number, hash, when, who, how much changed, standing, and why."""
    newest_first = data["versions"][::-1]
    rows = [
        [
            f"{row['number']}{' *' if row['current'] else ''}",
            row["version"][:8] or row["what"],
            _when(row),
            _who(row),
            f"+{row['added']} -{row['removed']}",
            row["standing"],
            row["reason"],
        ]
        for row in newest_first
    ]
    shown = columns(rows, ("name", "", "dim", "", "", "", ""))
    return [part for line_, row in zip(shown, newest_first, strict=True) for part in (line_, *_weak(row))]


def _weak(row: Document) -> list[Line]:
    notes = [f"{call}: its result was confirmed, not predicted" for call in row["confirmed"]]
    return [line("     ", ("warn", "~ "), ("dim", one_line(text, 400))) for text in (*notes, *row["dropped"])]


def diff_lines(data: Document) -> list[Line]:
    """Return a diff in the usual colors."""
    lines = bare_lines(str(data["diff"]))
    if not lines:
        return [line(("dim", f"Version {data['from']['number']} is the current one: nothing differs."))]
    return coloured(lines)


def coloured(lines: Iterable[str]) -> list[Line]:
    """Return the lines of a unified diff in the usual colors."""
    return [line(("strong" if text.startswith(("+++", "---")) else _MARKS.get(text[:1], ""), text)) for text in lines]


def blame_lines(data: Document) -> list[Line]:
    """Return each source line after the version that introduced it: who, when, why."""
    rows = [
        [str(row["number"]), row["version"][:8], _who(row), _when(row), one_line(row["reason"], 30), f"{row['line']}"]
        for row in data["lines"]
    ]
    heads = columns(rows, ("name", "dim", "", "dim", "dim", "dim"), gap=1)
    return [(*head, ("", f" {row['text']}")) for head, row in zip(heads, data["lines"], strict=True)]


def pending_lines(candidates: Mapping[str, Document]) -> list[Line]:
    """Return every rejected candidate, with the problems that keep it out."""
    lines: list[Line] = []
    for name, candidate in candidates.items():
        verdict = candidate["verdict"]
        lines.append(line(("bad", "✗ "), ("name", name), f" would join {candidate['module']}; it is rejected"))
        lines += [(("", "  "), *spans) for spans in problem_lines(_refusing(verdict))]
        lines += [(("", "    "), *spans) for spans in coloured(bare_lines(str(candidate.get("conflict") or "")))]
    return lines


def pending_hint(candidates: Mapping[str, Document], command: str, drop: str = "/pending NAME drop") -> str:
    """Return the next command to type after an edit conflict, or if only results of examples keep a candidate out."""
    met = [name for name, candidate in candidates.items() if candidate.get("conflict")]
    if met:
        return f"To use the kept version: {command} {met[0]}; to discard it: {drop.replace('NAME', met[0])}"
    ready = [name for name, candidate in candidates.items() if candidate["verdict"].get("can_be_confirmed")]
    return f"If the returned results are right: {command} {ready[0]}" if ready else ""


def _refusing(verdict: Document) -> list[Document]:
    return [problem for problem in verdict["problems"] if problem["severity"] == "refuses"]


def _when(row: Document) -> str:
    return shown_time(row["at"])


def _who(row: Document) -> str:
    model = f"({row['model']})" if row["model"] else ""
    return " ".join(filter(None, [row["by"], row["agent"], model, row["turn"][-8:]]))
