"""What the readers of other programs' files share: careful looks into data of no certain shape, blocks, names."""

import json
import re
from collections.abc import Iterator
from typing import Any

from ..storage import BlockChange, BlockRow
from ..storage.whole import WholeBlock
from .document import LONGEST
from .errors import AgentFileError
from .messages import Asked

Json = dict[str, Any]  # Any: JSON
_SPARE = 2000


def text_at(holder: Json, key: str, where: str) -> str:
    """The text that stands there; a missing one is empty.

    Raises:
        AgentFileError: something else stands there.
    """
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > LONGEST:
        raise AgentFileError(f"{where}.{key}" if where else key, f"expected a text of at most {LONGEST} characters")
    return whole_characters(value)


def objects_at(holder: Json, key: str, where: str = "") -> Iterator[tuple[str, Json]]:
    """The objects of a list, each with its place; a missing list is empty.

    Raises:
        AgentFileError: it is no list of objects.
    """
    place = f"{where}.{key}" if where else key
    found = holder.get(key)
    if not isinstance(found, list | None):
        raise AgentFileError(place, "expected a list")
    for at, one in enumerate(found or ()):
        if not isinstance(one, dict):
            raise AgentFileError(f"{place}[{at}]", "expected an object")
        yield f"{place}[{at}]", one


def whole_characters(text: str) -> str:
    """The text without halves of characters, which no store takes."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def agent_name(given: str) -> str:
    """A name that an agent can have, as near to the given one as may be."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", given).strip("-")[:64] or "imported"


def block_of(id: str, found: Json, where: str, at: float) -> WholeBlock:
    """A block as other programs write it: label, value, limit, description."""
    label = re.sub(r"[^\w.-]+", "_", text_at(found, "label", where))[:64].strip("_") or "block"
    value, limit = text_at(found, "value", where), found.get("limit")
    room = limit if isinstance(limit, int) and not isinstance(limit, bool) and 0 < limit < 1 << 31 else _SPARE
    row = BlockRow(
        id=id,
        label=label,
        value=value,
        limit=max(room, len(value)),
        description=text_at(found, "description", where),
        read_only=found.get("read_only") is True,
        edited=at,
    )
    return WholeBlock(row, (BlockChange(id, 1, value, "imported", "human", "", "", at),))


def asked_of(found: Json, where: str) -> Asked:
    """A call, `{id, function: {name, arguments}}` or `{name, arguments}`."""
    function = found.get("function")
    inner = function if isinstance(function, dict) else found
    arguments = inner.get("arguments")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments if arguments is not None else {})
    name = text_at(inner, "name", where)[:200] or "unnamed"
    return Asked(text_at(found, "id", where)[:200], name, whole_characters(raw))
