"""A question to a person: what it shows, and what answers it.

A yes to an action that cannot be undone, or below input that was typed before the question, is the whole word.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line

from .styled_lines import Line, folded, line

_FINAL: Final = "This cannot be undone: type"
_AHEAD: Final = "Something was typed before it: type"
MOST_COUNTED: Final = (
    200  # rows beyond the screen; counting all of them would take as long as showing them
)


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """A key that answers, its meaning, and the word that answers the same. A yes needs Enter, too."""

    letter: str
    says: str
    word: str = ""
    is_yes: bool = False


YES, NO = AnswerKey("y", "yes", "yes", is_yes=True), AnswerKey("n", "no", "no")
REASON = AnswerKey("w", "no, with a reason")


@dataclass(frozen=True, slots=True)
class DialogReply:
    """The letter of the key that answered, and the reason if one was typed."""

    letter: str = NO.letter
    reason: str = ""


class Dialog:
    """A question: its text, the keys that answer, whether Enter alone is a no, whether a yes is the whole word.

    This one takes yes or no; subclasses have other keys, and more to show.
    """

    keys: tuple[AnswerKey, ...] = (YES, NO)
    takes_enter = True

    def __init__(self, text: str = "", *, is_final: bool = False) -> None:
        self._text = text
        self._is_final = is_final

    def instructions(self, *, is_ahead: bool = False, by_keys: bool = False) -> str:
        """Return the sentence about what answers. If input preceded the question, only the whole word is a yes."""
        why = _FINAL if self._is_final else _AHEAD if is_ahead else ""
        yes = [
            _meaning(key.word if why else key.letter, key.says) for key in self.keys if key.is_yes
        ]
        no = [_meaning(key.letter, key.says) for key in self.keys if not key.is_yes]
        if by_keys and not why:
            how = f"Press {_listed(yes)}, then Enter, or {self.refusals()}."
        else:
            no[1:] = [f"{REASON.letter} and a reason"] * (REASON in self.keys)
            how = f"{why or 'Type'} {_listed([*yes, *no])}, then Enter."
        return f"{how} Enter alone: no." if self.takes_enter else how

    def refusals(self) -> str:
        """Return the keys that answer no, which count before all is shown."""
        return " or ".join(_meaning(key.letter, key.says) for key in self.keys if not key.is_yes)

    def reply(self, typed: str, *, is_ahead: bool = False) -> DialogReply | None:
        """Return the answer in a typed line or key, if it is one."""
        letter, _, reason = typed.strip().partition(" ")
        if letter.lower() == REASON.letter and reason.strip() and REASON in self.keys:
            return DialogReply(REASON.letter, reason.strip())
        in_full = is_ahead or self._is_final
        # The end of a pasted line may be this word after leading blanks.
        text = (typed.rstrip() if in_full else typed.strip()).lower()
        for key in self.keys:
            is_word = text in (key.word, key.says.lower())  # as it stands in the row of keys
            if (
                text
                and (is_word or (text == key.letter and not (key.is_yes and in_full)))
                and key != REASON
            ):
                return DialogReply(key.letter)
        return DialogReply() if self.takes_enter and not text else None

    def reply_to_key(self, key: str) -> DialogReply | None:
        """Return the answer of a single key, if it is one; for a no with a reason, the reason follows."""
        is_reason = key == REASON.letter and REASON in self.keys
        return DialogReply(key) if is_reason else self.reply(key) if key.strip() else None

    def rows(self, columns: int) -> Iterator[Line]:
        """Yield everything to show, wrapped."""
        return folded([line(("warn", "? "), ("strong", one_line(self._text)))], columns)

    def fitting_rows(self, columns: int, rows: int) -> tuple[list[Line], int, bool]:
        """Return as much as there is room for, the number of rows left out, up to 200, and whether a yes needs them."""
        return cut_to([*islice(self.rows(columns), rows + MOST_COUNTED)], rows)

    def pages(self, columns: int, rows: int) -> Iterator[tuple[list[Line], bool]]:
        """Yield the pages, each with whether it is the last. A yes is accepted only below the last page."""
        remaining = self.rows(columns)
        page = list(islice(remaining, rows))
        while page:
            following = list(islice(remaining, rows))
            yield page, not following
            page = following

    def for_transcript(self) -> "Dialog":
        """Return the form that stays on the screen after the answer."""
        return self

    def ending(self, reply: DialogReply) -> Line:
        """Return the answer as a line below the question."""
        return line(
            "  ", ("dim", "→ "), ("ok", "yes") if reply.letter == YES.letter else ("warn", "no")
        )


def _meaning(form: str, says: str) -> str:
    return form if form == says else f"{form} ({says})"


def _listed(texts: list[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} or {last}" if first else last


def cut_to(lines: list[Line], rows: int) -> tuple[list[Line], int, bool]:
    """Return the rows that fit, the number of the others, up to 200, and whether there are any."""
    if len(lines) <= rows:
        return lines, 0, False
    shown = max(rows - 1, 1)
    return lines[:shown], min(len(lines) - shown, MOST_COUNTED), True
