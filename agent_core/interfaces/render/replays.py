"""Recorded calls and replays as lines."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agent_core.base.clock import shown_time
from agent_core.base.untrusted import one_line, visible
from sandbox.wire.lines import bare_lines

from ..columns import columns
from ..spans import Line, indented, line
from .verdicts import EndedCall, compact_call, outcome_lines, outcome_role, value_lines
from .versions import coloured

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.service.call_service import TraceReport
    from agent_core.functions.service.replay import RecordedCall, RecordedDetails, Replay

_MOST_ASKED = 20


def calls_lines(records: Iterable["RecordedCall"]) -> list[Line]:
    """Return each recorded call: its number, arguments, outcome, time, and whether a replay is missing something."""
    rows = [
        [
            str(record.call),
            one_line(compact_call(record.function, json.dumps(record.arguments)), 60),
            one_line(record.ended, 60),
            shown_time(record.at, "%Y-%m-%d %H:%M:%S"),
            "not all of it was recorded" if record.lacking else "",
        ]
        for record in records
    ]
    return columns(rows, ("name", "strong", "", "dim", "warn")) if rows else []


def call_lines(details: "RecordedDetails") -> list[Line]:
    """Return one recorded call: its arguments, what it got through `self`, and its outcome."""
    call, word = details.call, details.outcome.outcome
    requests = [one_line(f"{row['name']} {row['arguments']}", 200) for row in details.data["heard"]]
    lines = [line(("strong", f"[{call.call}] {call.function}"), ("dim", "  "), (outcome_role(word), word))]
    lines += [line(("dim", "arguments  "), one_line(str(call.arguments), 2_000))]
    where = f"call {call.number_in_program} of a program, in turn {call.turn}"
    lines += [line(("dim", "made as  "), where)] if call.number_in_program else []
    lines += indented([line(("dim", "asked  "), request) for request in requests[:_MOST_ASKED]])
    more = len(requests) - _MOST_ASKED
    lines += [line(("dim", f"  … and {more} more"))] if more > 0 else []
    return [*lines, *_ended(details.outcome), *_lacking(call.lacking)]


def replay_lines(replay: "Replay") -> list[Line]:
    """Return whether a replay gave the same result, and the difference if not."""
    number, hash = replay.number, replay.version[:8]
    version = f"version {number} ({hash})" if number else f"version {hash}"
    head = line(("name", replay.function), ("dim", f"  call {replay.call} again, on {version}: "))
    if replay.quit:
        return [(*head, ("dim", "ended at the debugger"))]
    if replay.same:
        return [(*head, ("ok", "the same")), *_ended(replay.outcome), *_lacking(replay.lacking)]
    diff = coloured(bare_lines(visible(replay.difference)))
    return [(*head, ("warn", "another outcome")), *indented(diff), *_lacking(replay.lacking)]


def trace_lines(report: "TraceReport") -> list[Line]:
    """Return the lines that a call ran, and its outcome."""
    ran = [text for text in bare_lines(report.text) if not text.startswith("```")]
    return [*(line(text) for text in ran), *_ended(report.outcome, report.outcome.seconds)]


def _ended(call: EndedCall, seconds: float = 0.0) -> Sequence[Line]:
    shown = value_lines(call) if call.value is not None else []
    return [*shown, *outcome_lines(call, seconds)]


def _lacking(lacking: Iterable[str]) -> list[Line]:
    return [line(("warn", "~ "), "not recorded: ", one_line(item, 400)) for item in lacking]
