"""Shared code for other programs' files: checked access to data of unknown shape, blocks, names."""

import json
import re
from collections.abc import Iterator
from typing import Any

from agent_core.base.untrusted import whole_characters
from agent_core.storage import BlockChange, BlockRow, WholeBlock

from .document import LONGEST
from .messages import ImportedCall
from .report import AgentFileError

Json = dict[str, Any]  # Any: JSON
_SPARE = 2000


def text_at(holder: Json, key: str, where: str) -> str:
    """Return the text under a key, or "" if it is missing.

    Raises:
        AgentFileError: the value is not text.
    """
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > LONGEST:
        raise AgentFileError(f"{where}.{key}" if where else key, f"expected a text of at most {LONGEST} characters")
    return whole_characters(value)


def objects_at(holder: Json, key: str, where: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the objects of a list, each with its position; a missing list is empty.

    Raises:
        AgentFileError: the value is not a list of objects.
    """
    place = f"{where}.{key}" if where else key
    items = holder.get(key)
    if not isinstance(items, list | None):
        raise AgentFileError(place, "expected a list")
    for at, item in enumerate(items or ()):
        if not isinstance(item, dict):
            raise AgentFileError(f"{place}[{at}]", "expected an object")
        yield f"{place}[{at}]", item


def agent_name(name: str) -> str:
    """Return a valid agent name that is similar to this one."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:64] or "imported"


def block_of(id: str, block: Json, where: str, at: float) -> WholeBlock:
    """Return a block from another program's form: label, value, limit, description."""
    label = re.sub(r"[^\w.-]+", "_", text_at(block, "label", where))[:64].strip("_") or "block"
    value, limit = text_at(block, "value", where), block.get("limit")
    room = limit if isinstance(limit, int) and not isinstance(limit, bool) and 0 < limit < 1 << 31 else _SPARE
    row = BlockRow(
        id=id,
        label=label,
        value=value,
        limit=max(room, len(value)),
        description=text_at(block, "description", where),
        read_only=block.get("read_only") is True,
        edited=at,
    )
    return WholeBlock(row, (BlockChange(id, 1, value, "imported", "human", "", "", at),))


def asked_of(call: Json, where: str) -> ImportedCall:
    """Return a call from `{id, function: {name, arguments}}` or `{name, arguments}`."""
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    arguments = inner.get("arguments")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments if arguments is not None else {})
    name = text_at(inner, "name", where)[:200] or "unnamed"
    return ImportedCall(text_at(call, "id", where)[:200], name, whole_characters(raw))
