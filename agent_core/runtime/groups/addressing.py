"""Who is addressed and who is asked in a text. Names in code, quotations and mail addresses do not count."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

from .floor import USER

_SILENT: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>[^\n]*$|\"[^\"\n]{0,500}\"|“[^”\n]{0,500}”", re.DOTALL | re.MULTILINE
)
_QUESTION: Final = re.compile(r"[^.!?？\n]*[?？]")


def names_addressed(text: str, names: Collection[str]) -> list[str]:
    """Return the names that a text addresses, in order of appearance: with @, or in direct address."""
    bare, forms = _audible(text), _forms(tuple(names))
    places = [(match.start(1), match[1]) for match in forms["at"].finditer(bare)]
    for match in forms["call"].finditer(bare):
        start = match.start("names")
        places += [(start + name.start(), name[1]) for name in forms["name"].finditer(match["names"])]
    places += [(match.start(1), match[1]) for match in forms["end"].finditer(bare)]
    return _unique([name for _, name in sorted(places)], names)


def asked(text: str, names: Collection[str]) -> list[str]:
    """Return the names that appear in a question of a text, in order."""
    forms = _forms(tuple(names))
    questions = _QUESTION.findall(_audible(text))
    return _unique([match[1] for question in questions for match in forms["name"].finditer(question)], names)


def asks(text: str) -> bool:
    """Check whether a text contains a question."""
    return bool(_QUESTION.search(_audible(text)))


def says(text: str, words: str) -> bool:
    """Check whether a text contains these words as whole words and outside of code and quotations."""
    return bool(re.search(rf"(?<!\w){re.escape(words)}(?!\w)", _audible(text)))


def _audible(text: str) -> str:
    return _SILENT.sub(lambda match: " " * len(match[0]), text)


@lru_cache(maxsize=64)
def _forms(names: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    known = "|".join(re.escape(name) for name in sorted({*names, USER}, key=len, reverse=True))
    members = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or r"(?!)"
    name = rf"(?<![\w@./+-])(?:{members})(?![\w-]|\.\w|@)"
    several = rf"{name}(?:(?:,[ \t]*|,?[ \t]+[^\W\d_]{{1,3}}[ \t]+|[ \t]+&[ \t]+){name})*"
    # A short interjection may precede the name, in any language: "So, Critic: …".
    begins = r"(?:^|(?<=[.!?;:\n(—–])|(?<=[.!?;:)—–][ \t]))[ \t]*(?:[^\W\d_]{1,6}[,!][ \t]+)?"
    forms = {
        "at": rf"(?<![\w@./+-])@({known})(?![\w-]|\.\w|@)",
        "call": rf"{begins}(?P<names>{several})[ \t]*[,:!—–]",
        "end": rf",[ \t]+({name})(?=[ \t]*(?:[.!?…]|$))",
        "name": rf"({name})",
    }
    return {key: re.compile(form, re.IGNORECASE | re.MULTILINE) for key, form in forms.items()}


def _unique(found: Sequence[str], names: Collection[str]) -> list[str]:
    """Return the names in their original spelling, without duplicates."""
    spelled = {name.casefold(): name for name in (*names, USER)}
    return list(dict.fromkeys(spelled[name.casefold()] for name in found))
