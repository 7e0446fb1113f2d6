"""The word lists of the stage, read once from the files next to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from sandbox.wire.foreign import read_toml

from .answers import forms_of


def lists_in(name: str) -> dict[str, Any]:  # Any: TOML
    """Return the lists of a file next to this module."""
    return read_toml(files(__package__).joinpath(name).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The word lists of `lexicon.toml`."""

    sections: Mapping[str, Mapping[str, frozenset[str]]]
    outside: Mapping[str, frozenset[str]]
    kept: Mapping[str, frozenset[str]]

    def has(self, word: str, section: str, key: str) -> bool:
        """Check whether a word, or its base form, is in a list."""
        words = self.sections[section][key]
        return any(form in words for form in forms_of(word))

    def among(self, words: Iterable[str], section: str, key: str) -> bool:
        """Check whether one of the words is in a list."""
        return any(self.has(word, section, key) for word in words)


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """Return the lexicon, read once."""
    data = lists_in("lexicon.toml")
    outside, kept = data["effect"].pop("outside"), data["effect"].pop("kept")
    sections = {
        section: {key: frozenset(text.split()) for key, text in lists.items()} for section, lists in data.items()
    }
    return Lexicon(sections, _split(outside), _split(kept))


def _split(lists: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {key: frozenset(text.split()) for key, text in lists.items()}
