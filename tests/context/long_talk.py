"""A long conversation with facts planted in it, against a model that refuses what is longer than its window."""

import json
from collections.abc import Callable
from pathlib import Path

from agent_core.clock import Clock
from agent_core.context import KIND, PRESSURE
from agent_core.storage import Entry, open_store
from tests.kit import Say, ScriptedModel, Seen, Step
from tests.kit.desk import Desk, desk, ended

EVERY = 10
NAMES = ("Mitya", "Aurelio", "Brunhilde", "Casimir", "Dagny", "Eskil", "Fenella", "Gaspard", "Hildur", "Ignatius")


def fact(number: int) -> str:
    """A fact that is told once."""
    return f"the locker of {NAMES[number // EVERY % len(NAMES)]} has the code {number * 7919 % 90_000 + 10_000}"


def message(number: int) -> str:
    """What the user says in one turn: every tenth time a fact."""
    if number % EVERY == 0:
        return f"Please remember that {fact(number)}."
    return f"Now tell me something about the weather of day {number}, with a few words on wind and clouds."


def talkative(written: Callable[[str], Step]) -> Callable[[Seen], Step]:
    """A model that answers in some sentences, each time others."""

    def reply(seen: Seen) -> Step:
        size = len(seen.text) % 7
        return written("Clouds came and went, and the wind was fresh. " * (size + 2))

    return reply


def in_json(text: str) -> Step:
    """A reply of a model that writes under a schema."""
    return Say(json.dumps({"thought": "I reply.", "reply": text}))


async def talk(root: Path, model: ScriptedModel, turns: int, **flags: object) -> Desk:
    """So many turns, none of them refused to the user."""
    async with desk(root, model, **flags) as here:
        for number in range(turns):
            last = ended(await here.say(message(number)))
            assert last.reason == "replied", (number, last)
        return here


async def journal(root: Path) -> list[Entry]:
    """All that was said, and what stands for it."""
    store = open_store(root / ".toolwright" / "state.db", clock=Clock())
    try:
        return await store.history("main", kinds=("user", "assistant", "result", "notice", KIND))
    finally:
        await store.close()


def periods(entries: list[Entry]) -> list[int]:
    """How often the model was warned in each period between two compactions."""
    counts = [0]
    for entry in entries:
        if entry.kind == KIND:
            counts.append(0)
        elif entry.kind == "notice" and entry.payload["text"] == PRESSURE.text:
            counts[-1] += 1
    return counts
