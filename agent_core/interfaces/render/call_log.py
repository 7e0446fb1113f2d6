"""A turn's events as lines: calls and their answers, changes, warnings, and how the turn ended.

The prompt and the plain output show the same lines; only the reply's text differs between them.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from agent_core.base.events import CallAnswered, CallStarted, Event, FunctionsChanged, TurnEnded
from agent_core.base.messages import SEND
from agent_core.base.untrusted import one_line
from agent_core.functions.service.judgment import Judgment
from sandbox.wire.lines import bare_lines

from ..columns import cut, duration, width
from ..spans import Line, Role, Span, indented, line, quoted
from ..spending import money
from .verdicts import changes_line, compact_call, outcome_role, save_lines, stage_lines, verdict_lines
from .versions import coloured

_ENDINGS = {
    "interrupted": "Interrupted. The conversation is kept; continue, or type /retry.",
    "steps": "Stopped at the limit of steps in one turn. Type `go on`, or raise turn.max_steps.",
    "repeated": "Stopped because the same call kept failing.",
    "failed": "The turn failed.",
    "cancelled": "The turn was cancelled.",
    "limits": "A limit was reached.",
    "parked": "It waits for the answer, and goes on by itself.",
    "client_calls": "A program that talks to it has calls to answer.",
    "length": "The reply was cut off at the length that a client asked for.",
    "handed_off": "Another agent goes on with it.",
    "stuck": "A person has to decide: /agents shows who waits.",
}


@dataclass(frozen=True, slots=True)
class ShownCall:
    """One call of a session, as `/show N` displays it."""

    number: int
    name: str
    arguments: str
    text: str
    outcome: str
    seconds: float
    detail: dict[str, Any] = field(default_factory=dict)  # Any: JSON of a published shape

    @property
    def source(self) -> str:
        """The source of the function that this call made, if it made one."""
        return self.verdict.source if self.verdict else ""

    @property
    def diff(self) -> list[str]:
        """The lines in which a function that this call changed differs from before, where they are fewer than all."""
        lines = bare_lines(self.verdict.diff) if self.verdict else []
        return lines[2:] if len(lines) < len(bare_lines(self.source)) else []

    @property
    def verdict(self) -> Judgment | None:
        """The verdict on the function that this call made or changed."""
        return Judgment.from_json(self.detail) if "admitted" in self.detail else None


class CallLog:
    """The calls of a session, numbered as they are answered."""

    def __init__(self) -> None:
        self.calls: list[ShownCall] = []
        self.forgot = False
        """Whether calls were dropped because something was forgotten."""
        self._asked: dict[str, str] = {}

    def forget(self) -> None:
        """Drop all calls: what was forgotten may be in them."""
        self.forgot = True
        self.calls.clear()
        self._asked.clear()

    def started(self, event: CallStarted) -> None:
        """Store the arguments until the answer comes."""
        self._asked[event.call_id] = event.arguments

    def answered(self, event: CallAnswered) -> ShownCall:
        """Return the call with its answer and its number."""
        arguments = self._asked.pop(event.call_id, "")
        number = len(self.calls) + 1
        call = ShownCall(number, event.name, arguments, event.text, event.outcome, event.seconds, event.detail)
        self.calls.append(call)
        return call


def call_line(call: ShownCall, columns: int) -> Line:
    """Return `▸ count_vowels(text='queueing') → 5 12 ms [3]`, on one line of the screen."""
    spent = f"  {helper_spent(run)}" if (run := call.detail.get("helper")) else ""
    tail = f"{spent}  {duration(call.seconds)}  [{call.number}]"
    result, role = _result(call)
    unproven = "  unproven" if call.detail.get("unproven") else ""
    room = max(24, columns - width(tail + unproven) - 5)
    call_text = cut(one_line(_call_text(call), 2 * room), max(room - width(result), room * 3 // 5))
    answer = cut(result, room - width(call_text))
    name, opening, arguments = call_text.partition("(")
    return line(
        ("dim", "▸ "),
        ("name", name),
        opening + arguments,
        ("dim", " → "),
        (role, answer),
        ("warn", unproven),
        ("dim", tail),
    )


def verdict_part(call: ShownCall) -> list[Line]:
    """Return the verdict under a call that made or changed a function: headline, fixes, problems."""
    if call.verdict is None:
        return []
    return indented([*verdict_lines(call.verdict), *indented(coloured(bare_lines(call.verdict.conflict)))])


def laid_open(call: ShownCall) -> list[Line]:
    """Return everything about one call: the arguments as they came, the answer as the model read it."""
    return [
        line(("strong", f"[{call.number}] {call.name}"), ("dim", f"  {call.outcome}, {duration(call.seconds)}")),
        line(("dim", "arguments")),
        *indented(line(text) for text in bare_lines(call.arguments)),
        line(("dim", "answer, as the model reads it")),
        *indented(line(text) for text in bare_lines(call.text)),
        *(stage_lines(call.verdict) if call.verdict else []),
        *_helper_part(call.detail.get("helper")),
    ]


def helper_spent(run: dict[str, Any]) -> str:  # Any: JSON
    """Return what a helper spent in one call, for the caller's line."""
    steps, tokens, cost = run.get("steps", 0), run.get("tokens", 0), run.get("cost")
    return f"{steps} step{'' if steps == 1 else 's'}, {tokens:,} tokens{f', {money(cost)}' if cost else ''}"


def _helper_part(run: dict[str, Any] | None) -> list[Line]:  # Any: JSON
    """Return where the transcript of a helper's call is."""
    if not run:
        return []
    where = f"knapper log --agent {one_line(str(run.get('agent', '')), 80)}"
    return [line(("dim", f"a helper: {helper_spent(run)}; its transcript: "), where)]


def changed_lines(event: FunctionsChanged, when: str = "from outside") -> list[Line]:
    """Return what someone changed in the functions; `when`, or how, files were saved that no agent and no command of
    this program wrote.
    """
    below = [*save_lines(event), *(row for text in event.rejected for row in _rejected(event, text))]
    if not (event.loaded or event.changed or event.removed):
        return below
    by = {"human": when, "user": "by you"}.get(event.by, f"by {event.by}")
    return [changes_line(event, by), *indented(below)]


def is_own(event: FunctionsChanged, words: Collection[str]) -> bool:
    """Check whether a command made a change, which shows the result itself: one of these words, or any of the user.
    Saves are shown with more.
    """
    if event.by == "user" and not (event.rejected or event.fixed):
        return True
    names = {*event.loaded, *event.changed, *event.removed}
    news = event.rejected or event.fixed or event.standings or event.disagreeing or event.noted
    return names <= {*words} and not news


def _rejected(event: FunctionsChanged, text: str) -> list[Line]:
    headline = line(("bad", "✗ rejected: "), text)
    return [headline, *indented(quoted([line(event.lines[text])]))] if text in event.lines else [headline]


def was_told(reply: str, heard: str) -> bool:
    """Check whether a reply is already in what was shown, ignoring whitespace."""
    return "".join(reply.split()) in "".join(heard.split())


def is_speech(event: Event) -> bool:
    """Check whether an event is of a call that only speaks to the user, who has its text."""
    match event:
        case CallStarted():
            return event.name == SEND
        case CallAnswered():
            return event.name == SEND and event.outcome == "returned"
        case _:
            return False


def ended_lines(event: TurnEnded, seconds: float) -> list[Line]:
    """Return what the turn made, and how it ended if not with a reply."""
    lines: list[Line] = []
    if event.reason != "replied":
        role: Role = "bad" if event.reason == "failed" else "warn"
        lines.append(line((role, _ENDINGS.get(event.reason, f"The turn ended: {event.reason}."))))
    changes: list[Span] = [("ok", f"{verb} {', '.join(names)}") for verb, names in event.made.items() if names]
    tokens = event.usage.get("prompt_tokens", 0) + event.usage.get("completion_tokens", 0)
    steps = f"{event.steps} step{'' if event.steps == 1 else 's'}"
    spent = ", ".join([steps, *([f"{tokens:,} tokens"] if tokens else []), duration(seconds)])
    parts: list[Span] = [*changes, ("dim", spent)]
    between: list[Span] = [("dim", "∙ "), parts[0]]
    for part in parts[1:]:
        between += [("dim", " · "), part]
    return [*lines, tuple(between)]


def _call_text(call: ShownCall) -> str:
    # The source and the verdict are shown below such a call: its name says enough.
    return f"{call.name}({call.verdict.name})" if call.verdict else compact_call(call.name, call.arguments)


def _result(call: ShownCall) -> tuple[str, Role]:
    if call.verdict is not None:
        return ("admitted", "ok") if call.verdict.admitted else ("refused", "bad")
    first = call.text.partition("\n")[0]
    if call.outcome == "returned":
        return one_line(first), ""
    error = call.detail.get("error") or {}
    kind, message = str(error.get("type", "")), str(error.get("message", ""))
    if kind and kind != call.outcome:
        return one_line(f"{kind}: {message}"), "bad"
    return one_line(f"{call.outcome.replace('_', ' ')}: {message or first}"), outcome_role(call.outcome)
