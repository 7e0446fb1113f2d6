"""Conversion of a document to an agent, validated before anything is created. Nothing in the document is run.

It checks single fields and the consistency between parts: unique names, ordered histories, one answer per call. Errors
have a path and what was expected there.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from pydantic import ValidationError

from agent_core.base.misfit import sentence
from agent_core.base.untrusted import one_line
from agent_core.storage import (
    BlockChange,
    BlockRow,
    DocumentRow,
    Entry,
    PassageRow,
    SectionRow,
    WholeAgent,
    WholeBlock,
    WholeEvent,
    WholeTurn,
)

from . import document as d
from .caps import LONGEST_SETTINGS, MOST_CHANGES, MOST_ENTRIES, MOST_EVENTS, at_most
from .document import AgentFile, AnsweredPart, ReplyPart, SummedPart, ToldPart, TurnPart
from .packed import unpacked
from .report import AgentFileError
from .text import once


def check(file: AgentFile) -> None:
    """Raise an error for the first rule that the file violates."""
    once("blocks", "id", [block.id for block in file.blocks])
    once("blocks", "label", [block.label for block in file.blocks if block.attached])
    once("sections", "name", [section.name for section in file.sections])
    once("turns", "id", [turn.id for turn in file.turns])
    once("passages", "id", [passage.id for passage in file.passages])
    once("documents", "hash", [document.hash for document in file.documents])
    keys = [event.key for turn in file.turns for event in turn.events] + [event.key for event in file.inbox]
    once("events", "key", [key for key in keys if key is not None])
    at_most("blocks", MOST_CHANGES, sum(len(block.history) for block in file.blocks))
    at_most("turns", MOST_EVENTS, sum(len(turn.events) for turn in file.turns))
    at_most("turns", MOST_ENTRIES, sum(len(turn.entries) for turn in file.turns))
    settings = file.agent.settings
    if settings and len(settings.model_dump_json()) > LONGEST_SETTINGS:
        raise AgentFileError("agent.settings", f"expected at most {LONGEST_SETTINGS} characters of JSON")
    for at, block in enumerate(file.blocks):
        where = f"blocks[{at}]"
        size = len(block.value if isinstance(block.value, str) else "\n".join(block.value))
        if size > block.limit:
            raise AgentFileError(f"{where}.value", f"expected at most {block.limit} characters, got {size}")
        if not all(char.isalnum() or char in "_-./" for char in block.label):
            raise AgentFileError(f"{where}.label", "expected letters, digits and any of `_-./`")
        versions = [change.version for change in block.history]
        if versions != sorted(set(versions)):
            raise AgentFileError(f"{where}.history", "expected versions that rise")
        if not versions or versions[-1] != block.version:
            raise AgentFileError(f"{where}.history", f"expected its last line to be version {block.version}")
        if block.history[-1].value != block.value:
            raise AgentFileError(f"{where}.history", "expected its last line to hold the block's value")
    for name, text in file.texts.items():
        if sha256(text.encode()).hexdigest() != name:
            raise AgentFileError(f"texts.{name}", "expected the text that has this SHA-256")
    _turns(file)


def _turns(file: AgentFile) -> None:
    counted = 0
    for at, turn in enumerate(file.turns):
        where = f"turns[{at}]"
        if turn.state == "open" and at != len(file.turns) - 1:
            raise AgentFileError(f"{where}.state", "expected only the last turn to be open")
        if (turn.state == "open") != (turn.ended is None):
            raise AgentFileError(f"{where}.ended", "expected a time for a turn that ended, and none for an open one")
        _answers(where, turn)
        for n, entry in enumerate(turn.entries):
            counted += 1
            if isinstance(entry, SummedPart) and entry.payload.upto >= counted:
                raise AgentFileError(f"{where}.entries[{n}].payload.upto", f"expected less than {counted}")
            packed = entry.payload.packed if isinstance(entry, ToldPart) and entry.kind == "user" else ""
            if packed and unpacked(packed).kind != "user_message":  # to a model, it is another kind of event
                raise AgentFileError(f"{where}.entries[{n}].payload.packed", "expected the type `user_message`")


def _answers(where: str, turn: TurnPart) -> None:
    """Raise an error if a call has no answer, because endpoints reject such requests."""
    open_calls: set[str] = set()
    for n, entry in enumerate(turn.entries):
        if isinstance(entry, AnsweredPart):
            if entry.payload.call_id not in open_calls:
                raise AgentFileError(f"{where}.entries[{n}].payload.call_id", "expected a call that waits for it")
            open_calls.discard(entry.payload.call_id)
        elif isinstance(entry, ReplyPart):
            _require_answers(where, n, open_calls)
            call_ids = [call.id for call in entry.payload.calls]
            once(f"{where}.entries[{n}].payload.calls", "id", call_ids)
            open_calls = set(call_ids)
    if turn.state != "open":
        _require_answers(where, len(turn.entries), open_calls)


def _require_answers(where: str, n: int, open_calls: set[str]) -> None:
    if open_calls:
        name = one_line(min(open_calls), 60)
        raise AgentFileError(f"{where}.entries", f"expected an answer of the call `{name}` before entry {n}")


_TAGS = ("told", "assistant", "call", "result", "summary", "other")
_FORMS = ("constrained-str", "list[constrained-str]")


def path_of(place: Sequence[int | str]) -> str:
    """Return a position in the file, such as `turns[3].entries[0].kind`."""
    path = ""
    for at, part in enumerate(place):
        if isinstance(part, int):
            path += f"[{part}]"
        # The other parts name a shape that was tried instead of a position in the file.
        elif part not in _FORMS and not (part in _TAGS and at > 1 and place[at - 2] == "entries"):
            path += f".{one_line(part, 60)}" if path else one_line(part, 60)
    return path


Words = Callable[[str, float | None, Sequence[str]], str]
"""Returns the index text of a passage, from its text, its time (None for a piece of a source) and its tags."""


def agent_of(raw: dict[str, Any], words: Words) -> WholeAgent:  # Any: JSON
    """Convert a document to an agent.

    Raises:
        AgentFileError: the document is invalid; it has the first error and its place.
    """
    try:
        file = d.AgentFile.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=True)[0]
        raise AgentFileError(path_of(first["loc"]), sentence(first)) from error
    check(file)
    name = file.agent.name
    return WholeAgent(
        name=name,
        settings=file.agent.settings.model_dump(exclude_unset=True) if file.agent.settings else None,
        turns=tuple(_turn(turn) for turn in file.turns),
        inbox=tuple(_event(event) for event in file.inbox),
        blocks=tuple(_block(block) for block in file.blocks),
        sections=tuple(SectionRow(**_values(section)) for section in file.sections),
        passages=tuple(_passage(passage, name, words) for passage in file.passages),
        documents=tuple(DocumentRow(agent=name, **_values(document)) for document in file.documents),
        pins=tuple(sorted(file.agent.pins)),
        texts=dict(file.texts),
    )


def _values(part: d.FilePart) -> dict[str, Any]:  # Any: JSON
    """Return the fields of a part as a row has them, with tuples instead of lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in part}


def _block(block: d.BlockPart) -> WholeBlock:
    values = _values(block)
    access = {name: values.pop(name) for name in ("attached", "readers", "writers")}
    history = tuple(BlockChange(block.id, **_values(change)) for change in values.pop("history"))
    return WholeBlock(BlockRow(**values), history, **access)


def _turn(turn: d.TurnPart) -> WholeTurn:
    entries = tuple(_entry(entry) for entry in turn.entries)
    events = tuple(_event(event) for event in turn.events)
    return WholeTurn(**(_values(turn) | {"events": events, "entries": entries}))


def _entry(entry: d.AnyEntry) -> Entry:
    payload = entry.payload if isinstance(entry.payload, dict) else entry.payload.model_dump(exclude_unset=True)
    return Entry(entry.kind, payload, at=entry.at)


def _event(event: d.EventPart) -> WholeEvent:
    return WholeEvent(**(_values(event) | {"payload": event.payload.model_dump(exclude_unset=True)}))


def _passage(passage: d.PassagePart, agent: str, words: Words) -> PassageRow:
    indexed = passage.words
    if indexed is None:
        indexed = words(passage.text, None if passage.document else passage.at, passage.tags)
    return PassageRow(agent=agent, **(_values(passage) | {"words": indexed}))
