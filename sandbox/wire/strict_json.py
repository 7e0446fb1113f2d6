"""The only parser of JSON and TOML in this program: untrusted text in, plain values within bounds out.

Every defect (too long, too deep, an infinite number, a duplicate key, half a surrogate pair) raises one error,
`Malformed`, which says what was expected, what was found, and where. Depth is bounded here, so code that walks,
compares, copies or writes a parsed value needs no further bound.
"""

import json
import math
import re
from codecs import BOM_UTF8
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, NoReturn, TypeAlias

from ..errors import SandboxError
from .lines import lines_of

DEEPEST: Final = 64
DEEPEST_ROW: Final = (
    500  # for rows that this program wrote: values of calls have up to 202 levels, inside of others
)
MOST: Final = 64 << 20  # characters or bytes
_MOST_TOML: Final = 256 << 10
_MOST_OF_TOML: Final = 20_000  # keys and values
MAX_VALUES: Final = 50_000
"""The values of one message of a stranger: parsing them is one step, which all threads wait for."""
OF_A_FILE: Final = 1_000  # keys and values, enough for a file that people write
Code: TypeAlias = Literal["size", "syntax", "depth", "digits", "number", "key", "character"]

_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_BEGINNINGS: Final = (b"[", b"{", b",")
_PIECE: Final = 32 << 10
_MARKS: Final = "=,[{."  # each key, value and part of a key has one of them
_PASSES: Final = 8
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_IS_ESCAPE: Final = re.compile(r"""\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})""")
_NAME: Final = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_NOT_PLAIN: Final = (
    re.compile(  # no `*+` around a lookahead: it ends too early before Python 3.11.5
        r'"""(?:[^"\\]++|\\.|"(?!""))*(?:"""|\Z)|"(?:[^"\\\n]++|\\.)*+"?'
        r"|'''(?:[^']++|'(?!''))*(?:'''|\Z)|'[^'\n]*+'?|#[^\n]*+",
        re.DOTALL,
    )
)
_KEY: Final = re.compile(
    rf"(?:^[ \t]*+(?:\[++[ \t]*+)?|[{{,][ \t]*+)({_NAME})[ \t]*+[=\]]", re.MULTILINE
)
_LONG_KEY: Final = re.compile(rf"(?<![\w.-]){_NAME}(?:[ \t]*+\.[ \t]*+{_NAME}){{{DEEPEST},}}+")


class Malformed(SandboxError, ValueError):
    """A malformed text. `code` is the kind of defect; the message says what was expected and where."""

    def __init__(
        self, message: str, code: Code = "syntax", position: int = 0, text: str | None = None
    ) -> None:
        self.code = code
        self.position = position
        content = text or ""
        self.line = content.count("\n", 0, position) + 1
        self.column = position - content.rfind("\n", 0, position)
        where = "" if text is None else f" at line {self.line} column {self.column}"
        super().__init__(message.replace("{where}", where))


@dataclass(frozen=True, slots=True, eq=False)
class Strictness:
    """The strictness of a parser.

    `unique`: reject duplicate keys. `constants`: reject NaN and Infinity. `finite`: reject numbers that overflow to
    infinity. `whole`: reject half a surrogate pair; otherwise replace it. `halves`: keep it, as the next text may have
    the other half. `bare`: allow unescaped control characters in strings. `numbers`: parse numbers; otherwise keep them
    as text.
    """

    unique: bool = True
    constants: bool = True
    finite: bool = True
    whole: bool = True
    halves: bool = False
    bare: bool = False
    numbers: bool = True


STRICT: Final = Strictness()
MESSAGE: Final = Strictness(unique=False)  # its shape is validated next
FRAME: Final = Strictness(
    unique=False, finite=False
)  # its numbers are validated, too, and parsing must be fast
# For text from an endpoint or a model, and for our own rows.
LOOSE: Final = Strictness(unique=False, constants=False, finite=False, whole=False, bare=True)
PART: Final = Strictness(
    unique=False, constants=False, finite=False, whole=False, halves=True, bare=True
)
"""For one event of a stream, which may end in the middle of a character."""


def read_json(
    text: str | bytes,
    strictness: Strictness = STRICT,
    *,
    most: int = MOST,
    deepest: int = DEEPEST,
    most_values: int = 0,
) -> Any:  # Any: JSON
    """Parse a JSON text; `most_values`, if not 0, limits the number of values, checked before any is built.

    Raises:
        Malformed: the text is invalid or exceeds a limit.
    """
    text = _text(text, most)
    if (
        most_values
        and len(text) > most_values
        and has_more_values(text.encode("utf-8", "surrogatepass"), most_values)
    ):
        raise Malformed(f"expected at most {most_values:,} values, got more", "size")
    try:
        value = _decoder(strictness).decode(text)
    except (ValueError, RecursionError) as error:
        raise _explain(error, text, 0, deepest) from error
    if _is_too_deep(text, value, deepest):
        raise _too_deep(text, 0, deepest)
    return _whole(text, value, strictness)


def read_next(
    text: str,
    at: int,
    strictness: Strictness = STRICT,
    *,
    deepest: int = DEEPEST,
    most_values: int = 0,
) -> tuple[Any, int]:  # Any: JSON
    """Parse the JSON value that begins at an index, and return it with the index of its end.

    `most_values`, if not 0, limits the number of values in the whole rest of the text.

    Raises:
        Malformed: no valid value begins there.
    """
    if (
        most_values
        and len(text) - at > most_values
        and has_more_values(text[at:].encode("utf-8", "surrogatepass"), most_values)
    ):
        raise Malformed(f"expected at most {most_values:,} values, got more", "size")
    try:
        value, end = _decoder(strictness).raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        raise _explain(error, text, at, deepest) from error
    if _is_too_deep(text[at:end], value, deepest):
        raise _too_deep(text, at, deepest)
    return _whole(text[at:end], value, strictness), end


def has_more_values(text: bytes, most: int) -> bool:
    """Check whether JSON may hold more than `most` values, by its separators outside strings, without parsing it.

    The text is scanned in pieces, so that other threads can run, and only until the limit is exceeded.
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
    r"""Return JSON with invalid escapes taken literally, such as the `\d` of a regular expression."""
    return _ESCAPE.sub(
        lambda match: match[0] if _IS_ESCAPE.fullmatch(match[0]) else f"\\{match[0]}", text
    )


def read_toml(
    text: str | bytes,
    *,
    most: int = _MOST_TOML,
    deepest: int = DEEPEST,
    values: int = _MOST_OF_TOML,
) -> dict[str, Any]:  # Any: TOML
    """Parse a TOML text; `values` limits the keys and values, counted before parsing.

    Raises:
        Malformed: the text is invalid or exceeds a limit.
    """
    import tomllib  # noqa: PLC0415  (no worker reads TOML, and most starts of the prompt do not)

    text = _text(text, most)
    if sum(map(text.count, _MARKS)) > values and count_of_toml(text) > values:
        raise Malformed(f"expected at most {values:,} keys and values, got more", "size")
    start = 0
    for line in lines_of(
        text
    ):  # the parser takes quadratic time for a key of many parts, which is on one line
        if line.count(".") >= DEEPEST and (match := _LONG_KEY.search(line)):
            place = start + match.start()
            raise Malformed(
                f"expected at most {deepest} parts of a key, got more{{where}}",
                "depth",
                place,
                text,
            )
        start += len(line)
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Malformed(str(error)) from error
    except RecursionError as error:
        raise Malformed(f"expected at most {deepest} levels, got more", "depth") from error
    except ValueError as error:
        raise Malformed(
            "expected an integer of at most 4300 digits, got a longer one", "digits"
        ) from error
    if _is_deeper(value, deepest):
        raise Malformed(f"expected at most {deepest} levels, got more", "depth")
    return value


def count_of_toml(text: str) -> int:
    """Return an upper bound of the number of keys and values of a TOML text, ignoring strings and comments."""
    return sum(map(_NOT_PLAIN.sub("", text).count, _MARKS))


def lines_of_keys(text: str) -> dict[str, int]:
    """Return the line on which each key of a TOML text first occurs, counted from 1."""
    lines: dict[str, int] = {}
    number, counted = 1, 0
    for match in _KEY.finditer(text):
        number, counted = number + text.count("\n", counted, match.start(1)), match.start(1)
        lines.setdefault(match[1].strip("\"'"), number)
    return lines


def _text(text: str | bytes, most: int) -> str:
    if len(text) > most:
        unit = "characters" if isinstance(text, str) else "bytes"
        raise Malformed(f"expected at most {most} {unit}, got {len(text)}", "size")
    if isinstance(text, str):
        return text
    try:
        return text.removeprefix(
            BOM_UTF8
        ).decode()  # faster than the codec `utf-8-sig`, which is pure Python
    except UnicodeDecodeError as error:
        raise Malformed(
            f"expected UTF-8, got something else at byte {error.start}", "character"
        ) from error


def _explain(error: Exception, text: str, at: int, deepest: int) -> Malformed:
    match error:
        case Malformed():
            return error
        case json.JSONDecodeError():
            return Malformed(f"{error.msg}{{where}}", "syntax", error.pos, text)
        case RecursionError():
            return _too_deep(text, at, deepest)
        case _:
            return Malformed(
                "expected an integer of at most 4300 digits, got a longer one", "digits"
            )


def _is_too_deep(text: str, value: Any, deepest: int) -> bool:  # Any: JSON
    """Return whether the value of this text has more than `deepest` levels. Most texts have too few brackets."""
    if len(text) <= deepest or text.count("[") + text.count("{") <= deepest:
        return False
    quoted = (
        text.encode("utf-8", "surrogatepass").replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    )
    brackets = b"".join(quoted[::2]).translate(None, _NO_BRACKETS)
    for _ in range(_PASSES):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")  # one level, or two
    return (2 * _PASSES + len(brackets) > deepest) and _is_deeper(value, deepest)


def _whole(text: str, value: Any, strictness: Strictness) -> Any:  # Any: JSON
    """Return the value of this text in whole characters. Raise Malformed if it must be whole already."""
    if strictness.halves or not (("\\u" in text or not text.isascii()) and _HALF.search(text)):
        return value
    if strictness.whole and has_halves(value):
        raise Malformed(
            "expected whole characters, got half of a surrogate pair such as \\ud800", "character"
        )
    return whole_value(value)


def whole_characters(text: str) -> str:
    """Return the text in whole characters: two halves of a surrogate pair are joined, and U+FFFD replaces one alone.

    A model may write half a character and a file name may be no text, but no database stores them.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def whole_value(value: Any) -> Any:  # Any: JSON
    """Return the value with all its texts and keys in whole characters; the same object if they are."""
    return _whole_value(value) if has_halves(value) else value


def has_halves(value: Any) -> bool:  # Any: JSON
    """Return whether a text or key in the value holds half a surrogate pair."""
    with suppress(ValueError):  # of a number with too many digits
        if "\\ud" not in repr(
            value
        ):  # it escapes each half, and takes a tenth of the time for each entry of a journal
            return False
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            if not part.isascii() and whole_characters(part) is not part:
                return True
        elif isinstance(part, dict):
            waiting += part
            waiting += part.values()
        elif isinstance(part, (list, tuple)):
            waiting += part
    return False


def _whole_value(value: Any) -> Any:  # Any: JSON
    match value:
        case str():
            return whole_characters(value)
        case dict():
            return {_whole_value(key): _whole_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_whole_value(item) for item in value]
        case _:
            return value


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
    place = depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] in "[{":
            depth += 1
            if depth > deepest:
                place = token.start()
                break
        elif token[0] in "]}":
            depth -= 1
    return Malformed(f"expected at most {deepest} levels, got more{{where}}", "depth", place, text)


@cache
def _decoder(strictness: Strictness) -> json.JSONDecoder:
    hooks: dict[str, Any] = {"object_pairs_hook": _once} if strictness.unique else {}
    hooks |= {"parse_constant": _no_constant} if strictness.constants else {}
    hooks |= {"parse_float": _finite} if strictness.finite else {}
    hooks |= (
        {}
        if strictness.numbers
        else dict.fromkeys(("parse_float", "parse_int", "parse_constant"), str)
    )
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
