"""The skeleton of an answer: the result of a call without the pieces of its arguments.

Pure. Two calls whose skeletons are equal differ in nothing but what was handed on. `loose` leaves numbers and codes
out, too: the number of a confirmation says nothing.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from sandbox.wire.claimed_collections import Members, Pairs

WORD = re.compile(r"[^\W\d_]+")
RUNNING = re.compile(r"(?<![^\W\d_])([^\W\d_]{3,})[ _#-]{0,2}(?:\d+|[A-Z])(?![^\W_])")
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
    code_words: frozenset[str] = frozenset()  # words that are those of the code, wherever they stand


def skeleton(
    value: Any,  # a value that crossed
    arguments: Mapping[str, Any],
    *,
    loose: bool = False,
    code_words: frozenset[str] = frozenset(),
) -> str:
    """Return what a value says beyond the words and numbers of the arguments it was computed from; words that are
    `kept` stay.
    """
    return _of(value, replace(_given(arguments), code_words=code_words), loose, 0)


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
        case list() | tuple() | set() if depth < _DEPTH:
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


def _size_of(value: Any) -> tuple[int, str]:  # Any: a value that crossed
    return len(repr(value)), repr(value)


class Bag(list[Any]):  # Any: values that crossed
    """The members of a set, in an order that says nothing."""


def plain(value: Any, depth: int = 0) -> Any:  # Any: a value that crossed
    """Return a value with lists for sets and texts for bytes, dates and the like, which are compared as such."""
    match value:
        case Members() | set() | frozenset():
            return Bag(sorted(value.items if isinstance(value, Members) else value, key=_size_of))
        case bytes() | bytearray():
            return value.decode("latin-1")
        case list() | tuple() if depth < _DEPTH:
            return type(value)(plain(part, depth + 1) for part in value)
        case Pairs() | dict() if depth < _DEPTH:
            pairs = value.items if isinstance(value, Pairs) else value.items()
            return {_key(key): plain(part, depth + 1) for key, part in pairs}
        case date() | time() | timedelta() | Decimal() | Fraction():
            return str(value)
        case _:
            return value


def _key(key: Any) -> Any:  # Any: values that crossed
    """Return a key as such, or its text if it may be no key here."""
    return key if isinstance(key, str | int | float | None) else str(plain(key))


_MARKS = re.compile(r"[\W_]+")  # a mark among signs is as good as one alone


def parts_of(value: Any, arguments: Mapping[str, Any]) -> frozenset[str]:  # Any: a value that crossed
    """Return the texts and numbers in a value, with a mark for each whole one that came in, also where it is pasted."""
    argument_pieces = {
        str(leaf) for leaf in leaves([*arguments.values()]) if not isinstance(leaf, bool | None) and str(leaf)
    }
    whole = re.compile(
        "|".join(map(re.escape, sorted(argument_pieces, key=len, reverse=True)[:_MOST_WORDS])) or r"(?!)"
    )
    return frozenset(
        _MARKS.sub("<*>", whole.sub("<*>", leaf))
        if isinstance(leaf, str)
        else "<*>"
        if str(leaf) in argument_pieces
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


def _of(value: Any, argument_pieces: _Given, loose: bool, depth: int) -> str:  # noqa: FBT001, PLR0911 - Any: a value that crossed
    match value:
        case str():
            return f'"{_of_text(value, argument_pieces, loose)}"'
        case bool() | None:
            return repr(value)
        case int() | float():
            text = f"{value:g}" if isinstance(value, float) else str(value) if value.bit_length() < 64 else "large"
            return (
                "#"
                if loose
                else "<n>"
                if text in argument_pieces.numbers or str(value)[:20] in argument_pieces.numbers
                else text
            )
        case Bag():
            return f"[{' '.join(sorted({_of(part, argument_pieces, loose, depth + 1) for part in value}))}]"
        case list() | tuple() if depth < _DEPTH:
            return f"[{' '.join(dict.fromkeys(_of(part, argument_pieces, loose, depth + 1) for part in value))}]"
        case dict() if depth < _DEPTH:
            pairs = (
                f"{_of(key, argument_pieces, loose, depth + 1)}: {_of(part, argument_pieces, loose, depth + 1)}"
                for key, part in value.items()
            )
            return f"{{{' '.join(dict.fromkeys(pairs))}}}"
        case _:
            return type(value).__name__


def _of_text(text: str, argument_pieces: _Given, loose: bool) -> str:  # noqa: FBT001 - of its caller
    if loose:
        text = _CODE.sub("#", text)
    text = _decoded(text, argument_pieces)
    pieces: list[str | int] = []
    last = -1
    for piece in _PIECES.findall(text[:20_000]):
        place = _place(piece.lower(), argument_pieces, last) if piece[0].isalpha() else None
        if place is not None:
            pieces.append(place)
            last = place
        elif piece[0].isdigit():
            pieces.append("#" if loose else "<n>" if piece in argument_pieces.numbers else piece)
        else:
            pieces.append(piece)
    return "".join(_joined(pieces))


def _decoded(text: str, argument_pieces: _Given) -> str:
    """Return what a text encodes in base64 or hexadecimal digits, if that is what was given: nothing is hidden so."""
    bare = text.strip()
    if len(bare) < _CODED or not argument_pieces.together or not _ENCODED.fullmatch(bare):
        return text
    for decode in (bytes.fromhex, base64.urlsafe_b64decode, base64.b64decode):
        try:
            decoded = decode(bare).decode()
        except (ValueError, UnicodeError):
            continue
        letters = "".join(filter(str.isalpha, decoded.lower()))
        if letters and (letters in argument_pieces.together or argument_pieces.together in letters):
            return decoded
    return text


def _place(word: str, argument_pieces: _Given, last: int) -> int | None:
    """Return the place of a word, or of the word that it begins: the one after the last if there are several."""
    if word in argument_pieces.code_words or (len(word) == 1 and len(argument_pieces.words) > _FEW_WORDS and last < 0):
        return None
    places = argument_pieces.words.get(word)
    if places is None and len(word) >= _LEAST:
        places = next((places for whole, places in argument_pieces.words.items() if whole.startswith(word)), None)
    if not places:
        return 0 if len(word) >= 2 * _LEAST and word in argument_pieces.together else None
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


def is_carried(value: Any, arguments: Mapping[str, Any], other: Any, other_arguments: Mapping[str, Any]) -> bool:
    # Any: values that crossed
    """Check whether two results differ in nothing but letters that stand in one place of both calls' arguments.

    However they were cut, joined, reversed or capitalized, nobody looked at them.
    """
    texts, others = [*texts_of(value)], [*texts_of(other)]
    given = zip(texts_of([*arguments.values()]), texts_of([*other_arguments.values()]), strict=False)
    places = {(a, b) for first, second in given for a, b in zip(first.casefold(), second.casefold(), strict=False)}
    is_alike = [*map(len, texts)] == [*map(len, others)] and shape(value) == shape(other)
    rest, other_rest = ([leaf for leaf in leaves(side) if not isinstance(leaf, str)] for side in (value, other))
    letters = zip("".join(texts).casefold(), "".join(others).casefold(), strict=False)
    return is_alike and rest == other_rest and all(a == b or (a, b) in places for a, b in letters)


def share_of(text: str, value: Any, *, whole: bool) -> float:  # Any: a value that crossed
    """Return how many of a text's words are in a value, from 0 to 1; if `whole`, only all of it counts."""
    if whole:
        return float(any(text.casefold() in part.casefold() for part in texts_of(value)))
    words, results = words_of({"": text}), words_of({"": value})
    return sum(word in results or any(_is_disguise(word, result) for result in results) for word in words) / len(words)


def _is_disguise(word: str, result: str) -> bool:
    """Check whether a word is another one with an ending or a beginning."""
    is_longer = len(word) >= _LEAST and len(word) < len(result) <= len(word) + _LEAST
    return is_longer and (result.startswith(word) or result.endswith(word))
