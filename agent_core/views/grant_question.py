"""The grant question for the user, which shows what, why, which lines need it, and what has changed; and its answers.

Text written by a model is escaped and behind a bar, so that it cannot look like the program's own output. Code is shown
as it is written, and never cut: a long line goes on in rows with a mark, and a text that does not fit the screen is
paged.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from agent_core.access.grants import Answer, Decision, Grants, Question
from agent_core.access.grants.approval import BOUND, DIFF_HEAD
from agent_core.access.grants.book import OF_AGENT
from agent_core.base.clock import shown_time
from agent_core.base.events import FunctionAnswered, numbers_of
from agent_core.base.untrusted import one_line, visible, whole_line
from sandbox.wire.lines import bare_lines

from .dialog import MOST_COUNTED, NO, REASON, YES, AnswerKey, Dialog, DialogReply, cut_to
from .styled_lines import (
    WORDS_BAR,
    Line,
    Role,
    Span,
    certain,
    folded,
    indented,
    line,
    split,
)
from .verdicts import SIGNS, problem_lines

if TYPE_CHECKING:
    from agent_core.base.events import FunctionAsked, GrantAnswered
    from agent_core.functions.service.approvals_log import LoggedApproval

_ONCE, _ALWAYS = (
    AnswerKey("o", "once", "once", is_yes=True),
    AnswerKey("y", "always", "yes", is_yes=True),
)
_FOLDER = AnswerKey("f", "always, for its folder", "folder", is_yes=True)
NEVER = AnswerKey("v", "never", "never")
_THIS_TIME = AnswerKey("f", "yes, for its folder", "folder", is_yes=True)
_TURN_PROGRAMS = "for the programs of this turn"
_ANSWERS: dict[str, Answer] = {_ONCE.letter: "once", _ALWAYS.letter: "yes", _FOLDER.letter: "yes"}
_TITLES = {
    "join": (" asks to join, and to", " asks to join"),
    "call": (" asks, before it runs, to", " asks to run"),
    "run": (" runs, and asks to", " runs, and asks to go on"),
    "grant": ("", ""),
    "helper": ("", ": an agent asks to change the helpers"),
    "program": (" asks, for the functions that it calls, to", " asks to run"),
    "open": (" is running and asks to", " asks to run"),
    "change": ("", ": an agent asks to make this change"),
    "task": (" asks once, for this turn, to", " asks to begin"),
}
_AGAIN = {"grant": " again, now a new version"}
_ROLES: dict[Answer, Role] = {"once": "ok", "yes": "ok", "no": "warn"}
_BECAUSE = {
    "policy": "nobody can be asked here",
    "earlier": "you already said no in this turn",
    "often": "you said no several times in this turn, and are not asked again until the next",
    "never": "it cannot be granted",
    "always": "you said that it never may",
    "unavailable": "what it needs is not available",
}
_LONGEST_WHY, _LONGEST_DENIED, _MOST_DENIED = 300, 480, 12
MOST_ROWS = 6
"""The rows of a question above its keys, if everything that a yes gives fits into them; `d` shows the rest."""
_BAR, _GOES_ON = line(("dim", "  │ ")), line(("dim", "  ↪ "))


class GrantDialog(Dialog):
    """The dialog about a grant."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question
        # What is done at once has no grant to keep and no next call. Nobody reads why the user grants nothing.
        self._is_kept = bool(question.missing) and question.moment not in BOUND
        yes = (_ONCE, _ALWAYS) if self._is_kept else (YES,)
        yes = (*yes, *_folder_keys(question, _FOLDER if self._is_kept else _THIS_TIME))
        self.takes_enter = question.moment == "grant"
        self.keys = (YES, NO) if self.takes_enter else (*yes, NO, REASON)
        if self._is_kept and not self.takes_enter:
            self.keys = (*yes, NO, NEVER, REASON)

    def decision(self, reply: DialogReply) -> Decision:
        """Return the decision that an answer makes."""
        return Decision(
            _ANSWERS.get(reply.letter, "no"),
            reply.reason,
            is_wide=reply.letter == _FOLDER.letter,
            is_lasting=reply.letter == NEVER.letter,
        )

    def rows(self, columns: int) -> Iterator[Line]:
        """Yield the whole question."""
        return question_rows(self._question, columns)

    def fitting_rows(self, columns: int, rows: int) -> tuple[list[Line], int, bool]:
        """Return the question in few rows."""
        return fitting_rows(self._question, columns, rows)

    def for_transcript(self) -> "GrantDialog":
        """Return the form without the source of a new function, which follows with its verdict."""
        return GrantDialog(transcript_form(self._question))

    def ending(self, reply: DialogReply) -> Line:
        """Return the answer as a line, with where it is kept."""
        decision = self.decision(reply)
        answer: str = decision.answer
        if decision.is_wide:
            answer += ", the folder" + (
                f" for all that {self._question.maker} makes" * bool(self._question.maker)
                + f" {_TURN_PROGRAMS}" * self._question.is_for_turn
            )
        if decision.answer == "yes" and (
            self._is_kept or (decision.is_wide and self._question.maker)
        ):
            answer += ", kept in functions/grants.toml"
        if decision.is_lasting:
            answer += f", never (knapper functions grant {one_line(self._question.function, 80)} lifts it)"
        word = f": “{one_line(decision.word)}”" if decision.word else ""
        return line("  ", ("dim", "→ "), (_ROLES[decision.answer], answer + word))


def _folder_keys(question: Question, key: AnswerKey) -> Iterator[AnswerKey]:
    """Yield the key for the folder of a question, if it has one: this `key`, or that for all that an agent makes."""
    if question.maker:
        whose = f"for all that {one_line(question.maker, 80)} makes here"
        yield replace(_FOLDER, says=f"always, read {whole_line(question.folder)} {whose}")
    elif question.folder and question.missing.write:  # not only the file that is named above
        whose = f" {_TURN_PROGRAMS}" if question.is_for_turn else ""
        yes = key.says.partition(",")[0]
        yield replace(key, says=f"{yes}, read and write {whole_line(question.folder)}{whose}")
    elif question.folder:
        yield key


def title_of(question: Question) -> str:
    """Return the title of a question, which says who asks, from its first line."""
    return "".join(text for _, text in grant_lines(question)[0]).removeprefix("? ")


def grant_lines(question: Question) -> list[Line]:
    """Return lines about who asks and everything that a yes gives."""
    name, (title, without) = one_line(question.function, 80), _TITLES[question.moment]
    if question.is_again:
        title = _AGAIN.get(question.moment, " is a new version now and asks again to")
    elif question.moment == "join" and question.diff and not question.is_new:
        title, without = f", a new version,{title}", f", a new version,{without}"
    caller = (
        line(", called by ", ("name", one_line(question.caller, 80)), ",")
        if question.caller
        else ()
    )
    sentences, prefix = question.says, "You grant " if question.moment == "grant" else ""
    precedents = [
        line("      ", ("dim", whole_line(precedent))) for precedent in question.precedents
    ]
    doubts = [line("    ", ("warn", whole_line(doubt))) for doubt in question.doubts]
    if question.moment in ("run", "open") and (question.missing.read or question.missing.write):
        opened = whole_line(" and ".join(sentences))
        head = line(
            ("warn", "? "), ("name", name), *caller, " is running and asks to ", ("strong", opened)
        )
        lines = [head, *precedents, *doubts]
    else:
        asks = f"{title}:" if sentences else f"{without}."
        lines = [
            line(("warn", "? "), ("strong", prefix), ("name", name), *caller, ("strong", asks))
        ]
        installs = [line("      ", whole_line(install)) for install in question.installs]
        packages = Grants(packages=question.missing.packages).sentences()
        for sentence in sentences:
            lines.append(line("    ", ("strong", whole_line(sentence))))
            lines += installs if [sentence] == packages[-1:] else []
        lines += precedents
        if question.changed:
            lines.append(line("  ", ("dim", "Since your last yes: "), whole_line(question.changed)))
        lines += [*doubts, *([] if packages else installs)]
    for fact in question.facts:
        lines.append(line("    ", ("dim", whole_line(fact))))
    if asker := one_line(question.asker, 80):
        whom = one_line(question.whom, 80)
        other = (("dim", " on behalf of "), ("name", whom)) if whom else ()
        lines.append(line("  ", ("dim", "The agent "), ("name", asker), ("dim", " asks"), *other))
    return lines


def question_rows(question: Question, columns: int) -> Iterator[Line]:
    """Yield the whole question, wrapped: first what a yes gives, then the facts for the decision.

    The rows are generated lazily, so that a page costs only its own rows.
    """
    yield from _given_rows(question, columns)
    for section in _fact_rows(question, columns):
        yield from section
    yield from _code_rows(question, columns)


def _given_rows(question: Question, columns: int) -> Iterator[Line]:
    """Yield rows about what a yes gives, and what was granted before."""
    sentences = () if question.is_again else question.granted.sentences()
    yield from folded(_certain(grant_lines(question)), columns)
    if sentences:
        says = whole_line("; ".join(sentences))
        yield from folded(_certain([line("  ", ("dim", "It may already: "), says)]), columns)


def _fact_rows(question: Question, columns: int) -> tuple[Iterator[Line], Iterator[Line]]:
    why = one_line(" ".join(question.why.split()), _LONGEST_WHY)
    digits = len(str(max((number for number, _ in question.lines), default=0)))
    needing = (
        line(("dim", f"{number:{digits}} "), _as_written(text)) for number, text in question.lines
    )
    title = (
        "The whole program:"
        if question.moment in ("program", "open")
        else "The lines that need it:"
    )
    reason = _quote("The reason given:", [line(why)] if why else [], columns, _fold_line)
    return reason, _quote(title, needing, columns)


def _code_rows(question: Question, columns: int) -> Iterator[Line]:
    is_new = question.is_new
    rows = bare_lines(question.diff)[DIFF_HEAD if is_new else 0 :]
    differing = (
        line(
            (SIGNS.get(text[:1], ""), _as_written(text[:1].strip() or " ") + _as_written(text[1:]))
        )
        for text in rows
        if text
    )
    yield from _quote("The full source:" if is_new else "What is different:", differing, columns)


def _as_written(text: str) -> str:
    """Return a line of code with its indentation as Python counts it; other tabs are shown as escapes."""
    code = text.lstrip(" \t")
    escaped = visible(code.rstrip(" \t")).replace("\t", "\\t").replace("\n", "\\n")
    return text[: len(text) - len(code)].expandtabs() + escaped


def _fold_line(spans: Line, columns: int) -> Iterator[Line]:
    return folded([spans], columns)


def _quote(
    title: str,
    lines: Iterable[Line],
    columns: int,
    wrap: Callable[[Line, int], Iterator[Line]] = split,
) -> Iterator[Line]:
    """Yield text written by a model, with a bar before every row, or a mark if the row continues the one above."""
    for at, spans in enumerate(_certain(lines)):
        if not at:
            yield from folded([line("  ", ("dim", title))], columns)
        for number, row in enumerate(wrap(spans, max(columns - 4, 8))):
            yield (*(_GOES_ON if number else _BAR), *row)


def _certain(lines: Iterable[Line]) -> Iterator[Line]:
    """Escape characters that terminals draw in different widths, so that no row extends beyond the margin."""
    return (tuple((role, certain(text)) for role, text in spans) for spans in lines)


def transcript_form(question: Question) -> Question:
    """Return a question in the form that stays on the screen. The source of a new function follows with its verdict."""
    return replace(question, diff="") if question.is_new else question


@lru_cache(maxsize=8)
def fitting_rows(question: Question, columns: int, rows: int) -> tuple[list[Line], int, bool]:
    """Return a question in few rows: everything that a yes gives, as far as there is room, and short facts. Also return
    the number of rows left out, up to 200, and whether these include part of what a yes gives.
    """
    if question.is_about_text:
        lines = list(islice(question_rows(question, columns), rows + MOST_COUNTED))
        return cut_to(lines, rows)
    given = list(islice(_given_rows(question, columns), rows + MOST_COUNTED))
    if len(given) > rows:
        return cut_to(given, rows)
    shown, left_out = given, list(islice(_code_rows(question, columns), MOST_COUNTED))
    for section in _fact_rows(question, columns):
        facts, room = list(islice(section, MOST_COUNTED)), max(min(rows, MOST_ROWS) - len(shown), 0)
        fits = (
            len(facts) if len(facts) <= room else room - 1 if room > 2 else 0
        )  # a title alone is useless
        mark = [line(("dim", "  …"))] if 0 < fits < len(facts) else []
        shown, left_out = [*shown, *facts[:fits], *mark], [*left_out, *facts[fits:]]
    return shown, min(len(left_out), MOST_COUNTED), False


def denied_lines(denied: Iterable["GrantAnswered"]) -> list[Line]:
    """Return each request that was denied without asking the user, with the command that grants it."""
    denials = {
        (event.function, event.says): event
        for event in denied
        if event.answer == "no" and event.by in _BECAUSE
    }
    shown: list[Line] = []
    for event in list(denials.values())[:_MOST_DENIED]:
        name, request = (
            one_line(event.function, 80),
            one_line("; ".join(event.says) or "join", _LONGEST_DENIED),
        )
        shown.append(
            line(
                ("warn", "! "),
                "denied because ",
                _BECAUSE[event.by],
                ": ",
                ("name", name),
                " to ",
                request,
            )
        )
        if event.by in ("never", "unavailable") and event.word:
            shown += indented([line(one_line(event.word, 1_000))])
        if event.command:
            shown += indented([line("to grant it: ", ("strong", one_line(event.command, 1_000)))])
    more = len(denials) - _MOST_DENIED
    return [*shown, *([line(("dim", f"… and {more} more"))] if more > 0 else [])]


if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.service.grant_service import GrantListing, Revoked
    from agent_core.functions.service.plan import Given


def given_lines(given: "Given") -> list[Line]:
    """Return lines about what a function may now reach."""
    return _grant_lines("ok", "✓ ", given.name, " may", given.grants)


def lifted_lines(name: str, lifted_grants: Grants) -> list[Line]:
    """Return lines about what a function may be asked about again."""
    return _grant_lines("ok", "✓ ", name, " is asked about again, which never may", lifted_grants)


def revoked_lines(revoked: "Revoked") -> list[Line]:
    """Return lines about what was revoked, and what remains."""
    lines = _grant_lines("ok", "✓ ", revoked.name, " may no longer", revoked.revoked)
    return [
        *lines,
        *(
            _grant_lines("dim", "", revoked.name, " still may", revoked.grants)
            if revoked.grants
            else []
        ),
    ]


def grants_lines(listing: "GrantListing") -> list[Line]:
    """Return lines for each function's grants, and how much of them is in force."""
    lines = list[Line]()
    for row in listing.grants:
        state = (
            ""
            if row.in_force.covers(row.grants)
            else " (not in force: you are asked when it is called)"
        )
        state = f"{state[:-1]}: since your yes, {one_line(row.changed)})" if row.changed else state
        state = state if row.exists else " (there is no such function)"
        whose = " (all that it makes here)" if row.name.startswith(OF_AGENT) else ""
        written = f"{whose}  {one_line(row.by)}, {_when(row.at)}"
        lines.append(line(("name", row.name), ("dim", written), ("bad", state)))
        lines += indented([line(("warn", f"{row.elsewhere}."))] * bool(row.elsewhere))
        in_force = row.in_force.sentences()
        for sentence in row.grants.sentences():
            lines += indented(
                [line(sentence if sentence in in_force else ("dim", f"{sentence} (proposed)"))]
            )
    return [*lines, *problem_lines(listing.problems)]


def function_question_lines(event: "FunctionAsked | FunctionAnswered") -> list[Line]:
    """Return lines about the question of a function: its words behind a bar, which no line of the program has."""
    if isinstance(event, FunctionAnswered):
        said = f"answered: {one_line(event.answer, 200)}" if event.answer else "nobody answered"
        return indented([line(WORDS_BAR, ("dim", f"{said} ({event.by})"))])
    head = line(
        ("dim", "the function "), ("name", one_line(event.function, 80)), ("dim", " asks you:")
    )
    words = [visible(row) for row in bare_lines(event.text)] or [""]
    rows = [head, *(line(WORDS_BAR, row) for row in words)]
    rows += [
        line(WORDS_BAR, ("dim", number), one_line(each, 200))
        for number, each in zip(numbers_of(event.choices), event.choices, strict=True)
    ]
    form = one_line(event.form, 200)
    rows.append(
        line(("dim", f"answer: /answer {event.question[:8]} … ({form}). {event.otherwise}"))
    )
    return indented(rows)


def log_lines(rows: "Iterable[LoggedApproval]") -> list[Line]:
    """Return lines for the log of approvals: when, what, on which text, what it is worth, and how to take it back."""
    lines = list[Line]()
    for row in rows:
        said = row.answer or "open"
        what = "; ".join(row.says) or "join"
        style: Role = "dim"
        if row.kind == "open":
            style = "warn"
        elif row.stands:
            style = "ok"
        by = [one_line(row.by, 20), one_line(row.agent, 64)]
        spans: list[Span | str] = [("dim", shown_time(row.at)), "  ", (style, said), "  "]
        spans += [("name", one_line(row.function, 80)), f" may {one_line(what, 200)}"]
        lines.append(line(*spans, ("dim", f"  {' for '.join(filter(None, by))}")))
        notes = [f"text {row.text}", *row.modules]
        if row.last_call is not None:
            notes.append(f"{row.calls} calls since, the last {shown_time(row.last_call)}")
        lines += indented([line(("dim", one_line(", ".join(filter(None, notes)), 200)))])
        lines += indented([line(("dim", "to take it back: "), row.undo)] * bool(row.undo))
    return lines


def _when(written: str) -> str:
    """Return the time of a grant in local time. Anyone may write the file, so another text stays as it is."""
    try:
        return shown_time(datetime.fromisoformat(written).timestamp())
    except (ValueError, OverflowError, OSError):
        return one_line(written)


def _grant_lines(style: Role, mark: str, name: str, verb: str, grants: Grants) -> list[Line]:
    return [
        line((style, mark), ("name", name), verb),
        *indented([line(sentence) for sentence in grants.sentences()]),
    ]
