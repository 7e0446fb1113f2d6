"""Recorded calls and replays, from their published JSON to lines."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from agent_core.clock import shown_time
from agent_core.untrusted import one_line, visible
from sandbox.lines import bare_lines

from .columns import columns
from .spans import Line, indented, line
from .verdicts import compact_call, outcome_lines, outcome_role, value_lines
from .versions import coloured

Document: TypeAlias = Mapping[str, Any]  # Any: JSON of a shape that the design publishes

_MOST_ASKED = 20


def calls_lines(found: Iterable[Document]) -> list[Line]:
    """Each recorded call with its number, its arguments, how it ended, when, and whether a replay lacks something."""
    rows = [
        [
            str(row["call"]),
            one_line(compact_call(str(row["function"]), json.dumps(row["arguments"])), 60),
            one_line(str(row["ended"]), 60),
            shown_time(row["at"], "%Y-%m-%d %H:%M:%S"),
            "not all of it was recorded" if row["lacking"] else "",
        ]
        for row in found
    ]
    return columns(rows, ("name", "strong", "", "dim", "warn")) if rows else []


def call_lines(found: Document) -> list[Line]:
    """One recorded call: its arguments, what it got through `self`, how it ended."""
    ended, asked = found["outcome"], [one_line(f"{row['name']} {row['arguments']}", 200) for row in found["heard"]]
    word = ended["outcome"] if isinstance(ended, Mapping) else str(ended)
    lines = [line(("strong", f"[{found['call']}] {found['function']}"), ("dim", "  "), (outcome_role(word), word))]
    lines += [line(("dim", "arguments  "), one_line(str(found["arguments"]), 2_000))]
    lines += indented([line(("dim", "asked  "), each) for each in asked[:_MOST_ASKED]])
    more = len(asked) - _MOST_ASKED
    lines += [line(("dim", f"  … and {more} more"))] if more > 0 else []
    return [*lines, *(_ended(ended) if isinstance(ended, Mapping) else []), *_lacking(found["lacking"])]


def replay_lines(found: Document) -> list[Line]:
    """Whether a call gave the same again, and where it did not."""
    number, hash = found["number"], str(found["version"])[:8]
    version = f"version {number} ({hash})" if number else f"version {hash}"
    head = line(("name", str(found["function"])), ("dim", f"  call {found['call']} again, on {version}: "))
    if found["quit"]:
        return [(*head, ("dim", "ended at the debugger"))]
    if found["same"]:
        return [(*head, ("ok", "the same")), *_ended(found["outcome"]), *_lacking(found["lacking"])]
    told = coloured(bare_lines(visible(str(found["difference"]))))
    return [(*head, ("warn", "another outcome")), *indented(told), *_lacking(found["lacking"])]


def trace_lines(found: Document) -> list[Line]:
    """The lines that a call ran, and how it ended."""
    ran = [text for text in bare_lines(str(found["text"])) if not text.startswith("```")]
    return [*(line(text) for text in ran), *_ended(found["outcome"])]


def _ended(outcome: Document) -> Sequence[Line]:
    shown = value_lines(outcome) if outcome.get("value") is not None else []
    return [*shown, *outcome_lines({"output": "", **outcome})]


def _lacking(lacking: Iterable[str]) -> list[Line]:
    return [line(("warn", "~ "), "not recorded: ", one_line(each, 400)) for each in lacking]
