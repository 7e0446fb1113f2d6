"""The API of agents: messages, events, conversations, and what they remember."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Final

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.runtime.turn import RECEIPT, receipt_in
from agent_core.storage import ENDED, BlockRow
from agent_core.storage.turn_store import SAID
from agent_core.workspace.portable import ImportOptions

from ..manual_edits import set_up_block, undo_block, write_block
from ..render.agent_view import agent_facts, agents_listing
from ..render.memory_view import best_found, found_document, history_document, memory_document, searched
from .chat_threads import ChatThreads
from .event_stream import event_stream
from .failures import ApiRefusal, NotThere
from .journal_events import DONE
from .operations import API, Asked, Operation, Stream
from .parts import Part

MOST_TEXT: Final = 1_000_000
_MOST_SEQ: Final = (1 << 63) - 1


class Message(Part):
    """A message to an agent. A `key` makes a repeat harmless."""

    text: Annotated[str, Field(min_length=1, max_length=MOST_TEXT)]
    key: Annotated[str | None, Field(max_length=200)] = None


class NewAgent(Part):
    """An agent to make."""

    name: Annotated[str, Field(min_length=1, max_length=64)]


class ConversationName(Part):
    """A conversation of an agent, by its name."""

    name: Annotated[str, Field(min_length=1, max_length=64)]


class Document(Part):
    """An agent as a document of this program, MemGPT or Letta. `name`: another name for it; `dry_run`: only report."""

    document: Annotated[str, Field(min_length=1, max_length=2 << 20)]
    name: Annotated[str, Field(max_length=64)] = ""
    dry_run: bool = False


class After(Part):
    """Where events begin: after the one with this number."""

    after: Annotated[int, Field(ge=0, le=_MOST_SEQ)] = 0


class HistoryPart(Part):
    """Which part of a conversation is wanted: so many entries after a number, or so many of the last `before` one."""

    after: Annotated[int, Field(ge=0, le=_MOST_SEQ)] = 0
    before: Annotated[int, Field(ge=0, le=_MOST_SEQ)] = _MOST_SEQ
    count: Annotated[int, Field(ge=1, le=1_000)] = 200
    last: Annotated[int, Field(ge=0, le=1_000)] = 0


class BlockEdit(Part):
    """A change of a block; `version` is the one that it is a change of."""

    version: Annotated[int, Field(ge=0)]
    value: Annotated[str | None, Field(max_length=MOST_TEXT)] = None
    limit: Annotated[int | None, Field(ge=1, le=MOST_TEXT)] = None
    description: Annotated[str | None, Field(max_length=2_000)] = None


class BlockUndo(Part):
    """An undo; with a `version`, only if the block still has it: who looks at it takes back no change unseen."""

    version: Annotated[int | None, Field(ge=0)] = None


class MemoryNeed(Part):
    """What is looked for in recall and archival memory."""

    query: Annotated[str, Field(min_length=1, max_length=2_000)]
    where: Annotated[str, Field(pattern="^(both|recall|archival)$")] = "both"
    page: Annotated[int, Field(ge=0, le=10_000)] = 0
    count: Annotated[int, Field(ge=1, le=100)] = 10


async def agents(asked: Asked) -> object:
    """List the agents that the token may see."""
    listing = await agents_listing(asked.rooms.state)
    names = {row["name"] for row in listing["agents"]}
    empty: dict[str, object] = {"turns": 0, "last_at": None, "messages": 0, "passages": 0, "blocks": []}
    known_names = await asked.rooms.workspace.agent_names()
    listing["agents"] += [{"name": name, **empty} for name in known_names if name not in names]
    seen = await asked.rooms.shown(known_names, asked.identity)
    rows = [row for row in listing["agents"] if row["name"] in seen]
    return {"agents": [{**row, "running": asked.rooms.host.is_running(row["name"])} for row in rows]}


async def make(asked: Asked) -> object:
    """Make an agent, or return the one of that name."""
    name = asked.body.name
    if not asked.identity.sees(name) or not await asked.rooms.shows(name, asked.identity):
        raise UsageError(f"The token may not use an agent `{name}`.")
    agent = await asked.rooms.host.agent(name)
    return {"name": agent.name}


async def converse(asked: Asked) -> object:
    """Begin a conversation of its own with an agent, whose blocks it shares, or return the one of that name."""
    return {"agent": await ChatThreads(asked.rooms).named(await known(asked), asked.body.name)}


async def show(asked: Asked) -> object:
    """Show one agent: settings, blocks, sections, sources, and counts of each."""
    name = await known(asked)
    await asked.rooms.host.agent(name)  # an agent that was never talked to has its blocks from now on
    return {**await agent_facts(asked.rooms.state, name), "running": asked.rooms.host.is_running(name)}


async def delete(asked: Asked) -> object:
    """Delete an agent with its conversation and memory."""
    name = await known(asked)
    if asked.rooms.host.is_running(name):
        raise UsageError(f"`{name}` is at work.", fix="Interrupt it first.")
    if agent := asked.rooms.host.release(name):
        await agent.aclose()
    async with asked.rooms.state.alone(name):
        await asked.rooms.state.moves.delete(name)
    return {"deleted": name}


async def export(asked: Asked) -> object:
    """Return an agent as one document."""
    name = await known(asked)
    return {"document": await asked.rooms.state.moves.export(name)}


async def take_in(asked: Asked) -> object:
    """Make the agents of a document; nothing in it is run, and no agent is overwritten."""
    body = asked.body
    if asked.identity.agents and not await asked.rooms.shows(body.name, asked.identity):
        raise UsageError("The token may use certain agents only.", fix="Give one of them as `name`.")
    options = ImportOptions(body.name, dry_run=body.dry_run)
    return {"agents": await asked.rooms.state.moves.take_in(body.document, options), "dry_run": body.dry_run}


async def post(asked: Asked) -> object:
    """Keep a message on disk, and let the agent answer it; a `key` that another message has is refused."""
    name = await known(asked)
    trace = {"trace": asked.trace} if asked.trace else {}
    posted = await asked.rooms.host.post(name, asked.body.text, asked.body.key, identity=asked.identity, **trace)
    if posted.payload.get("text") != asked.body.text:
        message = "The key is that of another message, so this one was not sent."
        problems = [{"where": "body.key", "message": message, "event": posted.event}]
        raise ApiRefusal(409, "key", message, "Send each message with a key of its own.", problems)
    return {"event": posted.event, "after": posted.after}


async def taken(asked: Asked) -> object:
    """Return which turn took a message; none while it waits."""
    name, event = await known(asked), asked.path["event"]
    return {"event": event, "turn": await asked.rooms.workspace.store.turn_of(event, name)}


async def pop(asked: Asked) -> object:
    """Remove the last turn from the context, not from the record, and return what began it."""
    name = await known(asked)
    removed = await (await asked.rooms.host.idle(name)).pop()
    asked.rooms.host.tell_removed(name)
    return {"removed": removed.text if removed else None}


async def retry(asked: Asked) -> object:
    """Remove the last turn from the context, and send the message that began it again."""
    name = await known(asked)
    removed = await (await asked.rooms.host.idle(name)).pop()
    asked.rooms.host.tell_removed(name)
    if removed is None or not removed.is_message:
        raise UsageError("There is no message to send again.")
    posted = await asked.rooms.host.post(name, removed.text, identity=asked.identity)
    return {"event": posted.event, "after": posted.after, "text": removed.text}


async def new(asked: Asked) -> object:
    """Begin anew: every turn leaves the context, and stays in the record."""
    name = await known(asked)
    turns = await (await asked.rooms.host.idle(name)).begin_anew()
    asked.rooms.host.tell_removed(name)
    return {"turns": turns}


async def interrupt(asked: Asked) -> object:
    """End the running turn; its history stays valid."""
    return {"interrupted": await asked.rooms.host.interrupt(await known(asked))}


async def events(asked: Asked) -> object:
    """Stream the agent's events, beginning after a number. `Last-Event-ID` goes before `after`."""
    name, rooms = await known(asked), asked.rooms
    last = asked.last_event
    after = min(int(last), _MOST_SEQ) if last.isdecimal() and len(last) < 20 else asked.query.after
    frames = event_stream(rooms.host, rooms.state.store, name, after)
    return Stream(_while_shown(asked, name, frames) if asked.identity.agents else frames)


async def messages(asked: Asked) -> object:
    """Return the conversation, oldest first, with numbers; summaries of it are not part of it.

    `ends` are the turns in it that ended otherwise than with a reply, with what the user was told about why;
    `receipts` has what each turn in it did.
    """
    name = await known(asked)
    store, query = asked.rooms.state.store, asked.query
    # As of one number, also if that is of a turn that left the conversation: what comes meanwhile is an event after it.
    newest = await store.last_seq(name) if query.last else _MOST_SEQ
    most = -1 if query.last else query.count
    lasts = (ENDED, RECEIPT)
    found = await store.history(name, since=query.after, kinds=(*SAID, *lasts), most=most)
    read = [entry for entry in found if entry.seq <= newest]
    entries = [entry for entry in read if entry.seq < query.before and entry.kind not in lasts][-query.last :]
    whys = {entry.turn: entry.payload.get("text", "") for entry in read if entry.kind == ENDED}
    ended = await store.ended_turns(name, entries[0].seq) if entries else []
    turns = {entry.turn for entry in entries}
    receipts = {entry.turn: receipt_in([entry]) for entry in read if entry.kind == RECEIPT and entry.turn in turns}
    ends = [
        {"seq": row.seq, "turn": row.id, "reason": row.state, "text": whys.get(row.id, "")}
        for row in ended
        if row.id in turns and row.state != DONE and row.seq <= newest
    ]
    rows = [{"seq": row.seq, "turn": row.turn, "kind": row.kind, "at": row.at, **row.payload} for row in entries]
    after = newest if query.last else entries[-1].seq if entries else query.after
    is_running = asked.rooms.host.is_running(name)
    did = [{"turn": turn, "made": row.to_json(), "receipt": row.text} for turn, row in receipts.items()]
    return {
        "agent": name,
        "messages": rows,
        "ends": ends,
        "receipts": did,
        "running": is_running,
        "after": after,
    }


async def memory(asked: Asked) -> object:
    """Return all blocks and sections of an agent."""
    name = await known(asked)
    await asked.rooms.host.agent(name)
    return await memory_document(asked.rooms.state.store, name)


async def block(asked: Asked) -> object:
    """Return one block with its version and the history of its changes."""
    row = await _block(asked)
    history = await history_document(asked.rooms.state.store, asked.path["agent"], row.label)
    return {**_shown(row), "changes": history["changes"]}


async def edit_block(asked: Asked) -> object:
    """Change a block, if it still has the version that the change was made for."""
    row, body = await _as_seen(asked), asked.body
    blocks = (await asked.rooms.host.agent(asked.path["agent"])).memory.blocks
    about = {name: value for name in ("limit", "description") if (value := getattr(body, name)) is not None}
    if about:
        await set_up_block(blocks, row.label, **about)
    edit = await write_block(blocks, row.label, body.value) if body.value is not None else None
    if edit is not None and edit.outcome != "returned":
        raise UsageError(edit.text)
    return _shown(await _block(asked))


async def undo(asked: Asked) -> object:
    """Take back the last change of a block, if it still has the version that was seen, where one is given."""
    row = await _as_seen(asked)
    edit = await undo_block((await asked.rooms.host.agent(asked.path["agent"])).memory.blocks, row.label)
    return {"block": row.label, "outcome": edit.outcome, "text": edit.text}


async def search_memory(asked: Asked) -> object:
    """Search what was said, and what was archived; `best` has the hits of both, the best first, in short."""
    owner, query = asked.rooms.workspace.memory(await known(asked)), asked.query
    searches, blocks = await searched(owner, **query.model_dump())
    found = {where: found_document(results) for where, results in searches.items()}
    return {**found, "best": best_found([*searches.values()], blocks)}


async def known(asked: Asked) -> str:
    """Return the agent that the path names.

    Raises:
        NotThere: there is none, or the token may not see it.
    """
    return await asked.rooms.known(asked.path["agent"], asked.identity)


async def _while_shown(asked: Asked, agent: str, frames: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield the frames of an agent until it no longer exists for the token: a group may get other members."""
    async with aclosing(frames):
        async for frame in frames:
            if not await asked.rooms.shows(agent, asked.identity):
                return
            yield frame


async def _block(asked: Asked) -> BlockRow:
    name, label = await known(asked), asked.path["label"]
    agent = await asked.rooms.host.agent(name)
    await agent.memory.blocks.reload()
    row = next((row for row in agent.memory.blocks.rows if row.label == label), None)
    if row is None:
        labels = ", ".join(row.label for row in agent.memory.blocks.rows)
        raise NotThere(f"`{name}` has no block `{label[:80]}`.", fix=f"There are: {labels}.")
    return row


async def _as_seen(asked: Asked) -> BlockRow:
    """Return the block that the path names.

    Raises:
        ApiRefusal: it has another version by now than the request is for.
    """
    row, seen = await _block(asked), asked.body.version
    if seen not in (None, row.version):
        message = f"`{row.label}` has version {row.version} by now, not {seen}."
        problems = [{"where": "body.version", "message": message, "value": row.value, "version": row.version}]
        raise ApiRefusal(409, "version", message, "Look at what it is now, and change that.", problems)
    return row


def _shown(row: BlockRow) -> dict[str, object]:
    fields = ("label", "value", "limit", "description", "version", "read_only", "shared")
    return {name: getattr(row, name) for name in fields}


_AGENT: Final = f"{API}/agents/{{agent}}"
_BLOCK: Final = f"{_AGENT}/memory/{{label}}"
OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("GET", f"{API}/agents", ("read", "chat"), "List the agents.", agents),
    Operation("POST", f"{API}/agents", ("admin",), "Make an agent.", make, NewAgent, status=201),
    Operation("POST", f"{API}/agents/import", ("admin",), "Make agents of a document.", take_in, Document, status=201),
    Operation("GET", _AGENT, ("read",), "Show one agent.", show),
    Operation("DELETE", _AGENT, ("admin",), "Delete an agent.", delete),
    Operation("GET", f"{_AGENT}/export", ("admin",), "Return an agent as a document.", export),
    Operation("POST", f"{_AGENT}/conversations", ("chat",), "Begin a conversation.", converse, ConversationName),
    Operation("POST", f"{_AGENT}/messages", ("chat",), "Send a message.", post, Message, status=202),
    Operation("GET", f"{_AGENT}/messages", ("read", "chat"), "Return the conversation.", messages, query=HistoryPart),
    Operation("GET", f"{_AGENT}/messages/{{event}}", ("chat", "read"), "Return which turn took a message.", taken),
    Operation("POST", f"{_AGENT}/pop", ("chat",), "Take the last turn back.", pop),
    Operation("POST", f"{_AGENT}/retry", ("chat",), "Send the last message again.", retry, status=202),
    Operation("POST", f"{_AGENT}/new", ("chat",), "Begin a new conversation.", new),
    Operation("POST", f"{_AGENT}/interrupt", ("chat",), "End the running turn.", interrupt),
    Operation("GET", f"{_AGENT}/events", ("read", "chat"), "Stream events.", events, query=After, streams=True),
    Operation("GET", f"{_AGENT}/memory", ("read",), "Return the memory.", memory),
    Operation("GET", f"{_AGENT}/search", ("read",), "Search the memory.", search_memory, query=MemoryNeed),
    Operation("GET", _BLOCK, ("read",), "Return one block.", block),
    Operation("PATCH", _BLOCK, ("edit",), "Change a block.", edit_block, BlockEdit),
    Operation("POST", f"{_BLOCK}/undo", ("edit",), "Take back the last change of a block.", undo, BlockUndo),
)
