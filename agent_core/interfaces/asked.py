"""The question about grants as a human reads it: what, why, by which lines, and what is different; and its answers.

What a model wrote stands behind a bar, escaped and cut: it cannot look like a line of the program.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from agent_core.events import GrantAnswered
from agent_core.grants import Answer, Decision, Question
from agent_core.untrusted import one_line, visible

from .spans import Line, Role, Span, indented, line
from .wrap import wrapped

Key = Literal["o", "y", "n", "w"]
KEYS: tuple[tuple[Key, str], ...] = (("o", "once"), ("y", "yes, kept"), ("n", "no"), ("w", "no, with a word"))
ANSWERS: dict[str, Answer] = {"o": "once", "y": "yes", "n": "no"}
EXPLAINED = (
    "Nothing was answered. o: for its next call alone. y: for good, for exactly this code. n: no."
    " w: no, and you type a word for the model."
)
TYPED = "o once, y yes (kept), n no, or w and a word; then Enter: "
_TITLES = {
    "join": (" asks to join, and to", " asks to join"),
    "call": (" asks, before it runs, to", " asks to run"),
    "run": (" runs, and asks to", " runs, and asks to go on"),
    "grant": ("", ""),
}
_AGAIN = {"grant": " as it is now, another version"}
_SAID: dict[Answer, Span] = {
    "once": ("ok", "once"),
    "yes": ("ok", "yes, kept in functions/grants.toml"),
    "no": ("warn", "no"),
}
_BECAUSE = {
    "policy": "nobody can be asked here",
    "earlier": "you said no in this turn already",
    "never": "no human can grant it",
    "unavailable": "what it needs cannot be had",
}
_NEW, _HEAD = "@@ -0,0 ", 3  # a text where none was: below the names of the files, and all of what follows
_LONGEST_WHY, _LONGEST_LINE, _MOST_DENIED = 300, 240, 12
_DIFF_ROLES: dict[str, Role] = {"+": "ok", "-": "bad", "@": "dim"}


def grant_lines(question: Question) -> list[Line]:
    """Who asks and for what: all that a yes gives."""
    name, (title, without) = one_line(question.function, 80), _TITLES[question.moment]
    if question.is_again:
        title = _AGAIN.get(question.moment, " is another version now, and asks again to")
    caller = line(", called by ", ("name", one_line(question.caller, 80)), ",") if question.caller else ()
    wanted, whose = question.missing.sentences(), "You grant " if question.moment == "grant" else ""
    head = line(("warn", "? "), whose, ("name", name), *caller, title if wanted else without, ":" if wanted else ".")
    installs = [line("      ", one_line(each, 4 * _LONGEST_LINE)) for each in question.installs]
    doubts = [line("    ", ("warn", one_line(each, 4 * _LONGEST_LINE))) for each in question.doubts]
    says = [line("    ", ("strong", one_line(each, 2 * _LONGEST_LINE))) for each in wanted]
    return [head, *says, *doubts, *installs]


def question_lines(question: Question, columns: int) -> list[Line]:
    """All of a question, folded: what a yes gives, and then what a human decides by."""
    held = () if question.is_again else question.granted.sentences()
    has = one_line("; ".join(held), 2 * _LONGEST_LINE)
    why = one_line(" ".join(question.why.split()), _LONGEST_WHY)
    needing = [line(("dim", f"{number} "), one_line(text, _LONGEST_LINE)) for number, text in question.lines]
    is_new = _is_new(question)
    rows = question.diff.split("\n")[_HEAD if is_new else 0 :]
    differing = [line(_diff_span(text)) for text in rows if text]
    return [
        *wrapped(grant_lines(question), columns),
        *(wrapped([line("  ", ("dim", "It may already: "), has)], columns) if has else []),
        *_quoted("The reason given:", [line(why)] if why else [], columns),
        *_quoted("The lines that need it:", needing, columns),
        *_quoted("The whole of it:" if is_new else "What is different:", differing, columns),
    ]


def _quoted(title: str, lines: Sequence[Line], columns: int) -> list[Line]:
    """What a model wrote: every row of it stands behind a bar."""
    rows = [line(("dim", "  │ "), *row) for row in wrapped(lines, max(columns - 4, 8))]
    return [*wrapped([line("  ", ("dim", title))], columns), *rows] if rows else []


def kept(question: Question) -> Question:
    """A question as it stays on the screen: a new function's text follows with its verdict."""
    return replace(question, diff="") if _is_new(question) else question


def _is_new(question: Question) -> bool:
    head = question.diff.split("\n", _HEAD)[:_HEAD]
    return len(head) == _HEAD and head[-1].startswith(_NEW)


@lru_cache(maxsize=8)
def fitting(question: Question, columns: int, rows: int) -> tuple[list[Line], int]:
    """As much of a question as fits the screen, in its order of weight, and how many rows are left out."""
    lines = question_lines(question, columns)
    if len(lines) <= rows:
        return lines, 0
    shown = max(rows - 1, 1)
    return lines[:shown], len(lines) - shown


def hides_grants(question: Question, columns: int, rows: int) -> bool:
    """Whether some of what a yes gives would not be seen."""
    return len(wrapped(grant_lines(question), columns)) > max(rows - 1, 1)


def answer_line(decision: Decision) -> Line:
    """What was answered, under its question."""
    role, said = _SAID[decision.answer]
    word = f": {one_line(decision.word)}" if decision.word else ""
    return line("  ", ("dim", "→ "), (role, said + word))


def denied_lines(denied: Iterable[GrantAnswered]) -> list[Line]:
    """What was not granted without a human being asked, each once, and the command that grants it."""
    found = {(each.function, each.says): each for each in denied if each.answer == "no" and each.by in _BECAUSE}
    shown = [each for event in list(found.values())[:_MOST_DENIED] for each in _denied(event)]
    more = len(found) - _MOST_DENIED
    return [*shown, *([line(("dim", f"… and {more} more"))] if more > 0 else [])]


def _denied(event: GrantAnswered) -> Sequence[Line]:
    what = "; ".join(event.says) or "join"
    name, why = one_line(event.function, 80), _BECAUSE[event.by]
    head = line(("warn", "! "), "denied, for ", why, ": ", ("name", name), " to ", one_line(what, 2 * _LONGEST_LINE))
    why_not = [line(one_line(event.word, 1_000))] if event.by in ("never", "unavailable") and event.word else []
    how = [line("to grant it: ", ("strong", one_line(event.command, 1_000)))] if event.command else []
    return [head, *indented([*why_not, *how])]


def typed_decision(text: str) -> Decision | None:
    """The answer that a typed line is, if it is one: a key, and after `w` the word."""
    key, _, word = text.strip().partition(" ")
    if key.lower() == "w" and word.strip():
        return Decision("no", word.strip())
    answer = ANSWERS.get(text.strip().lower())
    return Decision(answer) if answer else None


def _diff_span(text: str) -> Span:
    shown = visible(text).expandtabs(4).rstrip()
    more = len(shown) - _LONGEST_LINE
    cut = f"{shown[:_LONGEST_LINE].rstrip()} … and {more} more characters" if more > 0 else shown
    return _DIFF_ROLES.get(text[:1], ""), cut
