"""The slash commands for memory and agents: view, edit, search, save, load and switch."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_core.base.errors import UsageError
from agent_core.workspace.portable import read_file
from sandbox.wire.lines import bare_lines

from .agents import report_lines, waiting_lines
from .by_hand import write_section
from .catalogue import needed
from .commands.verb import Result
from .conversation import Conversation
from .spans import line
from .state import opened_state

Run = Callable[[Conversation, str], Awaitable[None]]


async def section(talk: Conversation, words: str) -> Result:
    """List the sections of the system message, set one, or drop one."""
    sections = talk.agent.memory.sections
    name, _, arguments = words.partition(" ")
    position, _, text = arguments.strip().partition(" ")
    if not name or not position:
        rows = [row for row in await sections.list() if name in ("", row.name)]
        shown = [
            [line(("name", row.name), ("dim", f"  at {row.position}")), *map(line, bare_lines(row.text))]
            for row in rows
        ]
        none = f"There is no section {name}." if name else "No section yet."
        hint = "" if rows else f"{none} /memory section NAME POSITION TEXT makes one."
        return Result(None, [row for lines in shown for row in lines], hint)
    if position != "drop" and not (position.lstrip("-").isdigit() and text.strip()):
        raise UsageError("A section has a name, a position and a text.", fix="Type /memory section NAME 10 TEXT.")
    number, text = (0, "") if position == "drop" else (int(position), text.strip())
    return Result(None, [line(("ok", "✓ "), await write_section(sections, name, number, text))])


async def _summarize(talk: Conversation, words: str) -> None:
    async with talk.command():
        talk.voice.lines([line(row) for row in bare_lines(await talk.agent.summarize())])


async def _memorywarning(talk: Conversation, words: str) -> None:
    await talk.agent.warn_memory()
    await talk.wake()


async def _heartbeat(talk: Conversation, words: str) -> None:
    await talk.agent.talk.post("heartbeat", words or "the user asked for it.")
    await talk.wake()


async def _switch(talk: Conversation, words: str) -> None:
    name = needed(words, "switch")
    if name == talk.agent.name:
        raise UsageError(f"You talk to {name} already.")
    async with opened_state(talk.workspace.root) as state:
        names = await state.moves.names()
    if name not in names and not await talk.voice.confirm(f"There is no agent {name}. Begin one?"):
        return
    await talk.switch(name)
    await talk.greet()


async def _load(talk: Conversation, words: str) -> None:
    """Load an agent from a file. Check the whole file before asking, and replace this agent only once the other is
    ready.
    """
    name, path = talk.agent.name, Path(needed(words, "load"))
    text = await asyncio.to_thread(read_file, path)
    async with opened_state(talk.workspace.root) as state:
        whole, report = await state.moves.check(text, name, path.stem)
        talk.voice.lines(waiting_lines(report.inbox, report.waiting))
        if not await talk.voice.confirm(f"Put what is in {words} in the place of {name}, conversation and memory?"):
            talk.voice.lines([line(("dim", "Nothing was changed."))])
            return
        await talk.agent.aclose()
        try:
            with state.alone(name):
                await state.moves.replace(whole, report)
        finally:
            await talk.switch(name)
    talk.voice.lines(report_lines(report))
    await talk.greet()


RUNS: dict[str, Run] = {
    "summarize": _summarize,
    "memorywarning": _memorywarning,
    "heartbeat": _heartbeat,
    "switch": _switch,
    "load": _load,
}
