"""Suggestions for a better question: parts of it that the results do not contain, and names that they bring up."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from .search_query import ParsedQuery
from .stem import stem
from .words import STOP, content, split, stems

_PARTS: Final = re.compile(r"[?;]+|,?\s+\b(?:and(?: also)?|as well as|or|then)\b\s+|,\s+", re.IGNORECASE)
_NAME: Final = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)*")
_MANY: Final = re.compile(
    r"\b(both|all|each|every|list|which|compare|how many|how often|what (kinds?|types?|[a-z]+s)\b|in common)\b", re.I
)
_FEWEST: Final = 2
_LOOKED_AT: Final = 20_000  # characters of each result
_SHOWN: Final = 4


def of(question: ParsedQuery, texts: Sequence[str], trouble: str) -> tuple[str, ...]:
    """Return sentences to go under a page of results; none if the results contain everything that was asked for."""
    notes = []
    if trouble:
        notes.append(f"Searched by words alone: {trouble}")
    if not texts:
        return (*notes, "Try other words, fewer words, or a date with conversation_search_date.")
    if lacking := _lacking(question, texts):
        notes.append(f"None of these holds: {', '.join(lacking)}. Search for it alone, or in other words.")
    parts = _parts(question.text)
    if len(parts) >= _FEWEST:
        notes.append(f"The question has parts; search for each alone: {'; '.join(parts)}.")
    elif (_MANY.search(question.text) or lacking) and (names := _names(question, texts)):
        notes.append(f"To follow up, search again with what was found, such as: {', '.join(names)}.")
    return tuple(notes)


def _lacking(question: ParsedQuery, texts: Iterable[str]) -> list[str]:
    result_terms = {term for text in texts for term in stems(split(text[:_LOOKED_AT]))}
    named = {name.lower() for name in question.named} | {
        name.lower() for time in question.times for name in split(time.text)
    }
    return [word for word in question.words if stem(word) not in result_terms and word not in named][:_SHOWN]


def _parts(text: str) -> list[str]:
    parts = [part.strip(" .") for part in _PARTS.split(text)]
    return [part for part in parts if len(content(part)) >= _FEWEST][:_SHOWN] if len(parts) > 1 else []


def _names(question: ParsedQuery, texts: Sequence[str]) -> list[str]:
    spoken = set(split(question.text)) | STOP
    name_counts = Counter(
        name for text in texts for name in set(_NAME.findall(text[:_LOOKED_AT])) if not spoken & set(split(name))
    )
    return [name for name, _ in name_counts.most_common(_SHOWN)]
