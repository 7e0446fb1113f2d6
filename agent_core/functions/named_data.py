"""Files in base64 within a result: a model reads what they are and their size, not megabytes of letters."""

import re
from typing import Final

_MIN_CHARS: Final = 400  # shorter ones are cheap, and may be meant to be read
_LETTERS: Final = r"(?:[A-Za-z0-9+/_-]|\\[nr])"  # in JSON, where lines of them end with an escape
_ADDRESS: Final = re.compile(
    rf"data:([\w.+-]+/[\w.+-]+)(?:;[\w.=+-]+)*?;base64,({_LETTERS}{{{_MIN_CHARS},}}+=*)"
)
_BEGINNINGS: Final = {  # of the bytes that files of these kinds begin with
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp or audio/wav",
    "JVBERi0": "application/pdf",
    "UEsDB": "application/zip",
    "H4sI": "application/gzip",
}
_FILE: Final = re.compile(
    rf"(?<![A-Za-z0-9+/=])({'|'.join(map(re.escape, _BEGINNINGS))})({_LETTERS}{{{_MIN_CHARS},}}+=*)"
)


def name_data(text: str) -> str:
    """Return a text with the files in it that are written in base64 replaced by what they are."""
    if len(text) < _MIN_CHARS:
        return text
    text = _ADDRESS.sub(lambda match: _name_of(match[1], match[2]), text)
    return _FILE.sub(lambda match: _name_of(_BEGINNINGS[match[1]], match[1] + match[2]), text)


def _name_of(kind: str, letters: str) -> str:
    size = len(letters.replace("\\n", "").replace("\\r", "").rstrip("=")) * 3 // 4
    return f"[{kind} of {size:,} bytes in base64, which is not shown]"
