"""The word lists of the stage, read once from the files next to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from sandbox.wire.foreign import read_toml

_SHORTEST = 3  # letters of a stem


def lists_in(name: str) -> dict[str, Any]:  # Any: TOML
    """Return the lists of a file next to this module."""
    return read_toml(files(__package__).joinpath(name).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class PromiseLexicon:
    """The word lists of `lexicon.toml`."""

    sections: Mapping[str, Mapping[str, frozenset[str]]]
    outside: Mapping[str, frozenset[str]]
    lasting: Mapping[str, frozenset[str]]

    def has(self, word: str, section: str, key: str) -> bool:
        """Check whether a word, or its base form, is in a list."""
        words = self.sections[section][key]
        return any(form in words for form in forms_of(word))

    def among(self, words: Iterable[str], section: str, key: str) -> bool:
        """Check whether one of the words is in a list."""
        return any(self.has(word, section, key) for word in words)


@lru_cache(maxsize=1)
def lexicon() -> PromiseLexicon:
    """Return the lexicon, read once."""
    data = lists_in("lexicon.toml")
    outside, lasting = data["effect"].pop("outside"), data["effect"].pop("kept")
    sections = {
        section: {key: frozenset(text.split()) for key, text in lists.items()} for section, lists in data.items()
    }
    return PromiseLexicon(sections, _split(outside), _split(lasting))


@lru_cache(maxsize=1)
def relation_words() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """Return the word lists of `relations.toml`, read once."""
    return {section: _split(lists) for section, lists in lists_in("relations.toml").items()}


def _split(lists: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {key: frozenset(text.split()) for key, text in lists.items()}


def joined(words: Sequence[str]) -> list[str]:
    """Return words with each verb of two words, such as `back up`, as one."""
    verbs = lexicon().sections["effect"]["joined"]
    firsts = {at for at in range(len(words) - 1) if words[at] + words[at + 1] in verbs}
    return [word + words[at + 1] if at in firsts else word for at, word in enumerate(words) if at - 1 not in firsts]


@lru_cache(maxsize=2048)
def lemma(word: str) -> str:
    """Return the verb that a form belongs to, as far as its ending tells."""
    word = word.lower()
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for ending, put in (("ied", "y"), ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word[: -len(ending)] + put
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _SHORTEST - 1 and any(letter in "aeiouy" for letter in stem):
            return stem[:-1] if len(stem) > _SHORTEST and stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > _SHORTEST else word


def forms_of(word: str) -> tuple[str, ...]:
    """Return a word with the base forms that it may have."""
    base = lemma(word)
    return (word,) if base == word else (word, base, f"{base}e")


def is_same_verb(first: str, second: str) -> bool:
    """Check whether two forms are of one verb; a final `e` may have been dropped."""
    first_base, second_base = lemma(first), lemma(second)
    return (
        first_base == second_base
        or f"{first_base}e" == second_base
        or first_base == f"{second_base}e"
        or (first_base[:-1] == second_base and first_base[-1:] == first_base[-2:-1])
    )


_IRREGULAR = {
    form: verb
    for verb, forms in {
        "send": "sent",
        "buy": "bought",
        "pay": "paid",
        "sell": "sold",
        "write": "wrote written",
        "keep": "kept",
        "make": "made",
        "build": "built",
        "set": "set setting",
        "put": "put",
        "take": "took taken",
        "give": "gave given",
        "begin": "began begun",
        "forget": "forgot forgotten",
        "hide": "hid hidden",
        "ring": "rang rung",
        "run": "ran",
        "shut": "shut",
        "withdraw": "withdrew withdrawn",
        "drive": "drove driven",
        "wake": "woke woken",
        "feed": "fed",
        "light": "lit",
        "find": "found",
        "get": "got",
        "hold": "held",
        "tell": "told",
        "say": "said",
        "speak": "spoke spoken",
        "do": "did done does",
        "store": "stored storing",
        "schedule": "scheduled scheduling",
        "archive": "archived",
        "eject": "ejected",
        "cancel": "cancelled cancelling",
        "dial": "dialled dialling",
        "control": "controlled controlling",
    }.items()
    for form in forms.split()
}
