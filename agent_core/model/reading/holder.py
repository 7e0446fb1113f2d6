"""A buffer for streamed text that may become a call, so that nobody reads a call as text and then sees it run."""

import re
from typing import Final

from sandbox.wire.lines import lines_of

from .forms import Shown, announces, forms

_OBJECT: Final = re.compile(r"[\[{]\s*(?:$|[\[{\"'])")
_PYTHON: Final = re.compile(r"\[?\s*([A-Za-z_][\w.]*)?\s*(\(|$)")
_FENCE: Final = re.compile(r"```[ \t]*(\w*)(\s*)")
_DECIDED_CHARS: Final = 600


class Holder:
    """A filter that passes text on as soon as it can no longer be a call; text before a call is its lead-in."""

    def __init__(self, shown: Shown) -> None:
        self._names = [name.lower().replace("_", "") for name in shown]
        self._held = ""
        self._passed = ""  # the lead-in so far
        self._open = not shown

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        if self._open:
            return text
        self._held += text
        if len(self._held) > _DECIDED_CHARS:
            return ""  # what its beginning did not rule out is known at its end
        place = self._first_opening()
        ready, self._held = self._held[:place], self._held[place:]
        self._passed += ready
        if len(self._passed.strip()) > forms().lead_in_chars:
            self._open = True
            ready += self.rest()
        return ready

    def rest(self) -> str:
        """Return the text still held back at the end of the stream."""
        buffered, self._held = self._held, ""
        return buffered

    def _first_opening(self) -> int:
        """Return the position of the first line that may open a call, or the end."""
        place = 0
        for line in lines_of(self._held):
            before = self._passed + self._held[:place]
            begins = not before or before.endswith("\n")
            if begins and self._may_open(self._held[place:].lstrip(), before.strip()):
                return place
            place += len(line)
        return place

    def _may_open(self, start: str, lead_in: str) -> bool:
        marks = [tag.open for tag in forms().tags if not (tag.whole and lead_in)] + ["<function="]
        if any(mark.startswith(start[: len(mark)]) for mark in marks):
            return True
        if "```".startswith(start[:3]):
            return self._may_open_fence(start, lead_in)
        return not lead_in and (bool(_OBJECT.match(start)) or self._may_open_python(start))

    def _may_open_python(self, start: str) -> bool:
        match = _PYTHON.match(start)
        if match is None:
            return False
        written = (match[1] or "").lower().replace("_", "")
        last = written.rpartition(".")[2]
        if match[2]:
            return bool({written, last} & {*self._names})
        return any(name.startswith(last) for name in self._names) or self._may_be_namespace(match[1])

    def _may_be_namespace(self, written: str) -> bool:
        return any(space.startswith(written) or written == f"{space}." for space in forms().namespaces)

    def _may_open_fence(self, start: str, lead_in: str) -> bool:
        if lead_in and not announces(lead_in):
            return False
        fence = _FENCE.match(start)
        if fence is None or fence.end() == len(start):
            return True
        language, inside = fence[1].lower(), start[fence.end() :]
        if language in forms().object_fences and _OBJECT.match(inside):
            return True
        is_python = language in forms().python_fences or not language
        return is_python and not lead_in and self._may_open_python(inside)
