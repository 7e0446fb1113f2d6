"""What a summary must not lose, as far as a program can see it: numbers, names, functions.

Pure. Whole sentences are kept, for a number alone says nothing; those that hold most of what is missing come first.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from .whose import USER, harmless, label_of

_NUMBER: Final = re.compile(r"(?<![\w.])[$€£#+-]?\d[\w.,:/%@-]*(?<![.,:/-])")
_CODE: Final = re.compile(r"`([^`\n]{1,60})`")
_CALLED: Final = re.compile(r"\b[a-z]\w*_\w+\b")
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")
_SENTENCE: Final = re.compile(r"[^.!?;\n]+(?:[.!?;](?=\S)[^.!?;\n]+)*[.!?;]*")
_LEFT_OUT: Final = "characters left out …"
_MOST_CHARS: Final = 240
_BY_USER: Final = 2.0  # as much counts what the user said as the same of another
_NO_NAMES: Final = """
I I'm I've I'll I'd A An The This That These Those It He She We You They My Your His Her Our Their What Who When Where
Why How Which And But Or So If Then Yes No Not Please Thanks Thank Hello Hi Ok Okay Let Can Could Would Should Will Do
Does Did Is Are Was Were Have Has Had There Here In On At For To Of With By As From Also Just Now Page User Assistant
"""
_COMMON: Final = frozenset(_NO_NAMES.split())


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, what it holds that must not be lost, and whose it is, as in `whose.py`."""

    text: str
    tokens: frozenset[str]
    by: str = ""

    @property
    def line(self) -> str:
        """As it stands in a summary: the words of others than the assistant say whose they are."""
        return f"{label_of(self.by)}{self.text}"


def sentences(text: str, by: str = "") -> list[Sentence]:
    """The sentences of a text, long ones cut around what they hold."""
    found = (each[0].strip(" \t-*•") for each in _SENTENCE.finditer(text))
    return [_sentence(each, by) for each in found if each and _LEFT_OUT not in each]


def _sentence(text: str, by: str) -> Sentence:
    tokens = tokens_of(text)
    clipped = _clip(text, tokens)
    return Sentence(clipped if by == USER else harmless(clipped), tokens, by)


def tokens_of(sentence: str) -> frozenset[str]:
    """Numbers, capitalised names, and names of code in one sentence."""
    names = {word for word in _WORD.findall(sentence) if word[0].isupper() and word not in _COMMON}
    return frozenset({*_NUMBER.findall(sentence), *_CODE.findall(sentence), *_CALLED.findall(sentence), *names})


def lost(said: Sequence[Sentence], told: str, room_chars: int) -> list[Sentence]:
    """Of what was said, the sentences that hold what is not told, as many as there is room for, in their order."""
    known, words = told.casefold(), {token.casefold() for token in (*tokens_of(told), *_WORD.findall(told))}
    all_tokens = {token for each in said for token in each.tokens}
    missing = {token for token in all_tokens if not _is_told(token.casefold(), known, words)}
    chosen: dict[int, Sentence] = {}
    for place in _by_worth(said, missing):
        each = said[place]
        if not each.tokens & missing or len(each.line) + 3 > room_chars:
            continue
        chosen[place] = each
        room_chars -= len(each.line) + 3
        missing -= each.tokens
    return [chosen[place] for place in sorted(chosen)]


def extract(said: Sequence[Sentence], room_chars: int) -> list[Sentence]:
    """A summary by the program: what holds facts first, then what was said last, in the order of the conversation."""
    first = lost(said, "", room_chars)
    left = room_chars - sum(len(each.line) + 3 for each in first)
    chosen = dict.fromkeys(first)
    for each in reversed(said):
        if each not in chosen and len(each.line) + 3 <= left:
            chosen[each] = None
            left -= len(each.line) + 3
    return [each for each in dict.fromkeys(said) if each in chosen]


def _is_told(token: str, known: str, words: Collection[str]) -> bool:
    """Whether it is there: as a word of its own, or, where it has more than letters and digits, anywhere."""
    return token in words or (not token.isalnum() and token in known)


def _by_worth(said: Sequence[Sentence], missing: Iterable[str]) -> list[int]:
    """Places of sentences: most of what is missing for their length first, of equals the later."""
    wanted = frozenset(missing)

    def worth(place: int) -> tuple[float, int]:
        each = said[place]
        weight = _BY_USER if each.by == USER else 1.0
        return weight * len(each.tokens & wanted) / (len(each.line) + 40), place

    return sorted(range(len(said)), key=worth, reverse=True)


def _clip(text: str, tokens: Iterable[str]) -> str:
    if len(text) <= _MOST_CHARS:
        return text
    first = min((place for token in tokens if (place := text.find(token)) >= 0), default=0)
    begin = max(min(first - _MOST_CHARS // 3, len(text) - _MOST_CHARS), 0)
    cut = text[begin : begin + _MOST_CHARS]
    return f"{'… ' if begin else ''}{cut}{' …' if begin + _MOST_CHARS < len(text) else ''}"
