"""JSON and TOML from others → plain values, within bounds: the only place in this program that parses either.

Whatever is wrong with a text (too long, too deep, a number without end, a key twice, half a character) is one error,
`Malformed`, which says what was expected, what is there, and where. Depth is bounded, so that whoever walks, compares,
copies or writes a value that was read here needs no bound of its own.
"""

import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, NoReturn, TypeAlias

from ..errors import SandboxError
from .lines import lines_of

DEEPEST: Final = 64
DEEPEST_ROW: Final = 500  # of what this program wrote: values of calls have up to 202 levels, and stand in something
MOST: Final = 64 << 20  # characters, or bytes
_MOST_TOML: Final = 256 << 10
_MOST_OF_TOML: Final = 20_000  # keys and values
OF_A_FILE: Final = 1_000  # keys and values that a file needs which people write
Code: TypeAlias = Literal["size", "syntax", "depth", "digits", "number", "key", "character"]

_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_BEGINNINGS: Final = (b"[", b"{", b",")
_PIECE: Final = 32 << 10
_MARKS: Final = "=,[{."  # one stands at each key, value and part of a key
_PASSES: Final = 8
_PART: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[,\[{]', re.DOTALL)
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_IS_ESCAPE: Final = re.compile(r"""\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})""")
_NAME: Final = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_NOT_PLAIN: Final = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\Z)|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'''(?:[^']++|'(?!''))*+(?:'''|\Z)|'[^'\n]*+'?|#[^\n]*+",
    re.DOTALL,
)
_KEY: Final = re.compile(rf"(?:^[ \t]*+(?:\[++[ \t]*+)?|[{{,][ \t]*+)({_NAME})[ \t]*+[=\]]", re.MULTILINE)
_LONG_KEY: Final = re.compile(rf"(?<![\w.-]){_NAME}(?:[ \t]*+\.[ \t]*+{_NAME}){{{DEEPEST},}}+")


class Malformed(SandboxError, ValueError):
    """A malformed text. `code` says in which way, the message what was expected and where."""

    def __init__(self, message: str, code: Code = "syntax", position: int = 0, text: str | None = None) -> None:
        self.code = code
        self.position = position
        content = text or ""
        self.line = content.count("\n", 0, position) + 1
        self.column = position - content.rfind("\n", 0, position)
        where = "" if text is None else f" at line {self.line} column {self.column}"
        super().__init__(message.replace("{where}", where))


@dataclass(frozen=True, slots=True, eq=False)
class Strictness:
    """The strictness of a reader.

    `unique`: a key stands once. `constants`: NaN and Infinity are rejected; `finite`: and so is what becomes one.
    `whole`: no half of a surrogate pair. `bare`: text may hold line breaks as they are. `numbers`: else they stay text.
    """

    unique: bool = True
    constants: bool = True
    finite: bool = True
    whole: bool = True
    bare: bool = False
    numbers: bool = True


STRICT: Final = Strictness()
MESSAGE: Final = Strictness(unique=False)  # the shape is checked next
FRAME: Final = Strictness(unique=False, finite=False)  # the numbers are checked, too, and it must be read fast
# What an endpoint or a model writes, and our own rows.
LOOSE: Final = Strictness(unique=False, constants=False, finite=False, whole=False, bare=True)


def read_json(
    text: str | bytes,
    strictness: Strictness = STRICT,
    *,
    most: int = MOST,
    deepest: int = DEEPEST,
    most_values: int = 0,
) -> Any:  # Any: JSON
    """Return the value that a text holds; `most_values`, if given, bounds how many are in it before any is built.

    Raises:
        Malformed: it holds none within these bounds.
    """
    text = _text(text, most)
    if most_values and _has_more_values(text, most_values):
        raise Malformed(f"expected at most {most_values:,} values, got more", "size")
    value = _parse(text, strictness, deepest)
    if _is_too_deep(text, value, deepest):
        raise _too_deep(text, 0, deepest)
    if strictness.whole:
        _check_whole(text, value)
    return value


def read_next(
    text: str, at: int, strictness: Strictness = STRICT, *, deepest: int = DEEPEST
) -> tuple[Any, int]:  # Any: JSON
    """Return the value that begins at a place of a text, and the place where it ends.

    Raises:
        Malformed: none begins there.
    """
    try:
        value, end = _decoder(strictness).raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        raise _explain(error, text, at, deepest) from error
    if _is_too_deep(text[at:end], value, deepest):
        raise _too_deep(text, at, deepest)
    if strictness.whole:
        _check_whole(text[at:end], value)
    return value, end


def has_more_values(text: bytes, most: int) -> bool:
    """Check whether JSON may hold more values, by what stands outside of its strings; nothing is made of it.

    Piece by piece, so that other threads get their turn, and no further than to the one too many.
    """
    if sum(map(text.count, _BEGINNINGS)) < most:
        return False
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    inside, count = 0, 1
    for start in range(0, len(plain), _PIECE):
        quoted = plain[start : start + _PIECE].split(b'"')
        outside = b"".join(quoted[inside::2])
        count += sum(map(outside.count, _BEGINNINGS))
        inside ^= (len(quoted) - 1) & 1
        if count > most:
            return True
    return False


def with_plain_escapes(text: str) -> str:
    """Return JSON with invalid escapes, such as those of regular expressions, changed to stand for what they show."""
    return _ESCAPE.sub(lambda match: match[0] if _IS_ESCAPE.fullmatch(match[0]) else f"\\{match[0]}", text)


def read_toml(
    text: str | bytes, *, most: int = _MOST_TOML, deepest: int = DEEPEST, values: int = _MOST_OF_TOML
) -> dict[str, Any]:  # Any: TOML
    """Return the table that a text holds, of at most so many keys and values: they are counted before it is read.

    Raises:
        Malformed: it holds none within these bounds.
    """
    import tomllib  # noqa: PLC0415  (no worker reads TOML, and most ways to the prompt do not)

    text = _text(text, most)
    if sum(map(text.count, _MARKS)) > values and count_of_toml(text) > values:
        raise Malformed(f"expected at most {values:,} keys and values, got more", "size")
    if (place := _long_key(text)) >= 0:  # the parser takes the square of their number
        raise Malformed(f"expected at most {deepest} parts of a key, got more{{where}}", "depth", place, text)
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Malformed(str(error)) from error
    except RecursionError as error:
        raise Malformed(f"expected at most {deepest} levels, got more", "depth") from error
    except ValueError as error:
        raise Malformed("expected an integer of at most 4300 digits, got a longer one", "digits") from error
    if _is_deeper(value, deepest):
        raise Malformed(f"expected at most {deepest} levels, got more", "depth")
    return value


def count_of_toml(text: str) -> int:
    """Return how many keys and values a TOML text holds at most, by what stands outside of its strings and comments."""
    return sum(map(_NOT_PLAIN.sub("", text).count, _MARKS))


def lines_of_keys(text: str) -> dict[str, int]:
    """Return the line on which each key of a TOML text stands first, counted from 1."""
    lines: dict[str, int] = {}
    number, counted = 1, 0
    for match in _KEY.finditer(text):
        number, counted = number + text.count("\n", counted, match.start(1)), match.start(1)
        lines.setdefault(match[1].strip("\"'"), number)
    return lines


def _long_key(text: str) -> int:
    """Return where a key of too many parts begins, -1 if there is none: it stands in one line, with as many dots."""
    start = 0
    for line in lines_of(text):
        if line.count(".") >= DEEPEST and (match := _LONG_KEY.search(line)):
            return start + match.start()
        start += len(line)
    return -1


def _text(text: str | bytes, most: int) -> str:
    if len(text) > most:
        unit = "characters" if isinstance(text, str) else "bytes"
        raise Malformed(f"expected at most {most} {unit}, got {len(text)}", "size")
    if isinstance(text, str):
        return text
    try:
        return text.removeprefix(BOM_UTF8).decode()  # as the codec `utf-8-sig`, which is not written in C
    except UnicodeDecodeError as error:
        raise Malformed(f"expected UTF-8, got something else at byte {error.start}", "character") from error


def _has_more_values(text: str, most: int) -> bool:
    """Return whether a text may hold more values: each has a comma or an opening bracket, outside of strings."""
    if text.count(",") + text.count("[") + text.count("{") < most:
        return False
    count = strings = 0
    for part in _PART.finditer(text):
        if text[part.start()] == '"':
            strings += 1  # one between two separators at most, but for names
        else:
            count += 1
        if count >= most or strings > 2 * most:
            return True
    return False


def _parse(text: str, strictness: Strictness, deepest: int) -> Any:  # Any: JSON
    try:
        return _decoder(strictness).decode(text)
    except (ValueError, RecursionError) as error:
        raise _explain(error, text, 0, deepest) from error


def _explain(error: Exception, text: str, at: int, deepest: int) -> Malformed:
    match error:
        case Malformed():
            return error
        case json.JSONDecodeError():
            return Malformed(f"{error.msg}{{where}}", "syntax", error.pos, text)
        case RecursionError():
            return _too_deep(text, at, deepest)
        case _:
            return Malformed("expected an integer of at most 4300 digits, got a longer one", "digits")


def _is_too_deep(text: str, value: Any, deepest: int) -> bool:  # Any: JSON
    """Return whether the value of this text has more levels; most texts have too few brackets for that."""
    if len(text) <= deepest or text.count("[") + text.count("{") <= deepest:
        return False
    quoted = text.encode("utf-8", "surrogatepass").replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    brackets = b"".join(quoted[::2]).translate(None, _NO_BRACKETS)
    for _ in range(_PASSES):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")  # one level, or two
    return (2 * _PASSES + len(brackets) > deepest) and _is_deeper(value, deepest)


def _check_whole(text: str, value: Any) -> None:  # Any: JSON
    """Raise Malformed if the value of this text holds half a character."""
    if ("\\u" in text or not text.isascii()) and _HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = "expected whole characters, got half of a surrogate pair such as \\ud800"
            raise Malformed(half, "character") from error


def _is_deeper(value: Any, deepest: int) -> bool:  # Any: JSON, TOML
    level: list[Any] = [value] if isinstance(value, list | dict) else []
    for _ in range(deepest):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | dict)
        ]
    return bool(level)


def _too_deep(text: str, at: int, deepest: int) -> Malformed:
    place = next((place for place, depth in _depths(text, at) if depth > deepest), 0)
    return Malformed(f"expected at most {deepest} levels, got more{{where}}", "depth", place, text)


def _depths(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield every opening bracket outside of strings, with the number of brackets open then."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] in "[{":
            depth += 1
            yield token.start(), depth
        elif token[0] in "]}":
            depth -= 1


@cache
def _decoder(strictness: Strictness) -> json.JSONDecoder:
    hooks: dict[str, Any] = {"object_pairs_hook": _once} if strictness.unique else {}
    hooks |= {"parse_constant": _no_constant} if strictness.constants else {}
    hooks |= {"parse_float": _finite} if strictness.finite else {}
    hooks |= {} if strictness.numbers else dict.fromkeys(("parse_float", "parse_int", "parse_constant"), str)
    return json.JSONDecoder(strict=not strictness.bare, **hooks)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value] # `add` gives None
        raise Malformed(f"expected each key once, got `{double[:60]}` twice", "key")
    return data


def _no_constant(name: str) -> NoReturn:
    raise Malformed(f"expected a finite number, got {name}", "number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Malformed(f"expected a finite number, got {text[:40]}", "number")
    return value
