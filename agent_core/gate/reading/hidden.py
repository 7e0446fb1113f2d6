"""Characters that nobody sees: with them a text reads otherwise than it runs, or says what only a machine reads.

Pure. Controls of writing direction, invisible format characters, fillers, tags and chains of variation selectors.
Joiners stay where they belong: between letters or signs beyond ASCII.
"""

import re
import unicodedata
from collections.abc import Iterator

from ..draft import Finding

CODE = "hidden-characters"
_JOINED = "(?<=[^\x00-\u02ff\u2000-\u206f])[\u200c\u200d](?=[^\x00-\u02ff\u2000-\u206f])"
_HIDDEN = re.compile(
    f"(?!{_JOINED})"
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]"
)


def hidden(text: str) -> Iterator[Finding]:
    """The first character of a text that nobody sees, and how many there are."""
    if text.isascii():
        return
    found = list(_HIDDEN.finditer(text))
    if found:
        at, char = found[0].start(), found[0].group()
        name = unicodedata.name(char, "a character without a name")
        more = f", and {len(found) - 1} more like it" if len(found) > 1 else ""
        what = f"the text holds a character that nobody sees: U+{ord(char):04X} {name}{more}"
        escape = char.encode("unicode_escape").decode()
        mend = f'take it out; in a string that needs it, write it as "{escape}"'
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        yield Finding(CODE, what, mend, line, column)
