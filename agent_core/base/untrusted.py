"""Sanitizing of text from agent-written code or a model, for display.

It may contain escape sequences for a terminal, instructions for a model, or megabytes. Every control, direction mark
and invisible character except newline and tab is escaped, so that no text acts on a screen or hides part of itself;
text for a model is fenced; length is limited.
"""

import json
import re
import unicodedata
from collections.abc import Callable

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\ufff9-\ufffb\ud800-\udfff"
"""The inside of a character class: C0 except tab and newline, DEL and C1, annotation marks, lone surrogates."""

# Soft hyphen, direction marks and overrides, fillers and shapeless blanks, invisible operators, the byte-order mark,
# controls of music, shorthand and hieroglyphs, and carriers of hidden text: tags and variation selectors. Characters
# that scripts and emoji need stay: joiners, U+FE0E and U+FE0F.
UNSEEN = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufff8\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""The same for characters that are invisible to people but that a model reads."""

# Combining marks on one letter: real writing has fewer, and a flood of them covers other lines.
_MOST_MARKS = 5
_MARK = (
    "[^\\w\\s\x00-\u02ff\u2000-\u200b\u200e-\u20cf\u2100-\u2bff\u3000-\u3029\u3030-\u303f"
    "\uff00-\uffef\U0001f000-\U0001faff]"
)
_FLOOD = re.compile(f"({_MARK}{{{_MOST_MARKS}}})({_MARK}+)")
_ACTING = re.compile(f"[{CONTROLS}{UNSEEN}]")


def visible(text: str) -> str:
    """Return the text in printable form: newlines and tabs stay, other control and invisible characters are escaped."""
    text = text.replace("\r\n", "\n")
    shown = text.translate(_ESCAPES) if _ACTING.search(text) else text
    return shown if shown.isascii() else _FLOOD.sub(_without_flood, shown)


def in_json(document: str) -> str:
    """Return a JSON document with the same characters as JSON escapes: same meaning, no effect on a terminal."""
    return document.translate(_JSON_ESCAPES) if _ACTING.search(document) else document


def one_line(text: str, limit_chars: int = 200) -> str:
    """Return the text on one line, cut at the limit, for compact lists, calls and answers."""
    shown = visible(text[: limit_chars * 2].strip()).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= limit_chars else shown[: limit_chars - 1] + "…"


def whole_line(text: str) -> str:
    """Return the complete text on one line, for data that the user bases a decision on."""
    return visible(text.strip()).replace("\n", "\\n").replace("\t", "\\t")


def fence(text: str, limit_chars: int = 400) -> str:
    """Return one line between backquotes, which the text itself cannot close."""
    return f"`{one_line(text, limit_chars).replace('`', chr(39))}`"


def from_difference(text: str, other: str, limit_chars: int) -> str:
    """Return a text, and of one that does not fit, the part that begins shortly before its difference to another."""
    if len(text) <= limit_chars:
        return text
    same = next(
        (at for at, (one, two) in enumerate(zip(text, other, strict=False)) if one != two),
        len(other),
    )
    begin = max(min(same - limit_chars // 3, len(text) - limit_chars + 1), 0)
    return f"…{text[begin:]}" if begin else text


def block(text: str, limit_chars: int) -> str:
    """Return several lines in a fence of three backquotes, which the text itself cannot close."""
    inside = shorten(visible(text.rstrip()), limit_chars).replace("```", "'''")
    return f"```\n{inside}\n```"


def shorten(text: str, limit_chars: int) -> str:
    """Return the text, or its two ends around a line that says how many characters are left out."""
    if len(text) <= limit_chars:
        return text
    head, tail = text[: limit_chars * 2 // 3], text[len(text) - limit_chars // 3 :]
    return f"{head}\n… {len(text) - len(head) - len(tail):,} characters left out …\n{tail}"


def _without_flood(match: re.Match[str]) -> str:
    if not any(unicodedata.category(char) in ("Mn", "Me") for char in match[1]):
        return match[0]
    return match[1] + match[2].encode("unicode_escape").decode("ascii")


class _Escapes(dict[int, str]):
    """A cache of escapes per character: a text may consist of a million control characters."""

    def __init__(self, escape: Callable[[str], str]) -> None:
        self._escape = escape

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = self._escape(character) if _ACTING.match(character) else character
        return self[code]


def escaped(character: str) -> str:
    """Return the character as an escape of a Python string."""
    code = ord(character)
    if code < 0x100:
        return {0x0D: "\\r"}.get(code, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ESCAPES = _Escapes(escaped)
_JSON_ESCAPES = _Escapes(
    lambda character: json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"
)
