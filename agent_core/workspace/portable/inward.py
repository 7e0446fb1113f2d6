"""Conversion of a document to the agent that it describes, checked before anything is created. Nothing in it is run."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from agent_core.storage import BlockChange, BlockRow, DocumentRow, Entry, PassageRow, SectionRow
from agent_core.storage.whole import WholeAgent, WholeBlock, WholeEvent, WholeTurn

from . import document as d
from .consistent import check
from .errors import AgentFileError
from .expected import path_of, sentence

Words = Callable[[str, float | None, Sequence[str]], str]
"""What the text index reads of a passage: its text, when it was written down (not of a piece of a source), its tags."""


def agent_of(raw: dict[str, Any], words: Words) -> WholeAgent:  # Any: JSON
    """Return the agent in a document.

    Raises:
        AgentFileError: the first thing that is not as it must be, and where.
    """
    try:
        file = d.AgentFile.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=True)[0]
        raise AgentFileError(path_of(first["loc"]), sentence(first)) from error
    check(file)
    return WholeAgent(
        name=file.agent.name,
        settings=file.agent.settings.model_dump(exclude_unset=True) if file.agent.settings else None,
        turns=tuple(_turn(turn) for turn in file.turns),
        inbox=tuple(_event(event) for event in file.inbox),
        blocks=tuple(_block(block) for block in file.blocks),
        sections=tuple(SectionRow(s.name, s.position, s.text, s.limit, s.edited) for s in file.sections),
        passages=tuple(_passage(passage, file.agent.name, words) for passage in file.passages),
        documents=tuple(_document(document, file.agent.name) for document in file.documents),
        pins=tuple(sorted(file.agent.pins)),
        texts=dict(file.texts),
    )


def _value(value: str | list[str]) -> str | tuple[str, ...]:
    return value if isinstance(value, str) else tuple(value)


def _block(block: d.BlockPart) -> WholeBlock:
    row = BlockRow(
        id=block.id,
        label=block.label,
        value=_value(block.value),
        limit=block.limit,
        description=block.description,
        read_only=block.read_only,
        shared=block.shared,
        position=block.position,
        version=block.version,
        edited=block.edited,
    )
    history = tuple(
        BlockChange(
            block.id, change.version, _value(change.value), change.what, change.by, change.agent, change.turn, change.at
        )
        for change in block.history
    )
    return WholeBlock(row, history, block.attached)


def _turn(turn: d.TurnPart) -> WholeTurn:
    entries = tuple(_entry(entry) for entry in turn.entries)
    events = tuple(_event(event) for event in turn.events)
    return WholeTurn(turn.id, turn.state, turn.started, turn.ended, events, entries, turn.hidden)


def _entry(entry: d.AnyEntry) -> Entry:
    payload = entry.payload if isinstance(entry.payload, dict) else entry.payload.model_dump(exclude_unset=True)
    return Entry(entry.kind, payload, at=entry.at)


def _event(event: d.EventPart) -> WholeEvent:
    return WholeEvent(event.kind, event.payload.model_dump(exclude_unset=True), event.at, event.key, event.due)


def _passage(passage: d.PassagePart, agent: str, words: Words) -> PassageRow:
    return PassageRow(
        id=passage.id,
        agent=agent,
        text=passage.text,
        words=_words(passage, words),
        at=passage.at,
        tags=tuple(passage.tags),
        source=passage.source,
        place=passage.place,
        document=passage.document,
        n=passage.n,
    )


def _words(passage: d.PassagePart, words: Words) -> str:
    if passage.words is not None:
        return passage.words
    return words(passage.text, None if passage.document else passage.at, passage.tags)


def _document(document: d.DocumentPart, agent: str) -> DocumentRow:
    return DocumentRow(
        document.hash,
        agent,
        document.name,
        document.kind,
        document.at,
        document.done,
        document.total,
        document.complete,
    )
