"""The reasoning that comes with a reply in fields of its own: shown as its thought, and sent back as it came. Pure.

Endpoints have many names for it, listed in `reasoning_fields` of `reading.toml`. Some refuse the next request of a turn
that does not bring it back unchanged; it goes to the endpoint and model that gave it, and to no other.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from agent_core.base.records import dataclass
from sandbox.wire.strict_json import LOOSE, Malformed, read_json, whole_value

from .dialect import as_kind, parsed_toml

MAX_CHARS: Final = 1 << 20
"""The reasoning of a reply beyond this is not kept: a part of it would not be what the endpoint gave."""

THOUGHT: Final = "thought"
"""The key of a delta with reasoning that is only shown: the Responses API has it in an item, too."""
REASONING_ITEM: Final = "reasoning_item"
"""The key of a delta that contains an item of reasoning."""
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "text": str,
    "parts": list,
    "whole": (str, dict),
    "content": list,
}
_TEXT_KEYS: Final = ("text", "summary", "thinking")
_Part: TypeAlias = dict[str, Any]  # Any: foreign JSON


@dataclass(frozen=True, slots=True)
class ReasoningField:
    """A field of a message that has reasoning, with the source for it.

    `text`: pieces of one text. `parts`: a list of parts, which may come in pieces. `whole`: a value that comes at once.
    `content`: the parts of the content that are no text.
    """

    name: str
    kind: Literal["text", "parts", "whole", "content"]
    source: str


@dataclass(frozen=True, slots=True)
class ReturnedFields:
    """The fields that go back to the endpoint that gave them: of a message, and of a call."""

    reasoning_fields: tuple[ReasoningField, ...]
    call_fields: tuple[str, ...]


@cache
def returned_fields() -> ReturnedFields:
    """Return the fields that this version knows."""
    data = parsed_toml("reading.toml")
    return as_kind(
        {name: data[name] for name in ("reasoning_fields", "call_fields")}, ReturnedFields
    )


@cache
def _field_names() -> frozenset[str]:
    """Return the names of all fields that have only reasoning."""
    names = (field.name for field in returned_fields().reasoning_fields if field.kind != "content")
    return frozenset({THOUGHT, REASONING_ITEM, *names})


class _Pieces(list[Any]):  # Any: foreign JSON
    """The pieces of a text or of a list, joined at the end, so that many of them take no more time than few."""


class Reasoning:
    """The reasoning of one reply while it arrives."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._parts: dict[str, list[_Part]] = {}
        self._whole: dict[str, Any] = {}
        self._items: list[Any] = []
        self._room = MAX_CHARS

    def add(self, message: Mapping[str, Any]) -> str:
        """Add what a message, or a piece of one, has of it, and return the text to show.

        If several fields have a text, it is the same one, so only the first is shown.
        """
        if message.keys().isdisjoint(_field_names()) and not isinstance(
            message.get("content"), list
        ):
            return ""  # most pieces are text
        self._add_item(message.get(REASONING_ITEM))
        thought = message.get(THOUGHT)
        shown = thought if isinstance(thought, str) else ""
        for field in returned_fields().reasoning_fields:
            if value := message.get(field.name):
                text = self._add_to(field, value)
                shown = shown or text
        return shown

    def _add_item(self, item: object) -> None:
        """Add an item of the Responses API."""
        if isinstance(item, dict) and self._takes(item):
            self._items.append({key: value for key, value in item.items() if value is not None})

    def texts(self) -> tuple[str, ...]:
        """Return what goes back, as JSON texts; empty if there is none, or too much."""
        if self._room < 0:
            return ()
        fields: dict[str, Any] = {name: "".join(pieces) for name, pieces in self._texts.items()}
        fields |= {
            name: [*map(_joined, parts)] for name, parts in self._parts.items()
        } | self._whole
        values = [*self._items, fields] if fields else self._items
        return tuple(filter(None, map(_json_text, values)))

    def _add_to(self, field: ReasoningField, value: object) -> str:
        if field.kind == "text" and isinstance(value, str):
            if self._takes(value):
                self._texts.setdefault(field.name, []).append(value)
            return value
        if field.kind == "whole" and isinstance(value, str | dict) and self._takes(value):
            self._whole[field.name] = value
        if field.kind in ("parts", "content") and isinstance(value, list):
            parts = [part for part in value if isinstance(part, dict)]
            if field.kind == "content":
                parts = [
                    part for part in parts if part.get("type") not in (None, "text", "refusal")
                ]
            for part in parts:
                if self._takes(part):
                    _add_part(self._parts.setdefault(field.name, []), part)
            return "".join(map(_text_of, parts))
        return ""

    def _takes(self, value: object) -> bool:
        """Check whether there is room for a value, and take it."""
        try:
            self._room -= len(value) if isinstance(value, str) else len(json.dumps(value))
        except RecursionError:
            return False
        return self._room >= 0


def _add_part(parts: list[_Part], part: _Part) -> None:
    """Add a part of a list, or a piece that continues the last part."""
    key = next((key for key in _TEXT_KEYS if isinstance(part.get(key), str | list)), "")
    last = parts[-1] if parts else None
    names = ("type", "index", "id")
    if (
        last is None
        or not (key or "signature" in part)
        or any(last.get(name, part.get(name)) != part.get(name, last.get(name)) for name in names)
        or (last.get("signature") and part.get(key))
        or (key in last and type(last[key][0]) is not type(part[key]))
    ):
        parts.append({**part, key: _Pieces([part[key]])} if key else dict(part))
        return
    last.update({name: value for name, value in part.items() if value is not None and name != key})
    if key:
        last.setdefault(key, _Pieces()).append(part[key])


def _joined(part: _Part) -> _Part:
    """Return a part with its collected pieces as one text, or as one list."""
    whole = dict(part)
    for key in _TEXT_KEYS:
        pieces = part.get(key)
        if isinstance(pieces, _Pieces):
            is_text = isinstance(pieces[0], str)
            whole[key] = (
                "".join(pieces) if is_text else [inner for piece in pieces for inner in piece]
            )
    return whole


def items(reasoning: tuple[str, ...]) -> list[str]:
    """Return the items of reasoning for the Responses API, as JSON texts."""
    return [each for each in reasoning if _object(each).get("type") == "reasoning"]


def message_fields(reasoning: tuple[str, ...], text: str) -> dict[str, Any]:  # Any: JSON
    """Return the fields with which a message with this text goes back, as far as this version knows them."""
    fields: dict[str, Any] = {}
    given = {key: value for each in reasoning for key, value in _object(each).items()}
    for field in returned_fields().reasoning_fields:
        value = given.get(field.name)
        if not value or not isinstance(value, _TYPES[field.kind]):
            continue
        if isinstance(value, list) and field.kind == "content" and text:
            value = [*value, {"type": "text", "text": text}]
        fields[field.name] = value
    return fields


def extra_of(call: Mapping[str, Any]) -> dict[str, Any]:  # Any: foreign JSON
    """Return the fields of a call that its endpoint wants back: those of the call, and those of its function."""
    function = call.get("function")
    inner = dict(_kept(function)) if isinstance(function, dict) else {}
    extra = dict(_kept(call))
    return {**extra, "function": inner} if inner else extra


def _kept(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in returned_fields().call_fields:
        value = fields.get(name)
        if value and isinstance(value, str | dict) and 0 < len(_json_text(value)) <= MAX_CHARS:
            yield name, value


def extra_text(extra: Mapping[str, Any], given_id: str) -> str:
    """Return what goes back with a call as JSON text, with the endpoint's own id if it is not the call's."""
    whole = {"id": given_id, **extra} if given_id else extra
    return _json_text(whole) if whole else ""


def own_id(extra: str) -> str:
    """Return the endpoint's own id of a call; an empty text if the call has it as its id."""
    given = _object(extra).get("id") if extra else None
    return given if isinstance(given, str) else ""


def call_fields(extra: str) -> tuple[dict[str, Any], dict[str, Any]]:  # Any: JSON
    """Return the fields that go back with a call, and those that go back within its function."""
    given = _object(extra) if extra else {}
    function = given.get("function")
    return dict(_kept(given)), dict(_kept(function)) if isinstance(function, dict) else {}


def _text_of(part: _Part) -> str:
    for key in _TEXT_KEYS:
        value = part.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return "".join(
                _text_of(inner) for inner in value if isinstance(inner, dict) and inner is not part
            )
    return ""


def _json_text(value: object) -> str:
    """Return a value as JSON text; "" if it cannot be written, or could not be read again."""
    try:
        text = json.dumps(
            whole_value(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        read_json(text, LOOSE)
    except (RecursionError, ValueError, Malformed):
        return ""
    return text


def _object(text: str) -> dict[str, Any]:  # Any: JSON
    try:
        value = read_json(text, LOOSE)
    except Malformed:
        return {}
    return value if isinstance(value, dict) else {}
