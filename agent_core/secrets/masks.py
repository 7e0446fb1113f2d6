"""Takes secrets out of texts and of nested values.

A mask is put between two characters that no form of a secret has, so that what stands around it cannot make one again.
Where nothing is found, which is looked for first, a text stays as it is.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

from sandbox.unhashed import Members, Pairs

from .forms import byte_forms, forms, needed, normal
from .pieces import Pieces
from .texts import PLAIN, texts_of

Pair: TypeAlias = tuple[str, str]  # a secret's name and value
Found: TypeAlias = tuple[tuple[str, str], ...]  # forms and their marks, the longest first
_SIGNS = "%\\&"
_AROUND = ("[]", "<>", "‹›", "«»")
_PRIVATE = range(0xE000, 0xF900)


class Masks:
    """The masks of some secrets."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._pairs = sorted(set(pairs))
        values = {value for _, value in self._pairs}
        found = {form: name for name, value in self._pairs for form in forms(value)}
        self._around = _around({character for form in found for character in form})
        self._marks = {
            form: self._mark(found[form], found) for form in sorted(found, key=lambda form: (-len(form), form))
        }
        self._needed = _by_sign(needed(self._marks))
        plain = {one for value in values for one in normal(value)}
        self._pieces = Pieces(self._marks, plain, f"{self._around[0]}…{self._around[1]}")
        self._is_number = any(_is_number(value) for value in values)
        self._bytes: dict[bytes, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def clean(self, text: str) -> str:
        """The text without any of the secrets."""
        return _replaced(text, self._found_in(text))

    def clean_said(self, text: str) -> str:
        """The same of a text that may have been cut, or said in pieces: long pieces go too, and what a cut left."""
        return self._pieces.clean(self.clean(text)) if self._pairs else text

    def settled(self, text: str) -> int:
        """How much of a text that goes on can be masked by itself: whole lines, and no secret goes on after them."""
        return self._pieces.settled(text) if self._pairs else len(text)

    def clean_bytes(self, data: bytes) -> bytes:
        """The bytes without any of the secrets."""
        if not self._bytes:
            marked = (
                (form, self._mark(name, self._marks)) for name, value in self._pairs for form in byte_forms(value)
            )
            self._bytes = {form: mark.encode() for form, mark in sorted(marked, key=lambda each: -len(each[0]))}
        for form, mark in self._bytes.items():
            data = data.replace(form, mark)
        return data

    def clean_value(self, value: Any) -> Any:  # Any: what `sandbox.values` carries
        """The value, nested as it may be, without any of the secrets; where none is found, the same object."""
        texts, is_plain = texts_of(value, frozenset() if self._is_number else PLAIN)
        found = self._found_in("\0".join(texts))
        return value if is_plain and not found else self._walked(value, found)

    def _walked(self, value: Any, found: Found) -> Any:  # Any: as above
        match value:
            case str():
                return _replaced(value, found)
            case bytes():
                return self.clean_bytes(value)
            case dict():
                return {self._walked(key, found): self._walked(item, found) for key, item in value.items()}
            case list() | tuple() | set() | frozenset():
                return type(value)(self._walked(item, found) for item in value)
            case Members() | Pairs():
                return replace(value, items=self._walked(value.items, found))
            case _:
                return self._as_text(value)

    def _as_text(self, value: object) -> object:
        """A value that is no text by itself; its masked text, if there is a secret in that."""
        if value is None or (isinstance(value, bool | int | float) and not self._is_number):
            return value
        text = str(value)
        cleaned = self.clean(text)
        return value if cleaned == text else cleaned

    def _found_in(self, text: str) -> Found:
        """The forms that stand in a text, the longest first, with their marks."""
        if not any(sign in text and any(form in text for form in held) for sign, held in self._needed):
            return ()
        return tuple((form, mark) for form, mark in self._marks.items() if form in text)

    def _mark(self, name: str, found: Iterable[str]) -> str:
        says = f"secret {name}"
        return f"{self._around[0]}{'secret' if any(form in says for form in found) else says}{self._around[1]}"


def _by_sign(found: Iterable[str]) -> list[tuple[str, list[str]]]:
    """The forms by a sign of an encoding that they hold: most texts have none, so those need not be looked for."""
    held: dict[str, list[str]] = {}
    for form in found:
        held.setdefault(next((sign for sign in _SIGNS if sign in form), ""), []).append(form)
    return list(held.items())


def _replaced(text: str, found: Found) -> str:
    for form, mark in found:
        text = text.replace(form, mark)
    return text


def _around(taken: set[str]) -> str:
    """Two characters that stand in no form."""
    others: Iterator[str] = (chr(code) * 2 for code in _PRIVATE)
    return next(pair for pair in chain(_AROUND, others) if not taken.intersection(pair))


def _is_number(value: str) -> bool:
    return value.lstrip("+-").replace(".", "", 1).replace("e", "", 1).isdecimal()
