"""Shell patterns without regular expressions: `*`, `?` and `[…]`, in time linear in the length of the text."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias

LONGEST: Final = 200
"""Maximum length of a pattern in characters; a longer one matches no name."""

_Token: TypeAlias = tuple[str, bool]  # the characters, and whether the set is negated; ("", True) matches any
_ANY: Final[_Token] = ("", True)


class Wildcard:
    """A case-sensitive pattern. One longer than `LONGEST` matches nothing."""

    def __init__(self, pattern: str) -> None:
        self._is_long = len(pattern) > LONGEST
        self._tokens: list[_Token] = []
        self._stars = 0  # one bit for each number of matched tokens; a star keeps its bit
        for part in () if self._is_long else _parts(pattern):
            if part is None:
                self._stars |= 1 << len(self._tokens)
            else:
                self._tokens.append(part)
        self._fitting = lru_cache(maxsize=512)(self._those_that_fit)

    def fits(self, text: str) -> bool:
        """Return whether the whole text matches the pattern."""
        if self._is_long or (not self._stars and len(text) != len(self._tokens)):
            return False
        done = 1
        for character in text:
            done = (done & self._fitting(character)) << 1 | (done & self._stars)
            if not done:
                return False
        return bool(done >> len(self._tokens) & 1)

    def _those_that_fit(self, character: str) -> int:
        """Return a bit for each token that matches a character."""
        tokens = enumerate(self._tokens)
        return sum(1 << place for place, (inside, is_not) in tokens if _is_in(inside, character) != is_not)


def _parts(pattern: str) -> Iterator[_Token | None]:
    """Yield the tokens of a pattern; None for a star."""
    place = 0
    while place < len(pattern):
        sign, end = pattern[place], -1
        if sign == "[":  # its closing bracket is not the first character inside, since `[]a]` contains one
            end = pattern.find("]", place + (3 if pattern[place + 1 : place + 2] in ("!", "^") else 2))
        if end > place:
            inside = pattern[place + 1 : end]
            is_negated = inside[0] == "!"
            yield (inside[is_negated:], is_negated)
        else:
            yield None if sign == "*" else _ANY if sign == "?" else (sign, False)
            end = place
        place = end + 1


def _is_in(inside: str, character: str) -> bool:
    place = 0
    while place < len(inside):
        if inside[place + 1 : place + 2] == "-" and place + 2 < len(inside):
            if inside[place] <= character <= inside[place + 2]:
                return True
            place += 3
        elif inside[place] == character:
            return True
        else:
            place += 1
    return False
