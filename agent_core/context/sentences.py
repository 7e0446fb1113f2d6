"""The sentences of a conversation, and those that a summary must not lose: with numbers, names or code.

Pure: the part of a summary that the program can create without a model.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .history import USER, harmless, label_of

_NUMBER: Final = re.compile(r"(?<![\w.])[$€£#+-]?\d[\w.,:/%@-]*(?<![.,:/-])")
_CODE: Final = re.compile(r"`([^`\n]{1,60})`")
_CALLED: Final = re.compile(r"\b[a-z]\w*_\w+\b")
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")
_SENTENCE: Final = re.compile(r"[^.!?;\n]+(?:[.!?;](?=\S)[^.!?;\n]+)*[.!?;]*")
_LEFT_OUT: Final = "characters left out …"
_MOST_CHARS: Final = 240
_BY_USER: Final = 2.0  # weight of the user's sentences relative to others
_NO_NAMES: Final = """
I I'm I've I'll I'd A An The This That These Those It He She We You They My Your His Her Our Their What Who When Where
Why How Which And But Or So If Then Yes No Not Please Thanks Thank Hello Hi Ok Okay Let Can Could Would Should Will Do
Does Did Is Are Was Were Have Has Had There Here In On At For To Of With By As From Also Just Now Page User Assistant
"""
_COMMON: Final = frozenset(_NO_NAMES.split())


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, the tokens in it that must not be lost, and its author, as for `label_of`."""

    text: str
    tokens: frozenset[str]
    by: str = ""

    @property
    def line(self) -> str:
        """The sentence as it appears in a summary: text of anyone but the assistant is labeled with its author."""
        return f"{label_of(self.by)}{self.text}"


def sentences(text: str, by: str = "") -> list[Sentence]:
    """Return the sentences of a text, with long ones cut around the facts in them."""
    result = []
    for match in _SENTENCE.finditer(text):
        piece = match[0].strip(" \t-*•")
        if piece and _LEFT_OUT not in piece:
            tokens = tokens_of(piece)
            if (length := len(piece)) > _MOST_CHARS:
                first = min((place for token in tokens if (place := piece.find(token)) >= 0), default=0)
                begin = max(min(first - _MOST_CHARS // 3, length - _MOST_CHARS), 0)
                end = begin + _MOST_CHARS
                piece = f"{'… ' if begin else ''}{piece[begin:end]}{' …' if end < length else ''}"
            result.append(Sentence(piece if by == USER else harmless(piece), tokens, by))
    return result


def tokens_of(sentence: str) -> frozenset[str]:
    """Return the numbers, capitalized names and names of code in a sentence."""
    names = {word for word in _WORD.findall(sentence) if word[0].isupper() and word not in _COMMON}
    return frozenset({*_NUMBER.findall(sentence), *_CODE.findall(sentence), *_CALLED.findall(sentence), *names})


def lost(all_sentences: Sequence[Sentence], summary: str, room_chars: int) -> list[Sentence]:
    """Return the sentences with facts that are missing from the summary, as many as fit, in their order."""
    summary_text, words = (
        summary.casefold(),
        {token.casefold() for token in (*tokens_of(summary), *_WORD.findall(summary))},
    )
    all_tokens = {token for sentence in all_sentences for token in sentence.tokens}
    # A token is in the summary as a word, or between words if it has more than letters and digits.
    missing = {
        token
        for token in all_tokens
        if (folded := token.casefold()) not in words and (folded.isalnum() or not _has(summary_text, folded))
    }

    def worth(place: int) -> tuple[float, int]:  # by missing facts per length; the later one of equals
        sentence = all_sentences[place]
        weight = _BY_USER if sentence.by == USER else 1.0
        return weight * len(sentence.tokens & missing) / (len(sentence.line) + 40), place

    chosen: dict[int, Sentence] = {}
    for place in sorted(range(len(all_sentences)), key=worth, reverse=True):
        sentence = all_sentences[place]
        if not sentence.tokens & missing or len(sentence.line) + 3 > room_chars:
            continue
        chosen[place] = sentence
        room_chars -= len(sentence.line) + 3
        missing -= sentence.tokens
    return [chosen[place] for place in sorted(chosen)]


def _has(text: str, token: str) -> bool:
    """Return whether a text has a token that is no part of a longer one: 1/2 is none of 11/2 and of 1/2/2027."""
    alone = rf"(?<!\w)(?<!\w[.,:/@-]){re.escape(token)}(?!\w|[.,:/@-]\w)"
    return token in text and re.search(alone, text) is not None


def extract(all_sentences: Sequence[Sentence], room_chars: int) -> list[Sentence]:
    """Return a summary by the program: facts first, then the newest sentences, in the order of the conversation."""
    first = lost(all_sentences, "", room_chars)
    remaining = room_chars - sum(len(sentence.line) + 3 for sentence in first)
    chosen = dict.fromkeys(first)
    for sentence in reversed(all_sentences):
        if sentence not in chosen and len(sentence.line) + 3 <= remaining:
            chosen[sentence] = None
            remaining -= len(sentence.line) + 3
    return [sentence for sentence in dict.fromkeys(all_sentences) if sentence in chosen]
