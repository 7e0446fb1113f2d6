"""A function's versions, a difference, who wrote which line, and what stands refused: from their JSON to lines."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from agent_core.clock import shown_time
from agent_core.untrusted import one_line
from sandbox.lines import bare_lines

from .columns import columns
from .spans import Line, Role, line
from .verdicts import problem_lines

Document: TypeAlias = Mapping[str, Any]  # Any: JSON of a shape that the design publishes

_MARKS: dict[str, Role] = {"+": "ok", "-": "bad", "@": "dim"}


def history_lines(found: Document) -> list[Line]:
    """The versions, the newest first: number, hash, when, who, how much changed, standing, and why."""
    newest_first = found["versions"][::-1]
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
    taken = [f"{call}: its result was taken as it came back, not predicted" for call in row["confirmed"]]
    return [line("     ", ("warn", "~ "), ("dim", one_line(text, 400))) for text in (*taken, *row["dropped"])]


def diff_lines(found: Document) -> list[Line]:
    """A difference in the usual colours."""
    lines = bare_lines(str(found["diff"]))
    if not lines:
        return [line(("dim", f"Version {found['from']['number']} is the current one: nothing differs."))]
    return coloured(lines)


def coloured(lines: Iterable[str]) -> list[Line]:
    """The lines of a unified diff in the usual colours."""
    return [line(("strong" if text.startswith(("+++", "---")) else _MARKS.get(text[:1], ""), text)) for text in lines]


def blame_lines(found: Document) -> list[Line]:
    """Each line of the source behind the version that brought it: who, when, why."""
    rows = [
        [str(row["number"]), row["version"][:8], _who(row), _when(row), one_line(row["reason"], 30), f"{row['line']}"]
        for row in found["lines"]
    ]
    heads = columns(rows, ("name", "dim", "", "dim", "dim", "dim"), gap=1)
    return [(*head, ("", f" {row['text']}")) for head, row in zip(heads, found["lines"], strict=True)]


def pending_lines(found: Mapping[str, Document]) -> list[Line]:
    """Every candidate that stands refused, with what is in its way."""
    lines: list[Line] = []
    for name, kept in found.items():
        verdict = kept["verdict"]
        lines.append(line(("bad", "✗ "), ("name", name), f" would join {kept['module']}; it stands refused"))
        lines += [(("", "  "), *each) for each in problem_lines(_refusing(verdict))]
        lines += [(("", "    "), *each) for each in coloured(bare_lines(str(kept.get("conflict") or "")))]
    return lines


def pending_hint(found: Mapping[str, Document], command: str, drop: str = "/pending NAME drop") -> str:
    """The next thing to type where two hands met, or where only results of examples are in the way of one."""
    met = [name for name, kept in found.items() if kept.get("conflict")]
    if met:
        return f"To take what is kept: {command} {met[0]}; to give it up: {drop.replace('NAME', met[0])}"
    ready = [name for name, kept in found.items() if kept["verdict"].get("can_be_confirmed")]
    return f"Where what came back is right: {command} {ready[0]}" if ready else ""


def _refusing(verdict: Document) -> list[Document]:
    return [problem for problem in verdict["problems"] if problem["severity"] == "refuses"]


def _when(row: Document) -> str:
    return shown_time(row["at"])


def _who(row: Document) -> str:
    model = f"({row['model']})" if row["model"] else ""
    return " ".join(filter(None, [row["by"], row["agent"], model, row["turn"][-8:]]))
