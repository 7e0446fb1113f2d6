"""`knapper log`: a conversation as Markdown, to read or to keep."""

import asyncio
from typing import Any

import click

from ..spans import line
from .verb import Door, OfAgent, Opens, Result, slash, verb


@slash(
    "log [--last N] [--since DATE] [--all] [-o FILE]",
    "Show this conversation as Markdown, or write it to FILE; `--all`: with what /new and /pop removed.",
    takes="--last --since --all -o",
    in_turn=True,
    shows=r"(?:--all|--last \d+|--since [\w:.+-]+| )*",
)
@verb(opens=Opens.NOTHING)
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N turns.")
@click.option(
    "--since", default="", metavar="DATE", help="Only turns since then: 2026-11-20, yesterday, two hours ago."
)
@click.option("--all", "with_removed", is_flag=True, help="Also what /new and /pop removed from the context.")
@click.option("--output", "-o", "file", default="", metavar="FILE", help="Write it to FILE, which must not exist.")
async def log(door: Door, *, agent: OfAgent, file: str, **options: Any) -> Result:  # Any: the options above
    """Show a conversation as Markdown, each turn with its receipt. What was summarized for the model is there in
    full, and so is what came of a reply that is cut off. Needs no lock.
    """
    from agent_core.memory import dates
    from agent_core.runtime.turn import RECEIPT
    from agent_core.storage.turn_store import SAID
    from agent_core.workspace.portable import NoAgent, write_file

    from ..render.memory_view import transcript, transcript_document, turns_of

    async with door.state() as state:
        name, names = agent or door.agent_name or state.agent, await state.moves.names()
        if agent and agent not in names:
            raise NoAgent(agent, names)
        since = dates.read(options["since"], await state.store.now())[0] if options["since"] else 0.0
        store = state.store
        said = await store.history(name, kinds=(*SAID, RECEIPT), with_removed=options["with_removed"])
        entries = [*said, *await store.streamed(name)]
    turns = turns_of(entries, since, options["last"])
    if not turns:
        return Result({"agent": name, "turns": []}, hint=_nothing(name, [other for other in names if other != name]))
    text, document = transcript(name, turns), transcript_document(name, turns)
    if file:
        await asyncio.to_thread(write_file, file, text)
        count = f"{len(turns)} turn{'' if len(turns) == 1 else 's'}"
        return Result({"agent": name, "file": file, "turns": len(turns)}, [line(("ok", "✓ "), f"{count} in {file}")])
    return Result(document, [line(row) for row in text.removesuffix("\n").split("\n")])


def _nothing(name: str, others: list[str]) -> str:
    if not others:
        return "Nothing was said."
    there = f"Other agents: {', '.join(others[:20])}. " if len(others) > 1 else ""
    return f"Nothing was said to {name}. {there}Next: knapper log --agent {others[0]}"
