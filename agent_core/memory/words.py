"""The words of a text: those that count for search, and features of its form. Pure values."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from agent_core.base.clock import local
from agent_core.base.language import OTHERS, foreign, marked, pieces, stem

_STOP: Final = """
a an the of to in on for and or but if so is are was were be been being am do does did done what which who whom whose
when where why how i me my mine you your yours he she it its him his her hers they them their theirs we us our ours with
at by from as that this these those can could would will should shall may might must have has had having there here
please about s t d m re ve ll don didn doesn isn wasn aren won not no yes too very just than then
"""
STOP: Final = frozenset(_STOP.split())
_WORD: Final = re.compile(r"[^\W_]+")
_ASKS_WITHIN: Final = 3


def split(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return [word for piece in pieces(text.lower()) for word in _WORD.findall(piece)]


def content(text: str) -> list[str]:
    """Return the words that indicate what a text is about."""
    return [word for word in split(text) if word not in STOP]


def stems(words: Iterable[str]) -> list[str]:
    """Return the stems of the words."""
    return [stem(word) for word in words]


def counted_stems(words: str) -> Counter[str]:
    """Count the stems of the indexed words of a text; if it is in another language, also the stems by its rules."""
    split_words = words.split()
    counts = Counter(map(stem, split_words))
    language = foreign(words)
    if language:
        counts.update(marked(split_words, language))
    return counts


def forms(words: Iterable[str]) -> dict[str, str]:
    """Map the stems of words in other languages to the words' English stems."""
    return {
        form: stem(word)
        for word in words
        for language in OTHERS
        for form in marked([word], language)
    }


def indexed(text: str, at: float | None = None, also: Iterable[str] = ()) -> str:
    """Return the words for the text index: content words, the date of a message, and related names."""
    return " ".join([*dated(at), *also, *content(text)])


def dated(at: float | None) -> list[str]:
    """Return a time as the words that questions use: day, month and year."""
    moment = None if at is None else local(at)
    return moment.strftime("%-d %B %Y").lower().split() if moment else []


def asks(text: str) -> bool:
    """Check whether a message ends with a question."""
    return "?" in text[-_ASKS_WITHIN:]
