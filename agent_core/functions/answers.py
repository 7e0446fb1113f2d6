"""The text that the model reads about the outcome of a call.

Each text says what happened, what it means and what to do next. Output of a worker is untrusted: it is fenced, its
control characters are made visible, and its length is limited.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, assert_never

from agent_core.access.grants import says_what_to_do
from agent_core.base.offload import bulk
from agent_core.base.pictures import PictureFile, is_picture
from agent_core.base.records import IF_SET, dataclass, field, fields_to_json, replace
from agent_core.base.untrusted import block, fence, one_line, shorten, visible
from sandbox import (
    CalleeFailed,
    Failure,
    Frame,
    Killed,
    Outcome,
    Raised,
    Refused,
    Returned,
    TimedOut,
)
from sandbox.wire.caps import MOST_MESSAGE
from sandbox.wire.large import Large, mib
from sandbox.wire.values import Pairs, encode

from .named_data import name_data

if TYPE_CHECKING:
    from agent_core.base.events import Quarantined
    from agent_core.base.problem import Problem

PICTURE_WORDS: Final = "(shown as a picture)"
MAX_OUTPUT_CHARS = 2_000
MAX_FRAMES = 6
MAX_CAUSE_FRAMES = 2
UNPROVEN = "[unproven: no example proves this function]"
DISPROVEN = "[unproven: its examples say otherwise]"
_MAX_LINE = 400
_LONG_CHARS: Final = (
    10_000  # of a value: the model may read a page of it, and not know what comes after
)
_MOST_PARTS: Final = 20
_MAX_SHOWN_PARTS: Final = 100  # of a value that are looked at for pictures
_LONGEST_PLACE = 300  # characters of a note on where an error was raised
_AFTER_REFUSAL = (
    "It was refused what it asked for, and the same call would be refused again: do it in a way that needs less, or"
    " tell the user what it needs."
)
_PLAIN_NAME = re.compile(r"(?:[\w./-]|<[a-z]+(?: \d+)?>){1,200}")


@dataclass(frozen=True, slots=True)
class InterruptedCall:
    """The user ended the turn while the call ran, or nobody answered its question: then `told` says so."""

    told: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """The call was never started."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The program was stopped while the call ran, so it is unknown whether the call took effect."""


Subject: TypeAlias = Literal["function", "program"]
CallOutcome: TypeAlias = Outcome | InterruptedCall | Skipped | Unknown
Measured: TypeAlias = Returned | Raised | TimedOut | Killed

_WORDS: dict[type, str] = {
    Returned: "returned",
    Raised: "raised",
    TimedOut: "timed_out",
    Killed: "killed",
    Refused: "refused",
    InterruptedCall: "interrupted",
    Skipped: "skipped",
    Unknown: "unknown",
}


_NOT_SEEN: dict[type, str] = {
    InterruptedCall: "The user stopped this call. Do not repeat it unless the user asks.",
    Unknown: "The program was stopped while this call ran, so whether it took effect is unknown. "
    "Check before you call it again.",
}


def size_of(outcome: CallOutcome) -> int:
    """Return the size of an outcome; large ones are processed in a thread."""
    return bulk(outcome.value) if isinstance(outcome, Returned) else 0


def word(outcome: CallOutcome) -> str:
    """Return the published word for an outcome."""
    return _WORDS[type(outcome)]


def answer(
    outcome: CallOutcome,
    limit_chars: int,
    *,
    was_refused: bool = False,
    subject: Subject = "function",
) -> str:
    """Return the text that the model reads about a call; `was_refused` tells whether it was denied anything."""
    match outcome:
        case Returned():
            return _returned_text(outcome, limit_chars)
        case Raised():
            return with_output(
                _error_text(outcome.failure, subject, was_refused=was_refused), outcome.output
            )
        case TimedOut():
            of = " with these arguments" if subject == "function" else ""
            lost = "" if subject == "function" else "No value of it is kept. "
            advice = f"{lost}Ask for less at once, or fix the {subject}: it may never end{of}."
            return with_output(f"Stopped after {outcome.limit_s:g} s. {advice}", outcome.output)
        case Killed():
            return with_output(
                f"The {subject}'s process ended without an answer: {fence(outcome.reason)}",
                outcome.output,
            )
        case Refused() | Skipped():
            reason = outcome.reason  # may come from a worker
            is_line = "\n" not in reason and len(reason) <= min(_MAX_LINE, limit_chars)
            return (
                f"Not called: {visible(reason)}"
                if is_line
                else f"Not called:\n{block(reason, limit_chars)}"
            )
        case InterruptedCall() | Unknown():
            told = outcome.told if isinstance(outcome, InterruptedCall) else ""
            return block(told, limit_chars) if told else _NOT_SEEN[type(outcome)]
        case _:
            assert_never(outcome)


def _returned_text(returned: Returned, limit_chars: int) -> str:
    """Return the value with the output. Of a large one: what it is, how to use all of it, and its beginning."""
    large = returned.value
    if not isinstance(large, Large):
        shown = visible(name_data(show_value(large)))
        is_long = len(shown) > _LONG_CHARS and isinstance(large, Mapping | list | tuple)
        parts = f"[Its parts: {_parts(large)}]\n" if is_long else ""
        return with_output(parts + shorten(shown, limit_chars), returned.output, limit_chars)
    about = (
        f"[A {large.words} as JSON. It is passed on whole between functions: call the function within a program, as in"
        " `f(g(…))`, or by its name within another function.]"
    )
    return f"{with_output(about, returned.output)}\n{visible(large.beginning)}"


def _parts(value: object) -> str:
    """Return the parts of a value that is shown by its beginning: its keys, or its number of items and their keys."""
    if isinstance(value, list | tuple) and value:
        first = _parts(value[0]) if isinstance(value[0], Mapping) else ""
        return _kind(value) + (f", the first with {first}" if first else "")
    if not isinstance(value, Mapping):
        return _kind(value)
    named = [
        f"{one_line(str(key), 40)}: {_kind(item)}"
        for key, item in islice(value.items(), _MOST_PARTS)
    ]
    return ", ".join(named) + (
        f", and {len(value) - _MOST_PARTS} more" if len(value) > _MOST_PARTS else ""
    )


def _kind(value: object) -> str:
    match value:
        case str():
            return f"a text of {len(value):,}"
        case Mapping():
            return f"{len(value):,} keys"
        case list() | tuple():
            return f"{len(value):,} items"
        case _:
            return type(value).__name__


def near_limit(label: str, large: Large, most: int) -> str:
    """Return a note if a large value takes half of what it may, or more; "" otherwise."""
    if large.size * 2 < most:
        return ""
    return (
        f"[{label} takes {mib(large.size)} of the {mib(most)} that a value may take (`sandbox.value_mib`). Before it"
        " grows beyond: return what is needed of it, let one function read the data and sum it up, or go through the"
        " data in parts.]"
    )


@dataclass(frozen=True, slots=True)
class CallReport:
    """The outcome of a call, as shown and published.

    `value` is tagged JSON if plain JSON cannot represent it. `lacks` lists missing grants, `debugged` is what
    breakpoints recorded, `unproven` is what no one has vouched for, and `quarantined` is set if the call put its
    function into quarantine.
    """

    outcome: str
    value: Any  # Any: values of JSON
    output: str
    seconds: float
    memory: int | None
    cpu_s: float | None
    error: Failure | None
    lacks: str = field(default="", metadata=IF_SET)
    debugged: str = field(default="", metadata=IF_SET)
    unproven: str = field(default="", metadata=IF_SET)
    quarantined: "Quarantined | None" = field(default=None, metadata=IF_SET)

    @classmethod
    def of(cls, outcome: CallOutcome) -> "CallReport":
        """Return the report of an outcome."""
        failure = outcome.failure if isinstance(outcome, Raised) else None
        reason = getattr(outcome, "reason", None)
        if reason is not None:
            failure = Failure(word(outcome), reason)
        return cls(
            word(outcome),
            encode(outcome.value) if isinstance(outcome, Returned) else None,
            getattr(outcome, "output", ""),
            round(getattr(outcome, "seconds", 0.0), 6),
            outcome.memory if isinstance(outcome, Measured) else None,
            outcome.cpu_s if isinstance(outcome, Measured) else None,
            failure,
        )

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published shape."""
        return {
            **fields_to_json(replace(self, error=None)),
            "error": _failure_json(self.error) if self.error else None,
        }


def report_json(outcome: CallOutcome) -> dict[str, Any]:  # Any: values of JSON
    """Return the published shape of an outcome."""
    return CallReport.of(outcome).to_json()


def bad_arguments(name: str, problems: Sequence["Problem"]) -> str:
    """Return the reasons why arguments were rejected, one line each, and what to do."""
    lines = [
        f"- {problem.message}" + (f" ({problem.fix})" if problem.fix else "")
        for problem in problems
    ]
    return "\n".join(
        [
            f"`{name}` was not called, because its arguments do not fit:",
            *lines,
            "Fix them and call again.",
        ]
    )


def unknown_name(name: str, suggestions: Sequence[str], *, grows: bool = True) -> str:
    """Return the answer to a call of a function that does not exist at this step, for an agent that `grows` or not."""
    hint = (
        f" The nearest names are: {', '.join(f'`{suggestion}`' for suggestion in suggestions)}."
        if suggestions
        else ""
    )
    made = ""
    if grows:
        made = ", or make it with create_function"
    return f"There is no function `{name}`.{hint} Call one of those that you are shown{made}."


def show_value(value: Any) -> str:  # Any: whatever a worker may return
    """Return a value as JSON, or in its Python form if JSON cannot represent it; a large one in a few words."""
    if isinstance(value, Large):
        return f"<{value.words}>"
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_as_object)
    except (TypeError, ValueError):
        return repr(value)


def _as_object(value: object) -> object:
    if isinstance(value, Pairs):
        return value.as_object()
    if isinstance(value, Large):
        return f"<{value.words}>"
    raise TypeError(f"{type(value).__name__} is not JSON")


def without_pictures(
    value: Any, files: list[PictureFile], depth: int = 3
) -> Any:  # Any: a returned value
    """Return a value with words in the place of pictures, which are added to `files`."""
    if isinstance(value, bytes) and is_picture(value):
        files.append(PictureFile(value))
        return PICTURE_WORDS
    if not depth or not isinstance(value, list | tuple | dict) or len(value) > _MAX_SHOWN_PARTS:
        return value
    inner = partial(without_pictures, files=files, depth=depth - 1)
    if isinstance(value, dict):
        return dict(zip(value, map(inner, value.values()), strict=True))
    return type(value)(map(inner, value))


def with_output(text: str, output: str, limit_chars: int = MAX_OUTPUT_CHARS) -> str:
    """Return a text followed by the printed output, if any.

    Of what returned, it is whole: a long answer is shown in pages. Beside an error, its two ends are enough.
    """
    if not output.strip():
        return text
    return f"{text}\nIt printed:\n{block(output, limit_chars)}"


def _error_text(failure: Failure, subject: Subject, *, was_refused: bool) -> str:
    lines = [f"The {subject} raised {_says(failure)}", *map(_frame, failure.frames[-MAX_FRAMES:])]
    while (cause := failure.cause) is not None:
        how = "It was raised while handling" if failure.was_handling else "It was raised from"
        lines += [f"{how} {_says(cause, 300)}", *map(_frame, cause.frames[-MAX_CAUSE_FRAMES:])]
        failure = cause
    if not was_refused:
        what = (
            "the arguments or the function, then call again"
            if subject == "function"
            else "it, then run it again"
        )
        return "\n".join([*lines, f"Fix {what}."])
    said = "\n".join(lines)
    return said if says_what_to_do(said) else f"{said}\n{_AFTER_REFUSAL}"


def _says(failure: Failure, most: int = 0) -> str:
    message = fence(failure.message, most) if most else fence(failure.message)
    return f"{fence(failure.type, 80)}: {message}" if failure.message else fence(failure.type, 80)


def _frame(frame: Frame) -> str:
    names = ", ".join(f"{name} = {value}" for name, value in frame.locals)
    where = f"  {_name(frame.path)}:{frame.line} in {_name(frame.function)}: {fence(frame.source.strip(), 160)}"
    return f"{where}\n    with {fence(names, 600)}" if names else where


def _name(text: str) -> str:
    """Return a path or function name from a worker, fenced if it does not look like one."""
    return text if _PLAIN_NAME.fullmatch(text) else fence(text, 80)


def _failure_json(failure: Failure) -> dict[str, Any]:
    names = "path", "line", "function", "source"
    frames = [
        {**{name: getattr(frame, name) for name in names}, "locals": dict(frame.locals)}
        for frame in failure.frames
    ]
    cause = failure.cause and {**_failure_json(failure.cause), "was_handled": failure.was_handling}
    return {"type": failure.type, "message": failure.message, "frames": frames, "cause": cause}


def callee_error(name: str, outcome: Outcome, *, was_refused: bool = False) -> CalleeFailed:
    """Return the error that a caller gets for the failed call of a function: the function's own, if it raised one."""
    text = f"`{name}`: {answer(outcome, 2_000, was_refused=was_refused)}"
    match outcome:
        case Raised(failure):
            last = failure.frames[-1:]
            where = "".join(
                f", at {frame.path}:{frame.line}: {frame.source.strip()}" for frame in last
            )
            return CalleeFailed(
                text, failure, one_line(f"(raised in `{name}`{where})", _LONGEST_PLACE)
            )
        case TimedOut():
            return error_in_caller("TimeoutError", text)
        case _:
            return error_in_caller("RuntimeError", text)


def error_in_caller(kind: str, message: str) -> CalleeFailed:
    """Return an error of a builtin class, raised in a caller."""
    return CalleeFailed(
        message,
        Failure(kind, message[:MOST_MESSAGE], base=kind, arguments=(message[:MOST_MESSAGE],)),
    )
