"""Texts that came out of a worker, made safe to show: one line, no control characters, capped, fenced.

A worker can say anything; what it says is quoted as data, so that a reader cannot take it for our words.
"""

LIMIT_CHARS = 300


def fence(text: str, limit_chars: int = LIMIT_CHARS) -> str:
    """The text between backticks: control characters escaped, backticks replaced, cut at the limit."""
    shown = "".join(_visible(character) for character in text[: limit_chars + 1])
    if len(text) > limit_chars:
        shown = shown[:limit_chars] + "…"
    return f"`{shown}`"


def _visible(character: str) -> str:
    if character == "`":
        return "'"
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
