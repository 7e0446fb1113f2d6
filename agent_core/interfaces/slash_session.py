"""The slash commands for the session itself: its cost, and undoing its last action."""

from collections.abc import AsyncIterator, Awaitable, Callable

from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line
from agent_core.functions.service.history import Version

from . import deeds
from .by_hand import undo_block
from .conversation import Conversation
from .deeds import Deed
from .memories import edit_says
from .spans import Line, line
from .spending import spending_lines
from .verdicts import verdict_lines


async def _cost(talk: Conversation, words: str) -> None:
    talk.voice.lines(spending_lines(talk.spending))


async def _undo(talk: Conversation, words: str) -> None:
    last = deeds.latest([deed async for deed in _deeds(talk)])
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
        yield Deed(at, deeds.message_says(message), lambda: _unsay(talk))


async def _function(talk: Conversation, name: str) -> Deed | None:
    try:
        versions = await talk.workspace.workshop.past.versions(name)
    except UsageError:  # what was touched was never there
        return None
    live_versions = deeds.states(versions, talk.deeds.undone, name)
    if not live_versions or live_versions[-1].row.at < talk.deeds.began:
        return None
    last, before = live_versions[-1], live_versions[-2] if len(live_versions) > 1 else None
    if before is None or not before.hash:
        return Deed(last.row.at, f"delete {name}, made by {last.who}", lambda: _unmake(talk, name))
    change = f"change {name} back to version {before.number} ({before.who}, {before.when})"
    bring = f"bring {name} back, which {last.who} deleted ({last.when})"
    return Deed(last.row.at, change if last.hash else bring, lambda: _restore(talk, name, before))


async def _block(talk: Conversation, label: str) -> Deed | None:
    change = deeds.last_edit(await talk.agent.memory.blocks.history(label))
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


RUNS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {"cost": _cost, "undo": _undo}
