"""Long messages in parts: the part that is shown first, and the pages that `read_on` returns.

The full text is in storage under its entry's number, which is also its name here: `text-` and the number in hex.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from agent_core.base.errors import UsageError
from agent_core.base.messages import Answer, Assistant, Call, Message, Notice, System, User
from agent_core.storage import SaveText, TurnStore, content_hash
from sandbox.wire.strict_json import LOOSE, read_json

_NAME: Final = "text-"
_PAGED: Final = ("user", "notice", "assistant", "result")
_GENEROUS: Final = 2  # the model's own text is cut at twice a page: its replies are limited already
_AROUND: Final = 120

Payload = dict[str, Any]  # Any: JSON


def beginning(text: str, page_chars: int) -> str:
    """Return the beginning of a text that is shown at once."""
    return text if len(text) <= page_chars else f"{text[:page_chars]}\n[… {len(text):,} characters in all]"


def first_page(text: str, page_chars: int) -> tuple[Payload, tuple[SaveText, ...]]:
    """Return the payload of a text for an entry, and the write that stores the full text if it is longer than a page.

    A longer text is reduced to its first page and the hash of the full text.
    """
    if len(text) <= page_chars:
        return {"text": text}, ()
    whole = SaveText(text.encode("utf-8", "replace").decode())
    return {"text": text[:page_chars], "whole": content_hash(whole.text), "chars": len(text)}, (whole,)


def in_part(message: Message, seq: int, chars: int, page_chars: int) -> Message:
    """Return the message as it is shown to the model; `chars` is the full length if more is stored than it contains."""
    match message:
        case System():
            return message
        case Assistant(text, calls):
            most = page_chars * _GENEROUS
            if len(text) <= most and all(len(call.arguments) <= most for call in calls):
                return message
            shorter = tuple(_shorter(call, most) for call in calls)
            return replace(message, text=text if len(text) <= most else _first(text, seq, 0, page_chars), calls=shorter)
        case Answer(_, _, whole):
            text = _first(whole, seq, chars, page_chars)
            return message if text == whole else replace(message, text=text)
        case User(whole, packed) | Notice(whole, packed):
            text = _first(whole, seq, chars, page_chars)
            return message if text == whole else replace(message, text=text, packed=_repack(packed, text))


def _first(text: str, seq: int, chars: int, page_chars: int) -> str:
    total = max(chars, len(text))
    if total <= page_chars:
        return text
    size, name = _size(page_chars), f"{_NAME}{seq:x}"
    more = f"read_on(name={name!r}, page=2) gives the next" if seq else "the rest is not shown"
    return f"{text[:size]}\n[Page 1 of {-(-total // size)}, {total:,} characters in all: {more}.]"


def _size(page_chars: int) -> int:
    """Return how much of a text fits on a page with the text around it."""
    return max(page_chars - _AROUND, _AROUND)


def _repack(packed: str, text: str) -> str:
    """Return a packed message with another text; "" for an event, which uses another key."""
    data = read_json(packed, LOOSE) if packed else {}
    return json.dumps({**data, "message": text}, ensure_ascii=False) if "message" in data else ""


def _shorter(call: Call, most: int) -> Call:
    if len(call.arguments) <= most:
        return call
    return replace(call, arguments=json.dumps({"left_out": f"{len(call.arguments):,} characters"}))


class PageReader:
    """Returns the pages of texts that one agent was shown in part; `page_chars` is called for each page."""

    def __init__(self, store: TurnStore, agent: str, page_chars: Callable[[], int]) -> None:
        self._store = store
        self._agent = agent
        self._page_chars = page_chars

    async def page(self, name: str, page: int) -> str:
        """Return a page of a long text, with its position among the others.

        Raises:
            UsageError: nothing has this name, or it has no such page.
        """
        match = re.fullmatch(rf"(?:{_NAME})?([0-9a-f]{{1,15}})", name.strip().lower())
        seq = int(match[1], 16) if match else 0
        entries = await self._store.history(self._agent, since=seq - 1, kinds=_PAGED, most=1) if seq > 0 else []
        entry = next((row for row in entries if row.seq == seq), None)
        if entry is None:
            raise UsageError(f"There is no long text named {name!r}.", fix="Take the name from where it was shown.")
        whole = await self._store.text(entry.payload["whole"]) if "whole" in entry.payload else None
        text = str(whole if whole is not None else entry.payload["text"])
        size = _size(self._page_chars())
        pages = max(-(-len(text) // size), 1)
        if not 1 <= page <= pages:
            raise UsageError(f"`{name}` has {pages} page{'' if pages == 1 else 's'}.", fix="Ask for one of them.")
        more = f" Next: read_on(name={name!r}, page={page + 1})." if page < pages else " This is its end."
        return f"Page {page} of {pages} of {name}.{more}\n{text[(page - 1) * size : page * size]}"
