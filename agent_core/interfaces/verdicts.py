"""Verdicts, problems and outcomes, from their published JSON to lines: for the commands and for the prompt."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from agent_core.untrusted import one_line
from sandbox.foreign import LOOSE, Malformed, read_json
from sandbox.lines import bare_lines

from .spans import Line, Role, Span, indented, line, quoted

Document: TypeAlias = Mapping[str, Any]  # Any: JSON of a shape that the design publishes

_LONGEST_READ = 100_000  # characters of arguments: to read and write them takes some milliseconds
_OUTCOME_ROLES: dict[str, Role] = {"returned": "ok", "interrupted": "warn", "skipped": "warn", "unknown": "warn"}


def verdict_lines(verdict: Document, joins: str = "joins") -> list[Line]:
    """One headline, then what was mended and every problem with its place and mend."""
    if verdict.get("error") and not verdict.get("problems"):
        first, *more = bare_lines(str(verdict["error"]))
        return [line(("bad", "✗ "), first), *indented(line(text) for text in more)]
    return [
        verdict_headline(verdict, joins),
        *indented(line(("warn", "~ "), ("dim", "mended: "), str(mend["message"])) for mend in verdict.get("mends", ())),
        *indented(problem_line(problem) for problem in verdict.get("problems", ())),
        *indented(
            line(("warn", "~ "), call, ("dim", ": its result was taken as it came back, not predicted"))
            for call in verdict.get("confirmed", ())
        ),
    ]


def verdict_headline(verdict: Document, joins: str) -> Line:
    """Whether the function joined, as what, and what the gate looked at."""
    name, module = str(verdict.get("name") or verdict.get("path", "")), str(verdict.get("module", ""))
    stages = verdict.get("stages", ())
    ran = [stage for stage in stages if not str(stage.get("note", "")).startswith("not run")]
    notes = "; ".join(str(stage["note"]) for stage in ran if stage.get("note"))
    spent = _passed(stages)
    count = f"{len(stages)}" if len(ran) == len(stages) else f"{len(ran)} of {len(stages)}"
    tail: Span = ("dim", f"  {count} stages, {duration(spent)}" + (f" · {notes}" if notes else ""))
    if verdict.get("admitted"):
        return line(("ok", "✓ "), ("name", name), f" {joins} {module} as {verdict.get('standing', '')}", tail)
    problems = sum(problem.get("severity") != "warns" for problem in verdict.get("problems", ()))
    return line(("bad", "✗ "), ("name", name), f" refused: {problems} problem{'' if problems == 1 else 's'}", tail)


def _passed(stages: Iterable[Document]) -> float:
    """The time that went by: of stages that ran at once, that of the longest."""
    spent: list[float] = []
    for stage in stages:
        seconds = float(stage.get("seconds", 0))
        if stage.get("beside") and spent:
            spent[-1] = max(spent[-1], seconds)
        else:
            spent.append(seconds)
    return sum(spent)


def problem_line(problem: Document) -> Line:
    """`path:line:column code: what — mend`."""
    place = ":".join(str(problem[key]) for key in ("path", "line", "column") if problem.get(key))
    role: Role = "warn" if problem.get("severity") == "warns" else "bad"
    mend = problem.get("mend")
    return line(
        (role, f"{place} {problem['code']}".strip()),
        f": {problem['message']}",
        ("strong", f" — {mend}" if mend else ""),
    )


def problem_lines(problems: Iterable[Document]) -> list[Line]:
    """Each problem on its line."""
    return [problem_line(problem) for problem in problems]


def outcome_lines(outcome: Document) -> list[Line]:
    """How a call ended besides its value: what it printed, its error with the function's own frames."""
    lines = quoted(line(("dim", text)) for text in bare_lines(str(outcome.get("output") or "")))
    word = str(outcome.get("outcome", "unknown"))
    error = outcome.get("error")
    if error:
        lines += _failure_lines(error)
    elif word != "returned":
        ended: Span = (outcome_role(word), f"✗ {word.replace('_', ' ')}")
        lines.append((ended,))
    return lines


def _failure_lines(error: Document) -> list[Line]:
    """An error with its frames, and those that it came of."""
    lines: list[Line] = []
    one: Document | None = error
    while one:
        how = "✗" if one is error else "  while handling" if one.get("was_handled") else "  raised from"
        role: Role = "bad" if one is error else "warn"
        first, *more = bare_lines(f"{how} {one['type']}: {one['message']}")
        lines += [line((role, first)), *quoted(line((role, text)) for text in more)]
        lines += [_frame_line(frame) for frame in one.get("frames", ())]
        one = one.get("cause")
    return lines


def outcome_role(word: str) -> Role:
    """The colour of an outcome's word."""
    return _OUTCOME_ROLES.get(word, "bad")


def examples_lines(tested: Document) -> list[Line]:
    """Each example of a tested function, with what it returned where that is not what it says."""
    lines: list[Line] = []
    examples = tested.get("examples", ())
    for example in examples:
        mark: Span = ("ok", "✓ ") if example["passed"] else ("bad", "✗ ")
        printed = str(example.get("printed") or "")
        first, *more = bare_lines(f"{example['call']} → {example.get('value', example['returned'])}")
        lines += [line(mark, first), *quoted(line(text) for text in more)]
        lines += [line(("dim", "  printed  "), text) for text in bare_lines(printed)]
        if not example["passed"]:
            lines.append(line(("dim", "  expected "), str(example["expected"])))
    passed = sum(bool(example["passed"]) for example in examples)
    return [*lines, line(("name", str(tested.get("name", ""))), f": {passed} of {len(examples)} examples agree")]


def changes_line(change: Document, by: str = "") -> Line:
    """What a reload, or another hand, did to the set of functions."""
    spans: list[Span] = [("name", "⟳"), ("dim", f" {by}" if by else "")]
    roles: dict[str, Role] = {"loaded": "ok", "changed": "warn", "removed": "bad"}
    for key, role in roles.items():
        names = change.get(key) or ()
        if names:
            spans += [(role, f" {key}: "), ("", ", ".join(map(str, names)))]
    if len(spans) == 2 and not change.get("rejected"):
        spans.append(("dim", " nothing changed"))
    return tuple(spans)


def save_lines(change: Document) -> list[Line]:
    """How functions stand after a save, which differ from their examples, and which files are good again."""
    stands: dict[str, str] = change.get("standings") or {}
    differing: dict[str, str] = change.get("disagreeing") or {}
    noted: dict[str, str] = change.get("noted") or {}
    good: Span = ("ok", "✓ ")
    doubtful: Span = ("warn", "~ ")
    return [
        *(
            line(good if how.startswith("trial") else doubtful, ("name", name), f" is a {how}")
            for name, how in stands.items()
        ),
        *(line(("warn", "~ "), ("name", name), f" is a draft now: {how}") for name, how in differing.items()),
        *(line(("warn", "~ "), ("name", name), f": {one}") for name, what in noted.items() for one in bare_lines(what)),
        *(line(("ok", "✓ "), f"{path} is good again") for path in change.get("mended") or ()),
    ]


def value_text(value: Any) -> str:  # Any: a JSON value
    """A returned value for people: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def value_lines(outcome: Document, *, as_it_is: bool = False) -> list[Line]:
    """What a call returned; nothing, if it did not. Among other lines, many of its own stand behind a bar."""
    if outcome["outcome"] != "returned":
        return []
    texts = [line(text) for text in bare_lines(value_text(outcome["value"]))]
    return texts if as_it_is or len(texts) < 2 else quoted(texts)


def compact_call(name: str, arguments: str) -> str:
    """`name(key=value, …)` from the model's own JSON; text that is no object, or long, is shown as it is."""
    try:
        given = read_json(arguments or "{}", LOOSE) if len(arguments) <= _LONGEST_READ else None
    except Malformed:
        given = None
    if not isinstance(given, dict):
        return f"{name}({arguments})"
    return f"{name}({', '.join(f'{key}={_short(value)}' for key, value in given.items())})"


def duration(seconds: float) -> str:
    """`12 ms`, `3.4 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def _short(value: Any) -> str:  # Any: a JSON value
    lines = value.count("\n") if isinstance(value, str) else 0
    return f"<{lines + 1} lines>" if lines > 1 else repr(value)


def _frame_line(frame: Document) -> Line:
    known = frame.get("locals") or {}
    held = ", ".join(f"{name}={one_line(text, 400)}" for name, text in known.items()) if isinstance(known, dict) else ""
    place = one_line(f"{frame.get('path', '')}:{frame.get('line', '')} in {frame.get('function', '')}", 500)
    return line("  ", place, f": {frame.get('source', '')}", ("dim", f"   {held}" if held else ""))
