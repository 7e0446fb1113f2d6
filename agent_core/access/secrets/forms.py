"""The forms in which a value may reappear: literal, escaped, quoted, in base64, in hex.

Pure. A form is the part of the encoded text that does not depend on the text around the value.
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
_FEWEST = 4  # minimum number of different characters
_LINE = 16  # minimum characters of a line that is masked by itself
_NORMAL: Final[tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...]] = ("NFC", "NFD", "NFKC", "NFKD")
_UNCHANGED = re.compile(r"[A-Za-z0-9_.~-]*")
_KEPT = ("", "/", "!'()*~", "/!'()*~", ":/?#[]@!$&'()*+,;=")  # what different URL quoters leave unchanged


def unfit(value: str) -> str:
    """Return the reason why a value cannot be masked and so cannot be a secret; "" if it can."""
    try:
        is_text = "\0" not in value and bool(value.encode())
    except UnicodeEncodeError:
        is_text = False
    if not is_text:
        return "it is no text, or holds a zero character"
    if min(len(form) for form in normal(value)) < SHORTEST:
        return f"it has fewer than {SHORTEST} characters, and masking it would hide what is no secret"
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
    for form in [form for form in results if not _UNCHANGED.fullmatch(form)]:  # in JSON, in a URL and in a `repr`
        results.update(json.dumps(form, ensure_ascii=wide)[1:-1] for wide in (True, False))
        for quoted in (quote(form, safe=safe) for safe in ("", "/")):
            results.update((quoted, _lower_escapes(quoted)))
        results.add(_inside(repr(form)))
    results |= {line for line in value.splitlines() if len(line) >= _LINE and not line.startswith("-----")}
    return tuple(sorted(results, key=lambda form: (-len(form), form)))


@lru_cache(maxsize=64)
def byte_forms(value: str) -> tuple[bytes, ...]:
    """Return every form of a value as bytes, the longest first."""
    wide = {normal_form.encode(coding) for normal_form in normal(value) for coding in ("utf-16-le", "utf-16-be")}
    return tuple(sorted({form.encode() for form in forms(value)} | wide, key=lambda form: (-len(form), form)))


def _encodings(value: str) -> Iterator[str]:
    data = value.encode()
    # In one case, as in names of hosts and variables, unless it is then unfit.
    yield from (value, *(variant for variant in (value.lower(), value.upper()) if not unfit(variant)))
    yield from _escapes(value)
    for safe, blank in product(_KEPT, ("%20", "+")):
        quoted = quote(value, safe=safe).replace("%20", blank)
        yield from (quoted, _lower_escapes(quoted))
    alone = b64encode(data).decode()
    # Within a longer text: the characters that depend on the value alone, at each of the three positions.
    cores = [
        b64encode(bytes(before) + data).decode().rstrip("=")[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        for before in range(3)
    ]
    for text in (alone, alone.rstrip("="), *cores):
        yield from (text, text.replace("+", "-").replace("/", "_"))
    yield from (data.hex(), data.hex().upper())
    yield from ("".join(f"%{byte:02x}" for byte in data), "".join(f"%{byte:02X}" for byte in data))


def _escapes(text: str) -> Iterator[str]:
    """Yield a text as it appears within JSON, HTML, and the `repr` and `ascii` of text or bytes."""
    for wide in (True, False):
        inside = json.dumps(text, ensure_ascii=wide)[1:-1]
        yield from (inside, inside.replace("/", "\\/"))
    for shown in (_inside(repr(text)), _inside(ascii(text)), _inside(repr(text.encode()))):
        yield from (shown, shown.replace("'", "\\'"))
    yield from (html.escape(text), html.escape(text, quote=False))


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
