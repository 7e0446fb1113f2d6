"""Separation of reasoning that was left in the text of a reply, while it streams. Pure.

Marks around reasoning, and around the answer, are data of `reading.toml`. In code they are what they look like.
"""

import re
from functools import cache
from typing import Final, Literal, TypeAlias

from .reading import forms

MAX_BLANKS: Final = 4_096
"""Blanks before a reply or a step begins; more mean that none will."""

_Place: TypeAlias = Literal["start", "thought", "text"]
_FENCE: Final = "```"


@cache
def _closes() -> dict[str, str]:
    """Return the mark that ends a thought, by the one that begins it."""
    return {marks.open: marks.close for marks in forms().reasoning_marks}


@cache
def _marks_in_text() -> re.Pattern[str]:
    """Return the pattern of the marks that matter within a text: longer ones first."""
    return re.compile(
        "|".join(map(re.escape, sorted({*_closes(), *_ends_alone()}, key=len, reverse=True)))
    )


@cache
def _ends_alone() -> frozenset[str]:
    """Return the marks that can end a thought that no mark began; some end other things, too."""
    return frozenset(_closes().values()) - {*forms().after_answer}


@cache
def _beginnings() -> frozenset[str]:
    """Return every beginning of a mark that may go on in the next piece."""
    marks = {*_closes(), *_closes().values(), *forms().before_answer, *forms().after_answer}
    return frozenset(mark[:size] for mark in marks for size in range(1, len(mark)))


@cache
def _most_chars() -> int:
    return max(map(len, _beginnings()))


_FIRST: Final = re.compile(r"[<\[◁]")


_MOST_END_MARKS: Final = 4
_MAX_THOUGHTS: Final = 64
"""The marks that are looked for in one reply: more are noise and must not cost time."""


class Splitter:
    """Separates thought from text in a stream."""

    def __init__(self) -> None:
        self._held = ""
        self._place: _Place = "start"
        self._open = ""  # the mark of the last thought
        self._is_late = False  # the thought began within the text: if it never ends, it is text
        self._searched = 0  # characters of a late thought
        self._marks = 0
        self._code = CodeState()
        self.was_thought = False
        """Set when a mark shows that all text so far was thought, whose first mark stands in the template."""
        self.last_words = ""
        """The end of that text, which was not handed out as text."""

    def feed(self, part: str) -> tuple[str, str]:
        """Return the thought and the text in this part, and hold back a possible partial mark."""
        self._held += part
        thought, text = "", ""
        while self._held:
            before = (len(self._held), self._place)
            if self._place == "start":
                self._begin()
            elif self._place == "thought":
                thought += self._think()
            else:
                had_thought, written = self.was_thought, self._write()
                text += written
                if self.was_thought and not had_thought:
                    self.last_words, text = text, ""
            if (len(self._held), self._place) == before:
                break
        return thought, text

    def rest(self) -> tuple[str, str]:
        """Return the text still held back at the end of the stream, without marks of the end of an answer."""
        held, self._held = self._held, ""
        if self._place == "thought" and not self._is_late:
            return held, ""
        if self._place == "thought":
            held = self._open + held
        elif self._place == "start" and self._open:
            held = held.lstrip()
        return "", _without_end(held)

    def _begin(self) -> None:
        """Find out whether a thought comes first, or the text."""
        start = self._held.lstrip()
        mark = next((mark for mark in _closes() if start.startswith(mark)), "")
        head = next(
            (mark for mark in (*forms().before_answer, *_ends_alone()) if start.startswith(mark)),
            "",
        )
        if mark and self._marks < _MAX_THOUGHTS:
            self._enter(mark, start[len(mark) :], is_late=False)
        elif head and self._marks < _MAX_THOUGHTS:
            self._marks += 1
            self._open = self._open or head
            self._held = start[len(head) :]
        elif (start and start not in _beginnings()) or len(
            self._held
        ) > MAX_BLANKS:  # else quadratic time
            self._place = "text"
            self._held = start if self._open and not self._is_late else self._held

    def _enter(self, mark: str, rest: str, *, is_late: bool) -> None:
        self._place, self._open, self._is_late, self._searched = "thought", mark, is_late, 0
        self._held = rest
        self._marks += 1

    def _think(self) -> str:
        """Return the part of a thought that is certain, and leave it at its end."""
        close = _closes()[self._open]
        end = self._held.find(close, max(0, self._searched - len(close)))
        if end >= 0:
            thought, self._held = self._held[:end], self._held[end + len(close) :]
            self._place = "start"
            return thought
        if self._is_late:
            self._searched = len(self._held)
            return ""
        sizes = range(min(len(close) - 1, len(self._held)), 0, -1)
        half = next((size for size in sizes if self._held.endswith(close[:size])), 0)
        keep = len(self._held) - half
        thought, self._held = self._held[:keep], self._held[keep:]
        return thought

    def _write(self) -> str:
        """Return the text up to a mark that is not in code, or to what may become one."""
        place = 0
        while self._marks < _MAX_THOUGHTS and (mark := _marks_in_text().search(self._held, place)):
            self._code.feed(self._held[place : mark.start()])
            place = mark.end()
            is_alone = mark[0] in _ends_alone()
            if self._code.is_open:
                self._code.feed(mark[0])
                continue
            text = self._held[: mark.start()]
            if is_alone:
                self._held, self._place, self._is_late = self._held[place:], "start", False
                self._open = self._open or mark[0]
                self._marks += 1
                self.was_thought = True
            else:
                self._enter(mark[0], self._held[place:], is_late=True)
            return text
        end = max(place, self._certain_end())
        self._code.feed(self._held[place:end])
        text, self._held = self._held[:end], self._held[end:]
        return text

    def _certain_end(self) -> int:
        """Return where the text ends that can no longer be a part of a mark."""
        begin = max(0, len(self._held) - _MOST_END_MARKS * _most_chars())
        for first in _FIRST.finditer(self._held, begin):
            rest = self._held[first.start() :]
            while mark := next(
                (mark for mark in forms().after_answer if rest.startswith(mark)), ""
            ):
                rest = rest[len(mark) :].lstrip()
            if not rest or rest in _beginnings():
                return first.start()
        return len(self._held)


class CodeState:
    """Whether the end of a text is in code: in a fence, in backticks, or in a text that is JSON as a whole."""

    def __init__(self) -> None:
        self._tail = ""  # a fence may come in pieces
        self._ticks = 0  # in the last line
        self._is_fenced = False
        self._is_json = False
        self.has_text = False

    @property
    def is_open(self) -> bool:
        """True if the end of the text is in code."""
        return self._is_fenced or self._is_json or self._ticks % 2 == 1

    def feed(self, text: str) -> None:
        """Go on to the end of more text."""
        if not self.has_text and (bare := text.lstrip()):
            self._is_json, self.has_text = bare[0] == "{", True
        if "`" in text or self._tail:
            tail = self._tail + text
            self._is_fenced ^= tail.count(_FENCE) % 2 == 1
            self._tail = (
                "`" * min(2, len(tail) - len(tail.rstrip("`"))) if not tail.endswith(_FENCE) else ""
            )
        line = text.rpartition("\n")[2]
        self._ticks = line.count("`") + (0 if "\n" in text else self._ticks)


def _without_end(text: str) -> str:
    """Return a text without the marks of the end of an answer at its end."""
    marks = forms().after_answer
    kept, end = len(text), _bare_end(text, len(text))
    while text.endswith(
        marks, 0, end
    ):  # by places: many marks in a long text would be copied as often
        mark = next(mark for mark in marks if text.endswith(mark, 0, end))
        kept = end = _bare_end(text, end - len(mark))
    return text[:kept]


def _bare_end(text: str, end: int) -> int:
    while end and text[end - 1].isspace():
        end -= 1
    return end
