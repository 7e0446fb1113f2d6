"""A turn's events as lines: calls and their answers, changes, warnings, and the end of the turn.

The prompt and the plain output show the same lines; only the reply's text differs between them.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_core.base.events import (
    CallAnswered,
    CallStarted,
    CallStopped,
    Event,
    FunctionsChanged,
    TurnEnded,
)
from agent_core.base.matching import diff_lines
from agent_core.base.messages import SEND
from agent_core.base.problem import Problem
from agent_core.base.receipt import INSIDE, NOTHING_OUTSIDE, TOUCHED, Fact, Receipt
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import from_difference, one_line, shorten
from agent_core.functions.debug import COMMANDS, Command, DebugStop
from agent_core.functions.gate import Disagreement
from agent_core.functions.gate.tree import parse
from agent_core.functions.service.judgment import Judgment
from agent_core.registry.function import reach_words
from sandbox.wire.lines import bare_lines, lines_of

from . import verdicts
from .function_view import SourceRow
from .styled_lines import (
    Line,
    Role,
    Span,
    counted,
    cut,
    duration,
    folded,
    indented,
    line,
    money,
    quoted,
    width,
)

if TYPE_CHECKING:
    from agent_core.storage.picture_files import PictureFiles

_ENDINGS = {
    "interrupted": "Interrupted. The conversation is kept; continue, or type /retry.",
    "steps": "Stopped at the limit of steps in one turn. Type `go on`, or raise turn.max_steps.",
    "repeated": "Stopped because the same call kept failing.",
    "failed": "The turn failed.",
    "cancelled": "The turn was cancelled.",
    "limits": "A limit was reached.",
    "parked": "Waiting for an answer; the turn will continue by itself.",
    "client_calls": "Waiting for the client program to answer its function calls.",
    "length": "The reply was cut off at the length that a client asked for.",
    "handed_off": "Handed off to another agent.",
    "stuck": "You have to decide: /agents shows who waits.",
}
_WINDOWS = {
    "": "another window",
    "prompt": "another prompt",
    "page": "the page",
    "pipe": "a pipe",
    "command": "a command",
    "job": "cron or another job without a terminal",
    "library": "a program",
    "door": "a client",
}
_SENDER_CHARS = 64
_CONFIRM = "confirm_function"  # changes only the results of examples
_LEAST_HEAD = 32  # minimum cells for a signature
_LEAST_NAME = 12  # minimum cells for a name
_WIDE = 100  # columns that are enough for a single row
_MOST_CHANGED = 4  # rows shown of a change


@dataclass(frozen=True)
class ShownCall:
    """A call in a session, with the data that `/show N` displays."""

    number: int
    name: str
    arguments: str
    text: str
    outcome: str
    seconds: float
    detail: dict[str, Any] = field(default_factory=dict)  # Any: JSON of a published shape
    earlier: Judgment | None = None
    """The previous verdict in this session on a function with the same name."""

    @property
    def source(self) -> str:
        """The source of the function that this call made or changed, or "" if it did not."""
        return self.verdict.source if self.verdict else ""

    @property
    def diff(self) -> list[str]:
        """The lines of the diff between the changed function and its previous version or the last rejected source."""
        if not self.verdict:
            return []
        lines = bare_lines(self.verdict.diff)
        if not lines and self.earlier and self.earlier.source and self.source:
            before, after = lines_of(self.earlier.source), lines_of(self.source)
            lines = [row.rstrip("\r\n") for row in diff_lines(before, after, ("", ""), 1)]
        return lines[2:]

    @property
    def hints(self) -> list[Problem]:
        """The hints of the verdict that the previous verdict did not have."""
        told = (
            {(hint.code, hint.message) for hint in verdicts.hints(self.earlier)}
            if self.earlier
            else set()
        )
        hints = verdicts.hints(self.verdict) if self.verdict else []
        return [hint for hint in hints if (hint.code, hint.message) not in told]

    @cached_property
    def verdict(self) -> Judgment | None:
        """The verdict on the function that this call made or changed."""
        return Judgment.from_json(self.detail) if "admitted" in self.detail else None


class CallLog:
    """The calls of a session, numbered as they are answered. If `is_full`, verdicts are shown completely."""

    def __init__(self, *, is_full: bool = False) -> None:
        self.is_full = is_full
        self.calls: list[ShownCall] = []
        self.pictures: PictureFiles | None = None
        """Where the pictures of calls are kept, if that is here."""
        self.forgot = 0
        """The number of calls that were dropped because something was forgotten. Their numbers are not reused."""
        self._asked: dict[str, str] = {}

    def forget(self) -> None:
        """Drop all calls, because they may contain what was forgotten."""
        self.forgot += len(self.calls)
        self.calls.clear()
        self._asked.clear()

    def started(self, event: CallStarted) -> None:
        """Store the arguments until the call is answered."""
        self._asked[event.call_id] = event.arguments

    def answered(self, event: CallAnswered) -> ShownCall:
        """Add an answered call and return it with its number."""
        arguments = self._asked.pop(event.call_id, "")
        number = self.forgot + len(self.calls) + 1
        call = ShownCall(
            number, event.name, arguments, event.text, event.outcome, event.seconds, event.detail
        )
        if call.verdict:
            verdicts = (other.verdict for other in reversed(self.calls) if other.verdict)
            call = replace(
                call, earlier=next((one for one in verdicts if one.name == call.verdict.name), None)
            )
        self.calls.append(call)
        return call


def call_lines(call: ShownCall, columns: int, where: str = "") -> list[Line]:
    """Return the lines of a call that stay on the screen: one row, or `kept_lines` and the changed lines if it made or
    changed a function. The command `where`, by default `/show N`, shows the rest.
    """
    if call.verdict is None:
        return [call_line(call, columns)]
    where = where or f"/show {call.number}"
    kept = kept_lines(call, where, columns)
    apart = bare_lines(call.verdict.conflict)[2:]  # lines that a person saved meanwhile
    if call.name == _CONFIRM:
        sides = [
            f"{sign} {shown}"
            for row in call.verdict.taken_over[:1]
            for sign, shown in _result_sides(row, columns - len("  - "))
        ]
        return [*kept, *indented(verdicts.coloured(cut(side, columns - 2) for side in sides))]
    if not (call.verdict.admitted or apart):
        return kept
    changed = [
        row for row in apart or call.diff if row[:1] in "+-" and row[1:].strip()
    ]  # a blank line says nothing
    more = [line(("dim", f"  … {len(changed) - _MOST_CHANGED} more changed lines"))]
    shown = changed if len(changed) <= _MOST_CHANGED + 1 else changed[:_MOST_CHANGED]
    rows = indented(
        verdicts.coloured(
            cut(one_line(row, 2 * columns), columns - 2)
            for row in _from_their_differences(shown, changed, columns - 2)
        )
    )
    return [*kept, *rows, *(more if len(shown) < len(changed) else [])]


def _result_sides(disagreement: Disagreement, columns: int) -> Iterator[tuple[str, str]]:
    """Yield the sign and the text of the two results of a call, from shortly before their difference."""
    said = f"{one_line(disagreement.call, columns // 2)} → "
    room = columns - width(said)
    for sign, result, other in (
        ("-", disagreement.expected, disagreement.returned),
        ("+", disagreement.returned, disagreement.expected),
    ):
        if result.strip():
            yield (
                sign,
                said + one_line(from_difference(result.strip(), other.strip(), room), columns),
            )


def _from_their_differences(
    shown: Sequence[str], changed: Sequence[str], columns: int
) -> Iterator[str]:
    """Yield rows of a diff; of one that does not fit, the part that begins shortly before what differs in its other."""
    others = dict[int, str]()
    removed: list[int] = []
    for place, row in enumerate(changed):
        if row.startswith("-"):
            removed.append(place)
        elif removed:
            old = removed.pop(0)
            others[old] = row
            others[place] = changed[old]
    for place, row in enumerate(shown):
        other = others.get(place, row)
        yield row[0] + from_difference(row[1:], other[1:], columns - 1)


def kept_lines(call: ShownCall, where: str, columns: int) -> list[Line]:
    """Return one row about the admitted function, or up to two rows about the rejection and what happens next."""
    verdict = call.verdict
    assert verdict is not None
    told = [counted(len(verdict.fixes), "fix", "fixes")] * bool(verdict.fixes)
    told += [counted(len(call.hints), "hint")] * bool(call.hints)
    rest = f" · {', '.join(told)}{': ' if told else ''}"
    if verdict.admitted:  # its signature, its evidence, and its reach
        verb = "went back to" if verdict.back else "changed" if verdict.diff else "made"
        facts = ["a draft: no example proves it"] if verdict.standing == "draft" else []
        taken_over = len(verdict.taken_over)
        earlier = len(verdict.confirmed) - taken_over
        now = f", {taken_over} updated to the result" if taken_over else ""
        facts += (
            [f"{verdicts.examples_note(verdict).removesuffix(' agree')}{now}"]
            if verdict.agreed
            else []
        )
        facts += [f"{counted(earlier, 'result')} as returned"] if earlier else []
        facts += [one_line(reach_words(verdict.reach))] if verdict.reach is not None else []
        facts += [unread] if (unread := verdicts.unread_note(verdict)) else []
        mark: Span = ("warn", "~ ") if verdict.fails_examples else ("ok", "✓ ")
        head, said = (
            _signature(verdict) or one_line(verdict.name, 80),
            "".join(f" · {fact}" for fact in facts),
        )
        return [_kept_line((mark[0], f"{mark[1]}{verb} "), head, "", said, rest, where, columns)]
    note, name = verdicts.examples_note(verdict), one_line(verdict.name or verdict.path, 80)
    tried = f" · {note}" if note else ""
    if verdict.challenges:
        asked = f"the model is asked for {counted(len(verdict.challenges), 'more result')}"
        yet = f" not {'changed' if verdict.diff else 'made'} yet{tried} · {asked}"
        return [_kept_line(("dim", "~ "), name, "", yet, rest, where, columns)]
    refusals = verdict.refusals
    many = f": {counted(len(refusals), 'problem')}" if refusals else ""
    following = "not granted" if verdict.denied else "goes back to the model"
    following = "what is on disk stays: /pending" if verdict.conflict else following
    why = (verdict.denied or (refusals[0].message if refusals else verdict.error)).partition("\n")[
        0
    ]
    top = _kept_line(
        ("bad", "✗ "), name, f" refused{many}", f"{tried} · {following}", rest, where, columns
    )
    return [top, line(("dim", cut(f"  {one_line(why, 2 * columns)}", columns)))] if why else [top]


def _kept_line(
    mark: Span, name: str, outcome: str, told: str, rest: str, where: str, columns: int
) -> Line:
    """Return a row, in which the name is cut first, then the text about it. A narrow screen may need two rows."""
    room = columns * (1 if columns >= _WIDE else 2) - width(mark[1] + outcome + rest + where)
    name = cut(name, max(room - width(told), min(_LEAST_HEAD, room)))
    room = min(room - width(name), width(told))
    while True:  # words that move to the next row leave room unused
        row = line(
            mark, ("name", name), outcome, ("dim", cut(told, room) + rest), ("command", where)
        )
        if len([*islice(folded([row], columns), 3)]) < 3 or (
            room <= 0 and width(name) <= _LEAST_NAME
        ):
            return row
        room, name = (room - 1, name) if room > 0 else (0, cut(name, width(name) - 1))


def _signature(judgment: Judgment) -> str:
    """Return a function's name, its parameter names, and its return annotation from the source."""
    tree = parse(judgment.source)
    body = tree.body if isinstance(tree, ast.Module) else []
    nodes = (node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    node = next((node for node in nodes if node.name == judgment.name), None)
    if node is None:
        return ""
    arguments = node.args
    names = [
        one.arg
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        if one.arg != "self"
    ]
    names += [
        f"{star}{one.arg}"
        for star, one in (("*", arguments.vararg), ("**", arguments.kwarg))
        if one
    ]
    gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return one_line(f"{node.name}({', '.join(names)}){gives}")


def call_line(call: ShownCall, columns: int) -> Line:
    """Return `▸ count_vowels(text='queueing') → 5 12 ms [3]`, on one line of the screen."""
    spent = f"  {helper_spent(run)}" if (run := call.detail.get("helper")) else ""
    printed = len(bare_lines(call.detail.get("output") or ""))
    spent += f"  printed {counted(printed, 'line')}" if printed else ""
    tail = f"{spent}  {duration(call.seconds)}  [{call.number}]"
    result, role = _result(call)
    unproven = "  unproven" if call.detail.get("unproven") else ""
    room = max(24, columns - width(tail + unproven) - 5)
    # The source and the verdict are shown below such a call, so its name is enough.
    made = (
        f"{call.name}({call.verdict.name})"
        if call.verdict
        else verdicts.compact_call(call.name, call.arguments)
    )
    call_text = cut(one_line(made, 2 * room), max(room - width(result), room * 3 // 5))
    answer = cut(result, room - width(call_text))
    name, opening, arguments = call_text.partition("(")
    return line(
        ("dim", "▸ "),
        ("name", name),
        ("dim", opening + arguments),
        ("dim", " → "),
        (role, answer),
        ("warn", unproven),
        ("dim", tail),
    )


def verdict_part(call: ShownCall, known: Collection[Problem] = ()) -> list[Line]:
    """Return the verdict on a function that a call made or changed: headline, fixes, and problems not yet known."""
    if call.verdict is None:
        return []
    told = replace(
        call.verdict, problems=tuple(one for one in call.verdict.problems if one not in known)
    )
    return indented(
        [
            *verdicts.verdict_lines(told),
            *indented(verdicts.coloured(bare_lines(call.verdict.conflict))),
        ]
    )


def laid_open(call: ShownCall) -> list[Line]:
    """Return everything about one call: its verdict, its arguments (shortened if they contain a source), and the answer
    as the model read it.
    """
    given = verdicts.compact_call(call.name, call.arguments) if call.source else call.arguments
    lines = [
        line(
            ("strong", f"[{call.number}] {call.name}"),
            ("dim", f"  {call.outcome}, {duration(call.seconds)}"),
        ),
        *verdict_part(call),
        *indented(verdicts.stage_lines(call.verdict) if call.verdict else []),
        line(("dim", "arguments")),
        *indented(line(text) for text in bare_lines(given)),
        line(("dim", "answer, as the model reads it")),
        *indented(line(text) for text in bare_lines(call.text)),
        *verdicts.printed_lines(call.detail.get("output") or ""),
    ]
    if run := call.detail.get("helper"):
        where = f"knapper log --agent {one_line(str(run.get('agent', '')), 80)}"
        lines.append(
            line(("dim", f"a helper: {helper_spent(run)}; its transcript: "), ("command", where))
        )
    return lines


def helper_spent(run: dict[str, Any]) -> str:  # Any: JSON
    """Return the cost of a helper's run, for the line of the call."""
    tokens, cost = run.get("tokens", 0), run.get("cost")
    return f"{counted(run.get('steps', 0), 'step')}, {tokens:,} tokens{f', {money(cost)}' if cost else ''}"


def changed_lines(changed: FunctionsChanged, when: str = "outside") -> list[Line]:
    """Return lines about changes to the functions. `when` says when or where a change was made if it came from saved
    files rather than an agent or a command.
    """
    below = verdicts.save_lines(changed)
    for text in changed.rejected:
        below.append(line(("bad", "✗ rejected: "), text))
        below += indented(quoted([line(changed.lines[text])])) if text in changed.lines else []
    if not (changed.loaded or changed.changed or changed.removed):
        return below
    by = {"human": when, "user": "by you"}.get(changed.by, f"by {changed.by}")
    return [verdicts.changes_line(changed, by), *indented(below)]


def is_own(changed: FunctionsChanged, words: Collection[str]) -> bool:
    """Check whether a change comes from a command that shows the result itself: the change is the user's, or affects
    only functions named in `words`. Changes with problems or other news do not count.
    """
    if changed.by == "user" and not (changed.rejected or changed.fixed):
        return True
    names = {*changed.loaded, *changed.changed, *changed.removed}
    news = (
        changed.rejected
        or changed.fixed
        or changed.standings
        or changed.disagreeing
        or changed.noted
    )
    return names <= {*words} and not news


def was_told(reply: str, heard: str) -> bool:
    """Check whether a reply is contained in the text already shown, ignoring whitespace."""
    return "".join(reply.split()) in "".join(heard.split())


def from_words(origin: str) -> str:
    """Return from where a message came: the kind of its window in words, or the name of its sender."""
    return f"from {_WINDOWS.get(origin, one_line(origin, _SENDER_CHARS))}"


def is_speech(event: Event) -> bool:
    """Check whether an event belongs to a call that only sends the user a message, which is already shown."""
    match event:
        case CallStarted():
            return event.name == SEND
        case CallAnswered():
            return event.name == SEND and event.outcome == "returned"
        case _:
            return False


_LAST: Final = INSIDE - {"unmade"}
_ROLES: Final[Mapping[Fact | None, Role]] = {
    **dict.fromkeys((*TOUCHED, "remembered", "wrote", "told"), "ok"),
    **dict.fromkeys(("refused", "unreached", "failed", "unknown", "unmade"), "warn"),
}


def ended_lines(event: TurnEnded, seconds: float, columns: int) -> list[Line]:
    """Return the turn's receipt in one line, and the reason for its end if it ended without a reply."""
    lines: list[Line] = []
    if event.reason != "replied":
        role: Role = "bad" if event.reason == "failed" else "warn"
        lines.append(line((role, _ENDINGS.get(event.reason, f"The turn ended: {event.reason}."))))
    tokens = event.usage.get("prompt_tokens", 0) + event.usage.get("completion_tokens", 0)
    steps, took = counted(event.steps, "step"), duration(seconds)
    spending = [f"{steps}, {tokens:,} tokens, {took}"] * bool(tokens) + [f"{steps}, {took}"]
    did, spent = _receipt_parts(event, spending, columns - width("∙ "))
    spans: list[tuple[bool, Span]] = [
        (fact in _LAST, (_ROLES.get(fact, "dim"), text)) for fact, text in did
    ]
    # Actions outside the conversation come first, and what a reply may only claim.
    parts = [
        *(span for is_in, span in spans if not is_in),
        ("dim", spent),
        *(span for is_in, span in spans if is_in),
    ]
    between: list[Span] = [("dim", "∙ "), parts[0]]
    for part in parts[1:]:
        between += [("dim", " · "), part]
    return [*lines, tuple(between)]


_Parts: TypeAlias = Sequence[tuple[Fact | None, str]]


def _receipt_parts(event: TurnEnded, spending: Sequence[str], columns: int) -> tuple[_Parts, str]:
    """Return what the turn did and what it cost, in the longest forms that fit into the columns together."""
    if not event.receipt:
        return [], spending[0]  # a turn without a receipt
    receipt = Receipt.from_json(event.made)
    most = max(columns // width("a, "), 1)  # so many names fit at best
    names = {fact: min(len(receipt.names(fact)), most) for fact in receipt.facts()}
    named: dict[Fact, int] = dict(names)
    outside = [NOTHING_OUTSIDE, "nothing outside"] if receipt.is_inside else []
    spent = [*spending]

    def parts() -> _Parts:
        nothing: _Parts = [(None, text) for text in outside[:1]]
        phrases = [
            (fact, receipt.phrase(fact, count, to_you=True)) for fact, count in named.items()
        ]
        return [*nothing, *phrases]

    def is_fitting() -> bool:
        texts = [text for _, text in parts()]
        return sum(map(width, texts)) + width(spent[0]) + width(" · ") * len(texts) <= columns

    while not is_fitting() and _shorten(named, dict(parts()), outside, spent):
        pass
    for fact in named:  # one long name that went can leave room for several short ones
        while named[fact] < names[fact]:
            named[fact] += 1
            if not is_fitting():
                named[fact] -= 1
                break
    return parts(), spent[0]


def _shorten(
    named: dict[Fact, int],
    phrases: Mapping[Fact | None, str],
    outside: list[str],
    spent: list[str],
) -> bool:
    """Take away what can be read elsewhere first: the question stands above, the figures are in /cost, the calls above.

    `named` holds how many names are said of each fact. Return whether anything could be taken.
    """
    several = [fact for fact in named if named[fact] > 1]
    inside = [fact for fact in named if fact in _LAST]
    single = [fact for fact in named if named[fact] == 1]

    widths = {fact: width(phrases[fact]) for fact in named}
    if named.get("asked"):
        named["asked"] = 0
    elif len(spent) > 1:
        del spent[0]
    elif several:
        named[max(several, key=widths.__getitem__)] -= 1
    elif inside:
        del named[inside[-1]]
    elif len(outside) > 1:
        del outside[0]
    elif single:
        named[max(single, key=widths.__getitem__)] = 0
    else:
        return False
    return True


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
    return one_line(f"{call.outcome.replace('_', ' ')}: {message or first}"), verdicts.outcome_role(
        call.outcome
    )


_IN_SOURCE: Final = (
    "after a breakpoint in the source"  # under any name there: the shown line runs next
)
MOST_ROWS, MOST_CHARS = 200, 4_000
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*(.+)", re.DOTALL)
_NUMBERED = re.compile(r"\s*(\d+)\b")
_LISTS: Final = ("list", "longlist")
_OWN: Final = (
    *_LISTS,
    "break",
    "tbreak",
    "clear",
    "condition",
    "ignore",
    "help",
)  # answered by the host
ENDING: Final = frozenset({*(command.name for command in COMMANDS if command.resumes), "quit"})
_MOVES: Final = ("up", "down")
_MAY: Final = "What you type here runs in the function, and may do what the function may."
_BOUND: Final = (
    "Type a debugger command, or any expression, which is evaluated in the function's worker. Enter: repeat the last"
    " command. !EXPRESSION or p EXPRESSION: if the expression begins like a command. NAME = EXPRESSION sets a local,"
    " NAME[KEY] = EXPRESSION an item. Ctrl-C: clear the line; twice: end the turn. Ctrl-D: q."
    " /COMMAND: as at the usual prompt, now or when the running command has ended."
)


def command_words() -> dict[str, str]:
    """Return the debugger's commands, with descriptions."""
    return {
        name: command.description
        for command in COMMANDS
        for name in dict.fromkeys((command.name, command.short))
    }


def typed_command(text: str) -> Command:
    """Parse a typed line into a debugger command.

    Raises:
        UsageError: the line is incomplete.
    """
    if text.startswith("!"):
        text = f"p {text[1:].strip()}"
    if (assigned := _ASSIGNS.fullmatch(text)) is not None:
        return Command("set", f"{assigned[1]} {assigned[2]}")
    return Command.parse(text)


def head_line(stop: DebugStop) -> Line:
    """Return a line with the stopped function, the place, and the reason."""
    at = stop.at
    call = one_line(
        verdicts.compact_call(stop.call, stop.call_arguments) if stop.call_arguments else stop.call,
        80,
    )
    is_own = at.function == stop.call
    called = "" if is_own else f", in a call of {call}"
    where = f"{one_line(at.path, 200)}:{at.line}"
    return line(
        ("warn", "■ "),
        ("name", call if is_own else one_line(at.function, 80)),
        ("dim", f"  {where}{called}: "),
        one_line(_IN_SOURCE if stop.why == "breakpoint()" else stop.why),
    )


def rows(stop: DebugStop, around: int = 5) -> list[SourceRow]:
    """Return the source rows around the line that runs next."""
    listing = stop.listing(around)
    return [
        _row(stop, number, text)
        for number, text in (listing if not listing or listing[-1][1] else listing[:-1])
    ]


def listed_rows(stop: DebugStop, command: Command) -> list[SourceRow]:
    """Return the source rows that a command requested or moved to; nothing for any other command."""
    if command.do in _MOVES and not stop.message.startswith("This is"):
        return rows(stop)
    if command.do not in _LISTS:
        return []
    numbers = [
        int(match[1])
        for text in bare_lines(stop.message)
        if (match := _NUMBERED.match(text.lstrip("→B ")))
    ]
    source = bare_lines(stop.source)
    return [
        _row(stop, number, source[number - 1]) for number in numbers if 0 < number <= len(source)
    ]


def _row(stop: DebugStop, number: int, text: str) -> SourceRow:
    return SourceRow(number, text, number == stop.at.line, number in stop.armed)


def tail_lines(stop: DebugStop) -> list[Line]:
    """Return the result, the exception and the displayed expressions, behind a bar because they come from a worker."""
    kind, _, shown = (stop.error or "").partition(": ")
    raised = shown if shown.startswith(f"{kind}(") else stop.error or ""
    lines = [line(("bad", "✗ "), one_line(raised, 2_000))] if raised else []
    lines += [line(("dim", "← "), one_line(stop.value, 2_000))] if stop.value is not None else []
    lines += [
        line(("dim", f"  {one_line(name, 80)} = "), one_line(text, 400))
        for name, text in stop.shown
    ]
    return quoted(lines)


def said_lines(stop: DebugStop, command: Command) -> list[Line]:
    """Return the answer to a command. Text not from the host is behind a bar, because it may come from a worker."""
    if listed_rows(stop, command) and command.do in _LISTS:
        return []
    texts = bare_lines(shorten(stop.message, MOST_CHARS))
    role: Role = "bad" if stop.message.startswith("*** ") else ""
    more = len(texts) - MOST_ROWS
    lines = [line((role, text)) for text in texts[:MOST_ROWS]]
    lines += [line(("dim", f"… {more} more lines"))] if more > 0 else []
    if command.do not in _OWN:
        return quoted(lines)
    return [
        *lines,
        *([line(("dim", _BOUND))] if command.do == "help" and not command.argument else []),
    ]


def stopped_lines(stopped: CallStopped) -> list[Line]:
    """Return lines about a function that stands still and is stepped in another window."""
    where = f" at {one_line(stopped.place, 200)}, {one_line(stopped.why, 80)}"
    by_whom = line(("dim", "  It is stepped in another window. /break here steps it in this one."))
    name = one_line(stopped.function, 80)
    return [line(("warn", "■ "), ("name", name), f" is stopped{where}"), by_whom]


def stop_parts(
    stop: DebugStop, command: Command
) -> tuple[Sequence[Line], Sequence[SourceRow], Sequence[Line]]:
    """Return the parts of a stop to show: lines, source, lines."""
    if stop.message:
        return said_lines(stop, command), listed_rows(stop, command), ()
    may = [line(("dim", f"  {_MAY}"))] if stop.is_first else []
    return (head_line(stop), *may), rows(stop), tail_lines(stop)
