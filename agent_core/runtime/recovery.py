"""The end of a turn: answers to calls that have none, so that its history is valid, and its last event."""

from collections.abc import Sequence

from agent_core.base import events
from agent_core.functions.answers import Skipped, Unknown, answer, word
from agent_core.storage import ClaimedTurn as Claimed
from agent_core.storage import Entry, TurnStore

from .session import AgentSession
from .turn import Turn, entry_of, notice, unanswered
from .turn_policy import Ended


def closing_answers(entries: Sequence[Entry]) -> list[Entry]:
    """Return an answer for each unanswered call of a turn's last reply; one that was started may have taken effect."""
    return [_unsettled(call.id, call.name, started=started) for call, started in unanswered(entries)]


async def settle(store: TurnStore, claimed: Claimed, talk: AgentSession) -> str:
    """Close a turn that another process left open: every call gets its one answer."""
    entries = await store.load(claimed.id)
    closing = closing_answers(entries)
    closing.append(notice("The program was stopped here. The user may ask you to go on."))
    n = claimed.n
    if not any(entry.kind in ("user", "notice") for entry in entries):
        closing.insert(0, entry_of(claimed.event, talk.style, talk.clock.now()))
    await store.append(claimed.id, claimed.attempt, n, closing)
    await store.finish(claimed.id, claimed.attempt, "interrupted")
    unknown = [entry.payload["name"] for entry in closing if entry.payload.get("outcome") == "unknown"]
    calls = f" Whether these calls took effect is unknown: {', '.join(unknown)}." if unknown else ""
    return f"The last turn was cut off when the program was stopped.{calls} /retry sends its message again."


def _unsettled(call_id: str, name: str, *, started: bool) -> Entry:
    outcome = Unknown() if started else Skipped("the turn ended before it was started.")
    payload = {"call_id": call_id, "name": name, "text": answer(outcome, 1000)}
    return Entry("result", {**payload, "outcome": word(outcome), "seconds": 0.0, "detail": {}})


def last_event(turn: Turn, ended: Ended) -> events.TurnEnded:
    """Return the event at the end of a turn."""
    return events.TurnEnded(
        turn=turn.id,
        step=turn.step,
        reason=ended.reason,
        reply=ended.reply,
        steps=turn.step,
        usage=turn.tokens,
        made=turn.completed_changes,
    )
