"""The SQL and the texts of the tables as PostgreSQL takes them.

The tables speak the SQL that both databases read; the few functions that only SQLite has are defined in migration 0001.
PostgreSQL has no place for a NUL in a text: it travels as two characters, the first of which escapes itself, too.
"""

import re
from functools import lru_cache
from typing import Final

_MARK: Final = re.compile(r"\?(\d*)")
_ESCAPE, _ITSELF, _NUL = "\ufdd0", "\ufdd0\ufdd1", "\ufdd0\ufdd2"


@lru_cache(maxsize=512)
def translate(sql: str) -> str:
    """Return a statement with PostgreSQL's places for values and its name for integers of 64 bits."""
    highest = 0

    def place(mark: re.Match[str]) -> str:
        nonlocal highest
        number = int(mark[1]) if mark[1] else highest + 1
        highest = max(highest, number)
        return f"${number}"

    return _MARK.sub(place, sql.replace("as integer)", "as bigint)"))


def escape(value: object) -> object:
    """Return a value as the database keeps it."""
    if isinstance(value, str) and ("\0" in value or _ESCAPE in value):
        return value.replace(_ESCAPE, _ITSELF).replace("\0", _NUL)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [escape(text) for text in value]
    return value


def unescape(value: object) -> object:
    """Return a value as it was given."""
    if isinstance(value, str) and _ESCAPE in value:
        return value.replace(_NUL, "\0").replace(_ITSELF, _ESCAPE)
    return value
