"""A conversation as Markdown: a head for each turn, what was said, each call with its result, and the receipt."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from agent_core.base.clock import shown_time
from agent_core.base.messages import SEND
from agent_core.base.untrusted import fence
from agent_core.runtime.turn import RECEIPT, receipt_in
from agent_core.storage import STREAMED, SUMMARY, Entry
from sandbox.wire.foreign import LOOSE, read_json
from sandbox.wire.lines import bare_lines

from .verdicts import compact_call

_LONGEST = 400  # characters of a call, and of its result


def turns_of(entries: Iterable[Entry], since: float = 0.0, last: int | None = None) -> list[list[Entry]]:
    """Return the entries turn by turn: those that began at a time or later, and of them the last few."""
    turns = [[*group] for _, group in groupby(entries, key=lambda entry: entry.turn)]
    turns = [turn for turn in turns if turn[0].at >= since]
    return turns if last is None else turns[-last:]


def transcript(agent: str, turns: Sequence[Sequence[Entry]]) -> str:
    """Return the conversation as Markdown."""
    parts = [part for turn in turns for part in (f"## {shown_time(turn[0].at)}", *_turn(agent, turn))]
    return "\n\n".join([f"# Conversation with {agent}", *parts]) + "\n"


def transcript_document(agent: str, turns: Sequence[Sequence[Entry]]) -> dict[str, Any]:  # Any: JSON
    """Return the same as data: each turn with its entries as they are on record."""
    return {
        "agent": agent,
        "turns": [
            {
                "turn": turn[0].turn,
                "at": turn[0].at,
                "entries": [{"kind": entry.kind, "at": entry.at, **entry.payload} for entry in turn],
            }
            for turn in turns
        ],
    }


def _turn(agent: str, turn: Sequence[Entry]) -> Iterator[str]:
    results = {entry.payload.get("call_id"): entry.payload for entry in turn if entry.kind == "result"}
    for entry in turn:
        text = str(entry.payload.get("text") or "").strip()
        match entry.kind:
            case "user":
                yield f"**You:** {text}"
            case "assistant":
                yield from _reply(agent, text, entry.payload.get("calls") or (), results)
            case "notice":
                yield "\n".join(f"> {row}" for row in bare_lines(text))
            case kind if kind == STREAMED:
                yield f"**{agent}:** {text} […]"
                yield "> The reply is cut off here: the program was stopped, or the rest is still coming."
            case kind if kind == SUMMARY:
                yield "> What was said before this was summarized for the model."
            case kind if kind == RECEIPT:
                yield f"> This turn: {fence(receipt_in([entry]).text, _LONGEST)}"
            case _:
                pass


def _reply(
    agent: str,
    text: str,
    calls: Sequence[dict[str, Any]],  # Any: JSON
    results: dict[Any, dict[str, Any]],  # Any: JSON
) -> Iterator[str]:
    sent = [_message(call) for call in calls if call.get("name") == SEND]
    if text:  # next to a message that is sent, it is a thought
        yield "*" + " ".join(bare_lines(text)) + "*" if sent else f"**{agent}:** {text}"
    others = [_call(call, results.get(call.get("id"))) for call in calls if call.get("name") != SEND]
    if others:
        yield "\n".join(others)
    yield from (f"**{agent}:** {message}" for message in sent)


def _message(call: dict[str, Any]) -> str:  # Any: JSON
    try:
        arguments = read_json(str(call.get("arguments") or "{}"), LOOSE)
    except ValueError:
        return str(call.get("arguments"))
    return str(arguments.get("message", "")) if isinstance(arguments, dict) else str(arguments)


def _call(call: dict[str, Any], result: dict[str, Any] | None) -> str:  # Any: JSON
    shown = fence(compact_call(str(call.get("name")), str(call.get("arguments") or "")), _LONGEST)
    if result is None:
        return f"- {shown}: no answer"
    answer = fence(str(result.get("text", "")).strip(), _LONGEST)
    outcome = str(result.get("outcome", ""))
    return f"- {shown} → {answer}" + (f" ({outcome})" if outcome not in ("", "returned") else "")
