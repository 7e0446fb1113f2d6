"""Pieces of secrets: what is left of one where a text was cut, and long pieces anywhere.

A traceback's locals are cut in the worker, printed output at its limit: half a secret is found by no whole form.
"""

import re
from collections.abc import Collection, Iterable

_CUT = re.compile(r"(…|\.{3,}|\n\[output cut)")
_AT_CUT = 4  # characters that are left of a secret at a cut
_ANYWHERE = 12  # characters of a secret that stand together
_PROBE = 6  # of them, looked for in so large steps that every such piece holds one
_STEP = _ANYWHERE - _PROBE + 1
_BACKWARDS = 64  # lines that are looked at for one before which no secret goes on


class Pieces:
    """The pieces of some secrets: of every form at a cut, of the plain values anywhere."""

    def __init__(self, forms: Iterable[str], plain: Collection[str], mark: str) -> None:
        self._ends = [(form, form[::-1]) for form in forms]
        self._plain = plain
        self._probes = {one[at : at + _PROBE] for one in plain for at in range(len(one) - _PROBE + 1)}
        self._runs = {one[at : at + _ANYWHERE] for one in plain for at in range(len(one) - _ANYWHERE + 1)}
        self._mark = mark

    def clean(self, text: str) -> str:
        """The text without them."""
        parts = _CUT.split(self._without_runs(text))
        return "".join(part if at % 2 else self._trimmed(part) for at, part in enumerate(parts))

    def settled(self, text: str) -> int:
        """How much of a text that goes on can be cleaned by itself: whole lines, with no secret over their end."""
        begun = max((_begun(form, text, 1) for form, _ in self._ends), default=0)
        inside = max((size for size in range(1, _ANYWHERE) if self._is_inside(text[-size:])), default=0)
        place = _line_end(text, len(text) - max(begun, inside))
        for _ in range(_BACKWARDS):
            first = self._first_over(place, text)
            if first == place:
                return place
            place = _line_end(text, first)
        return 0

    def _is_inside(self, piece: str) -> bool:
        return any(piece in one for one in self._plain)

    def _first_over(self, place: int, text: str) -> int:
        """Where the first form or piece begins that stands on both sides of a place; the place, if none does."""
        whole = (text.find(form, max(0, place - len(form) + 1), place + len(form) - 1) for form, _ in self._ends)
        pieces = (at for at in range(max(0, place - _ANYWHERE + 1), place) if text[at : at + _ANYWHERE] in self._runs)
        return min((at for at in (*whole, *pieces) if at >= 0), default=place)

    def _without_runs(self, text: str) -> str:
        """Every stretch of the text that is made of pieces goes."""
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
        """Without the beginning of a secret at its end, and the end of one at its beginning."""
        if size := max((_begun(form, part) for form, _ in self._ends), default=0):
            part = part[: len(part) - size] + self._mark
        backwards = part[::-1]
        if size := max((_begun(form, backwards) for _, form in self._ends), default=0):
            part = self._mark + part[size:]
        return part


def _stretches(hits: list[int]) -> list[tuple[int, int]]:
    """The last and the first of each row of places that overlap."""
    rows: list[tuple[int, int]] = []
    for at in hits:
        if rows and at < rows[-1][0] + _ANYWHERE:
            rows[-1] = (at, rows[-1][1])
        else:
            rows.append((at, at))
    return rows


def _line_end(text: str, place: int) -> int:
    return max(text.rfind(end, 0, place) for end in "\n\r") + 1


def _begun(form: str, text: str, fewest: int = _AT_CUT) -> int:
    """How many characters at the end of a text are the beginning of a form."""
    tail = text[-len(form) :]
    at = tail.find(form[:fewest])
    while at >= 0:
        if form.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(form[:fewest], at + 1)
    return 0
