"""The words and phrases of a language that tell what a line claims: `claims.toml`, ready for use."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from agent_core.base.language import small_words, stems
from sandbox.wire.foreign import read_toml

from .stem import stem

_TOKEN: Final = re.compile(r"[^\W_]+(?:[.@+-][^\W_]+)*\+?")
_BARE: Final = ("split", "and", "cut")  # they begin between words
_NUMBER: Final = re.compile(r"\d+(?:[.,:-]\d+)*")


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """The table of a language, ready for use."""

    language: str
    patterns: dict[str, re.Pattern[str]]
    phrases: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]
    groups: tuple[tuple[str, tuple[re.Pattern[str], ...]], ...]
    kinds: dict[str, frozenset[str]]
    keys: tuple[tuple[str, re.Pattern[str]], ...]
    people: frozenset[str]
    several: frozenset[str]
    jobs: frozenset[str]
    filler: frozenset[str]
    unread: frozenset[str]
    timed: dict[str, str]
    forms: dict[str, str]
    neutral: frozenset[str]
    relative: frozenset[str]
    rewrites: tuple[tuple[re.Pattern[str], str], ...]
    families: dict[str, list[tuple[str, int]]]

    def plain(self, text: str) -> str:
        """Return a text in the words that the phrases have, where it says the same in others."""
        for pattern, new in self.rewrites:
            text = pattern.sub(new, text)
        return text


@cache
def phrasebook(language: str) -> Phrasebook:
    """Return the lexicon of a language, the English one where there is none."""
    table = _tables().get(language) or _tables()["en"]
    language = language if language in _tables() else "en"

    def terms(text: str) -> frozenset[str]:
        return frozenset(stems_of(re.sub(r"[|()?:]", " ", text).lower().split(), language))

    table = table | {name: table[name].replace("VERB", table["verb"]) for name in _BARE}
    jobs = table["jobs"]["nouns"].replace(" ", "|")
    patterns = {name: _compiled(text) for name, text in table.items() if isinstance(text, str)}
    patterns |= {name: re.compile(table[name], re.IGNORECASE) for name in _BARE}
    return Phrasebook(
        language,
        patterns,
        tuple((tuple(signs.split()), _compiled("|".join(texts))) for signs, texts in table["phrases"].items()),
        tuple((name, tuple(map(_compiled, texts))) for name, texts in table["groups"].items()),
        {stems_of([kind], language)[0]: terms(text) for kind, text in table["kinds"].items()},
        tuple((name, re.compile(rf"(?:{text})", re.IGNORECASE)) for name, text in table["keys"].items()),
        terms(table["people"].replace("|", " ")),
        terms(table["several"].replace("|", " ")),
        terms(table["jobs"]["nouns"]),
        frozenset(re.sub(r"[|]", " ", table["filler"]).split()),
        small_words()[language],
        _times(table["times"], language),
        {form: word for word, forms in table["forms"].items() for form in forms.split()},
        terms(table.get("neutral", "")),
        frozenset(table.get("relative", "").split("|")) - {""},
        tuple((re.compile(text.replace("JOB", jobs)), new) for text, new in table.get("rewrites", {}).items()),
        _families(table.get("families", {})),
    )


def _families(table: dict[str, str]) -> dict[str, list[tuple[str, int]]]:
    """Return the families that a word belongs to, with its place in each."""
    places: dict[str, list[tuple[str, int]]] = {}
    for name, text in table.items():
        for number, word in enumerate(text.split()):
            places.setdefault(word, []).append((f"{name}~", number))
    return places


def _times(table: dict[str, str], language: str) -> dict[str, str]:
    """Return the kind of each word for a time or number; a number word has its number with it."""
    words = {}
    for kind, text in table.items():
        for place, names in enumerate(text.split()):
            for stem_of_name in stems_of(names.split("|"), language):
                words[stem_of_name] = f"number:{place + 1}" if kind == "number" else kind
    return words


@cache
def _tables() -> dict[str, Any]:  # Any: TOML
    return read_toml(files(__package__).joinpath("claims.toml").read_text("utf-8"))


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{text})(?:(?<=[^\w-])|(?![\w-]))", re.IGNORECASE)


def stems_of(words: list[str], language: str) -> list[str]:
    """Return the stems of words by the rules of a language."""
    return [stem(word) for word in words] if language == "en" else stems(words, language)


def words_of(text: str, known: Phrasebook) -> list[str]:
    """Return the stems of the words that a text is about."""
    words = [word.lower() for word in _TOKEN.findall(text)]
    told = [known.forms.get(word, word) for word in words if word not in known.unread and word not in known.filler]
    return [number_of(stem, known) for stem in stems_of(told, known.language)]


def number_of(word: str, known: Phrasebook) -> str:
    """Return a number word as digits, any other word as it is."""
    kind = known.timed.get(word, "")
    return kind.removeprefix("number:") if kind.startswith("number:") else word


def numbers_of(words: frozenset[str], known: Phrasebook) -> frozenset[str]:
    """Return the numbers, days and months among words, each with its kind."""
    typed = {f"{known.timed[word]}:{word}" for word in words if word in known.timed}
    return frozenset(typed | {f"number:{word}" for word in words if _NUMBER.match(word)})
