"""Removal of secrets from texts and nested values, in every form in which a value may reappear.

A form (literal, escaped, quoted, in base64, in hex) is the part of the encoded text that does not depend on the text
around the value.

A mask is enclosed in two characters that no form of a secret has, so that its surroundings cannot form one again. The
texts of a value are searched as one list first, because most contain no secret. Texts are cut in the worker, so pieces
are masked, too: the rest of a secret at a cut, and long pieces anywhere.
"""

import html
import json
import re
import unicodedata
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache
from itertools import chain, product
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote
from uuid import UUID

from agent_core.base.records import dataclass
from sandbox.wire.large import Large
from sandbox.wire.values import BODY, TAG, Members, Pairs, encode

SHORTEST = 8  # characters, in the shortest normal form
_FEWEST = 4  # minimum number of different characters
_LINE = 16  # minimum characters of a line that is masked by itself
_NORMAL: Final[tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...]] = ("NFC", "NFD", "NFKC", "NFKD")
_DIGIT = re.compile(r"[0-9]")
_DIGITS = re.compile(r"[0-9.eE+-]+")
_HEX_OF_UUID = re.compile(r"[0-9a-fA-F]{32}")
_UNCHANGED = re.compile(r"[A-Za-z0-9_.~-]*")
_KEPT = (
    "",
    "/",
    "!'()*~",
    "/!'()*~",
    ":/?#[]@!$&'()*+,;=",
)  # what different URL quoters leave unchanged


def unfit(value: str) -> str:
    """Return the reason why a value cannot be masked and so cannot be a secret; "" if it can."""
    try:
        is_text = "\0" not in value and bool(value.encode())
    except UnicodeEncodeError:
        is_text = False
    if not is_text:
        return "it is no text, or holds a zero character"
    if min(len(form) for form in normal(value)) < SHORTEST:
        return (
            f"it has fewer than {SHORTEST} characters, and masking it would hide what is no secret"
        )
    if len(set(value)) < _FEWEST:
        return f"it has fewer than {_FEWEST} different characters, and masking it would hide what is no secret"
    return ""


def normal(value: str) -> set[str]:
    """Return the value unchanged and in each Unicode normal form."""
    return {value, *(unicodedata.normalize(form, value) for form in _NORMAL)}


@lru_cache(maxsize=64)
def forms(value: str) -> tuple[str, ...]:
    """Return every form of a value as text, the longest first."""
    results = {form for normal_form in normal(value) for form in _encodings(normal_form)}
    for form in [
        form for form in results if not _UNCHANGED.fullmatch(form)
    ]:  # in JSON, in a URL and in a `repr`
        results.update(json.dumps(form, ensure_ascii=wide)[1:-1] for wide in (True, False))
        for quoted in (quote(form, safe=safe) for safe in ("", "/")):
            results.update((quoted, _lower_escapes(quoted)))
        results.add(_inside(repr(form)))
    results |= {
        line for line in value.splitlines() if len(line) >= _LINE and not line.startswith("-----")
    }
    return tuple(sorted(results, key=lambda form: (-len(form), form)))


@lru_cache(maxsize=64)
def byte_forms(value: str) -> tuple[bytes, ...]:
    """Return every form of a value as bytes, the longest first."""
    wide = {
        normal_form.encode(coding)
        for normal_form in normal(value)
        for coding in ("utf-16-le", "utf-16-be")
    }
    return tuple(
        sorted({form.encode() for form in forms(value)} | wide, key=lambda form: (-len(form), form))
    )


def _encodings(value: str) -> Iterator[str]:
    data = value.encode()
    # In one case, as in names of hosts and variables, unless it is then unfit.
    yield from (
        value,
        *(variant for variant in (value.lower(), value.upper()) if not unfit(variant)),
    )
    for wide in (True, False):
        inside = json.dumps(value, ensure_ascii=wide)[1:-1]
        yield from (inside, inside.replace("/", "\\/"))
    for shown in (_inside(repr(value)), _inside(ascii(value)), _inside(repr(data))):
        yield from (shown, shown.replace("'", "\\'"))
    yield from (html.escape(value), html.escape(value, quote=False))
    for safe, blank in product(_KEPT, ("%20", "+")):
        quoted = quote(value, safe=safe).replace("%20", blank)
        yield from (quoted, _lower_escapes(quoted))
    alone = b64encode(data).decode()
    for text in (alone, alone.rstrip("="), *_cores(data)):
        yield from (text, text.replace("+", "-").replace("/", "_"))
    yield from (data.hex(), data.hex().upper())
    yield from ("".join(f"%{byte:02x}" for byte in data), "".join(f"%{byte:02X}" for byte in data))


def _cores(data: bytes) -> list[str]:
    """Return the characters of base64 that depend on the data alone, at each of the positions in a longer text."""
    return [
        b64encode(bytes(before) + data)
        .decode()
        .rstrip("=")[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        for before in range(3)
    ]


def _as_number(form: str) -> str:
    """Return a number of the same form with other digits: JSON with it is still JSON."""
    return _DIGIT.sub("0", form).replace("0", "1", 1)


def _inside(shown: str) -> str:
    """Return the part between the quotes of a `repr`, with its own quotes unescaped."""
    return shown.removeprefix("b")[1:-1].replace("\\'", "'")


def _lower_escapes(quoted: str) -> str:
    first, *others = quoted.split("%")
    return "%".join([first, *(part[:2].lower() + part[2:] for part in others)])


def needed(candidates: Iterable[str]) -> tuple[str, ...]:
    """Return the shortest forms, so that every form contains one of them: a text without these contains no form."""
    shortest: list[str] = []
    for form in sorted(candidates, key=len):
        if not any(shorter in form for shorter in shortest):
            shortest.append(form)
    return tuple(shortest)


Groups: TypeAlias = list[tuple[str, list[str]]]
_SIGNS = "%\\&"


def grouped(forms: Iterable[str]) -> Groups:
    """Return the forms by the sign of an encoding that they contain: most texts have none, so groups are skipped."""
    groups: dict[str, list[str]] = {}
    for form in forms:
        groups.setdefault(next((sign for sign in _SIGNS if sign in form), ""), []).append(form)
    return list(groups.items())


def holds_any(groups: Groups, text: str) -> bool:
    """Return whether a text contains one of the forms."""
    return any(sign in text and any(form in text for form in forms) for sign, forms in groups)


_CUT = re.compile(r"(…|\.{3,}|\n\[output cut)")
_AT_CUT = 4  # minimum characters of a secret at a cut
_FAR = 64  # characters compared first, before a long rest is compared completely
_ANYWHERE = 12  # minimum consecutive characters of a secret
_PROBE = 6  # length of a probe; the steps ensure that every such piece contains one
_STEP = _ANYWHERE - _PROBE + 1
_BACKWARDS = 64  # maximum lines to go back to find an end that no secret crosses


class Pieces:
    """The pieces of some secrets: of every form at a cut, of the plain values anywhere."""

    def __init__(self, forms: Iterable[str], plain: Collection[str], mark: str) -> None:
        self._forms = [*forms]
        self._heads, self._tails = (
            Beginnings(self._forms),
            Beginnings(form[::-1] for form in self._forms),
        )
        self._plain = plain
        self._probes = {
            text[at : at + _PROBE] for text in plain for at in range(len(text) - _PROBE + 1)
        }
        self._runs = {
            text[at : at + _ANYWHERE] for text in plain for at in range(len(text) - _ANYWHERE + 1)
        }
        self._mark = mark

    def clean(self, text: str) -> str:
        """Return the text without the pieces."""
        parts = _CUT.split(self._without_runs(text))
        return "".join(part if at % 2 else self._trim(part) for at, part in enumerate(parts))

    def may_hold(self, text: str) -> bool:
        """Check whether cleaning could change a text that contains no whole form."""
        return len(text) >= _AT_CUT and self.clean(text) != text

    def settled(self, text: str) -> int:
        """Return how much of a growing text can be cleaned already: whole lines, with no secret across their end."""
        begun = max((_beginning_at_end(form, text) for form in self._forms), default=0)
        sizes = (
            size
            for size in range(1, _ANYWHERE)
            if any(text[-size:] in plain for plain in self._plain)
        )
        inside = max(sizes, default=0)
        place = _line_end(text, len(text) - max(begun, inside))
        for _ in range(_BACKWARDS):
            first = self._first_over(place, text)
            if first == place:
                return place
            place = _line_end(text, first)
        return 0

    def _first_over(self, place: int, text: str) -> int:
        """Return the start of the first form or piece that spans a position; the position itself if there is none."""
        whole = (
            text.find(form, max(0, place - len(form) + 1), place + len(form) - 1)
            for form in self._forms
        )
        pieces = (
            at
            for at in range(max(0, place - _ANYWHERE + 1), place)
            if text[at : at + _ANYWHERE] in self._runs
        )
        return min((at for at in (*whole, *pieces) if at >= 0), default=place)

    def _without_runs(self, text: str) -> str:
        """Remove every stretch of the text that consists of pieces."""
        if self._probes.isdisjoint(text[at : at + _PROBE] for at in range(0, len(text), _STEP)):
            return text
        hits = [
            at for at in range(len(text) - _ANYWHERE + 1) if text[at : at + _ANYWHERE] in self._runs
        ]
        parts: list[str] = []
        end = 0  # of the last stretch; overlapping pieces are one
        for at in hits:
            if at >= end:
                parts.append(text[end:at])
            end = at + _ANYWHERE
        return self._mark.join([*parts, text[end:]])

    def _trim(self, part: str) -> str:
        """Remove the beginning of a secret at the end of the part, and the end of one at its beginning."""
        if size := self._heads.at_end(part):
            part = part[: len(part) - size] + self._mark
        if size := self._tails.at_end(part[: self._tails.longest][::-1]):
            part = self._mark + part[size:]
        return part


def _line_end(text: str, place: int) -> int:
    return max(text.rfind(end, 0, place) for end in "\n\r") + 1


def _beginning_at_end(form: str, text: str) -> int:
    """Return how many characters at the end of a text are the beginning of a form."""
    tail = text[-len(form) :]
    at = tail.find(form[:1])
    while at >= 0:
        if form.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(form[:1], at + 1)
    return 0


class Beginnings:
    """An index of forms by their first characters, so that a short text costs little, even with many forms."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._by_head: dict[str, list[str]] = {}
        self.longest = 0
        for form in forms:
            self._by_head.setdefault(form[:_AT_CUT], []).append(form)
            self.longest = max(self.longest, len(form))

    def at_end(self, text: str) -> int:
        """Return how many characters at the end of a text, 4 or more, are the beginning of a form."""
        for at in range(max(0, len(text) - self.longest), len(text) - _AT_CUT + 1):
            for form in self._by_head.get(text[at : at + _AT_CUT], ()):
                if form.startswith(text[at : at + _FAR]) and form.startswith(text[at:]):
                    return len(text) - at
        return 0


PLAIN: Final = frozenset({type(None), bool, int, float})
_MANY: Final = frozenset({list, tuple, set, frozenset})
_CLAIMED: Final = frozenset({Members, Pairs})


def texts_of(
    value: Any, plain: frozenset[type]
) -> tuple[list[str], bool]:  # Any: what `sandbox.wire.values` carries
    """Return the texts, and whether everything else in the value has one of the plain types."""
    texts: list[str] = []
    waiting: list[Any] = [[value]]
    is_plain = True
    while waiting:
        many = waiting.pop()
        kinds = set(map(type, many))
        if str in kinds:
            texts += many if len(kinds) == 1 else [item for item in many if type(item) is str]
        if dict in kinds:
            for item in many:
                if type(item) is dict:
                    waiting += [list(item), list(item.values())]
        waiting += [item for item in many if type(item) in _MANY] if kinds & _MANY else []
        waiting += (
            [item.items for item in many if type(item) in _CLAIMED] if kinds & _CLAIMED else []
        )
        is_plain = is_plain and kinds <= {str, dict} | _MANY | _CLAIMED | plain
    return texts, is_plain


Pair: TypeAlias = tuple[str, str]  # a secret's name and value
Found: TypeAlias = tuple[tuple[str, str], ...]  # forms and their marks, the longest first
_AROUND = ("[]", "<>", "‹›", "«»")
_PRIVATE = range(0xE000, 0xF900)


class Masks:
    """The masks of some secrets."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._pairs = sorted(set(pairs))
        values = {value for _, value in self._pairs}
        names = {form: name for name, value in self._pairs for form in forms(value)}
        used = {character for form in names for character in form}
        others: Iterator[str] = (chr(code) * 2 for code in _PRIVATE)
        self._around = next(pair for pair in chain(_AROUND, others) if not used.intersection(pair))
        self._marks = {
            form: self._mark(names[form], names)
            for form in sorted(names, key=lambda form: (-len(form), form))
        }
        self._needed = grouped(needed(self._marks))
        self._plain = {form for value in values for form in normal(value)}
        self._pieces = Pieces(self._marks, self._plain, f"{self._around[0]}…{self._around[1]}")
        self._numbers: dict[object, str] = {
            number: name for name, value in self._pairs for number in _numbers(value)
        }

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def clean(self, text: str) -> str:
        """Return the text without any of the secrets."""
        return _replace_forms(text, self._found_in(text))

    def clean_said(self, text: str) -> str:
        """Return a text without secrets and their pieces, for text that may be cut or split into pieces."""
        return self._pieces.clean(self.clean(text)) if self._pairs else text

    def settled(self, text: str) -> int:
        """Return how much of a growing text can be masked already: whole lines, with no secret across their end."""
        return self._pieces.settled(text) if self._pairs else len(text)

    def clean_bytes(self, data: bytes) -> bytes:
        """Return the bytes without any of the secrets."""
        for form, mark in self._bytes.items():
            data = data.replace(form, mark)
        return data

    def clean_value(self, value: Any) -> Any:  # Any: what `sandbox.wire.values` carries
        """Return the value, however nested, without any of the secrets; the same object if none is found."""
        texts, is_plain = texts_of(value, frozenset() if self._numbers else PLAIN)
        marks = self._found_in("\0".join(texts))
        if is_plain and not marks:
            return value
        return self._walk(value, lambda text: _replace_forms(text, marks), self.clean_bytes)

    def clean_words(self, value: Any) -> Any:  # Any: as above
        """Return the value with its texts, keys and bytes also cleaned of pieces of secrets."""
        if not self._pairs:
            return value
        if isinstance(value, str):
            return self.clean_said(value)
        texts, is_plain = texts_of(value, frozenset() if self._numbers else PLAIN)
        marks = self._found_in("\0".join(texts))
        if is_plain and not marks and not any(map(self._pieces.may_hold, texts)):
            return value
        return self._walk(
            value,
            lambda text: self._pieces.clean(_replace_forms(text, marks)),
            self._clean_said_bytes,
        )

    def hides(self, number: object) -> bool:
        """Check whether a number is a secret, or its digits contain one."""
        return self._as_text(number) is not number

    def _walk(
        self, value: Any, text: Callable[[str], str], data: Callable[[bytes], bytes]
    ) -> Any:  # Any: as above
        match value:
            case str():
                return text(value)
            case bytes():
                return self._as_text(data(value))
            case dict():
                return {
                    self._walk(key, text, data): self._walk(item, text, data)
                    for key, item in value.items()
                }
            case list() | tuple() | set() | frozenset():
                return type(value)(self._walk(item, text, data) for item in value)
            case Members() | Pairs():
                return replace(value, items=self._walk(value.items, text, data))
            case _:
                return self._as_text(value)

    def _as_text(self, value: object) -> object:
        """Return a value that is not text, or its masked text if that contains a secret."""
        if value is None or isinstance(
            value, bool | Large
        ):  # a large one was masked when it arrived
            return value
        if isinstance(value, int | float) and not self._numbers:
            return value
        is_number = isinstance(value, int | float) or (
            isinstance(value, Decimal) and value.is_finite()
        )
        if is_number and (name := self._numbers.get(value)):
            return self._mark(name, self._marks)
        for text in _texts(value):
            if (cleaned := self.clean(text)) != text:
                return cleaned
        return value

    @cached_property
    def in_json(self) -> "JsonForms":
        """The forms that a secret may have in a JSON text, and what stands for each there."""
        marks: dict[str, str] = {}
        for form, mark in self._marks.items():
            for written in (form, json.dumps(form, ensure_ascii=False)[1:-1]):
                marks[written] = _as_number(written) if _DIGITS.fullmatch(written) else mark
            if _HEX_OF_UUID.fullmatch(form):
                marks[str(UUID(form))] = mark
        for number, name in self._numbers.items():
            written = repr(number) if isinstance(number, float) else str(number)
            if len(written) >= SHORTEST:
                marks[written] = (
                    _as_number(written)
                    if _DIGITS.fullmatch(written)
                    else self._mark(name, self._marks)
                )
        return JsonForms.of(marks)

    @cached_property
    def in_json_with_bytes(self) -> "JsonForms":
        """The same for a text in which bytes are, as base64."""
        marks = {core: mark.decode() for form, mark in self._bytes.items() for core in _cores(form)}
        return JsonForms.of(marks | dict(self.in_json.marked))

    @cached_property
    def _bytes(self) -> dict[bytes, bytes]:
        marked = (
            (form, self._mark(name, self._marks))
            for name, value in self._pairs
            for form in byte_forms(value)
        )
        return {
            form: mark.encode() for form, mark in sorted(marked, key=lambda pair: -len(pair[0]))
        }

    @cached_property
    def _byte_pieces(self) -> Pieces:
        plain = {form.encode().decode("latin-1") for form in self._plain}
        mark = f"{self._around[0]}...{self._around[1]}".encode().decode("latin-1")
        return Pieces((form.decode("latin-1") for form in self._bytes), plain, mark)

    def _clean_said_bytes(self, data: bytes) -> bytes:
        return self._byte_pieces.clean(self.clean_bytes(data).decode("latin-1")).encode("latin-1")

    def _found_in(self, text: str) -> Found:
        """Return the forms that occur in a text, the longest first, with their marks."""
        if not holds_any(self._needed, text):
            return ()
        return tuple((form, mark) for form, mark in self._marks.items() if form in text)

    def _mark(self, name: str, secret_forms: Iterable[str]) -> str:
        says = f"secret {name}"
        return f"{self._around[0]}{'secret' if any(form in says for form in secret_forms) else says}{self._around[1]}"


@dataclass(frozen=True, slots=True)
class JsonForms:
    """Forms with their marks, the longest first; a text without one of the `needed` has none of them."""

    marked: Found
    needed: Groups
    longest: int

    @classmethod
    def of(cls, marks: Mapping[str, str]) -> "JsonForms":
        """Return the forms in their order."""
        marked = tuple(sorted(marks.items(), key=lambda pair: (-len(pair[0]), pair[0])))
        return cls(marked, grouped(needed(marks)), max(map(len, marks), default=1))

    def clean(self, text: str) -> str:
        """Return the text with a mark in place of each form."""
        return _replace_forms(text, self.marked) if holds_any(self.needed, text) else text

    def free_place(self, text: str) -> int:
        """Return where to cut: no form lies across, and none that is not complete yet begins before."""
        place = max(0, len(text) - self.longest + 1)
        for _ in range(_BACKWARDS):
            around = [
                (text.find(form, max(0, place - len(form) + 1), place + len(form) - 1))
                for form, _ in self.marked
            ]
            starts = [at for at in around if at >= 0]
            if not starts:
                return place
            place = min(starts)
        return place


_OF_BYTES: Final = f'"{TAG}":"bytes"'


class JsonStream:
    """Masks a JSON text that arrives in pieces; a form that begins in one and ends in a later one is found, too."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._forms = masks.in_json
        self._held = ""

    def add(self, text: str) -> str:
        """Return what is masked so far and was not returned before."""
        text = self._held + text
        if _OF_BYTES in text:  # the base64 comes after it
            self._forms = self._masks.in_json_with_bytes
        place = self._forms.free_place(text)
        self._held = text[place:]
        return self._forms.clean(text[:place])

    def end(self) -> str:
        """Return the rest."""
        return self._forms.clean(self._held)


def _replace_forms(text: str, marked_forms: Found) -> str:
    for form, mark in marked_forms:
        text = text.replace(form, mark)
    return text


def _numbers(value: str) -> Iterator[Decimal | float]:
    """Yield the number that a value represents, if any, in the types that a worker may return."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        return
    if number.is_finite():
        yield from (number, float(number))


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in which a value is shown and published."""
    if isinstance(value, bytes):
        yield b64encode(value).decode()
        return
    yield str(value)
    published = encode(value)
    if isinstance(published, dict):
        yield str(published[BODY])
    if isinstance(value, UUID):
        yield value.hex
