"""One grant question at the prompt: a key answers no; a key and Enter answer once or yes.

What is typed ahead answers nothing: keys count at once if the user was not typing as the question appeared, else once
the input line is empty and quiet. A line that was begun then answers with a word, such as yes; if it is none, it is not
sent, and is found in the history. One that was begun before is put aside by Enter, and is there again after the answer.
An answer with more right behind its Enter is a paste. Heavy: loaded behind the prompt.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Literal

from prompt_toolkit.formatted_text import StyleAndTextTuples

from agent_core.access.grants import Decision, Question
from agent_core.base.untrusted import one_line

from ..render.grant_question import (
    CONFIRMED,
    UNSEEN,
    answer_line,
    decision_of,
    explained,
    fitting,
    how_to_answer,
    keys_of,
    more_rows,
    pages,
    transcript_form,
    typed_answer,
)
from ..spans import Line, Role, Span, line, painted, wrapped
from .prompt import QUIET_S, Prompt

ALONE_S = 0.25
CHOSEN_S = 0.05  # until the row says what Enter answers
LAST_S = 0.05  # after an Enter that answers: a paste brings more
_BELOW = 3  # rows under the keys and over them: that more is left out, the input line, the bar
_LONGEST_WORD = 2_000
_LEAST_PAGE = 8  # rows
_STYLES: dict[Role, str] = {
    "": "",
    "ok": "ansigreen",
    "bad": "ansired",
    "warn": "ansiyellow",
    "dim": "ansibrightblack",
    "name": "ansicyan",
    "strong": "bold",
    "alarm": "bold",
}
_ANSWERS = "answers with your line, if it is an answer; it is not sent."
_ASIDE = "puts your line aside until you have answered; then a key answers."
_TYPED = "That was typed text: it is in the line below."
_MORE = "There is more: press d for the next page."
_ALL = "That was all of it."
State = Literal["quiet", "armed", "pressed", "chosen", "entered", "word"]


class Asking:
    """The open question; `answer` is set once the user has given it."""

    def __init__(self, question: Question, prompt: Prompt) -> None:
        self.answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self.state: State = "quiet"
        self._question = question
        self._prompt = prompt
        self._note = ""
        self._pressed = ""
        self._entered: str | Decision = ""  # the answer that counts if nothing follows its Enter
        self._pages: Iterator[tuple[list[Line], bool]] | None = None
        self._seen = False
        self._draft = ""
        self._is_answer = self._is_drawn = False  # the line was begun when keys counted
        self._timer: asyncio.TimerHandle | None = None
        prompt.buffer.cancel_completion()
        prompt.app.key_processor.before_key_press += self._typed

    def press(self, key: str) -> None:
        """Handle a key that may be an answer."""
        if self.state == "entered":
            begun = "" if self._prompt.buffer.text else self._pressed
            self._typing(f"{begun}\n{key if key.isprintable() else ''}", is_answer=True)
        elif not key or not key.isprintable():
            self.state = "armed"
            self._explain(f"That answers nothing. {explained(self._question)}")
        elif self.state == "armed" and (decision_of(key, self._question) or key in ("w", "d")):
            self.state, self._pressed = "pressed", key
            self._wait(CHOSEN_S if key in CONFIRMED else ALONE_S)
        elif self.state == "pressed" and key == self._pressed == "d":
            self._wait(ALONE_S)  # a page for each is not wanted yet, and no word begins so
        else:
            self._typing((self._pressed if self.state != "armed" else "") + key, is_answer=True)

    def enter(self) -> None:
        """Handle Enter: send the word, confirm a yes, take the typed line, or say what to press."""
        if self.state == "word":
            self._close(Decision("no", self._prompt.buffer.text.strip()[:_LONGEST_WORD]))
        elif self.state in ("pressed", "chosen"):
            self._enter(self._pressed)
        elif self.state == "entered":
            self._elapsed()
        elif self._prompt.buffer.text:
            self._take_line()
        else:
            self._explain(f"Enter answers nothing. {explained(self._question)}")

    def _enter(self, answer: str | Decision) -> None:
        """Take an answer unless more follows at once, as it does in a paste."""
        self.state, self._entered = "entered", answer
        self._wait(LAST_S)

    def _take_line(self) -> None:
        """Answer with the typed line, or say why it answers nothing."""
        said = typed_answer(self._prompt.buffer.text, self._question)
        if said is not None and self._is_answer:
            self._enter(said)
            return
        self._put_aside(is_word=said is not None)

    def _put_aside(self, *, is_word: bool) -> None:
        """Empty the input line, so that keys can count, and say what becomes of it."""
        buffer, again = self._prompt.buffer, explained(self._question)
        typed = f"“{one_line(buffer.text.strip(), 40)}”"
        if is_word:
            note = f"{typed} was begun before you could answer, so it does not count. {again}"
        elif self._is_answer:
            note = f"{typed} answers nothing, and was not sent (↑ has it). {again}"
        else:
            note = f"{typed} was begun before you could answer: it is back afterwards. {again}"
            self._draft = "\n".join(filter(None, [self._draft, buffer.text]))
        buffer.reset(append_to_history=self._is_answer and not is_word)
        self.state, self._is_answer = "quiet", False
        self._explain(note)
        self._wait(QUIET_S)

    def refuse(self) -> None:
        """Answer with a no."""
        self._close(Decision("no"))

    def end(self) -> None:
        """Restore the input line, and print above it the question and the answer."""
        self._prompt.app.key_processor.before_key_press -= self._typed
        if self._timer is not None:
            self._timer.cancel()
        if self.state == "word":
            self._prompt.buffer.reset()
        self._prompt.bring_back(self._draft)
        decided = self.answer.done() and not self.answer.cancelled()
        ending = answer_line(self.answer.result(), self._question) if decided else line("  ", ("dim", "→ not answered"))
        self._note, self._question, columns = "", transcript_form(self._question), self._prompt.columns
        self._print([*self._shown(columns, len(self._below(columns, 1)))[0], *wrapped([ending], columns)])

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Draw the question and the keys to fit the screen. Keys count from now on if the user does not type."""
        if not self._is_drawn:
            self._is_drawn = True
            if self._timer is None and not self._prompt.is_typed_in:
                self.state = "armed"
            else:
                self._wait(QUIET_S)
        lines, hidden_rows, _ = self._shown(columns, len(self._below(columns, 1)))
        drawn: StyleAndTextTuples = []
        for row in [*lines, *self._below(columns, hidden_rows)]:
            drawn += [*((_STYLES[role], text) for role, text in row), ("", "\n")]
        return drawn[:-1]

    def _below(self, columns: int, hidden_rows: int) -> list[Line]:
        how = line(("dim", how_to_answer(self._question)))
        below = [line(("warn", self._note))] if self._note else [how] if self.state == "armed" else []
        return wrapped([self._keys(hidden_rows), *below], columns)

    def _keys(self, hidden_rows: int) -> Line:
        if self.state == "word":
            return line(("strong", "Type the word for the model and press Enter."), ("dim", " Esc: no, without a word"))
        if self.state == "chosen":
            chosen = next(says for key, says in keys_of(self._question) if key == self._pressed)
            return line(("strong", "Enter"), f" answers {chosen} · ", ("strong", "Esc"), " no")
        if self.state in ("quiet", "entered") and self._prompt.buffer.text:
            return line(("strong", "Enter"), " " + (_ANSWERS if self._is_answer else _ASIDE))
        if self.state == "quiet":
            return line(("dim", "…"))
        keys: list[Span] = []
        for key, says in keys_of(self._question):
            keys += [("strong", key), ("", f" {says} · ")]
        return (
            *keys,
            *(
                line(("strong", "d"), f" all of it (+{hidden_rows} rows)")
                if hidden_rows
                else line(("strong", "Esc"), " no")
            ),
        )

    def _shown(self, columns: int, below: int) -> tuple[list[Line], int, bool]:
        """Return the rows of the question, how many are left out, and whether what a yes gives is among those."""
        lines, hidden_rows, is_cut = fitting(self._question, columns, self._room(below))
        more = [line(("dim", f"  … {more_rows(hidden_rows)}"))] if is_cut else []
        return [*lines, *more], hidden_rows, is_cut

    def _room(self, below: int) -> int:
        return max(self._prompt.output.get_size().rows - _BELOW - below, 1)

    def _typed(self, _: object) -> None:
        """Note that a key was pressed: the keyboard is not quiet yet."""
        if self.state == "quiet":
            self._wait(QUIET_S)

    def _wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._elapsed)

    def _elapsed(self) -> None:
        if self.state == "quiet" and not self._prompt.buffer.text:
            self.state, self._note = "armed", "" if self._note == _TYPED else self._note
        elif self.state == "pressed" and self._pressed in CONFIRMED:
            self.state = "chosen"
        elif self.state == "pressed":
            self._take(self._pressed)
        elif self.state == "entered":
            self._prompt.buffer.reset()
            self._close(self._entered) if isinstance(self._entered, Decision) else self._take(self._entered)
        self._prompt.app.invalidate()

    def _take(self, key: str) -> None:
        self.state = "armed"
        columns = self._prompt.columns
        *_, is_cut = self._shown(columns, len(self._below(columns, 1)))
        if key == "d":
            self._page(columns)
        elif key == "w":
            self.state, self._note = "word", ""
            self._prompt.buffer.reset()
            self._prompt.app.layout.focus(self._prompt.buffer)
        elif is_cut and not self._seen and key != "n":
            self._explain(f"{UNSEEN} Press d.")
        else:
            self._close(decision_of(key, self._question) or Decision("no"))

    def _page(self, columns: int) -> None:
        """Print the next page, or the first one again after the last."""
        room = max(self._room(0), _LEAST_PAGE)
        self._pages = self._pages or pages(self._question, columns, room)
        page, is_last = next(self._pages)
        self._seen = self._seen or is_last
        self._pages = None if is_last else self._pages
        self._print(page)
        self._explain(_ALL if is_last else _MORE)

    def _typing(self, text: str, *, is_answer: bool = False) -> None:
        self.state, self._is_answer = "quiet", is_answer
        self._prompt.buffer.insert_text(text)
        self._explain(_TYPED)
        self._wait(QUIET_S)

    def _explain(self, note: str) -> None:
        self._note = one_line(note, 400)
        self._prompt.app.invalidate()

    def _close(self, decision: Decision) -> None:
        if not self.answer.done():
            self.answer.set_result(decision)

    def _print(self, lines: list[Line]) -> None:
        self._prompt.print_above(painted(lines, sys.stdout))


@asynccontextmanager
async def open_question(question: Question, prompt: Prompt) -> AsyncIterator[Asking]:
    """Show a question on the screen while the block runs."""
    asking = prompt.asking = Asking(question, prompt)
    prompt.app.invalidate()
    try:
        yield asking
    finally:
        prompt.asking = None
        asking.end()
