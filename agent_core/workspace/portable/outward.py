"""Conversion of a stored agent to a document; the same agent always gives the same text."""

from typing import TYPE_CHECKING, Any

from .document import FORMAT, VERSION

if TYPE_CHECKING:
    from agent_core.storage import (
        BlockChange,
        BlockRow,
        DocumentRow,
        PassageRow,
        SectionRow,
        WholeAgent,
        WholeBlock,
        WholeEvent,
        WholeTurn,
    )

Json = dict[str, Any]  # Any: JSON


def document_of(whole: "WholeAgent") -> Json:
    """Return the document of an agent."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "agent": {"name": whole.name, "settings": whole.settings, "pins": sorted(whole.pins)},
        "blocks": [_block(block) for block in whole.blocks],
        "sections": [_section(section) for section in whole.sections],
        "turns": [_turn(turn) for turn in whole.turns],
        "inbox": [_event(event) for event in whole.inbox],
        "passages": [_passage(passage) for passage in whole.passages],
        "documents": [_document(document) for document in whole.documents],
        "texts": dict(sorted(whole.texts.items())),
    }


def _block(block: "WholeBlock") -> Json:
    row: BlockRow = block.row
    return {
        "id": row.id,
        "label": row.label,
        "value": _value(row.value),
        "limit": row.limit,
        "description": row.description,
        "read_only": row.read_only,
        "shared": row.shared,
        "readers": list(block.readers),
        "writers": list(block.writers),
        "attached": block.attached,
        "position": row.position,
        "version": row.version,
        "edited": row.edited,
        "history": [_change(change) for change in block.history],
    }


def _change(change: "BlockChange") -> Json:
    return {
        "version": change.version,
        "value": _value(change.value),
        "what": change.action,
        "by": change.by,
        "agent": change.agent,
        "turn": change.turn,
        "at": change.at,
    }


def _value(value: str | tuple[str, ...]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)


def _section(row: "SectionRow") -> Json:
    return {
        "name": row.name,
        "position": row.position,
        "text": row.text,
        "limit": row.limit,
        "edited": row.edited,
    }


def _turn(turn: "WholeTurn") -> Json:
    return {
        "id": turn.id,
        "state": turn.state,
        "started": turn.started,
        "ended": turn.ended,
        "hidden": turn.hidden,
        "events": [_event(event) for event in turn.events],
        "entries": [{"kind": entry.kind, "payload": entry.payload, "at": entry.at} for entry in turn.entries],
    }


def _event(event: "WholeEvent") -> Json:
    fields: Json = {"kind": event.kind, "payload": event.payload, "at": event.at}
    return fields | {name: value for name, value in (("key", event.key), ("due", event.due)) if value is not None}


def _passage(row: "PassageRow") -> Json:
    return {
        "id": row.id,
        "text": row.text,
        "words": row.words,
        "at": row.at,
        "tags": list(row.tags),
        "source": row.source,
        "place": row.place,
        "document": row.document,
        "n": row.n,
    }


def _document(row: "DocumentRow") -> Json:
    return {
        "hash": row.hash,
        "name": row.name,
        "kind": row.kind,
        "at": row.at,
        "done": row.done,
        "total": row.total,
        "complete": row.complete,
    }
