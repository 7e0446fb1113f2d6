"""Calls that a model writes as text: one JSON object, bare or in a fence, that names a shown function.

Strict on purpose: the whole text is that object. Since text is shown while it comes, what may become such
a call is held back until it is known.
"""

import json
import re
from collections.abc import Collection
from typing import Final

_OPENINGS: Final = ('{"name":', '{"arguments":')
_FENCED: Final = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL | re.IGNORECASE)


class Holder:
    """Lets text through as soon as it cannot be a call any more."""

    def __init__(self, shown: Collection[str]) -> None:
        self._held = ""
        self._open = not shown

    def feed(self, text: str) -> str:
        """What can be shown now."""
        if self._open:
            return text
        self._held += text
        self._open = not may_open_call(self._held)
        return self.rest() if self._open else ""

    def rest(self) -> str:
        """What is still held, when no more comes."""
        held, self._held = self._held, ""
        return held


def may_open_call(text: str) -> bool:
    """Whether a call may begin with this text."""
    start = re.sub(r"\s", "", text[:200])
    if "```".startswith(start):
        return True
    start = start.removeprefix("```")
    if "json{".startswith(start.lower()):
        return True
    start = start[4:] if start[:4].lower() == "json" else start
    return any(opening.startswith(start) or start.startswith(opening) for opening in _OPENINGS)


def read_call(text: str, shown: Collection[str]) -> tuple[str, str] | None:
    """The name and the arguments' JSON text of the call that the whole text is, or None."""
    fenced = _FENCED.fullmatch(text.strip())
    try:
        value = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.keys() != {"name", "arguments"}:
        return None
    if value["name"] not in shown or not isinstance(value["arguments"], dict):
        return None
    return value["name"], json.dumps(value["arguments"], ensure_ascii=False)
