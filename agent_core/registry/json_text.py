"""Texts that are nearly JSON: as Python or JavaScript writes it, with comments, or with a comma or bracket too many.

Only what has one reading becomes JSON; whether the result is JSON, its reader says.
"""

import re
from typing import Final

from sandbox.wire.foreign import with_plain_escapes

# Strings first, so that nothing inside one is touched; what is never closed is read once, to its end.
_TOKEN: Final = re.compile(
    r"""
    (?P<double>"(?:[^"\\]++|\\.)*+"?)
    |(?P<single>'(?:[^'\\\n]++|\\.)*+'?)
    |(?P<curly>“[^“”"\\]*+”?)
    |(?P<comment>(?://|\#)[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?)
    |(?P<key>[^\W\d][\w-]*+(?=\s*+:))
    |(?P<word>\w++)
    """,
    re.DOTALL | re.VERBOSE,
)
_TRAILING_COMMA: Final = re.compile(r'("(?:[^"\\]++|\\.)*+"?)|,(?=\s*+[}\]])', re.DOTALL)
_PART: Final = re.compile(r'\\x(?P<code>[0-9a-fA-F]{2})|\\(?P<escaped>.)|"', re.DOTALL)
_WORDS: Final = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_NO_ESCAPES_OF_JSON: Final = frozenset("avNU01234567\n")


def nearly_json(text: str) -> str:
    """Return a text as JSON, if it is written as Python or JavaScript writes objects; else something like it."""
    text = _TOKEN.sub(_as_json, text)
    return with_plain_escapes(_TRAILING_COMMA.sub(lambda match: match[1] or "", text)).strip()


def _as_json(match: re.Match[str]) -> str:
    token = match[0]
    match match.lastgroup:
        case "single" if len(token) > 1 and token.endswith("'"):
            return _string(token)
        case "curly" if token.endswith("”"):
            return f'"{token[1:-1]}"'
        case "comment":
            return " "
        case "key":
            return f'"{token}"'
        case "word":
            return _WORDS.get(token, token)
    return token


def _string(token: str) -> str:
    """Return a string in single quotes as JSON writes it; the same if it has escapes that JSON does not know."""
    if any(part["escaped"] in _NO_ESCAPES_OF_JSON for part in _PART.finditer(token) if part["escaped"]):
        return token
    return f'"{_PART.sub(_part, token[1:-1])}"'


def _part(part: re.Match[str]) -> str:
    if part["code"]:
        return f"\\u00{part['code']}"
    if part["escaped"]:
        return "'" if part["escaped"] == "'" else part[0]
    return '\\"'
