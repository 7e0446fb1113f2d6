"""What comes back of a call, with the pieces of its arguments taken out: the skeleton of an answer.

Pure. Two calls whose skeletons are equal differ in nothing but what was handed on. `loose` leaves numbers and codes
out, too: the number of a confirmation says nothing.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

WORD = re.compile(r"[^\W\d_]+")
_PIECES = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?|[\W_]")
_CODE = re.compile(r"(?<![^\W_])(?=[0-9A-Fa-f-]*\d)[0-9A-Fa-f][0-9A-Fa-f-]{5,}(?![^\W_])")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]+=*")
_CODED, _FEW_WORDS = 8, 4
_LEAST, _MOST_WORDS = 3, 400
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class _Given:
    """The words of a call's arguments with their places, and its numbers."""

    words: Mapping[str, tuple[int, ...]]
    numbers: frozenset[str]
    together: str = ""
    kept: frozenset[str] = frozenset()  # words that are those of the code, wherever they stand


def skeleton(
    value: Any,  # a value that crossed
    arguments: Mapping[str, Any],
    *,
    loose: bool = False,
    kept: frozenset[str] = frozenset(),
) -> str:
    """Return what a value says beyond the words and numbers of the arguments it was computed from; words that are
    `kept` stay.
    """
    return _of(value, replace(_given(arguments), kept=kept), loose, 0)


_HANDED_ON = re.compile(r"(?:(?:(?!<[wn]\d*>)[\W_])*<[wn]\d*>)+(?:(?!<[wn]\d*>)[\W_])*")
_INVENTED = re.compile(r"[^\W\d_]{2,}|\d+(?:\.\d+)?")


def coarse(answer: str) -> str:
    """Return a skeleton in which everything that was handed on in one piece is one mark."""
    return _HANDED_ON.sub(" <*> ", answer).strip()


def invented(answer: str) -> frozenset[str]:
    """Return the words and numbers of a skeleton: what did not come in."""
    return frozenset(_INVENTED.findall(_HANDED_ON.sub(" ", answer)))


def texts_of(value: Any, depth: int = 0) -> Iterator[str]:  # Any: a value that crossed
    """Yield every text in a value, the keys of mappings among them."""
    match value:
        case str():
            yield value
        case list() | tuple() if depth < _DEPTH:
            for part in value:
                yield from texts_of(part, depth + 1)
        case dict() if depth < _DEPTH:
            for key, part in value.items():
                yield from texts_of(key, depth + 1)
                yield from texts_of(part, depth + 1)


def words_of(arguments: Mapping[str, Any]) -> frozenset[str]:
    """Return the words in the texts of arguments, in small letters."""
    texts = (text for value in arguments.values() for text in texts_of(value))
    return frozenset(piece.lower() for text in texts for piece in _PIECES.findall(text) if piece[0].isalpha())


Shape: TypeAlias = tuple[object, ...]


def shape(value: Any, depth: int = 0) -> Shape:  # Any: whatever an argument is
    """Return the lengths of the texts and rows in a value, and where its numbers are."""
    match value:
        case str():
            return ("text", len(value))
        case list() | tuple() if depth < _DEPTH:
            return ("row", *(shape(part, depth + 1) for part in value))
        case dict() if depth < _DEPTH:
            return ("map", *((shape(key, depth + 1), shape(part, depth + 1)) for key, part in value.items()))
        case _:
            return (type(value).__name__,)


_MARKS = re.compile(r"[\W_]+")  # a mark among signs is as good as one alone


def parts_of(value: Any, arguments: Mapping[str, Any]) -> frozenset[str]:  # Any: a value that crossed
    """Return the texts and numbers in a value, with a mark for each whole one that came in, also where it is pasted."""
    given = {str(leaf) for leaf in leaves([*arguments.values()]) if not isinstance(leaf, bool | None) and str(leaf)}
    whole = re.compile("|".join(map(re.escape, sorted(given, key=len, reverse=True)[:_MOST_WORDS])) or r"(?!)")
    return frozenset(
        _MARKS.sub("<*>", whole.sub("<*>", leaf))
        if isinstance(leaf, str)
        else "<*>"
        if str(leaf) in given
        else repr(leaf)
        for leaf in leaves(value)
    )


def holds_row(value: Any, arguments: Mapping[str, Any]) -> bool:  # Any: a value that crossed
    """Check whether a value has all members of a list, or all keys of a mapping, that is one of the arguments."""
    rows = [row for row in arguments.values() if isinstance(row, list | dict) and type(row) is type(value)]
    return any(all(member in value for member in row) for row in rows)


def leaves(value: Any, depth: int = 0) -> Iterator[Any]:  # Any: a value that crossed
    """Yield the values in a value that are no containers."""
    match value:
        case list() | tuple() | set() | frozenset() if depth < _DEPTH:
            for part in value:
                yield from leaves(part, depth + 1)
        case dict() if depth < _DEPTH:
            for part in (*value, *value.values()):
                yield from leaves(part, depth + 1)
        case _:
            yield value


def _given(arguments: Mapping[str, Any]) -> _Given:
    words: dict[str, list[int]] = {}
    numbers: set[str] = set()
    at = 0
    for leaf in leaves([*arguments.values()]):
        if isinstance(leaf, str):
            for piece in _PIECES.findall(leaf):
                if piece[0].isalpha() and at < _MOST_WORDS:
                    words.setdefault(piece.lower(), []).append(at)
                    words.setdefault(piece.lower()[::-1], []).append(at)
                    at += 1
                elif piece[0].isdigit():
                    numbers.add(piece)
        elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
            numbers |= (
                {str(leaf), f"{leaf:g}", f"{leaf:.2f}", f"{leaf:.1f}", f"{leaf:.0f}"} if _is_small(leaf) else set()
            )
    together = "".join(
        piece.lower()
        for leaf in leaves([*arguments.values()])
        if isinstance(leaf, str)
        for piece in _PIECES.findall(leaf)
        if piece[0].isalpha()
    )
    return _Given({word: tuple(sorted(set(places))) for word, places in words.items()}, frozenset(numbers), together)


def _is_small(number: float) -> bool:
    return -1e15 < number < 1e15


def _of(value: Any, given: _Given, loose: bool, depth: int) -> str:  # noqa: FBT001 - Any: a value that crossed
    match value:
        case str():
            return f'"{_of_text(value, given, loose)}"'
        case bool() | None:
            return repr(value)
        case int() | float():
            text = f"{value:g}" if isinstance(value, float) else str(value) if value.bit_length() < 64 else "large"
            return "#" if loose else "<n>" if text in given.numbers or str(value)[:20] in given.numbers else text
        case list() | tuple() if depth < _DEPTH:
            return f"[{' '.join(dict.fromkeys(_of(part, given, loose, depth + 1) for part in value))}]"
        case dict() if depth < _DEPTH:
            pairs = (
                f"{_of(key, given, loose, depth + 1)}: {_of(part, given, loose, depth + 1)}"
                for key, part in value.items()
            )
            return f"{{{' '.join(dict.fromkeys(pairs))}}}"
        case _:
            return type(value).__name__


def _of_text(text: str, given: _Given, loose: bool) -> str:  # noqa: FBT001 - of its caller
    if loose:
        text = _CODE.sub("#", text)
    text = _decoded(text, given)
    pieces: list[str | int] = []
    last = -1
    for piece in _PIECES.findall(text[:20_000]):
        place = _place(piece.lower(), given, last) if piece[0].isalpha() else None
        if place is not None:
            pieces.append(place)
            last = place
        elif piece[0].isdigit():
            pieces.append("#" if loose else "<n>" if piece in given.numbers else piece)
        else:
            pieces.append(piece)
    return "".join(_joined(pieces))


def _decoded(text: str, given: _Given) -> str:
    """Return what a text encodes in base64 or hexadecimal digits, if that is what was given: nothing is hidden so."""
    bare = text.strip()
    if len(bare) < _CODED or not given.together or not _ENCODED.fullmatch(bare):
        return text
    for decode in (bytes.fromhex, base64.urlsafe_b64decode, base64.b64decode):
        try:
            decoded = decode(bare).decode()
        except (ValueError, UnicodeError):
            continue
        letters = "".join(filter(str.isalpha, decoded.lower()))
        if letters and (letters in given.together or given.together in letters):
            return decoded
    return text


def _place(word: str, given: _Given, last: int) -> int | None:
    """Return the place of a word, or of the word that it begins: the one after the last if there are several."""
    if word in given.kept or (len(word) == 1 and len(given.words) > _FEW_WORDS and last < 0):
        return None
    places = given.words.get(word)
    if places is None and len(word) >= _LEAST:
        places = next((places for whole, places in given.words.items() if whole.startswith(word)), None)
    if not places:
        return 0 if len(word) >= 2 * _LEAST and word in given.together else None
    return next((place for place in places if place in (last + 1, last - 1)), places[0])


def _joined(pieces: list[str | int]) -> Iterator[str]:
    """Yield the pieces with each run of neighboring words as one; only where a run starts is told, not its end."""
    waiting: list[str] = []
    last: int | None = None
    for piece in pieces:
        if isinstance(piece, int):
            if last is None or piece not in (last + 1, last - 1):
                yield from waiting if last is None else ()
                yield f"<w{piece}>" if last is None else f",<w{piece}>"
            waiting, last = [], piece
        elif last is not None and not piece[0].isalnum() and piece != "#":
            waiting.append(piece)
        else:
            yield from waiting
            yield piece
            waiting, last = [], None
    yield from waiting


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
        if stem != word and len(stem) >= _LEAST - 1 and any(letter in "aeiouy" for letter in stem):
            return stem[:-1] if len(stem) > _LEAST and stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > _LEAST else word


def forms_of(word: str) -> tuple[str, ...]:
    """Return a word with the base forms that it may have."""
    base = lemma(word)
    return (word,) if base == word else (word, base, f"{base}e")


def is_same_verb(first: str, second: str) -> bool:
    """Check whether two forms are of one verb; a final `e` may have been dropped."""
    one, other = lemma(first), lemma(second)
    return one == other or f"{one}e" == other or one == f"{other}e" or (one[:-1] == other and one[-1:] == one[-2:-1])


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
    }.items()
    for form in forms.split()
}
