"""A fix of the read stage: characters that a source cannot contain become escapes in its strings.

Joiners come with emoji and with many scripts, and much else with pasted text. The strings keep their values.
"""

import ast
import re
import tokenize
from bisect import bisect_left
from collections.abc import Iterator

from sandbox.wire.lines import lines_of, reader_of

from agent_core.base.characters import escaped, stray_characters
from ..tree import parse

_STRINGS = frozenset({tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)})
_RAW = re.compile(r"[A-Za-z]*[rR]")


def write_escapes(text: str) -> str:
    """Return the text with escapes in its strings; unchanged if it would compute anything else."""
    strays = stray_characters(text)
    before = parse(text) if strays else None
    if not isinstance(before, ast.Module):
        return text
    pieces = list(text)
    for start, end in _strings(text):
        for at in strays[bisect_left(strays, start) : bisect_left(strays, end)]:
            pieces[at] = escaped(text[at])
    written = "".join(pieces)
    after = parse(written)
    return written if isinstance(after, ast.Module) and ast.dump(after) == ast.dump(before) else text


def _strings(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the strings that take escapes begin and end."""
    starts = [0]
    for line in lines_of(text):
        starts.append(starts[-1] + len(line))
    try:
        for token in tokenize.generate_tokens(reader_of(text)):
            if token.type in _STRINGS and not _RAW.match(token.string):
                yield starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]
    except (tokenize.TokenError, SyntaxError):
        return
