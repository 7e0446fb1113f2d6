"""Thought that a server leaves in the text, between `<think>` at its very start and `</think>`."""

from typing import Final

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
_MOST_BLANKS: Final = 4_096


class Splitter:
    """A splitter that separates thought from text in a stream."""

    def __init__(self) -> None:
        self._held = ""
        self._place = "start"

    def feed(self, part: str) -> tuple[str, str]:
        """Return the thought and the text in this part; what may be half a mark is held back."""
        if self._place == "gap":
            part = part.lstrip()
            self._place = "text" if part else "gap"
        if self._place in {"text", "gap"}:
            return "", part
        self._held += part
        if self._place == "start" and len(self._held) > _MOST_BLANKS and not part.strip():
            self._place = "text"  # nobody thinks after so many blanks; to look at them again and again takes the square
        if self._place == "text":
            return "", self._take()
        if self._place == "start" and not self._opened():
            return "", self._take() if self._place == "text" else ""
        return self._inside()

    def rest(self) -> tuple[str, str]:
        """Return the text still held back at the end of the stream."""
        return (self._take(), "") if self._place == "thought" else ("", self._take())

    def _opened(self) -> bool:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._place, self._held = "thought", start[len(_OPEN) :]
        elif not _OPEN.startswith(start):
            self._place = "text"
        return self._place == "thought"

    def _inside(self) -> tuple[str, str]:
        thought, mark, text = self._held.partition(_CLOSE)
        if mark:
            text = text.lstrip()
            self._place, self._held = "text" if text else "gap", ""
            return thought, text
        half = next((size for size in range(len(_CLOSE) - 1, 0, -1) if thought.endswith(_CLOSE[:size])), 0)
        whole = len(thought) - half
        self._held = thought[whole:]
        return thought[:whole], ""

    def _take(self) -> str:
        buffered, self._held = self._held, ""
        return buffered
