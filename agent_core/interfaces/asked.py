"""The question about grants as a human reads it: what, why, by which lines, and what is different; and its answers.

What a model wrote stands behind a bar, escaped: it cannot look like a line of the program. Nothing of the code is cut:
a long line is folded, and each row that goes on with it is marked; what does not fit the screen comes in pages.
"""

import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Literal

from agent_core.events import GrantAnswered
from agent_core.grants import Answer, Decision, Question
from agent_core.untrusted import one_line, visible, whole_line
from sandbox.lines import bare_lines, first_lines

from .agreement import Agreement
from .columns import certain
from .spans import Line, Role, Span, indented, line
from .wrap import folded, screen_columns

Key = Literal["o", "y", "n", "w"]
KEYS: tuple[tuple[Key, str], ...] = (("o", "once"), ("y", "yes, kept"), ("n", "no"), ("w", "no, with a word"))
ANSWERS: dict[str, Answer] = {"o": "once", "y": "yes", "n": "no"}
EXPLAINED = (
    "Nothing was answered. o: for its next call alone. y: for good, for exactly this code. n: no."
    " w: no, and you type a word for the model."
)
_WORD = "o and y take the word next to them: so nothing that was typed before the question answers it."
UNSEEN = "Nothing was answered, for not all of it has been shown."
PAGED = "This is not all of it. Enter shows more, n no, or w and a word; then Enter: "
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
    "often": "you said no several times in this turn, and are not asked again before the next",
    "never": "no human can grant it",
    "unavailable": "what it needs cannot be had",
}
_NEW, _HEAD = "@@ -0,0 ", 3  # a text where none was: below the names of the files, and all of what follows
_LONGEST_WHY, _LONGEST_DENIED, _MOST_DENIED = 300, 480, 12
MOST_COUNTED = 200  # rows beyond the screen; to count all would take as long as to show them
_BAR, _GOES_ON = line(("dim", "  │ ")), line(("dim", "  ↪ "))
_DIFF_ROLES: dict[str, Role] = {"+": "ok", "-": "bad", "@": "dim"}


def grant_lines(question: Question) -> list[Line]:
    """Who asks and for what: all that a yes gives."""
    name, (title, without) = one_line(question.function, 80), _TITLES[question.moment]
    if question.is_again:
        title = _AGAIN.get(question.moment, " is another version now, and asks again to")
    caller = line(", called by ", ("name", one_line(question.caller, 80)), ",") if question.caller else ()
    wanted, whose = question.missing.sentences(), "You grant " if question.moment == "grant" else ""
    head = line(("warn", "? "), whose, ("name", name), *caller, title if wanted else without, ":" if wanted else ".")
    installs = [line("      ", whole_line(each)) for each in question.installs]
    doubts = [line("    ", ("warn", whole_line(each))) for each in question.doubts]
    says = [line("    ", ("strong", whole_line(each))) for each in wanted]
    return [head, *says, *doubts, *installs]


def question_lines(question: Question, columns: int) -> list[Line]:
    """All of a question, folded: what a yes gives, and then what a human decides by."""
    return list(question_rows(question, columns))


def question_rows(question: Question, columns: int) -> Iterator[Line]:
    """The same, row by row: a page costs no more than its rows."""
    held = () if question.is_again else question.granted.sentences()
    why = one_line(" ".join(question.why.split()), _LONGEST_WHY)
    needing = (line(("dim", f"{number} "), whole_line(text)) for number, text in question.lines)
    is_new = _is_new(question)
    rows = bare_lines(question.diff)[_HEAD if is_new else 0 :]
    differing = (line(_diff_span(text)) for text in rows if text)
    yield from folded(_certain(grant_lines(question)), columns)
    if held:
        says = whole_line("; ".join(held))
        yield from folded(_certain([line("  ", ("dim", "It may already: "), says)]), columns)
    yield from _quoted("The reason given:", [line(why)] if why else [], columns)
    yield from _quoted("The lines that need it:", needing, columns)
    yield from _quoted("The whole of it:" if is_new else "What is different:", differing, columns)


def _quoted(title: str, lines: Iterable[Line], columns: int) -> Iterator[Line]:
    """What a model wrote: every row of it stands behind a bar, or a mark where it goes on with the row above."""
    for at, each in enumerate(_certain(lines)):
        if not at:
            yield from folded([line("  ", ("dim", title))], columns)
        for number, row in enumerate(folded([each], max(columns - 4, 8))):
            yield (*(_GOES_ON if number else _BAR), *row)


def _certain(lines: Iterable[Line]) -> Iterator[Line]:
    """Write what terminals draw in different widths as escapes: no end of a row hides behind the margin."""
    return (tuple((role, certain(text)) for role, text in each) for each in lines)


def kept(question: Question) -> Question:
    """A question as it stays on the screen: a new function's text follows with its verdict."""
    return replace(question, diff="") if _is_new(question) else question


def _is_new(question: Question) -> bool:
    head = first_lines(question.diff, _HEAD)
    return len(head) == _HEAD and head[-1].startswith(_NEW)


@lru_cache(maxsize=8)
def fitting(question: Question, columns: int, rows: int) -> tuple[list[Line], int]:
    """As much of a question as fits the screen, in its order of weight, and how many rows are left out, up to 200."""
    lines = list(islice(question_rows(question, columns), rows + MOST_COUNTED))
    if len(lines) <= rows:
        return lines, 0
    shown = max(rows - 1, 1)
    return lines[:shown], min(len(lines) - shown, MOST_COUNTED)


def more_rows(left: int) -> str:
    """How many rows are left out, as a human reads it."""
    return f"{left} more rows" if left < MOST_COUNTED else f"at least {left} more rows"


def pages(question: Question, columns: int, rows: int) -> Iterator[tuple[list[Line], bool]]:
    """A question in pages, each with whether it is the last: only below that one a yes is taken."""
    left = question_rows(question, columns)
    page = list(islice(left, rows))
    while page:
        following = list(islice(left, rows))
        yield page, not following
        page = following


async def answered(
    question: Question, show: Callable[[Iterable[Line]], None], ask: Callable[[str], Awaitable[str | None]]
) -> Decision:
    """What a human types below the last page of a question; a no can be typed below each; no at the end of input."""
    rows, agreement = max(shutil.get_terminal_size().lines - 2, 8), Agreement()
    for page, is_last in pages(question, screen_columns(), rows):
        show(page)
        while (typed := await ask(typed_keys(agreement) if is_last else PAGED)) is not None:
            decision = typed_decision(typed, agreement)
            if decision is not None and (is_last or decision.answer == "no"):
                return decision
            if not is_last and not typed.strip():
                break
            show([line(("warn", f"{EXPLAINED} {_WORD}" if is_last else UNSEEN))])
        else:
            return Decision("no")
    return Decision("no")


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
    head = line(("warn", "! "), "denied, for ", why, ": ", ("name", name), " to ", one_line(what, _LONGEST_DENIED))
    why_not = [line(one_line(event.word, 1_000))] if event.by in ("never", "unavailable") and event.word else []
    how = [line("to grant it: ", ("strong", one_line(event.command, 1_000)))] if event.command else []
    return [head, *indented([*why_not, *how])]


def typed_keys(agreement: Agreement) -> str:
    """Return what can be typed below a question."""
    word = agreement.word
    return f"o {word} once, y {word} yes (kept), n no, or w and a word; then Enter: "


def typed_decision(text: str, agreement: Agreement) -> Decision | None:
    """Return the answer that a typed line is, if it is one: after `o` and `y` the question's word, after `w` any."""
    key, _, word = text.strip().partition(" ")
    if key.lower() == "w" and word.strip():
        return Decision("no", word.strip())
    answer = "no" if text.strip().lower() == "n" else ANSWERS.get(agreement.key(text))
    return Decision(answer) if answer else None


def _diff_span(text: str) -> Span:
    return _DIFF_ROLES.get(text[:1], ""), visible(text).expandtabs(4).rstrip()
