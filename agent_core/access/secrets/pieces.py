"""Pieces of secrets: the rest of one at a cut of a text, and long pieces anywhere.

A traceback's locals are cut in the worker, printed output at its limit: half a secret is found by no whole form.
"""

import re
from collections.abc import Collection, Iterable

_CUT = re.compile(r"(…|\.{3,}|\n\[output cut)")
_AT_CUT = 4  # characters that are left of a secret at a cut
_FAR = 64  # characters that are compared before all of a long rest is
_ANYWHERE = 12  # characters of a secret that stand together
_PROBE = 6  # of them, looked for in so large steps that every such piece holds one
_STEP = _ANYWHERE - _PROBE + 1
_BACKWARDS = 64  # lines that are looked at for one before which no secret goes on


class Pieces:
    """The pieces of some secrets: of every form at a cut, of the plain values anywhere."""

    def __init__(self, forms: Iterable[str], plain: Collection[str], mark: str) -> None:
        self._forms = [*forms]
        self._heads, self._tails = Beginnings(self._forms), Beginnings(form[::-1] for form in self._forms)
        self._plain = plain
        self._probes = {text[at : at + _PROBE] for text in plain for at in range(len(text) - _PROBE + 1)}
        self._runs = {text[at : at + _ANYWHERE] for text in plain for at in range(len(text) - _ANYWHERE + 1)}
        self._mark = mark

    def clean(self, text: str) -> str:
        """Return the text without them."""
        parts = _CUT.split(self._without_runs(text))
        return "".join(part if at % 2 else self._trimmed(part) for at, part in enumerate(parts))

    def may_hold(self, text: str) -> bool:
        """Check whether cleaning could change a text that contains no whole form."""
        return len(text) >= _AT_CUT and self.clean(text) != text

    def settled(self, text: str) -> int:
        """Return how much of a growing text can be cleaned alone: whole lines, with no secret across their end."""
        begun = max((_begun(form, text) for form in self._forms), default=0)
        inside = max((size for size in range(1, _ANYWHERE) if self._is_inside(text[-size:])), default=0)
        place = _line_end(text, len(text) - max(begun, inside))
        for _ in range(_BACKWARDS):
            first = self._first_over(place, text)
            if first == place:
                return place
            place = _line_end(text, first)
        return 0

    def _is_inside(self, piece: str) -> bool:
        return any(piece in text for text in self._plain)

    def _first_over(self, place: int, text: str) -> int:
        """Return the start of the first form or piece that spans a position; the position itself if none does."""
        whole = (text.find(form, max(0, place - len(form) + 1), place + len(form) - 1) for form in self._forms)
        pieces = (at for at in range(max(0, place - _ANYWHERE + 1), place) if text[at : at + _ANYWHERE] in self._runs)
        return min((at for at in (*whole, *pieces) if at >= 0), default=place)

    def _without_runs(self, text: str) -> str:
        """Remove every stretch of the text that consists of pieces."""
        if self._probes.isdisjoint(text[at : at + _PROBE] for at in range(0, len(text), _STEP)):
            return text
        hits = [at for at in range(len(text) - _ANYWHERE + 1) if text[at : at + _ANYWHERE] in self._runs]
        parts: list[str] = []
        end = 0
        for last, first in _stretches(hits):
            parts.append(text[end:first])
            end = last + _ANYWHERE
        return self._mark.join([*parts, text[end:]])

    def _trimmed(self, part: str) -> str:
        """Remove the beginning of a secret at the end of the part, and the end of one at its beginning."""
        if size := self._heads.at_end(part):
            part = part[: len(part) - size] + self._mark
        if size := self._tails.at_end(part[: self._tails.longest][::-1]):
            part = self._mark + part[size:]
        return part


def _stretches(hits: list[int]) -> list[tuple[int, int]]:
    """Merge overlapping positions into stretches, each with its first and last position."""
    rows: list[tuple[int, int]] = []
    for at in hits:
        if rows and at < rows[-1][0] + _ANYWHERE:
            rows[-1] = (at, rows[-1][1])
        else:
            rows.append((at, at))
    return rows


def _line_end(text: str, place: int) -> int:
    return max(text.rfind(end, 0, place) for end in "\n\r") + 1


def _begun(form: str, text: str) -> int:
    """Return how many characters at the end of a text are the beginning of a form."""
    tail = text[-len(form) :]
    at = tail.find(form[:1])
    while at >= 0:
        if form.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(form[:1], at + 1)
    return 0


class Beginnings:
    """An index of forms by their first characters, so that a short text costs little, however many forms there are."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._by_head: dict[str, list[str]] = {}
        self.longest = 0
        for form in forms:
            self._by_head.setdefault(form[:_AT_CUT], []).append(form)
            self.longest = max(self.longest, len(form))

    def at_end(self, text: str) -> int:
        """Return how many characters at the end of a text, 4 or more, are the beginning of a form."""
        for at in range(max(0, len(text) - self.longest), len(text) - _AT_CUT + 1):
            for form in self._by_head.get(text[at : at + _AT_CUT], ()):
                if form.startswith(text[at : at + _FAR]) and form.startswith(text[at:]):
                    return len(text) - at
        return 0
