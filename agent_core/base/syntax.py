"""Source text: its parsing, and the characters that it may contain, so that it reads as it runs.

Python is parsed one text at a time: CPython 3.11 counts the depth of a tree for all threads together, and two
concurrent parses can raise `SystemError: AST constructor recursion depth mismatch` (python/cpython#106905).

Rejected in a source, unless escaped in a string, and in the names of files and grants: line ends that Python does not
recognize, control, format and bidirectional characters, invisible blanks, variation selectors that follow no symbol,
private-use characters, and lone surrogates. Letters of every script, signs and emoji are plain text.
"""

import ast
import re
import threading
import tokenize
import unicodedata
import warnings
from collections.abc import Iterator
from types import MappingProxyType
from typing import Literal, overload

from sandbox.wire.lines import bare_lines, first_lines, place_of, reader_of

from .records import dataclass
from .untrusted import CONTROLS, UNSEEN

_ONE_AT_A_TIME = threading.Lock()


@overload
def parse(text: str, filename: str = ..., mode: Literal["exec"] = ...) -> ast.Module: ...
@overload
def parse(text: str, filename: str = ..., *, mode: Literal["eval"]) -> ast.Expression: ...
@overload
def parse(text: str, filename: str, mode: str) -> ast.Module | ast.Expression: ...
def parse(text: str, filename: str = "<unknown>", mode: str = "exec") -> ast.AST:
    """Return the tree of a text, as `ast.parse` does, without printing warnings about bad escapes.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not Python, or nested too deep.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, filename, mode)


_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_UTF8 = frozenset({"utf-8", "utf8", "u8", "utf", "utf8-ucs2", "utf8-ucs4", "cp65001", "utf-8-sig"})
_ASCII = frozenset({"ascii", "us-ascii", "646", "ansi-x3.4-1968", "iso646-us"})

_BREAKS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_TURNS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_JOINERS = "\u200c\u200d"
# Format characters with a visible shape, such as signs before Arabic and Syriac numbers.
_SHAPED = "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f"
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_NEVER = "\ufdd0-\ufdef" + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
_STRAY = re.compile(f"(?!\r)[{CONTROLS}{UNSEEN}{_JOINERS}{_SHAPED}{_SELECTORS}{_PRIVATE}{_NEVER}]")
_STRAY_ASCII = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SYMBOLS = frozenset("‼⁉〰ℹ")  # emoji whose Unicode category is not a symbol
_WHY = (
    (_BREAKS, "ends a line for editors and not for Python"),
    (CONTROLS, "is a control character"),
    (_TURNS, "turns the direction of what is read"),
    (_PRIVATE, "looks different on every machine"),
    (_NEVER, "is no character"),
    ("", "cannot be seen, or changes what stands next to it"),
)
_CONTROL_NAMES = MappingProxyType(
    {
        0x00: "NULL",
        0x07: "BELL",
        0x08: "BACKSPACE",
        0x09: "TAB",
        0x0A: "LINE FEED",
        0x0B: "VERTICAL TAB",
        0x0C: "FORM FEED",
        0x0D: "CARRIAGE RETURN",
        0x1A: "SUBSTITUTE",
        0x1B: "ESCAPE",
        0x1C: "FILE SEPARATOR",
        0x1D: "GROUP SEPARATOR",
        0x1E: "RECORD SEPARATOR",
        0x1F: "UNIT SEPARATOR",
        0x7F: "DELETE",
        0x85: "NEXT LINE",
    }
)
_KINDS = MappingProxyType({"Cc": "CONTROL", "Cs": "half of a character (a lone surrogate)", "Co": "for private use"})
_NAME = re.compile(r"[^\x00-/:-@\[-^`{-\x7f\s]+")
_BLANKED = frozenset({tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.COMMENT)})


FLAWS = frozenset({"hidden-characters", "nul-byte", "encoding", "name-spelling"})
"""The codes of all flaws."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A reason why a text does not read as it runs: the code, message, fix and place of the problem."""

    code: str
    description: str
    fix: str
    line: int
    column: int


def flaw_of(text: str) -> Flaw | None:
    """Return the first character that a source must not contain, or an encoding other than UTF-8."""
    if strays := stray_characters(text):
        at, char = strays[0], text[strays[0]]
        why = next(why for kind, why in _WHY if not kind or re.match(f"[{kind}]", char))
        description = f"the text holds {named(char)}, which {why}"
        more = f", and {len(strays) - 1} more such characters" if len(strays) > 1 else ""
        fix = f'remove it; in a string that needs it, write it as "{escaped(char)}"'
        return Flaw("hidden-characters" if char != "\0" else "nul-byte", description + more, fix, *place_of(text, at))
    for number, line in enumerate(first_lines(text, 2) if "coding" in text else [], 1):
        if cookie := _COOKIE.match(line):
            name = cookie[1].lower().replace("_", "-")
            if name in _UTF8 or name.startswith("utf-8-") or (name in _ASCII and text.isascii()):
                return None
            description = f"the file says that its encoding is {cookie[1]}, but only UTF-8 is read"
            fix = "save it as UTF-8 and remove that comment"
            return Flaw("encoding", description, fix, number, cookie.start(1) + 1)
        if line.strip() and not line.lstrip().startswith("#"):
            return None  # Python reads no further
    return None


def stray_characters(text: str) -> list[int]:
    """Return the positions of the characters that a source cannot contain unescaped."""
    if text.isascii():
        if text.replace("\n", "").isprintable():  # nearly every source; several times as fast as a pattern
            return []
        return [match.start() for match in _STRAY_ASCII.finditer(text)]
    strays = []
    for at in (match.start() for match in _STRAY.finditer(text)):
        # After an emoji, a variation selector is plain text.
        symbol = text[at - 1] if at and text[at] in "\ufe0e\ufe0f" else ""
        if symbol not in _SYMBOLS and not (symbol > "\x7f" and unicodedata.category(symbol) in ("So", "Sm")):
            strays.append(at)
    return strays


def odd_in_name(text: str) -> str:
    """Return the first character that no file name or grant may contain, with its place; "" if there is none.

    Names are stricter than sources: U+0020 is their only blank, and variation selectors are forbidden.
    """
    if _is_plain(text):
        return ""
    at = next((at for at, char in enumerate(text) if _is_odd(char)), None)
    return "" if at is None else f"{named(text[at])} at column {at + 1}"


def name_shown(text: str) -> str:
    """Return a name with its forbidden characters written as escapes."""
    if _is_plain(text):
        return text
    return "".join(escaped(char) if _is_odd(char) else char for char in text)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _is_odd(char: str) -> bool:
    return not char.isprintable() or _STRAY.match(char) is not None


def named(char: str) -> str:
    """Return a character's code point and name."""
    name = unicodedata.name(char, "") or _CONTROL_NAMES.get(ord(char), "")
    return f"U+{ord(char):04X} {name or _KINDS.get(unicodedata.category(char), 'without a name')}"


def escaped(text: str) -> str:
    """Return a text in ASCII, with other characters as Python escapes."""
    return text.encode("unicode_escape").decode("ascii")


def name_flaw_of(text: str, tree: ast.Module) -> Flaw | None:
    """Return the first name in a source that Python normalizes to a different one: it reads `ｏpen` as `open`."""
    if text.isascii():
        return None
    changed = {word for word in set(_NAME.findall(text)) if _normalized(word) != word}
    names = {part for name in _names_in(tree) for part in name.split(".")} if changed else set()
    changed = {word for word in changed if _normalized(word) in names}
    for number, line in enumerate(_code_lines(text) if changed else (), 1):
        for match in _NAME.finditer(line):
            if match[0] in changed:
                description = f"`{match[0]}` (spelled {match[0]!a}) is {_normalized(match[0])!a} to Python"
                return Flaw("name-spelling", description, f"write `{_normalized(match[0])}`", number, match.start() + 1)
    return None


def _normalized(word: str) -> str:
    """Return a name as Python reads it."""
    return unicodedata.normalize("NFKC", word)


def _names_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, str) and not isinstance(node, ast.Constant):
                yield value
            elif isinstance(value, list):
                yield from (item for item in value if isinstance(item, str))


def _code_lines(text: str) -> list[str]:
    """Return the lines with comments and strings blanked out; before Python 3.12 an f-string stays whole."""
    lines = bare_lines(text)
    spans = []
    try:
        for token in tokenize.generate_tokens(reader_of(text)):
            is_plain = token.type == tokenize.STRING and "f" not in token.string[: token.string.find(token.string[-1])]
            if is_plain or token.type in _BLANKED:
                spans.append((token.start, token.end))
    except (tokenize.TokenError, SyntaxError):
        return lines  # then comments and strings count too
    for (first, start), (last, end) in spans:
        for number in range(first, last + 1):
            line = lines[number - 1]
            low, high = start if number == first else 0, end if number == last else len(line)
            lines[number - 1] = line[:low] + " " * (high - low) + line[high:]
    return lines
