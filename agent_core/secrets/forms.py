"""The forms in which a value may come out again: as it is, escaped, quoted, in base64, in hex.

Pure. A form is what always stands in the encoded text, whatever stands around the value in what was encoded.
"""

import html
import json
import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Final, Literal
from urllib.parse import quote

SHORTEST = 8  # characters, in the shortest normal form
_FEWEST = 4  # different ones
_LINE = 16  # characters of a line that is masked by itself
_NORMAL: Final[tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...]] = ("NFC", "NFD", "NFKC", "NFKD")
_UNCHANGED = re.compile(r"[A-Za-z0-9_.~-]*")
_KEPT = ("", "/", "!'()*~", "/!'()*~", ":/?#[]@!$&'()*+,;=")  # what different quoters of URLs leave as it is


def unfit(value: str) -> str:
    """Why a value cannot be masked, and so is no secret; empty if it can."""
    if not _is_text(value):
        return "it is no text, or holds a zero character"
    if min(len(one) for one in normal(value)) < SHORTEST:
        return f"it has fewer than {SHORTEST} characters, and masking it would hide what is no secret"
    if len(set(value)) < _FEWEST:
        return f"it has fewer than {_FEWEST} different characters, and masking it would hide what is no secret"
    return ""


def normal(value: str) -> set[str]:
    """The value as it is and in each Unicode normal form."""
    return {value, *(unicodedata.normalize(form, value) for form in _NORMAL)}


@lru_cache(maxsize=64)
def forms(value: str) -> tuple[str, ...]:
    """Every form of a value as text, the longest first."""
    found = {form for one in normal(value) for form in _encoded(one)}
    changing = [form for form in found if not _UNCHANGED.fullmatch(form)]
    found |= {other for form in changing for other in _around(form)}
    found |= {line for line in value.splitlines() if len(line) >= _LINE and not line.startswith("-----")}
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


@lru_cache(maxsize=64)
def byte_forms(value: str) -> tuple[bytes, ...]:
    """Every form of a value as bytes, the longest first."""
    wide = {one.encode(coding) for one in normal(value) for coding in ("utf-16-le", "utf-16-be")}
    return tuple(sorted({form.encode() for form in forms(value)} | wide, key=lambda form: (-len(form), form)))


def _encoded(value: str) -> Iterator[str]:
    data = value.encode()
    yield from (value, *_in_one_case(value))
    yield from _escaped(value)
    yield from _quoted(value)
    yield from _in_base64(data)
    yield from (data.hex(), data.hex().upper())
    yield from ("".join(f"%{byte:02x}" for byte in data), "".join(f"%{byte:02X}" for byte in data))


def _in_one_case(value: str) -> Iterator[str]:
    """All small or all capital, as the names of hosts and of variables are written; not where that is too short."""
    yield from (other for other in (value.lower(), value.upper()) if not unfit(other))


def _around(form: str) -> Iterator[str]:
    """A form within what JSON, a URL or a `repr` make of it."""
    yield from (json.dumps(form, ensure_ascii=wide)[1:-1] for wide in (True, False))
    yield from (quoted for kept in ("", "/") for quoted in (quote(form, safe=kept), _lowered(quote(form, safe=kept))))
    yield _inside(repr(form))


def _escaped(text: str) -> Iterator[str]:
    """As it stands within JSON, within what `repr` and `ascii` give of a text or of bytes, and within HTML."""
    for wide in (True, False):
        inside = json.dumps(text, ensure_ascii=wide)[1:-1]
        yield from (inside, inside.replace("/", "\\/"))
    for shown in (_inside(repr(text)), _inside(ascii(text)), _inside(repr(text.encode()))):
        yield from (shown, shown.replace("'", "\\'"))
    yield from (html.escape(text), html.escape(text, quote=False))


def _inside(shown: str) -> str:
    """What stands between the quotes of a `repr`, none of its own quotes escaped."""
    return shown.removeprefix("b")[1:-1].replace("\\'", "'")


def _quoted(text: str) -> Iterator[str]:
    for kept, blank in product(_KEPT, ("%20", "+")):
        quoted = quote(text, safe=kept).replace("%20", blank)
        yield from (quoted, _lowered(quoted))


def _lowered(quoted: str) -> str:
    first, *others = quoted.split("%")
    return "%".join([first, *(other[:2].lower() + other[2:] for other in others)])


def _in_base64(data: bytes) -> Iterator[str]:
    """Alone, and what of it does not depend on what stands before and after, at each of three positions."""
    alone = b64encode(data).decode()
    cores = [_core(data, before) for before in range(3)]
    for text in (alone, alone.rstrip("="), *cores):
        yield from (text, text.replace("+", "-").replace("/", "_"))


def _core(data: bytes, before: int) -> str:
    encoded = b64encode(bytes(before) + data).decode().rstrip("=")
    first = (before * 8 + 5) // 6
    end = (before + len(data)) * 8 // 6
    return encoded[first:end]


def _is_text(value: str) -> bool:
    try:
        return "\0" not in value and bool(value.encode())
    except UnicodeEncodeError:
        return False


def needed(found: Iterable[str]) -> tuple[str, ...]:
    """Those of which each other form holds one: where none of them stands, none of the others does."""
    kept: list[str] = []
    for form in sorted(found, key=len):
        if not any(other in form for other in kept):
            kept.append(form)
    return tuple(kept)
