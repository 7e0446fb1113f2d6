"""How a turn is closed: the answers to calls that have none, so that its history is valid, and its last event."""

from collections.abc import Sequence

from . import events
from .answers import Skipped, Unknown, answer, word
from .course import Ended
from .storage import Entry
from .turn import Turn, unanswered


def closing_answers(entries: Sequence[Entry]) -> list[Entry]:
    """An answer to each call of a turn's last reply that has none; one that was started may have taken effect."""
    return [_unsettled(call.id, call.name, started=started) for call, started in unanswered(entries)]


def _unsettled(call_id: str, name: str, *, started: bool) -> Entry:
    outcome = Unknown() if started else Skipped("the turn ended before it was started.")
    said = {"call_id": call_id, "name": name, "text": answer(outcome, 1000)}
    return Entry("result", {**said, "outcome": word(outcome), "seconds": 0.0, "detail": {}})


def last_event(turn: Turn, ended: Ended) -> events.TurnEnded:
    """What is told at the end of a turn."""
    return events.TurnEnded(
        turn=turn.id,
        step=turn.step,
        reason=ended.reason,
        reply=ended.reply,
        steps=turn.step,
        usage=turn.tokens,
        made=turn.made,
    )
