"""Conversion of a stored agent to a document; the same agent always gives the same text.

The parts of the document say which fields of a row are in it.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from . import document as d

if TYPE_CHECKING:
    from agent_core.storage import WholeAgent, WholeBlock, WholeEvent, WholeTurn

Json = dict[str, Any]  # Any: JSON


def document_of(whole: "WholeAgent") -> Json:
    """Return the document of an agent."""
    return {
        "format": d.FORMAT,
        "version": d.VERSION,
        "agent": _part(d.AgentPart, whole, pins=sorted(whole.pins)),
        "blocks": [_block(block) for block in whole.blocks],
        "sections": [_part(d.SectionPart, section) for section in whole.sections],
        "turns": [_turn(turn) for turn in whole.turns],
        "inbox": [_event(event) for event in whole.inbox],
        "passages": [_part(d.PassagePart, passage) for passage in whole.passages],
        "documents": [_part(d.DocumentPart, document) for document in whole.documents],
        "texts": dict(sorted(whole.texts.items())),
    }


def _part(part_class: type[d.FilePart], row: object, **others: object) -> Json:
    """Return a part of the document: the `others`, and the remaining fields as the row has them."""
    part = dict(others)
    for key, name in _names(part_class):
        if key not in part:
            value = getattr(row, name)
            part[key] = [*value] if isinstance(value, tuple) else value
    return part


@cache
def _names(part_class: type[d.FilePart]) -> tuple[tuple[str, str], ...]:
    """Return the key of each field in the file, with its name in the rows."""
    return tuple((field.alias or name, name) for name, field in part_class.model_fields.items())


def _block(block: "WholeBlock") -> Json:
    access = {"attached": block.attached, "readers": [*block.readers], "writers": [*block.writers]}
    history = [_part(d.ChangePart, change) for change in block.history]
    return _part(d.BlockPart, block.row, history=history, **access)


def _turn(turn: "WholeTurn") -> Json:
    events = [_event(event) for event in turn.events]
    return _part(d.TurnPart, turn, events=events, entries=[_part(d.OtherPart, entry) for entry in turn.entries])


def _event(event: "WholeEvent") -> Json:
    return {key: value for key, value in _part(d.EventPart, event).items() if value is not None}
