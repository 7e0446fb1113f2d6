"""Every occurrence of a text that must be forgotten, in any form in which a record may contain it.

A record contains nested JSON, addresses and sources: a letter may be literal, composed or decomposed, or an escape of
JSON, Python, HTML or a URL. Each form matches, so that no spelling of the text remains.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from html.entities import codepoint2name
from typing import Final

from agent_core.base.errors import UsageError

MARK: Final = "[forgotten]"
"""The replacement for a forgotten text."""
NAME: Final = "forgotten"
"""The replacement where only a name is valid."""

_GONE: Final = "\U0010ffff"  # no character: stands for a match while sentences are removed
_LEAST: Final = 2
_LONGEST: Final = 1_000
_BMP: Final = 0x10000
_MOST_CASED: Final = 0x1F000  # no later character has a case
_ESCAPING: Final = re.compile(r"[\\%&]")
_SLASHES: Final = r"\\{1,9}"  # a text in JSON in JSON; bounded, like every repetition here
_GAP: Final = rf"(?:\s|{_SLASHES}[nrt]|{_SLASHES}u00(?:20|a0|0a|09)|%20|%0a|\+|&nbsp;){{1,40}}"
_BEFORE: Final = r"(?:(?<![^\W_])|(?<=\\[nrtbf])|(?<=%20)|(?<=%0a))"
_AFTER: Final = r"(?![^\W_])"
_SENTENCE: Final = re.compile(r"(?=[^\n])[.!?;]*[^\n.!?;]*(?:[.!?;](?=\S)[^\n.!?;]+)*[.!?;]*[^\S\n]*")


class Mention:
    """A text to forget: in any case unless `exact`, and inside longer words unless `word`.

    `longer` counts the longer words in which it was found.
    """

    def __init__(self, text: str, *, exact: bool = False, word: bool = False) -> None:
        """Prepare the search.

        Raises:
            UsageError: the text is too short or too long to identify.
        """
        parts = unicodedata.normalize("NFC", text).split()
        if not _LEAST <= sum(map(len, parts)) <= _LONGEST:
            fix = f"Give {_LEAST} to {_LONGEST:,} characters."
            raise UsageError(f"`{text[:60]}` is not a text that can be forgotten everywhere.", fix=fix)
        self.text = text
        self.exact = exact
        self.longer: Counter[str] = Counter()
        flags = re.NOFLAG if exact else re.IGNORECASE
        before, after = (_BEFORE, _AFTER) if word else ("", "")
        plain = r"\s{1,40}".join(_pattern(part, _plain, exact=exact) for part in parts)
        whole = _GAP.join(_pattern(part, _whole if exact else _in_any_case, exact=exact) for part in parts)
        self._plain = re.compile(f"{before}(?:{plain}){after}", flags)
        self._whole = re.compile(f"{before}(?:{whole}){after}", flags)
        self._around = re.compile(rf"[^\W_]{{0,40}}(?:{plain})[^\W_]{{0,40}}", flags)

    def within(self, text: str) -> bool:
        """Check whether the text occurs in another."""
        return self._form(text).search(text) is not None

    def count(self, text: str) -> int:
        """Return how often the text occurs in another."""
        return len(self._form(text).findall(text))

    def around(self, text: str, limit_chars: int) -> str:
        """Return the part of a text around the first occurrence; "" if there is none."""
        match = self._form(text).search(text)
        if match is None:
            return ""
        start = max(min(match.start() - limit_chars // 2, len(text) - limit_chars), 0)
        end = start + limit_chars
        return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"

    def without(self, text: str, instead: str = MARK) -> str:
        """Return a text with each occurrence replaced; the same object if there is none."""
        replaced, count = self._form(text).subn(lambda _: instead, text)
        if not count:
            return text
        for match in self._around.finditer(text):
            if not self._plain.fullmatch(match[0]):
                self.longer[match[0]] += 1
        return replaced

    def shortened(self, text: str) -> str:
        """Return a text without the sentences that contain the text, and without the lines that this empties."""
        if self.without(text) is text:
            return text
        marked = self._form(text).sub(lambda match: _GONE + f"\n{_GONE}" * match[0].count("\n"), text)
        remaining = []
        for line in marked.split("\n"):
            sentences = (part for part in _SENTENCE.findall(line) if _GONE not in part)
            short = "".join(sentences).rstrip() if _GONE in line else line
            if short or not line.strip():
                remaining.append(short)
        return self.without("\n".join(remaining), "…")  # what came together by this; never longer than before

    def _form(self, text: str) -> re.Pattern[str]:
        return self._whole if _ESCAPING.search(text) else self._plain


@cache
def _cases() -> tuple[Mapping[str, Sequence[str]], re.Pattern[str]]:
    """Return the letters of each case folding (`s`: S and ſ, `ss`: ß and ẞ), and a pattern of one folding."""
    letters = defaultdict[str, list[str]](list)
    for letter in map(chr, range(_MOST_CASED)):
        if (folded := letter.casefold()) != letter:
            letters[folded].append(letter)
    long = sorted((folded for folded in letters if len(folded) > 1), key=len, reverse=True)
    return letters, re.compile("|".join([*map(re.escape, long), "."]))


def _pattern(text: str, written: Callable[[str], str], *, exact: bool) -> str:
    """Return a pattern of a text without spaces; in any case unless `exact`. `written` returns that of a letter."""
    cases, folding = _cases()
    pattern = ""
    for letters in text if exact else folding.findall(text.casefold()):
        forms = [*_spelled(letters, written, cases)]
        pattern += f"(?:{'|'.join(forms)})" if len(forms) > 1 else forms[0]
    return pattern


def _spelled(
    letters: str, written: Callable[[str], str], cases: Mapping[str, Sequence[str]], before: str = ""
) -> Iterator[str]:
    """Yield the patterns of at most three letters, each of its own or as parts of one."""
    if not letters:
        yield before
        return
    for size in range(1, len(letters) + 1):
        for letter in letters[0] if size == 1 else cases.get(letters[:size], ()):
            form = written(letter)
            yield from _spelled(letters[size:], written, cases, before + (f"(?:{form})" if "|" in form else form))


def _plain(letter: str) -> str:
    decomposed = unicodedata.normalize("NFD", letter)
    return re.escape(letter) if decomposed == letter else f"{re.escape(letter)}|{re.escape(decomposed)}"


def _in_any_case(letter: str) -> str:
    return "|".join(map(_whole, (letter, *_cases()[0].get(letter, ()))))


def _whole(letter: str) -> str:
    """Return a pattern of all ways to write a letter, in escapes, too."""
    forms, decomposed = _forms(letter), unicodedata.normalize("NFD", letter)
    if decomposed != letter:
        forms.add("".join(f"(?:{'|'.join(sorted(_forms(part)))})" for part in decomposed))
    return "|".join(sorted(forms))


def _forms(letter: str) -> set[str]:
    number, octets = ord(letter), letter.encode("utf-8", "surrogatepass")
    pairs = letter.encode("utf-16-be", "surrogatepass").hex()
    escapes = {
        "".join(rf"{_SLASHES}u{pairs[place : place + 4]}" for place in range(0, len(pairs), 4)),
        rf"{_SLASHES}U{number:08x}",
        "".join(f"%{octet:02x}" for octet in octets),
        "".join(rf"{_SLASHES}x{octet:02x}" for octet in octets),
        rf"&#0{{0,9}}{number};",
        rf"&#x0{{0,9}}{number:x};",
    }
    if number < _BMP >> 8:
        escapes.add(rf"{_SLASHES}x{number:02x}")
    if number in codepoint2name:
        escapes.add(f"&{codepoint2name[number]};")
    return {re.escape(letter), *(f"(?i:{escape})" for escape in escapes)}
