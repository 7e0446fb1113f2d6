"""The slash commands for memory and agents: view, edit, search, save, load and switch."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path

from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line
from agent_core.memory.planned_edit import PlannedEdit
from agent_core.workspace.portable import read_file
from sandbox.wire.lines import bare_lines

from .agents import agents_listing, listing_lines, report_lines, waiting_lines, write_new
from .attached import report_lines as attached_lines
from .by_hand import text_from_editor, undo_block, write_block
from .catalogue import needed
from .conversation import Conversation
from .memories import found_lines, history_document, history_lines, memory_document, memory_lines, total_line
from .spans import Line, indented, line
from .state import opened_state

Run = Callable[[Conversation, str], Awaitable[None]]


async def _memory(talk: Conversation, words: str) -> None:
    verb, _, arguments = words.partition(" ")
    run = _VERBS.get(verb)
    if run is not None:
        await run(talk, arguments.strip())
        return
    async with opened_state(talk.workspace.root) as state:
        data = await memory_document(state.store, talk.agent.name, words)
    talk.voice.lines([*memory_lines(data), *([] if words else [total_line(data)])])


async def _edit(talk: Conversation, words: str) -> None:
    label, _, text = needed(words, "memory").partition(" ")
    blocks = talk.agent.memory.blocks
    before = blocks.memory[label].text
    new = text.strip() or await _edited(talk, label, before)
    _tell(talk, None if new is None else await write_block(blocks, label, new))


async def _history(talk: Conversation, words: str) -> None:
    async with opened_state(talk.workspace.root) as state:
        data = await history_document(state.store, talk.agent.name, words)
    _show(talk, history_lines(data), "Nothing was ever changed.")


async def _undo(talk: Conversation, words: str) -> None:
    _tell(talk, await undo_block(talk.agent.memory.blocks, words))


async def _search(talk: Conversation, words: str) -> None:
    query = needed(words, "memory")
    query_arguments = f"{shlex.quote(query)} --agent {shlex.quote(talk.agent.name)}"
    async with talk.command():
        messages = await talk.agent.memory.recall.search(query)
        passages = await talk.agent.memory.archival.search(query)
        talk.voice.lines(
            [
                row
                for results in (messages, passages)
                for row in found_lines(results, query_arguments, ", once you have left")
            ]
        )


async def _section(talk: Conversation, words: str) -> None:
    sections = talk.agent.memory.sections
    name, _, arguments = words.partition(" ")
    if not name or not arguments.strip():
        rows = [row for row in await sections.list() if name in ("", row.name)]
        shown = [
            [line(("name", row.name), ("dim", f"  at {row.position}")), *map(line, bare_lines(row.text))]
            for row in rows
        ]
        none = f"There is no section {name}." if name else "No section yet."
        _show(talk, [row for lines in shown for row in lines], f"{none} /memory section NAME POSITION TEXT makes one.")
        return
    position, _, text = arguments.strip().partition(" ")
    if position == "drop":
        await sections.drop(name)
    elif position.lstrip("-").isdigit() and text.strip():
        await sections.set(name, int(position), text.strip())
    else:
        raise UsageError("A section has a name, a position and a text.", fix="Type /memory section NAME 10 TEXT.")
    _done(
        talk, f"the section {name} is {'taken away' if position == 'drop' else 'kept'}; it counts from the next turn on"
    )


async def _summarize(talk: Conversation, words: str) -> None:
    async with talk.command():
        talk.voice.lines([line(row) for row in bare_lines(await talk.agent.summarize())])


async def _memorywarning(talk: Conversation, words: str) -> None:
    await talk.agent.warn_memory()
    await talk.wake()


async def _heartbeat(talk: Conversation, words: str) -> None:
    await talk.agent.talk.post("heartbeat", words or "the user asked for it.")
    await talk.wake()


async def _attach(talk: Conversation, words: str) -> None:
    place = needed(words, "attach")

    def hear(done: int, total: int, name: str) -> None:
        talk.voice.status(f"{done:,} of {total:,} passages of {one_line(name, 60)}" if done < total else "")

    async with talk.command():
        try:
            talk.voice.lines(attached_lines(await talk.agent.memory.sources.add(place, hear)))
        finally:
            talk.voice.status("")


async def _agents(talk: Conversation, words: str) -> None:
    async with opened_state(talk.workspace.root) as state:
        data = await agents_listing(state)
    talk.voice.lines(listing_lines(data, talk.agent.name))


async def _switch(talk: Conversation, words: str) -> None:
    name = needed(words, "switch")
    if name == talk.agent.name:
        raise UsageError(f"You are already talking to {name}.")
    async with opened_state(talk.workspace.root) as state:
        names = await state.moves.names()
    if name not in names and not await talk.voice.confirm(f"There is no agent {name}. Create it?"):
        return
    await talk.switch(name)
    await talk.greet()


async def _save(talk: Conversation, words: str) -> None:
    path = words or f"{talk.agent.name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}.json"
    async with opened_state(talk.workspace.root) as state:
        text = await state.moves.export(talk.agent.name)
    await asyncio.to_thread(write_new, path, text)
    _done(talk, f"{talk.agent.name} is in {path}")


async def _load(talk: Conversation, words: str) -> None:
    """Load an agent from a file. Check the whole file before asking, and replace this agent only once the other is
    ready.
    """
    name, path = talk.agent.name, Path(needed(words, "load"))
    text = await asyncio.to_thread(read_file, path)
    async with opened_state(talk.workspace.root) as state:
        whole, report = await state.moves.check(text, name, path.stem)
        talk.voice.lines(waiting_lines(report.inbox, report.waiting))
        if not await talk.voice.confirm(f"Replace {name}, conversation and memory, with the agent in {words}?"):
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


async def _edited(talk: Conversation, name: str, text: str) -> str | None:
    async with talk.aside():
        return await text_from_editor(name, text)


def _tell(talk: Conversation, edit: PlannedEdit | None) -> None:
    if edit is None:
        talk.voice.lines([line(("dim", "Nothing was changed."))])
    elif edit.outcome == "returned":
        _done(talk, edit.text)
    else:
        raise UsageError(edit.text)


def _show(talk: Conversation, lines: Sequence[Line], nothing: str) -> None:
    talk.voice.lines(lines or [line(("dim", nothing))])


def _done(talk: Conversation, sentence: str) -> None:
    first, *more = bare_lines(sentence)
    talk.voice.lines([line(("ok", "✓ "), first), *indented(map(line, more))])


_VERBS: dict[str, Run] = {
    "edit": _edit,
    "history": _history,
    "undo": _undo,
    "search": _search,
    "section": _section,
}
RUNS: dict[str, Run] = {
    "memory": _memory,
    "summarize": _summarize,
    "memorywarning": _memorywarning,
    "heartbeat": _heartbeat,
    "attach": _attach,
    "agents": _agents,
    "switch": _switch,
    "save": _save,
    "load": _load,
}
