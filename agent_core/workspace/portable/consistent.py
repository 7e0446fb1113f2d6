"""Consistency checks between the parts of a file: unique names, histories in order, every call answered once."""

from hashlib import sha256

from agent_core.base.untrusted import one_line

from .caps import LONGEST_SETTINGS, MOST_CHANGES, MOST_ENTRIES, MOST_EVENTS, at_most
from .document import AgentFile, AnsweredPart, BlockPart, ReplyPart, SummedPart, ToldPart, TurnPart
from .errors import AgentFileError
from .packed import unpacked
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
        _block(f"blocks[{at}]", block)
    _texts(file)
    _turns(file)


def _block(where: str, block: BlockPart) -> None:
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


def _texts(file: AgentFile) -> None:
    for name, text in file.texts.items():
        if sha256(text.encode()).hexdigest() != name:
            raise AgentFileError(f"texts.{name}", "expected the text that has this SHA-256")


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
            if isinstance(entry, ToldPart) and entry.kind == "user" and _poses(entry.payload.packed):
                raise AgentFileError(f"{where}.entries[{n}].payload.packed", "expected the type `user_message`")


def _poses(packed: str) -> bool:
    """Whether what is packed as the user's is something else to a model that reads it."""
    return bool(packed) and unpacked(packed).kind != "user_message"


def _answers(where: str, turn: TurnPart) -> None:
    """Raise an error if a call has no answer: no request with an unanswered call is ever sent."""
    open_calls: set[str] = set()
    for n, entry in enumerate(turn.entries):
        if isinstance(entry, AnsweredPart):
            if entry.payload.call_id not in open_calls:
                raise AgentFileError(f"{where}.entries[{n}].payload.call_id", "expected a call that waits for it")
            open_calls.discard(entry.payload.call_id)
        elif isinstance(entry, ReplyPart):
            _closed(where, n, open_calls)
            call_ids = [call.id for call in entry.payload.calls]
            once(f"{where}.entries[{n}].payload.calls", "id", call_ids)
            open_calls = set(call_ids)
    if turn.state != "open":
        _closed(where, len(turn.entries), open_calls)


def _closed(where: str, n: int, open_calls: set[str]) -> None:
    if open_calls:
        name = one_line(min(open_calls), 60)
        raise AgentFileError(f"{where}.entries", f"expected an answer of the call `{name}` before entry {n}")
