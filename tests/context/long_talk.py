"""A long conversation with planted facts, against a model that rejects requests longer than its window."""

import json
from collections.abc import Callable
from pathlib import Path

from agent_core.base.clock import Clock
from agent_core.context import PRESSURE
from agent_core.storage import SUMMARY, Entry, open_store
from tests.kit import Say, Seen, Step
from tests.kit.desk import Desk, ended

EVERY = 10
LAST = (
    "Arnesen",
    "Borg",
    "Caruso",
    "Dvorak",
    "Egede",
    "Fontaine",
    "Grieg",
    "Holm",
    "Ibsen",
    "Juhl",
)
NAMES = (
    "Mitya",
    "Aurelio",
    "Brunhilde",
    "Casimir",
    "Dagny",
    "Eskil",
    "Fenella",
    "Gaspard",
    "Hildur",
    "Ignatius",
)


def whose(number: int) -> str:
    """Return the person that a fact is about, one of a hundred."""
    place = number // EVERY
    return f"{NAMES[place % 10]} {LAST[place // 10 % 10]}"


def fact(number: int) -> str:
    """Return a fact that is mentioned once."""
    return f"the locker of {whose(number)} has the code {number * 7919 % 90_000 + 10_000}"


def message(number: int) -> str:
    """Return the user's message in one turn: every tenth is a fact."""
    if number % EVERY == 0:
        return f"Please remember that {fact(number)}."
    return f"Now tell me something about the weather of day {number}, with a few words on wind and clouds."


def talkative(written: Callable[[str], Step]) -> Callable[[Seen], Step]:
    """Return a model that answers in a few sentences, different each time."""

    def reply(seen: Seen) -> Step:
        size = len(seen.text) % 7
        return written("Clouds came and went, and the wind was fresh. " * (size + 2))

    return reply


def in_json(text: str) -> Step:
    """Return a model's reply under a schema."""
    return Say(json.dumps({"thought": "I reply.", "reply": text}))


async def talk(here: Desk, turns: int) -> None:
    """Run this many turns; the user must see no rejection."""
    for number in range(turns):
        last = ended(await here.say(message(number)))
        assert last.reason == "replied", (number, last)


async def not_found(here: Desk, turns: int) -> list[str]:
    """Return the facts that are not on the first page of a search for their person."""
    found = {
        number: str(
            await here.agent.memory.recall.search(f"Which code has the locker of {whose(number)}?")
        )
        for number in range(0, turns, EVERY)
    }
    return [fact(number) for number, text in found.items() if fact(number) not in text]


async def journal(root: Path) -> list[Entry]:
    """Return the whole record, including the summaries."""
    store = open_store(root / ".knapper" / "state.db", clock=Clock())
    try:
        return await store.history("main", kinds=("user", "assistant", "result", "notice", SUMMARY))
    finally:
        await store.close()


def periods(entries: list[Entry]) -> list[int]:
    """Return how often the model was warned between two compactions."""
    counts = [0]
    for entry in entries:
        if entry.kind == SUMMARY:
            counts.append(0)
        elif entry.kind == "notice" and entry.payload["text"] == PRESSURE.text:
            counts[-1] += 1
    return counts
