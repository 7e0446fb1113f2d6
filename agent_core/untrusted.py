"""Text that agent-written code or a model produced, made fit to be shown.

It may hold escape sequences for a terminal, instructions for a model, or megabytes: control
characters are shown escaped, one-line text is fenced, and length is capped.
"""


def fence(text: str, limit_chars: int = 400) -> str:
    """One line in backquotes: control characters escaped, backquotes kept from closing the fence."""
    escaped = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return "`" + shorten(escaped.replace("`", "'"), limit_chars).replace("\n", " ") + "`"


def block(text: str, limit_chars: int) -> str:
    """Many lines in a fence of three backquotes."""
    inside = shorten(visible(text.rstrip()), limit_chars).replace("```", "'''")
    return f"```\n{inside}\n```"


def visible(text: str) -> str:
    """Many lines as they are, but control characters other than tab and newline escaped."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text
    )


def shorten(text: str, limit_chars: int) -> str:
    """The text, or its two ends with a line that says how much is left out between them."""
    if len(text) <= limit_chars:
        return text
    head, tail = text[: limit_chars * 2 // 3], text[len(text) - limit_chars // 3 :]
    return f"{head}\n… {len(text) - len(head) - len(tail):,} characters left out …\n{tail}"
