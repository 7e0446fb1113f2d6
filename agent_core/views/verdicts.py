"""Verdicts, problems, outcomes and reports as lines, for the commands and the prompt."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_core.base.clock import shown_time
from agent_core.base.late import LateModule
from agent_core.base.pictures import caption_of
from agent_core.base.problem import Problem
from agent_core.base.untrusted import one_line, visible
from agent_core.base.workspace_folder import STATE
from agent_core.functions.gate.verdict import NOT_READ
from agent_core.registry.function import reach_words
from sandbox.errors import ProtocolError
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import LOOSE, Malformed, read_json
from sandbox.wire.values import LARGE, TAG, read_row

from .styled_lines import Line, Role, Span, columns, counted, duration, indented, line, quoted
from .value_tables import is_table, table_lines

if TYPE_CHECKING:  # for annotations
    from agent_core.base.events import FunctionsChanged
    from agent_core.functions.answers import CallReport
    from agent_core.functions.gate.verdict import StageReport
    from agent_core.functions.service.call_records import RecordedOutcome
    from agent_core.functions.service.call_service import TraceReport
    from agent_core.functions.service.function_facts import FunctionTestReport
    from agent_core.functions.service.judgment import Judgment
    from agent_core.functions.service.replay import RecordedCall, RecordedDetails, Replay
    from agent_core.registry.registry import RegistryChange
    from agent_core.storage import value_files
    from sandbox import Failure
else:
    value_files = LateModule("agent_core.storage.value_files")

COMMAND, SLASH = "knapper functions ", "/"
SIGNS: dict[str, Role] = {"+": "ok", "-": "bad", "@": "dim"}
Document: TypeAlias = Mapping[str, Any]  # Any: JSON of a published form

_LONGEST_READ = (
    100_000  # characters of arguments: parsing and formatting them takes some milliseconds
)
ASKED = {  # the questions of the stages that report a note
    "duplicate": "is it there already?",
    "examples": "do its examples hold?",
    "fitted": "does it compute what its examples show?",
    "mutation": "would its examples notice a wrong body?",
    "robust": "does it hold up with unusual arguments?",
    "neighbours": "do the functions that call it still work?",
    "reader": "does it do what its description says?",
}
_OUTCOME_ROLES: dict[str, Role] = {
    "returned": "ok",
    "interrupted": "warn",
    "skipped": "warn",
    "unknown": "warn",
}


def coloured(lines: Iterable[str]) -> list[Line]:
    """Return the lines of a unified diff in the usual colors."""
    return [
        line(("strong" if text.startswith(("+++", "---")) else SIGNS.get(text[:1], ""), text))
        for text in lines
    ]


def verdict_lines(judgment: "Judgment", *, is_tried: bool = False) -> list[Line]:
    """Return a headline, then the fixes, and every problem with its location and fix.

    If it `is_tried`, nothing was added: it says what would be.
    """
    if judgment.error and not judgment.problems:
        first, *more = bare_lines(judgment.error)
        return [line(("bad", "✗ "), first), *indented(line(text) for text in more)]
    is_known = judgment.admitted and judgment.reach is not None
    reached = one_line(reach_words(judgment.reach or ())) if is_known else ""
    spent: list[float] = []  # of concurrent stages, only the longest counts
    for stage in judgment.stages:
        if stage.beside and spent:
            spent[-1] = max(spent[-1], stage.seconds)
        else:
            spent.append(stage.seconds)
    facts = examples_note(judgment), reached, unread_note(judgment), duration(sum(spent))
    refusals = len(judgment.refusals)
    warnings = len(judgment.problems) - refusals
    counts = [counted(refusals, "problem")] + [counted(warnings, "hint")] * bool(warnings)
    return [
        _head_line(
            judgment,
            ", ".join(counts),
            ("dim", f"  {' · '.join(filter(None, facts))}"),
            is_tried=is_tried,
        ),
        *indented(
            [line(("dim", f"not back to {judgment.back}"))]
            if judgment.back and not judgment.admitted
            else []
        ),
        *indented(line(("dim", f"~ fixed: {fix.message}")) for fix in judgment.fixes),
        *indented(problem_lines(judgment.refusals)),
        *indented(line(("dim", "hint: "), *problem_line(problem)) for problem in hints(judgment)),
        *indented(
            line(("dim", f"~ {call}: its result was confirmed, not predicted"))
            for call in judgment.confirmed
        ),
    ]


def folded_lines(judgment: "Judgment", where: str) -> list[Line]:
    """Return `verdict_lines`, but for an admitted function only the number of hints and the command to show them."""
    if not (judgment.admitted and hints(judgment)) or judgment.fails_examples:
        return verdict_lines(judgment)
    plain = replace(judgment, problems=judgment.refusals)
    told = line(("dim", f"{counted(len(hints(judgment)), 'hint')}: "), ("command", where))
    return [*verdict_lines(plain), *indented([told])]


def _head_line(judgment: "Judgment", refusal: str, tail: Span, *, is_tried: bool) -> Line:
    """Return a line for an admitted function with its standing, marked with a warning if its examples fail, or for a
    rejected one with the `refusal`; for one that `is_tried`, what it would ask a person for.
    """
    name = judgment.name or judgment.path
    joins = "would be added to" if is_tried else "added to"
    if is_tried and judgment.lacks_only_grants:
        asked = f" {joins} {judgment.module}, after a question: {refusal}"
        return line(("warn", "? "), ("name", name), asked, tail)
    if not judgment.admitted:
        return line(("bad", "✗ "), ("name", name), f" refused: {refusal}", tail)
    mark: Span = ("warn", "~ ") if judgment.fails_examples else ("ok", "✓ ")
    what = f": {judgment.back} is back" if judgment.back else f" {joins} {judgment.module}"
    return line(mark, ("name", name), f"{what}{standing_words(judgment.standing)}", tail)


def stage_lines(judgment: "Judgment") -> list[Line]:
    """Return the number of completed gate stages, and the stages' notes with their questions; nothing if none ran."""
    ran, stages = _ran(judgment), judgment.stages
    if not stages:
        return []
    whole = [stage for stage in ran if not stage.late]
    count = f"{len(stages)}" if len(whole) == len(stages) else f"{len(whole)} of {len(stages)}"
    told = [stage for stage in stages if stage.note and (stage in ran or stage.late)]
    notes = [
        f"{'– ' * stage.late}{stage.stage}: {ASKED.get(stage.stage, '')} {stage.note}"
        for stage in told
    ]
    head = f"checked by the gate in {count} stages{', among them:' if notes else ''}"
    return [line(("dim", head)), *indented(line(("dim", note)) for note in notes)]


def examples_note(judgment: "Judgment") -> str:
    """Return the result of the examples, such as `2 of 2 examples agree`, or "" if none ran."""
    return next((stage.note for stage in _ran(judgment) if stage.stage == "examples"), "")


def unread_note(judgment: "Judgment") -> str:
    """Return `not read` if no model could be asked about the description, otherwise an empty text."""
    is_unread = any(
        stage.stage == "reader" and stage.note.startswith(NOT_READ) for stage in judgment.stages
    )
    return NOT_READ if is_unread else ""


def _ran(judgment: "Judgment") -> list["StageReport"]:
    return [stage for stage in judgment.stages if not stage.note.startswith("not run")]


def standing_words(standing: str) -> str:
    """Return words for a standing, such as `, on trial` or `, as a draft`."""
    return {"": "", "trial": ", on trial", "draft": ", as a draft"}.get(
        standing, f", as {standing}"
    )


def verdict_line(judgment: "Judgment") -> Line:
    """Return a verdict that was tried on one line, with the codes of its problems, which a `Legend` explains."""
    if judgment.error and not judgment.problems:
        return line(("bad", "✗ "), bare_lines(judgment.error)[0])
    refusals, warnings = (
        _codes(judgment.refusals),
        _codes(row for row in judgment.problems if row.severity == "warns"),
    )
    where = min(
        (row.where.line for row in judgment.problems if row.where.line), default=judgment.line
    )
    place = f"  {judgment.path}:{where}" if where and judgment.path.endswith(".py") else ""
    told = [f"fixed: {', '.join(dict.fromkeys(fix.code for fix in judgment.fixes))}"] * bool(
        judgment.fixes
    )
    told += [f"warns: {warnings}"] * bool(warnings)
    tail: Span = ("dim", f"{place}{''.join(f' · {part}' for part in told)}")
    return _head_line(judgment, refusals, tail, is_tried=True)


def _codes(problems: Iterable["Problem"]) -> str:
    counts = Counter(problem.code for problem in problems)
    return ", ".join(code if count == 1 else f"{code} ×{count}" for code, count in counts.items())


class Legend:
    """An explanation of the codes in verdict lines, each by its first problem and first fix."""

    def __init__(self) -> None:
        self._problems: dict[str, Problem] = {}
        self._fixes: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, judgment: "Judgment") -> None:
        """Record the codes in a verdict."""
        for problem in judgment.problems:
            known = self._problems.setdefault(problem.code, problem)
            if known.severity == "warns" != problem.severity:
                self._problems[problem.code] = problem
        for fix in judgment.fixes:
            self._fixes.setdefault(fix.code, fix.message)
        self._counts.update(problem.code for problem in judgment.problems)
        self._counts.update(fix.code for fix in judgment.fixes)

    def lines(self) -> list[Line]:
        """Return a line for each code with its count, first those of rejections."""
        problems = sorted(
            self._problems.items(), key=lambda problem: problem[1].severity == "warns"
        )
        rows = [
            problem_line(replace(row, message=row.message + self._often(code)))
            for code, row in problems
        ]
        rows += [
            line(("warn", "~ "), code, f": {words}", ("dim", self._often(code)))
            for code, words in self._fixes.items()
        ]
        return list(indented(rows))

    def _often(self, code: str) -> str:
        return f" ×{self._counts[code]}" if self._counts[code] > 1 else ""


def hints(judgment: "Judgment") -> list["Problem"]:
    """Return the problems that do not cause a rejection."""
    return [problem for problem in judgment.problems if problem not in judgment.refusals]


def moment(at: float | None) -> str:
    """Format a time for people."""
    return shown_time(at) if at else "never"


def problem_line(problem: "Problem") -> Line:
    """Return `path:line:column code: message — fix`, dimmed if it is only a warning."""
    first, more, _ = (problem.fix or "").partition("\n")  # a multi-line template is for the model
    fix = f" — {first}{' …' if more else ''}" if first else ""
    place = f"{problem.where} {problem.code}".strip()
    if problem.severity == "warns":
        return line(("dim", f"{place}: {problem.message}{fix}"))
    return line(("bad", place), f": {problem.message}", ("strong", fix))


def problem_lines(problems: Iterable["Problem"]) -> list[Line]:
    """Return each problem on its own line."""
    return [problem_line(problem) for problem in problems]


def printed_lines(output: str) -> list[Line]:
    """Return the printed output of a call, behind a bar."""
    return quoted(line(("dim", text)) for text in bare_lines(output))


def failed_lines(call: "CallReport | RecordedOutcome", seconds: float = 0.0) -> list[Line]:
    """Return how a call failed: the error with the function's own frames or, after a timeout, the number of seconds if
    known.
    """
    if call.error:
        return _failure_lines(call.error)
    if call.outcome == "returned":
        return []
    after = f" after {duration(seconds)}" if seconds and call.outcome == "timed_out" else ""
    return [line((outcome_role(call.outcome), f"✗ {call.outcome.replace('_', ' ')}{after}"))]


def _failure_lines(error: "Failure", how: str = "✗") -> list[Line]:
    """Return an error with its frames and its causes."""
    role: Role = "bad" if how == "✗" else "warn"
    first, *more = bare_lines(f"{how} {error.type}: {error.message}")
    lines = [line((role, first)), *quoted(line((role, text)) for text in more)]
    for frame in error.frames:
        locals_text = ", ".join(f"{name}={one_line(text, 400)}" for name, text in frame.locals)
        place = one_line(f"{frame.path}:{frame.line} in {frame.function}", 500)
        lines.append(
            line(
                "  ",
                place,
                f": {frame.source}",
                ("dim", f"   {locals_text}" if locals_text else ""),
            )
        )
    if error.cause is None:
        return lines
    return [
        *lines,
        *_failure_lines(error.cause, "  while handling" if error.was_handling else "  raised from"),
    ]


def outcome_role(word: str) -> Role:
    """Return the color for an outcome."""
    return _OUTCOME_ROLES.get(word, "bad")


def examples_lines(report: "FunctionTestReport") -> list[Line]:
    """Return each example of a tested function, with the actual result if it differs, or the reason it did not run."""
    lines: list[Line] = []
    for example in report.examples:
        if example.unrun:
            first, *more = bare_lines(f"{example.call} did not run: {example.unrun}")
            lines += [line(("warn", "~ "), first), *quoted(line(text) for text in more)]
            continue
        mark: Span = ("ok", "✓ ") if example.agreed else ("bad", "✗ ")
        first, *more = bare_lines(f"{example.call} → {example.value}")
        lines += [line(mark, first), *quoted(line(text) for text in more)]
        lines += [line(("dim", "  printed  "), text) for text in bare_lines(example.printed)]
        if not example.agreed:
            lines.append(line(("dim", "  expected "), example.expected))
    passed = sum(example.agreed for example in report.examples)
    unrun = sum(bool(example.unrun) for example in report.examples)
    tail = f"; {unrun} did not run" if unrun else ""
    return [
        *lines,
        line(("name", report.name), f": {passed} of {len(report.examples)} examples agree{tail}"),
    ]


def changes_line(change: "RegistryChange | FunctionsChanged", by: str = "") -> Line:
    """Return a line about the functions that a reload or another author changed."""
    groups: tuple[tuple[str, Role, tuple[str, ...]], ...] = (
        ("changed", "warn", change.changed),
        ("added", "ok", change.loaded),
        ("removed", "bad", change.removed),
    )
    told = [
        line(", ".join(names), (role, f" {'was' if len(names) == 1 else 'were'} {verb}"))
        for verb, role, names in groups
        if names
    ]
    between = chain.from_iterable((("", "; "), *one) for one in told or [line("nothing changed")])
    return line(("name", "⟳ "), *islice(between, 1, None), ("dim", f" {by}" if by else ""))


def save_lines(change: "RegistryChange | FunctionsChanged") -> list[Line]:
    """Return the standing of functions after a save, those with failing examples, and the files that work again."""
    good: Span = ("ok", "✓ ")
    doubtful: Span = ("warn", "~ ")
    return [
        *(
            line(good, ("name", name), f" is on {how}")
            if how.startswith("trial")
            else line(doubtful, ("name", name), f" is a {how}")
            for name, how in change.standings.items()
        ),
        *(
            line(doubtful, ("name", name), f" is a draft now: {how}")
            for name, how in change.disagreeing.items()
        ),
        *(
            line(doubtful, ("name", name), f": {text}")
            for name, note in change.noted.items()
            for text in bare_lines(note)
        ),
        *(line(good, f"{path} loads again") for path in change.fixed),
    ]


def value_lines(call: "CallReport | RecordedOutcome", *, as_it_is: bool = False) -> list[Line]:
    """Return the lines of a returned value; nothing if the call did not return. Multiple lines get a bar."""
    if call.outcome != "returned":
        return []
    if isinstance(call.value, dict) and call.value.get(TAG) == LARGE:
        with suppress(ProtocolError):
            large = read_row(call.value)
            return [
                line(
                    f"{large.words}, kept for a week as JSON in {STATE}/{value_files.FOLDER}/{large.digest}"
                )
            ]
    shown = (
        call.value if isinstance(call.value, str) else json.dumps(call.value, ensure_ascii=False)
    )
    if (
        not (as_it_is or isinstance(call.value, str)) and f'"{TAG}"' in shown
    ):  # not a value of JSON, such as a tuple
        with suppress(ProtocolError):
            value = read_row(call.value)
            if isinstance(value, bytes) and (caption := caption_of(value)):
                return [line(caption)]
            shown = repr(value)
    elif not as_it_is and is_table(call.value):
        return [*table_lines(call.value)]
    texts = [line(text) for text in bare_lines(shown)]
    return texts if as_it_is or len(texts) < 2 else quoted(texts)


def in_short(lines: Sequence[Line], how: str) -> list[Line]:
    """Return the first lines of a value, so that what stands above stays on the screen, and how to see all."""
    shown: list[Line] = []
    room = _MOST_CHARS
    for row in lines[:_MOST_ROWS]:
        text = "".join(part for _, part in row)
        shown.append(row if len(text) <= room else line(text[:room]))
        room -= len(text)
        if room <= 0:
            break
    rows, characters = len(lines) - len(shown), max(-room, 0)
    if not rows and not characters:
        return shown
    more = counted(rows, "more line") if rows else f"{characters:,} more characters"
    return [*shown, line(("dim", f"  … {more}. {how}"))]


def compact_call(name: str, arguments: str) -> str:
    """Return `name(key=value, …)` for JSON arguments. Text that is long or not a JSON object stays unchanged."""
    try:
        data = read_json(arguments or "{}", LOOSE) if len(arguments) <= _LONGEST_READ else None
    except Malformed:
        data = None
    if not isinstance(data, dict):
        return f"{name}({arguments})"
    shown = []
    for key, value in data.items():
        lines = value.count("\n") + 1 if isinstance(value, str) else 1
        shown.append(f"{key}={f'<{lines} lines>' if lines > 2 else repr(value)}")
    return f"{name}({', '.join(shown)})"


_MOST_ROWS, _MOST_CHARS = 20, 1_500  # of a value at the prompt


_MOST_ASKED = 20


def calls_lines(records: Iterable["RecordedCall"]) -> list[Line]:
    """Return each recorded call: its number, arguments, outcome, time, and whether data for a replay is missing."""
    rows = [
        [
            str(record.call),
            one_line(compact_call(record.function, json.dumps(record.arguments)), 60),
            one_line(record.ended, 60),
            shown_time(record.at, "%Y-%m-%d %H:%M:%S"),
            "no replay: not all that it received was recorded" if record.lacking else "",
        ]
        for record in records
    ]
    return columns(rows, ("name", "strong", "", "dim", "warn")) if rows else []


def call_lines(details: "RecordedDetails") -> list[Line]:
    """Return a recorded call: its arguments, what it received through `self`, and its outcome."""
    call, word = details.call, details.outcome.outcome
    requests = [one_line(f"{row['name']} {row['arguments']}", 200) for row in details.data["heard"]]
    lines = [
        line(
            ("strong", f"[{call.call}] {call.function}"), ("dim", "  "), (outcome_role(word), word)
        )
    ]
    lines += [line(("dim", "arguments  "), one_line(str(call.arguments), 2_000))]
    where = f"call {call.number_in_program} of a program, in turn {call.turn}"
    lines += [line(("dim", "made as  "), where)] if call.number_in_program else []
    lines += indented([line(("dim", "asked  "), request) for request in requests[:_MOST_ASKED]])
    more = len(requests) - _MOST_ASKED
    lines += [line(("dim", f"  … and {more} more"))] if more > 0 else []
    return [*lines, *_result_lines(details.outcome), *_lacking(call.lacking)]


def replay_lines(replay: "Replay") -> list[Line]:
    """Return whether a replay had the same result, and otherwise the difference."""
    number, hash = replay.number, replay.version[:8]
    version = f"version {number} ({hash})" if number else f"version {hash}"
    head = line(("name", replay.function), ("dim", f"  call {replay.call} again, on {version}: "))
    if replay.quit:
        return [(*head, ("dim", "ended at the debugger"))]
    if replay.same:
        return [
            (*head, ("ok", "the same")),
            *_result_lines(replay.outcome),
            *_lacking(replay.lacking),
        ]
    diff = coloured(bare_lines(visible(replay.difference)))
    return [(*head, ("warn", "another outcome")), *indented(diff), *_lacking(replay.lacking)]


def trace_lines(report: "TraceReport") -> list[Line]:
    """Return the executed lines of a call, and its outcome."""
    ran = [text for text in bare_lines(report.text) if not text.startswith("```")]
    return [*(line(text) for text in ran), *_result_lines(report.outcome, report.outcome.seconds)]


def _result_lines(call: "CallReport | RecordedOutcome", seconds: float = 0.0) -> Sequence[Line]:
    shown = value_lines(call) if call.value is not None else []
    return [*printed_lines(call.output), *shown, *failed_lines(call, seconds)]


def _lacking(lacking: Iterable[str]) -> list[Line]:
    return [line(("warn", "~ "), "not recorded: ", one_line(item, 400)) for item in lacking]
