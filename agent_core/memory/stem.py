"""Stems of words by Porter's rules of 1980, like in the text index: one for all forms of a word.

The rules are data: an ending, what takes its place, and how much word must be left before it.
"""

from functools import lru_cache
from typing import Final

_STEP_2: Final = (
    "ational ate|tional tion|enci ence|anci ance|izer ize|bli ble|alli al|entli ent|eli e|ousli ous|ization ize|"
    "ation ate|ator ate|alism al|iveness ive|fulness ful|ousness ous|aliti al|iviti ive|biliti ble|logi log"
)
_STEP_3: Final = "icate ic|ative |alize al|iciti ic|ical ic|ful |ness "
_STEP_4: Final = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize"


def _table(text: str) -> list[tuple[str, str]]:
    rows = [(ending, new) for ending, _, new in (row.partition(" ") for row in text.split("|"))]
    return sorted(rows, key=lambda row: -len(row[0]))


_TABLES: Final = (_table(_STEP_2), _table(_STEP_3))
_ENDINGS: Final = sorted(_STEP_4.split(), key=len, reverse=True)
_SHORTEST: Final = 3


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a word in lower case. Words with letters other than a–z are unchanged."""
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return word
    word = _past(_plural(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    for table in _TABLES:
        word = _exchange(word, table)
    return _last(_without_ending(word))


def _shape(word: str) -> str:
    """Return each letter's class, vowel or consonant; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _ends_short(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        base = word.removesuffix(ending)
        if base != word:
            return _fixed(base) if "v" in _shape(base) else word
    return word


def _fixed(base: str) -> str:
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if base[-1:] == base[-2:-1] and _shape(base).endswith("c") and base[-1] not in "lsz":
        return base[:-1]
    return base + "e" if _measure(base) == 1 and _ends_short(base) else base


def _exchange(word: str, table: list[tuple[str, str]]) -> str:
    for ending, new in table:
        if word.endswith(ending):
            base = word.removesuffix(ending)
            return base + new if _measure(base) > 0 else word
    return word


def _without_ending(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending):
            base = word.removesuffix(ending)
            is_kept = _measure(base) <= 1 or (ending == "ion" and not base.endswith(("s", "t")))
            return word if is_kept else base
    return word


def _last(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        if _measure(base) > 1 or (_measure(base) == 1 and not _ends_short(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
