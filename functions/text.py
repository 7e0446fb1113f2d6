"""Text, in files or as text: count it, tidy it, take pieces out of it."""

import os
import re
import textwrap
import unicodedata
from collections import Counter

# Latin letters that are no other letter with an accent.
_SPELLED = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h", "ŋ": "n"}
)


def count_text(text: str) -> dict[str, int]:
    """Count the characters, words, lines and sentences of a text file or text.

    Args:
        text: The path of a .txt or .md file, or the text to count.

    Returns:
        The counts under "characters", "words", "lines" and "sentences".

    Examples:
        >>> count_text("One line. And\\nanother!")
        {'characters': 22, 'words': 4, 'lines': 2, 'sentences': 2}
        >>> count_text("")
        {'characters': 0, 'words': 0, 'lines': 0, 'sentences': 0}
    """
    text = _content(text)
    return {
        "characters": len(text),
        "words": len(text.split()),
        "lines": len(text.splitlines()),
        "sentences": len(re.findall(r"[^\s.!?][^.!?]*[.!?]*", text)),
    }


def most_frequent_words(text: str, count: int = 10, ignore: list[str] | None = None) -> list[tuple[str, int]]:
    """Find the words that a text file or text uses most, regardless of case.

    Args:
        text: The path of a .txt or .md file, or the text to read.
        count: How many words to give.
        ignore: Words to leave out, such as "the".

    Returns:
        Pairs of word and number of uses, the most used first; equal ones in the order of the text.

    Examples:
        >>> most_frequent_words("The cat saw the other cat", count=2)
        [('the', 2), ('cat', 2)]
        >>> most_frequent_words("The cat saw the other cat", count=2, ignore=["the"])
        [('cat', 2), ('saw', 1)]
    """
    left_out = {word.casefold() for word in ignore or []}
    words = re.findall(r"\w+(?:['’]\w+)*", _content(text).casefold())
    return Counter(word for word in words if word not in left_out).most_common(count)


def make_slug(text: str, separator: str = "-") -> str:
    """Turn a title into a plain name for a file or an address.

    Args:
        text: The title.
        separator: What stands between the words.

    Returns:
        ASCII letters and digits in lower case; accents are dropped, ß is ss, all else becomes the separator.

    Examples:
        >>> make_slug("Crème brûlée: a recipe!")
        'creme-brulee-a-recipe'
        >>> make_slug("Grüße aus Łódź, Ærø")
        'grusse-aus-lodz-aero'
        >>> make_slug("Version 2.0", separator="_")
        'version_2_0'
    """
    letters = unicodedata.normalize("NFKD", text.casefold().translate(_SPELLED))
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return separator.join(re.findall(r"[a-z0-9]+", plain))


def wrap_text(text: str, width: int = 80, indent: str = "") -> str:
    """Break the lines of a text at a width, one paragraph after another.

    Args:
        text: The text; empty lines separate its paragraphs.
        width: The longest line in characters, with its indent.
        indent: What each line begins with.

    Returns:
        The text with its lines broken between words.

    Examples:
        >>> wrap_text("one two three four", width=9)
        'one two\\nthree\\nfour'
        >>> wrap_text("a b\\n\\nc", width=20, indent="> ")
        '> a b\\n\\n> c'
    """
    paragraphs = re.split(r"\n\s*\n", text.strip())
    fill = textwrap.TextWrapper(width=width, initial_indent=indent, subsequent_indent=indent)
    return "\n\n".join(fill.fill(paragraph) for paragraph in paragraphs)


def extract_between(text: str, start: str, end: str) -> list[str]:
    """Collect every piece of a text file or text that stands between two marks.

    Args:
        text: The path of a .txt or .md file, or the text to search.
        start: The mark before a piece.
        end: The mark after a piece.

    Returns:
        The pieces in their order, without the marks.

    Examples:
        >>> extract_between("a [b] c [d]", "[", "]")
        ['b', 'd']
        >>> extract_between("nothing here", "<", ">")
        []
    """
    return re.findall(re.escape(start) + r"(.*?)" + re.escape(end), _content(text), flags=re.DOTALL)


def _content(text: str) -> str:
    is_path = "\n" not in text and text.lower().endswith((".txt", ".md"))
    if not is_path or (" " in text and not os.path.isabs(text) and not os.path.isfile(text)):
        return text  # a sentence may end in the name of a file
    with open(text, encoding="utf-8-sig") as file:
        return file.read()
