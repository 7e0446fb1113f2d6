"""The Responses API in terms of chat completions: requests are written in its form, and its events are read as chunks.

Readers know only chunks. Servers leave out one event or another: what a later one has, up to the final response, is
added if it has not arrived yet. Items of reasoning are handed on whole, to be sent back within the turn.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agent_core.base.records import dataclass, field

from .reasoning import REASONING_ITEM, THOUGHT
from .wire import Entry, parts_of

ENDS: Final = frozenset(
    {
        "response.completed",
        "response.incomplete",
        "response.failed",
        "response.cancelled",
        "response.done",
    }
)
_RENAMED: Final = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
}
_FINISH: Final = {"max_output_tokens": "length", "completed": "stop"}
_KIND: Final = {
    "response.output_text": "content",
    "response.refusal": "refusal",
    "response.reasoning_summary_text": THOUGHT,
    "response.reasoning_text": THOUGHT,
}


def to_responses(body: Mapping[str, Any]) -> Entry:
    """Return a request of chat completions as one of the Responses API, which stores nothing of it.

    Messages and functions must already be in the form of that API.
    """
    values = {_RENAMED.get(name, name): value for name, value in body.items()}
    values.pop("stream_options", None)
    reasoning = {"summary": "auto"}
    if effort := values.pop("reasoning_effort", None):
        reasoning["effort"] = effort
    text = {"verbosity": verbosity} if (verbosity := values.pop("verbosity", None)) else {}
    if form := values.pop("response_format", None):
        text["format"] = {"type": form["type"], **form.get("json_schema", {})}
    values |= {"text": text} if text else {}
    choice = values.get("tool_choice")
    if isinstance(choice, dict) and isinstance(choice.get("function"), dict):
        values["tool_choice"] = {"type": "function", **choice["function"]}
    return {
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": reasoning,
        **values,
    }


@dataclass(slots=True)
class _Item:
    """The parts of one output item that have arrived."""

    place: int
    call_id: str = ""
    name: str = ""
    has_arguments: bool = False
    is_handed_on: bool = False  # an item of reasoning
    texts: set[tuple[str, int]] = field(
        default_factory=set
    )  # fields of which a text arrived, each with its part


class ResponseReader:
    """A reader of one answer: of its events in order, or of the whole answer."""

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._by_key: dict[tuple[str, object], _Item] = {}  # by its id, its call's id, or its index
        self._arrived: set[str] = set()  # fields of which a text arrived in any item

    def read(self, entry: Entry) -> list[Entry]:
        """Return an event as chunks of chat completions."""
        return [*self._read(entry)]

    def _read(self, entry: Entry) -> Iterator[Entry]:
        kind = str(entry.get("type") or "")
        subject, _, step = kind.rpartition(".")
        if not kind and isinstance(entry.get("output"), list):
            yield from self._finish_response(entry, "")
        elif kind in ENDS:
            yield from self._finish_response(_dict(entry.get("response")) or entry, kind)
        elif subject in _KIND:
            yield from self._text(_KIND[subject], entry, step)
        elif kind == "response.reasoning_summary_part.added" and entry.get("summary_index"):
            yield _delta({THOUGHT: "\n\n"})
        elif kind == "response.output_item.added":
            yield from self._begin_call(entry.get("output_index"), _dict(entry.get("item")))
        elif subject == "response.function_call_arguments":
            yield from self._arguments(entry, step)
        elif kind == "response.output_item.done":
            yield from self._finish_item(
                entry.get("output_index"), _dict(entry.get("item")), is_last=False
            )

    def _item(self, index: object, item_id: object, call_id: object) -> _Item:
        """Return the item with this id, call or index, which may be a new one."""
        keys = [("id", item_id), ("call", call_id), ("index", index)]
        keys = [
            (kind, key)
            for kind, key in keys
            if isinstance(key, int if kind == "index" else str) and key != ""
        ]
        given = _string(call_id)
        found = None
        for key in keys:
            candidate = self._by_key.get(key)
            if candidate is not None and not (given and candidate.call_id not in ("", given)):
                found = candidate
                break
        if found is None:
            found = _Item(len(self._items))
            self._items.append(found)
        for key in keys:
            self._by_key.setdefault(key, found)
        return found

    def _text(self, name: str, entry: Entry, step: str) -> Iterator[Entry]:
        """Yield a piece of a text, or the whole text if no piece of it has arrived."""
        item = self._item(entry.get("output_index"), entry.get("item_id"), "")
        places = (entry.get("content_index"), entry.get("summary_index"))
        part = (name, next((place for place in places if place and isinstance(place, int)), 0))
        text = entry.get("delta") if step == "delta" else entry.get("text") or entry.get("refusal")
        if step == "delta" or (step == "done" and part not in item.texts):
            item.texts.add(part)
            self._arrived.add(name)
            yield _delta({name: text})

    def _finish_text(self, name: str, text: str, item: _Item, *, is_last: bool) -> Iterator[Entry]:
        """Yield the text of an item that is complete, unless it has arrived.

        In the last event items may stand at other places, so there a text counts only if no other has arrived.
        """
        has_arrived = (
            name in self._arrived if is_last else any(name == each for each, _ in item.texts)
        )
        if text and not has_arrived:
            item.texts.add((name, 0))
            if not is_last:
                self._arrived.add(name)
            yield _delta({name: text})

    def _begin_call(self, index: object, entry: Entry) -> Iterator[Entry]:
        if entry.get("type") != "function_call":
            return
        item = self._item(index, entry.get("id"), entry.get("call_id"))
        name, call_id = _string(entry.get("name")), _string(entry.get("call_id"))
        if (name and not item.name) or (call_id and not item.call_id):
            yield _call(item.place, {"name": "" if item.name else name, "arguments": ""}, call_id)
        item.name, item.call_id = item.name or name, item.call_id or call_id

    def _arguments(self, entry: Entry, step: str) -> Iterator[Entry]:
        """Yield a piece of a call's arguments, or all of them if no piece has arrived."""
        item = self._item(entry.get("output_index"), entry.get("item_id"), entry.get("call_id"))
        if step == "delta":
            item.has_arguments = True
            yield _call(item.place, {"arguments": entry.get("delta")})
        elif step == "done":
            whole = {
                "type": "function_call",
                "name": entry.get("name"),
                "arguments": entry.get("arguments"),
            }
            ids = {"id": entry.get("item_id"), "call_id": entry.get("call_id")}
            yield from self._finish_item(entry.get("output_index"), {**whole, **ids}, is_last=False)

    def _finish_item(self, index: object, entry: Entry, *, is_last: bool) -> Iterator[Entry]:
        """Yield what has not arrived yet of an item that is complete."""
        kind = entry.get("type")
        if kind == "function_call":
            yield from self._begin_call(index, entry)
        item = self._item(index, entry.get("id"), entry.get("call_id"))
        if kind == "function_call" and entry.get("arguments") and not item.has_arguments:
            item.has_arguments = True
            yield _call(item.place, {"arguments": entry["arguments"]})
        elif kind == "message":
            for name, key in (("content", "text"), ("refusal", "refusal")):
                yield from self._finish_text(
                    name, _texts(entry.get("content"), "", key), item, is_last=is_last
                )
        elif kind == "reasoning" and not item.is_handed_on:
            item.is_handed_on = True
            text = _texts(entry.get("summary"), "\n\n") or _texts(entry.get("content"), "")
            yield from self._finish_text(THOUGHT, text, item, is_last=is_last)
            yield _delta({REASONING_ITEM: entry})

    def _finish_response(self, entry: Entry, kind: str) -> Iterator[Entry]:
        """Yield what has not arrived yet of the output, and the end."""
        output = entry.get("output")
        for index, item in enumerate(parts_of(output, "items of output")):
            yield from self._finish_item(index, _dict(item), is_last=True)
        yield _end(entry, kind)


def _call(place: int, entry: Entry, call_id: object = "") -> Entry:
    return _delta({"tool_calls": [{"index": place, "id": call_id, "function": entry}]})


def _end(entry: Entry, kind: str) -> Entry:
    """Return the end of a response: the reason why it is incomplete, or else its status."""
    reason = _dict(entry.get("incomplete_details")).get("reason")
    status = entry.get("status") if kind in ("", "response.done") else kind.rpartition(".")[2]
    said = reason if isinstance(reason, str) and reason else _string(status) or "completed"
    told = _dict(entry.get("usage"))
    usage = {
        "prompt_tokens": told.get("input_tokens"),
        "completion_tokens": told.get("output_tokens"),
        "prompt_tokens_details": told.get("input_tokens_details"),
    }
    return {"choices": [{"delta": {}, "finish_reason": _FINISH.get(said, said)}], "usage": usage}


def _delta(entry: Entry) -> Entry:
    return {"choices": [{"delta": entry}]}


def _texts(parts: object, between: str, key: str = "text") -> str:
    texts = [_dict(part).get(key) for part in parts] if isinstance(parts, list) else []
    return between.join(text for text in texts if isinstance(text, str))


def _dict(value: object) -> Entry:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
