"""The calls in a reply that consists of calls: the readers, tried one after another."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .fenced import read_fence, split_fenced
from .forms import announces, forms
from .found import ParsedCall, Shown
from .objects import read_objects
from .python import read_python
from .tagged import read_tagged, split_tagged


@dataclass(frozen=True, slots=True)
class ReadText:
    """The result of reading a text: its lead-in, which stays text, and the calls after it."""

    lead_in: str
    calls: tuple[ParsedCall, ...]


def read_text(text: str, shown: Shown) -> ReadText | None:
    """Return the calls in the text; None if it is anything else, or names a function that is not shown."""
    if not shown or not text.strip():
        return None
    bare = read_objects(text, shown, marked=False) or read_python(text, shown)
    return ReadText("", bare) if bare else _tagged(text, shown) or _fenced(text, shown)


def _tagged(text: str, shown: Shown) -> ReadText | None:
    split = split_tagged(text)
    if split is None or not _is_short(split[0]) or forms().explains.search(split[0].strip()):
        return None
    return _all(split[0], [read_tagged(part, shown) for part in split[1]])


def _fenced(text: str, shown: Shown) -> ReadText | None:
    split = split_fenced(text)
    if split is None or not (_is_short(split[0]) and announces(split[0].strip())):
        return None
    alone = not split[0].strip()
    return _all(split[0], [read_fence(fence, shown, alone=alone) for fence in split[1]])


def _all(lead_in: str, parts: Sequence[tuple[ParsedCall, ...]]) -> ReadText | None:
    """Return the calls of all parts; None if any part is not calls."""
    return ReadText(lead_in.strip(), tuple(call for part in parts for call in part)) if parts and all(parts) else None


def _is_short(lead_in: str) -> bool:
    return len(lead_in.strip()) <= forms().lead_in_chars and not re.search(r"\n\s*\n\s*\S", lead_in.strip())
