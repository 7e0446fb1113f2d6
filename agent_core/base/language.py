"""The language of a text, and the stems of its words: English, or another language with a Snowball stemmer.

A language is recognized by its small words (stop words). A text without any could be in any language.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from threading import local
from typing import TYPE_CHECKING, Final

import apsw

from sandbox.wire.strict_json import read_toml

from .short_texts import kept_if_short

if TYPE_CHECKING:
    import snowballstemmer

OTHERS: Final = ("de", "fr", "es")
"""The languages other than English."""
_WORD: Final = re.compile(r"[^\W_]+")
_STEMMERS: Final = {"de": "german", "fr": "french", "es": "spanish"}
_SHORT: Final = re.compile(
    r"\b(\w)ies\b", re.IGNORECASE
)  # the stemmer turns `pies` into `pi` but leaves `pie`
_OF_THREAD: Final = local()
_LOOKED_AT: Final = 400  # characters
_WORD_LETTERS: Final = 200  # of a word that is stemmed
_PIECE: Final = 64 << 10  # characters that are taken apart at once
_LETTERS: Final = {
    "de": frozenset("äöüß"),
    "fr": frozenset("àâçèêëîïôùûœ"),
    "es": frozenset("ñáíóú¿¡"),
}
_ENOUGH: Final = 2  # small words of another language, in a text without its English small words
_SHARE: Final = 7  # at least one word in this many must be a small word


def language_of(text: str) -> str:
    """Return the language of a text: `en`, another known one, or "" if no small word is found."""
    return _language_of(text[:_LOOKED_AT])


@lru_cache(maxsize=4096)
def _language_of(text: str) -> str:
    words = _WORD.findall(text.lower())
    counts = {name: sum(word in small for word in words) for name, small in small_words().items()}
    best = max(counts, key=lambda name: counts[name])
    if not counts[best]:
        return ""
    return best if counts[best] > counts["en"] else "en"


def foreign(text: str) -> str:
    """Return the language other than English that the indexed words of a text are in, or ""."""
    words = text[:_LOOKED_AT].split()
    scores = {}
    for language in OTHERS:
        small = small_words()[language] - small_words()["en"]
        count = len({word for word in words if len(word) > 1 and word in small})
        letters = sum(not _LETTERS[language].isdisjoint(word) for word in words)
        is_clear = count >= _ENOUGH and count * _SHARE >= len(words)
        scores[language] = count + letters if is_clear or letters else 0
    best = max(scores, key=lambda language: scores[language])
    return best if scores[best] else ""


def english_stems(text: str) -> set[str]:
    """Return the English stems of the words of a text, as the word index stores them."""
    if not hasattr(_OF_THREAD, "tokenizer"):  # a connection belongs to one thread
        _OF_THREAD.db = apsw.Connection(":memory:")
        _OF_THREAD.tokenizer = _OF_THREAD.db.fts5_tokenizer("porter", ["unicode61"])
    found = set[str]()
    for piece in pieces(text):
        stems = _OF_THREAD.tokenizer(
            _SHORT.sub(r"\1ie", piece).encode(),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        found.update(map(str, stems))
    return found


def pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that end at a space: a single call in C for a long text would hold up every thread.

    A word that is longer than a piece is divided.
    """
    at = 0
    while at < len(text):
        end = at + _PIECE
        if end < len(text):
            gap = max(text.rfind(space, at, end) for space in " \n\t")
            end = gap if gap > at else end
        yield text[at:end]
        at = end


@kept_if_short(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the English stem of a word in lower case."""
    return min(english_stems(word), default=word)


def marked(words: Iterable[str], language: str) -> list[str]:
    """Return the stems of words in another language, each with a prefix that no English stem has."""
    return [f"1{language}{stem}" for stem in stems(words, language)]


@cache
def small_words() -> dict[str, frozenset[str]]:
    """Return the small words (stop words) of each language, which do not indicate a topic."""
    tables = read_toml(files(__package__).joinpath("language.toml").read_text("utf-8"))
    return {name: frozenset(table["small"].split()) for name, table in tables.items()}


def stems(words: Iterable[str], language: str) -> list[str]:
    """Return the stems of lowercase words by the rules of one of `OTHERS`, without accents, or a long word itself."""
    return [_stem(word, language) for word in words]


@kept_if_short(maxsize=1 << 16)
def _stem(word: str, language: str) -> str:
    if len(word) > _WORD_LETTERS:
        return word
    stem = _stemmer(language).stemWord(word)
    return "".join(
        mark for mark in unicodedata.normalize("NFD", stem) if not unicodedata.combining(mark)
    )


@cache
def _stemmer(language: str) -> "snowballstemmer.stemmer":
    import snowballstemmer  # noqa: PLC0415 - forty modules, for texts in other languages only

    return snowballstemmer.stemmer(_STEMMERS[language])
