"""An incremental reader of the thought and the reply in a JSON object, so that they can be shown as they arrive."""

import re
from dataclasses import dataclass, field
from typing import Final

from sandbox.foreign import LOOSE, read_json, with_plain_escapes

from .reply import TextPiece, ThoughtPiece

_OPENINGS: Final = (
    ("thought", re.compile(r'\s*(?:```\w*\s*)?\{\s*"thought"\s*:\s*"')),
    ("reply", re.compile(r'"\s*,\s*"reply"\s*:\s*"')),
)
# Whole characters only: an escape, or a pair of surrogates, that is not complete waits for its rest.
_CHARACTERS = re.compile(
    r'(?:[^"\\]+|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])*'
)


MOST_BLANKS: Final = 4_096  # before a step begins: what brings more brings none


@dataclass(slots=True)
class GrowingStep:
    """An incremental parser of one step; `thought` and `reply` hold what was read so far."""

    text: str = ""
    thought: str = ""
    reply: str = ""
    _place: int = 0
    _opened: int = field(default=0)
    _is_blank: bool = False

    def feed(self, more: str) -> list[TextPiece | ThoughtPiece]:
        """Return what the new text adds to the thought and to the reply."""
        self.text += more
        if not self._opened and not self._is_blank:
            self._is_blank = len(self.text) > MOST_BLANKS and not self.text[:MOST_BLANKS].strip()
        pieces = [self._read_string(), *(self._read_string() for _ in _OPENINGS if self._open())]
        return [piece for piece in pieces if piece is not None]

    def _open(self) -> bool:
        """Check whether the next of the two strings begins here."""
        if self._opened == len(_OPENINGS) or self._is_blank:
            return False
        match = _OPENINGS[self._opened][1].match(self.text, self._place)
        if match is None:
            return False
        self._place = match.end()
        self._opened += 1
        return True

    def _read_string(self) -> TextPiece | ThoughtPiece | None:
        match = _CHARACTERS.match(self.text, self._place) if self._opened else None
        if match is None or not match[0]:
            return None
        self._place = match.end()
        read = str(read_json(f'"{with_plain_escapes(match[0])}"', LOOSE))
        if self._opened == 1:
            self.thought += read
            return ThoughtPiece(read)
        self.reply += read
        return TextPiece(read)
