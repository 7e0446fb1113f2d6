"""The slash commands for the session itself: its cost, undoing its last action, its conversation, model and agent."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from agent_core.base.errors import UsageError
from agent_core.base.messages import Answer, Assistant, Message, Notice, System, User
from agent_core.base.untrusted import one_line
from agent_core.functions.service.history import Version
from agent_core.workspace.portable import read_file, write_file
from sandbox.wire.lines import bare_lines

from . import undo_log
from .catalogue import BY_NAME, needed
from .conversation import Conversation
from .manual_edits import undo_block
from .render.agent_view import report_lines, waiting_lines
from .render.memory_view import edit_says
from .render.verdicts import compact_call, verdict_lines
from .spans import Line, line, plain
from .spending import spending_lines
from .state import opened_state
from .undo_log import Deed


async def _cost(talk: Conversation, words: str) -> None:
    talk.voice.lines(spending_lines(talk.spending))


async def _undo(talk: Conversation, words: str) -> None:
    last = undo_log.latest([deed async for deed in _deeds(talk)])
    talk.voice.lines(await _not_undone(talk, last.at if last else 0.0))
    if last is None:
        fix = "For older changes: /rollback NAME, /memory undo, /pop."
        raise UsageError("Nothing was changed or said in this session.", fix=fix)
    if await talk.voice.confirm(f"This would {last.says}."):
        await last.undo()
    else:
        talk.voice.lines([line(("dim", "Nothing was changed."))])


async def _deeds(talk: Conversation) -> AsyncIterator[Deed]:
    for name in talk.deeds.functions:
        if deed := await _function(talk, name):
            yield deed
    for row in talk.agent.memory.blocks.rows:
        if deed := await _block(talk, row.label):
            yield deed
    if talk.deeds.messages:
        at, message = talk.deeds.messages[-1]
        yield Deed(at, undo_log.message_says(message), lambda: _unsay(talk))


async def _function(talk: Conversation, name: str) -> Deed | None:
    try:
        versions = await talk.workspace.workshop.past.versions(name)
    except UsageError:  # what was touched was never there
        return None
    live_versions = undo_log.states(versions, talk.deeds.undone, name)
    if not live_versions or live_versions[-1].row.at < talk.deeds.began:
        return None
    last, before = live_versions[-1], live_versions[-2] if len(live_versions) > 1 else None
    if before is None or not before.hash:
        return Deed(last.row.at, f"delete {name}, made by {last.who}", lambda: _unmake(talk, name))
    change = f"change {name} back to version {before.number} ({before.who}, {before.when})"
    bring = f"bring {name} back, which {last.who} deleted ({last.when})"
    return Deed(last.row.at, change if last.hash else bring, lambda: _restore(talk, name, before))


async def _block(talk: Conversation, label: str) -> Deed | None:
    change = undo_log.last_edit(await talk.agent.memory.blocks.history(label))
    if change is None or change.at < talk.deeds.began:
        return None
    says = f"restore the block {label} as it was before {edit_says(change)}"
    return Deed(change.at, says, lambda: _forget(talk, label))


async def _not_undone(talk: Conversation, since: float) -> list[Line]:
    """Return what was done after the last action that can be undone here, and how to undo that."""
    memory, now = talk.agent.memory, max(since, talk.deeds.began)
    newer = [
        (row.edited, f"The section {row.name}", f"/memory section {row.name} drop removes it")
        for row in await memory.sections.list()
    ]
    newer += [
        (row.at, f"The source {one_line(row.name)}", f"toolwright sources remove {row.hash[:8]} forgets it")
        for row in await memory.sources.list()
    ]
    at, action, how = max(newer, default=(0.0, "", ""))
    return [line(("warn", f"{action} came last and is not undone here: {how}."))] if at > now else []


async def _unmake(talk: Conversation, name: str) -> None:
    result = await talk.workspace.workshop.delete(name)
    await _note_undone(talk, name)
    talk.voice.lines([line(("ok", "✓ "), f"deleted {result.name} from {result.module}")])


async def _restore(talk: Conversation, name: str, version: Version) -> None:
    verdict = await talk.workspace.workshop.rollback(name, version.hash)
    if verdict.admitted:
        await _note_undone(talk, name)
    talk.voice.lines(verdict_lines(verdict))


async def _note_undone(talk: Conversation, name: str) -> None:
    """Note that the latest version is not an action, because it undid one."""
    talk.deeds.undone.add((name, (await talk.workspace.workshop.past.versions(name))[-1].number))


async def _forget(talk: Conversation, label: str) -> None:
    edit = await undo_block(talk.agent.memory.blocks, label)
    if edit.outcome != "returned":
        raise UsageError(edit.text)
    talk.voice.lines([line(("ok", "✓ "), edit.text)])


async def _unsay(talk: Conversation) -> None:
    message = await talk.agent.pop()
    talk.deeds.messages.pop()
    summary = (
        line(("ok", "✓ "), "removed from the context: ", ("strong", message))
        if message
        else line("It was already removed.")
    )
    talk.voice.lines([summary])


async def _pop(talk: Conversation, words: str) -> None:
    message = await talk.agent.pop()
    lines = [line(("ok", "✓ "), "removed from the context: ", ("strong", message))] if message else None
    talk.voice.lines(lines or [line(("dim", "There is no turn to remove."))])


async def _new(talk: Conversation, words: str) -> None:
    turns = await talk.agent.begin_anew()
    many = f"{turns} turn{'' if turns == 1 else 's'}"
    message = f"A new conversation. {many} left the context and stay{'s' if turns == 1 else ''} on record."
    talk.voice.lines([line(("ok", "✓ "), message) if turns else line(("dim", "The conversation is already new."))])


async def _retry(talk: Conversation, words: str) -> None:
    if await talk.agent.ends_with_a_file():
        raise UsageError("The last message came with an agent's file.", fix="Type it yourself to send it.")
    message = await talk.agent.pop()
    if message is None:
        raise UsageError("There is no message to send again.")
    first, *others = message.split("\n")
    talk.voice.lines([line(("name", "› "), ("strong", first)), *(line("  ", ("strong", text)) for text in others)])
    await talk.say(message)


async def _dump(talk: Conversation, words: str) -> None:
    lines = [row for message in await talk.agent.history() for row in _message_lines(message)]
    if not words:
        talk.voice.lines(lines or [line(("dim", "Nothing was said yet."))])
        return
    await asyncio.to_thread(write_file, words, plain(lines))
    talk.voice.lines([line(("ok", "✓ "), f"{len(lines)} lines in {words}")])


async def _model(talk: Conversation, words: str) -> None:
    if " " in words:
        raise UsageError("A model's name has no space.", fix=f"Type {BY_NAME['model'].typed}.")
    message = await (talk.agent.set_model(words) if words else talk.agent.model_line())
    talk.voice.lines([line(message)])


def _message_lines(message: Message) -> list[Line]:
    match message:
        case Assistant():
            call_lines = [line("  ▸ ", compact_call(call.name, call.arguments)) for call in message.calls]
            return [*_speech_lines("assistant", message.text), *call_lines]
        case Answer():
            return _speech_lines(f"answer of {message.name}", message.text)
        case System() | User() | Notice():
            return _speech_lines(type(message).__name__.lower(), message.text)


def _speech_lines(who: str, text: str) -> list[Line]:
    return [line(("strong", who)), *(line("  ", row) for row in bare_lines(text))]


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
        raise UsageError(f"You are already talking to {name}.")
    async with opened_state(talk.workspace.root) as state:
        names = await state.moves.names()
    if name not in names and not await talk.voice.confirm(f"There is no agent {name}. Create it?"):
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


RUNS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {
    "cost": _cost,
    "undo": _undo,
    "pop": _pop,
    "new": _new,
    "retry": _retry,
    "dump": _dump,
    "model": _model,
    "summarize": _summarize,
    "memorywarning": _memorywarning,
    "heartbeat": _heartbeat,
    "switch": _switch,
    "load": _load,
}
