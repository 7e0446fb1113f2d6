"""Conversion between an agent with its report and small items, which the parsing process sends to the host."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from pydantic import TypeAdapter

from agent_core.storage import (
    BlockChange,
    DocumentRow,
    EntryText,
    Made,
    PassageRow,
    SectionRow,
    WholeAgent,
    WholeBlock,
    WholeEvent,
    WholeTurn,
    dump,
)

from .report import AgentFileError, AgentReport

Item = tuple[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class Head:
    """An agent without its parts, and the counts of its report; it is sent last."""

    name: str
    settings: dict[str, Any] | None  # Any: JSON
    pins: tuple[str, ...]
    kind: str
    mapped: tuple[tuple[str, str, int], ...]
    left: tuple[tuple[str, str, int], ...]
    inbox: tuple[dict[str, str], ...]
    waiting: int


@dataclass(frozen=True, slots=True)
class Line:
    """A journal entry with its payload as JSON text; `upto` of a summary is a separate field."""

    kind: str
    text: str
    at: float
    upto: int | None


@dataclass(frozen=True, slots=True)
class KeptText:
    """A text that entries refer to by hash."""

    hash: str
    text: str


_SHAPES: Final[dict[str, TypeAdapter[Any]]] = {
    "change": TypeAdapter(BlockChange),
    "block": TypeAdapter(WholeBlock),
    "section": TypeAdapter(SectionRow),
    "event": TypeAdapter(WholeEvent),
    "entry": TypeAdapter(Line),
    "turn": TypeAdapter(WholeTurn),
    "waiting": TypeAdapter(WholeEvent),
    "passage": TypeAdapter(PassageRow),
    "document": TypeAdapter(DocumentRow),
    "text": TypeAdapter(KeptText),
    "agent": TypeAdapter(Head),
}


def items_of(whole: WholeAgent, report: AgentReport) -> Iterator[Item]:
    """Yield an agent as items: parts of an item come before it, and the head comes last."""
    for block in whole.blocks:
        yield from (_item("change", change) for change in block.history)
        yield _item("block", replace(block, history=()))
    for turn in whole.turns:
        yield from (_item("event", _as_text(event)) for event in turn.events)
        for entry in turn.entries:
            payload, upto = entry.payload, None
            if entry.kind == "summary":
                upto = payload["upto"]
                payload = {key: value for key, value in payload.items() if key != "upto"}
            yield _item("entry", Line(entry.kind, dump(payload), entry.at, upto))
        yield _item("turn", replace(turn, events=(), entries=()))
    yield from (_item("waiting", _as_text(event)) for event in whole.inbox)
    for name, parts in (("section", whole.sections), ("passage", whole.passages), ("document", whole.documents)):
        yield from (_item(name, part) for part in parts)
    yield from (_item("text", KeptText(hash, text)) for hash, text in whole.texts.items())
    mapped, left = (tuple((*key, n) for key, n in counted.items()) for counted in (report.mapped, report.left))
    told = (report.kind, mapped, left, tuple(report.inbox), report.waiting)
    yield _item("agent", Head(whole.name, whole.settings, whole.pins, *told))


def _item(name: str, part: object) -> Item:
    return name, _SHAPES[name].dump_python(part, mode="json")


def _as_text(event: WholeEvent) -> WholeEvent:
    return replace(event, payload=dump(event.payload))


class Arriving:
    """A builder of agents from items; an agent is complete with its head."""

    def __init__(self) -> None:
        self.agents: list[tuple[WholeAgent, AgentReport]] = []
        self.refused: AgentFileError | None = None
        self._parts: defaultdict[str, list[Any]] = defaultdict(list)  # Any: a part of one of the shapes

    def take(self, item: Any) -> None:  # Any: JSON
        """Process the next item.

        Raises:
            ValueError: it is not a valid item.
        """
        name, value = item
        if name == "refused":
            where, what = map(str, value)
            self.refused = AgentFileError(where, what)
            return
        part = _SHAPES[name].validate_python(value)
        match part:
            case WholeBlock():
                part = replace(part, history=self._those("change"))
            case WholeTurn():
                part = _columns(replace(part, events=self._those("event"), entries=self._those("entry")))
            case WholeEvent() | Line() | PassageRow():
                part = _columns(part)
            case Head():
                mapped, left = (Counter({(a, b): n for a, b, n in lines}) for lines in (part.mapped, part.left))
                report = AgentReport(part.kind, part.name, mapped, left, list(part.inbox), part.waiting)
                whole = WholeAgent(
                    name=part.name,
                    settings=part.settings,
                    turns=Made(self._those("turn"), _turn),
                    inbox=tuple(WholeEvent(*row) for row in self._those("waiting")),
                    blocks=self._those("block"),
                    sections=self._those("section"),
                    passages=Made(self._those("passage"), PassageRow),
                    documents=self._those("document"),
                    pins=part.pins,
                    texts={text.hash: text.text for text in self._those("text")},
                )
                self.agents.append((whole, report))
                return
        self._parts[name].append(part)

    def _those(self, name: str) -> tuple[Any, ...]:  # Any: a part of one of the shapes
        return tuple(self._parts.pop(name, ()))


def _columns(part: WholeTurn | WholeEvent | Line | PassageRow) -> tuple[Any, ...]:  # Any: columns
    return tuple(getattr(part, field.name) for field in fields(part))


def _turn(*columns: Any) -> WholeTurn:  # Any: columns
    turn: Any = WholeTurn(*columns)  # Any: its events and entries are columns, too
    whole: WholeTurn = replace(turn, events=Made(turn.events, WholeEvent), entries=Made(turn.entries, _entry))
    return whole


def _entry(kind: str, text: str, at: float, upto: int | None) -> EntryText:
    return EntryText(kind, {}, at=at, text=text, upto=upto)
