"""The API for agents: messages, events, conversations and memory."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Final

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.base.offload import PER_ENTRY, aside
from agent_core.base.pictures import (
    MAX_PICTURES,
    PictureFile,
    captioned,
    decoded,
    with_rows,
)
from agent_core.base.policy import Growth, Mode
from agent_core.base.records import replace
from agent_core.context.folds import receipt_in
from agent_core.operations.catalog import check_message
from agent_core.operations.history_pages import MOST_HELD, PAGE_BYTES, read_page, read_pages
from agent_core.operations.manual_edits import set_up_block, undo_block
from agent_core.operations.waiting_messages import WaitingMessages, published
from agent_core.registry.answer_shapes import AnswerShape
from agent_core.runtime.event_fold import DONE
from agent_core.storage import (
    CONVERSATION,
    LARGEST_NUMBER,
    MAIN,
    AgentName,
    BlockRow,
    ConversationRow,
    EndedTurn,
    Entry,
    Line,
    agent_named,
    agent_of,
    dump,
    is_agent_name,
    is_history,
)
from agent_core.storage.inbox import ALONE, CLIENT
from agent_core.storage.journal import EndEntry, ReceiptEntry, read_all
from agent_core.storage.turn_store import N_BITS, SAID
from agent_core.views.agent_view import agent_facts, agents_listing
from agent_core.views.memory_view import (
    best_hits,
    found_document,
    history_document,
    memory_document,
    search_all,
    transcript,
    turns_of,
)
from agent_core.workspace.agent_files import is_group
from agent_core.workspace.portable import ImportOptions

from .agent_host import event_stream
from .identity import OWNER, ApiRefusal, NotAllowed, NotThere
from .operations import Asked, OfConversation, Part, api_operation

MOST_TEXT: Final = 1_000_000
MAX_PICTURE_CHARS: Final = 8 << 20
TRANSCRIPT_BYTES: Final = MOST_HELD // 4
"""What is read for one transcript: it is held as entries, as text, as JSON and as what is sent."""


class NewPicture(Part):
    """A picture for a message: its content in base64, and the name of its file."""

    data: Annotated[str, Field(min_length=1, max_length=MAX_PICTURE_CHARS)]
    name: Annotated[str, Field(max_length=200)] = ""


class Message(Part):
    """A message to an agent. A `key` makes a repeat harmless.

    It waits for the end of a running turn and begins its own. If it is not `alone`, and from the page unless it is,
    the running turn takes it.
    `result` is the JSON Schema of an object: the reply is one, and the message has a turn of its own. The `pictures`
    are shown to the model.
    `mode` and `growth` are for the turn that it begins; a token gets no more than it has anyway.
    """

    text: Annotated[str, Field(min_length=1, max_length=MOST_TEXT)]
    key: Annotated[str | None, Field(max_length=200)] = None
    alone: bool | None = None
    result: dict[str, Any] | None = None  # Any: JSON
    pictures: Annotated[list[NewPicture], Field(max_length=MAX_PICTURES)] = Field(
        default_factory=list
    )
    mode: Mode | None = None
    growth: Growth | None = None


class NewText(Part):
    """Other words for a message."""

    text: Annotated[str, Field(min_length=1, max_length=MOST_TEXT)]


class NewAgent(Part):
    """An agent to make."""

    name: Annotated[str, Field(min_length=1, max_length=64)]


class NewConversation(Part):
    """A conversation to begin; with a `branch_of`, with what was said there, up to the entry `upto` or all of it."""

    name: Annotated[str, Field(max_length=200)] = ""
    branch_of: Annotated[str, Field(max_length=200)] = ""
    upto: Annotated[int | None, Field(ge=1, le=LARGEST_NUMBER)] = None


class NewName(Part):
    """A name for a conversation."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class ListedConversations(Part):
    """How many conversations to list at most, and whether with `deleted` ones."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 100
    deleted: bool = False


class Document(Part):
    """An agent as a document of this program, MemGPT or Letta. `name`: another name for it; `dry_run`: only report."""

    document: Annotated[str, Field(min_length=1, max_length=2 << 20)]
    name: Annotated[str, Field(max_length=64)] = ""
    dry_run: bool = False


class After(OfConversation):
    """The beginning of a stream of events: after the one with this number."""

    after: Annotated[int, Field(ge=0, le=LARGEST_NUMBER)] = 0


class TranscriptPart(Part):
    """The part of a transcript after the entry with this number."""

    after: Annotated[int, Field(ge=0, le=LARGEST_NUMBER)] = 0


class HistoryPart(OfConversation):
    """A part of a conversation: so many entries after a number, or so many of the last `before` one."""

    after: Annotated[int, Field(ge=0, le=LARGEST_NUMBER)] = 0
    before: Annotated[int, Field(ge=0, le=LARGEST_NUMBER)] = LARGEST_NUMBER
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


class MemoryNeed(OfConversation):
    """A search of recall and archival memory, as a conversation finds what was said."""

    query: Annotated[str, Field(min_length=1, max_length=2_000)]
    where: Annotated[str, Field(pattern="^(both|recall|archival)$")] = "both"
    page: Annotated[int, Field(ge=0, le=10_000)] = 0
    count: Annotated[int, Field(ge=1, le=100)] = 10


@api_operation("GET", "/agents", ("read", "chat"), "List the agents.")
async def agents(asked: Asked) -> object:
    """List the agents that the token may see, and which of them run here or are paused."""
    listing = await agents_listing(asked.rooms.state)
    names = {row["name"] for row in listing["agents"]}
    empty: dict[str, object] = {
        "turns": 0,
        "last_at": None,
        "messages": 0,
        "passages": 0,
        "blocks": [],
    }
    known_names = [name for name in await asked.workspace.agent_names() if not is_history(name)]
    listing["agents"] += [{"name": name, **empty} for name in known_names if name not in names]
    seen = await asked.rooms.shown(known_names, asked.identity)
    rows = [row for row in listing["agents"] if row["name"] in seen]
    is_running, paused = asked.rooms.host.is_at_work, await asked.rooms.state.store.paused()
    return {
        "agents": [
            {**row, "running": is_running(row["name"]), "paused": row["name"] in paused}
            for row in rows
        ]
    }


@api_operation("POST", "/agents", ("admin",), "Make an agent.", status=201)
async def make(asked: Asked, new_agent: NewAgent) -> object:
    """Make an agent, or return the one of that name."""
    name = agent_named(new_agent.name)
    if not asked.identity.sees(name) or not await asked.rooms.shows(name, asked.identity):
        raise UsageError(f"The token may not use an agent `{name}`.")
    workspace = asked.rooms.workspace
    if not await workspace.has_agent(name):
        await asyncio.to_thread(workspace.directory.check_name, name)
    agent = await asked.rooms.host.agent(name)
    return {"name": agent.name}


@api_operation("POST", "/agents/import", ("admin",), "Make agents of a document.", status=201)
async def take_in(asked: Asked, document: Document) -> object:
    """Make the agents of a document; nothing in it is run, and no agent is overwritten."""
    if asked.identity.agents and not await asked.rooms.shows(document.name, asked.identity):
        raise UsageError(
            "The token may use certain agents only.", fix="Give one of them as `name`."
        )
    options = ImportOptions(document.name, dry_run=document.dry_run)
    return {
        "agents": await asked.rooms.state.moves.take_in(document.document, options),
        "dry_run": document.dry_run,
    }


@api_operation("GET", "/agents/{agent}", ("read",), "Show one agent.")
async def show(asked: Asked, agent: AgentName) -> object:
    """Show one agent: settings, blocks, sections, sources, and counts of each."""
    await asked.rooms.host.agent(agent)  # creates the blocks of an agent without a conversation yet
    return {
        **await agent_facts(asked.rooms.state, agent, asked.identity.reader),
        "running": asked.rooms.host.is_at_work(agent),
    }


@api_operation("DELETE", "/agents/{agent}", ("admin",), "Delete an agent.")
async def delete(asked: Asked, agent: AgentName) -> object:
    """Delete an agent with its conversation and memory."""
    await asked.rooms.host.make_free(agent)
    async with asked.rooms.state.alone(agent):
        await asked.rooms.state.moves.delete(agent)
    return {"deleted": agent}


@api_operation("GET", "/agents/{agent}/export", ("admin",), "Return an agent as a document.")
async def export(asked: Asked, agent: AgentName) -> object:
    """Return an agent as one document, without the conversations that are private to another token."""
    await asked.hold(MOST_HELD)
    shown = await asked.rooms.owners(asked.identity)
    return {"document": await asked.rooms.state.moves.export(agent, shown, asked.identity.reader)}


@api_operation(
    "GET", "/agents/{agent}/conversations", ("read", "chat"), "List the conversations of an agent."
)
async def conversations(asked: Asked, agent: AgentName, listed: ListedConversations) -> object:
    """List the conversations in which something was said, the last used first; not those that other tokens began."""
    own = asked.rooms.conversations(agent, asked.identity)
    rows = await own.list(listed.limit, with_deleted=listed.deleted)
    return {"agent": agent, "conversations": [_conversation_json(asked, row) for row in rows]}


@api_operation("POST", "/agents/{agent}/conversations", ("chat",), "Begin a conversation.")
async def converse(asked: Asked, agent: AgentName, new_conversation: NewConversation) -> object:
    """Begin a conversation with an agent, private to the token, or return the one that it began with this name.

    Its messages are read and sent as those of the main one, with its id as `conversation` in the query.
    """
    if is_group(asked.workspace.root, agent):
        raise UsageError("A group has one conversation.", fix="Leave `conversation` out.")
    own = asked.rooms.conversations(agent, asked.identity)
    origin = asked.identity.origin
    name = new_conversation.name.strip()
    before = f"{agent}{CONVERSATION}{name}"  # an agent of its own, as earlier versions made one
    is_name = bool(name) and is_agent_name(before)
    settings = await asked.rooms.state.store.agent_settings(before) if is_name else None
    if settings is not None and settings.get("chat_of") == agent:
        earlier = asked.workspace.conversations(agent_named(before))
        return _conversation_json(asked, await earlier.main())
    if new_conversation.branch_of:
        row = await own.branch(new_conversation.branch_of, new_conversation.upto, origin, name)
    else:
        row = await own.named(name, origin) if name else await own.begin(origin)
    return _conversation_json(asked, row)


@api_operation(
    "GET",
    "/agents/{agent}/conversations/{conversation}",
    ("read", "chat"),
    "Return one conversation.",
)
async def conversation(asked: Asked, agent: AgentName, conversation: str) -> object:
    """Return a conversation by its id or name: when it was used, how many messages it has, of what it is a branch."""
    own = asked.rooms.conversations(agent, asked.identity)
    return _conversation_json(asked, await own.find(conversation))


@api_operation(
    "PATCH", "/agents/{agent}/conversations/{conversation}", ("chat",), "Rename a conversation."
)
async def rename(asked: Asked, agent: AgentName, conversation: str, new_name: NewName) -> object:
    """Give a conversation a name, which it keeps."""
    own = asked.rooms.conversations(agent, asked.identity)
    return _conversation_json(asked, await own.rename(conversation, new_name.name))


@api_operation(
    "DELETE", "/agents/{agent}/conversations/{conversation}", ("chat",), "Delete a conversation."
)
async def hide(asked: Asked, agent: AgentName, conversation: str) -> object:
    """Hide a conversation from lists and from search; it can be brought back, and branches of it stay as they are."""
    own = asked.rooms.conversations(agent, asked.identity)
    row = await own.find(conversation)
    if asked.rooms.host.is_running(row.line):
        raise ApiRefusal(409, "agent-busy", "A turn of it is running.", "Interrupt it first.")
    return _conversation_json(asked, await own.delete(row.id))


@api_operation(
    "POST",
    "/agents/{agent}/conversations/{conversation}/undelete",
    ("chat",),
    "Bring a deleted conversation back.",
)
async def bring_back(asked: Asked, agent: AgentName, conversation: str) -> object:
    """Bring a deleted conversation back, by its id."""
    own = asked.rooms.conversations(agent, asked.identity)
    return _conversation_json(asked, await own.undelete(conversation))


@api_operation(
    "GET",
    "/agents/{agent}/conversations/{conversation}/export",
    ("read", "chat"),
    "Return a conversation as Markdown.",
)
async def transcribe(
    asked: Asked, agent: AgentName, conversation: str, part: TranscriptPart
) -> object:
    """Return what was said in a conversation as Markdown, each turn with its number.

    At most 4 MiB of it; with `more`, the rest is what comes `after` the number in the answer.
    """
    row = await asked.rooms.conversations(agent, asked.identity).find(conversation)
    await asked.hold(MOST_HELD)
    entries, size, is_whole = list[Entry](), 0, True
    pages = read_pages(
        asked.rooms.state.store, row.line, kinds=(*SAID, ReceiptEntry.kind), since=part.after
    )
    async with aclosing(pages):
        async for page in pages:
            if entries and size + PAGE_BYTES > TRANSCRIPT_BYTES:
                is_whole = False
                break
            entries += page
            size += await aside(PER_ENTRY * len(page), _size_of, page)
    turns = turns_of(entries)
    if not is_whole and len(turns) > 1:
        turns.pop()  # the rest of its answers is on the next page
    title = "" if row.id == MAIN else row.name
    markdown = await aside(size, transcript, agent, turns, title)
    after = turns[-1][-1].seq if turns else part.after
    return {"markdown": markdown, "after": after, "more": not is_whole}


def _size_of(page: Sequence[Entry]) -> int:
    """Return how many characters the entries of a page have."""
    return sum(len(dump(entry.payload)) for entry in page)


@api_operation(
    "POST",
    "/agents/{agent}/messages",
    ("chat",),
    "Send a message.",
    status=202,
    in_a_conversation=True,
)
async def post(asked: Asked, line: Line, message: Message) -> object:
    """Keep a message on disk, and let the agent answer it; a `key` that another message has is refused, and so is, from
    the page, what only a prompt takes.
    """
    if asked.identity is OWNER:
        check_message(message.text)
    is_alone = message.alone
    if is_alone is None:
        is_alone = asked.identity is not OWNER
    given: dict[str, object] = {ALONE: is_alone, "trace": asked.trace}
    if message.result is not None:
        if is_group(asked.workspace.root, agent_of(line)):
            raise UsageError("A group gives no reply of a shape.", fix="Ask one agent.")
        given[CLIENT] = AnswerShape.of_schema(message.result).terms
    more = {name: value for name, value in given.items() if value}
    files = list[PictureFile]()
    for new_picture in message.pictures:
        data = new_picture.data
        files.append(await aside(len(data), decoded, data, new_picture.name))
    kept = await asked.rooms.host.keep_pictures(files)
    text = captioned(message.text, kept)
    more = with_rows(more, kept)
    usual = asked.workspace.settings.policy
    policy = replace(usual, mode=message.mode or usual.mode, growth=message.growth or usual.growth)
    posted = await asked.rooms.host.post(
        line, text, message.key, identity=asked.identity, policy=policy, **more
    )
    if posted.text != text:
        why = "The key is that of another message, so this one was not sent."
        problems = [{"where": "body.key", "message": why, "event": posted.event}]
        raise ApiRefusal(409, "key", why, "Send each message with a key of its own.", problems)
    return {"event": posted.event, "after": posted.after}


@api_operation(
    "GET",
    "/agents/{agent}/messages",
    ("read", "chat"),
    "Return the conversation.",
    in_a_conversation=True,
)
async def messages(asked: Asked, line: Line, part: HistoryPart) -> object:
    """Return the conversation, oldest first, with numbers; summaries of it are not part of it.

    `ends` are the turns in it that ended otherwise than with a reply, with what the user was told about why;
    `receipts` has what each turn in it did. With `more`, entries are left in the direction that was asked for: a page
    has 2 MiB at most. A larger entry is `cut` and says what is missing; `count=1` returns it whole.
    """
    store = asked.rooms.state.store
    # Read as of one number, even if its turn has left the conversation; entries added meanwhile are events after it.
    newest = await store.last_seq(line) if part.last else LARGEST_NUMBER
    before = min(part.before, newest + 1, LARGEST_NUMBER)
    if part.count == 1 and not part.last:
        await asked.hold(MOST_HELD)
        page = await store.history_page(
            line, since=part.after, before=before, count=1, most_bytes=LARGEST_NUMBER
        )
    else:
        await asked.hold(PAGE_BYTES)
        count, is_newest = part.last or part.count, bool(part.last)
        page = await read_page(
            store, line, since=part.after, before=before, count=count, is_newest=is_newest
        )
    entries = page.entries
    turns = {entry.turn for entry in entries}
    read = list[Entry]()
    ended = list[EndedTurn]()
    if entries:
        end = min(newest, entries[-1].seq | (1 << N_BITS) - 1) + 1
        ended = await store.ended_turns(line, entries[0].seq, before=end)
        since = (entries[0].seq >> N_BITS << N_BITS) - 1
        read = (
            await read_page(
                store,
                line,
                since=since,
                before=end,
                kinds=(EndEntry.kind, ReceiptEntry.kind),
                count=2_000,
            )
        ).entries
    whys = {entry.turn: end.text for entry, end in read_all(EndEntry, read)}
    receipts = {
        entry.turn: receipt_in([entry])
        for entry, _ in read_all(ReceiptEntry, read)
        if entry.turn in turns
    }
    ends = [
        {"seq": row.seq, "turn": row.id, "reason": row.state, "text": whys.get(row.id, "")}
        for row in ended
        if row.id in turns and row.state != DONE and row.seq <= newest
    ]
    rows = [
        {"seq": row.seq, "turn": row.turn, "kind": row.kind, "at": row.at, **row.payload}
        for row in entries
    ]
    after = newest if part.last else entries[-1].seq if entries else part.after
    is_running = asked.rooms.host.is_running(line)
    did = [
        {"turn": turn, "made": row.to_json(), "receipt": row.text} for turn, row in receipts.items()
    ]
    found = {"agent": agent_of(line), "messages": rows, "ends": ends, "receipts": did}
    return {**found, "running": is_running, "after": after, "more": not page.is_last}


@api_operation(
    "GET",
    "/agents/{agent}/messages/{event}",
    ("chat", "read"),
    "Return which turn took a message.",
    in_a_conversation=True,
)
async def taken(asked: Asked, line: Line, event: str) -> object:
    """Return which turn took a message; none while it waits."""
    return {"event": event, "turn": await asked.workspace.store.turn_of(event, line)}


@api_operation(
    "GET",
    "/agents/{agent}/waiting",
    ("read", "chat"),
    "Return the messages that wait.",
    in_a_conversation=True,
)
async def waiting(asked: Asked, line: Line) -> object:
    """Return the first messages that no turn has taken up yet, the oldest first, with from where they came."""
    rows = await _waiting(asked, line).list()
    return {"agent": agent_of(line), "waiting": [published(row) for row in rows]}


@api_operation(
    "PATCH",
    "/agents/{agent}/waiting/{event}",
    ("chat",),
    "Edit a message that waits.",
    in_a_conversation=True,
)
async def edit_waiting(asked: Asked, line: Line, event: str, new_text: NewText) -> object:
    """Replace the words of a message that waits; what was attached stays. Only its sender may."""
    if asked.identity is OWNER:
        check_message(new_text.text)
    row = await _waiting(asked, line).edit(event, new_text.text)
    await asked.rooms.host.tell_waiting(line)
    return published(row)


@api_operation(
    "DELETE",
    "/agents/{agent}/waiting/{event}",
    ("chat",),
    "Take a message back that waits.",
    in_a_conversation=True,
)
async def withdraw(asked: Asked, line: Line, event: str) -> object:
    """Take a message back that no turn has taken up yet; the owner of the workspace also takes back those of others."""
    row = await _waiting(asked, line).withdraw(event)
    await asked.rooms.host.tell_waiting(line)
    return published(row)


def _waiting(asked: Asked, line: Line) -> WaitingMessages:
    identity = asked.identity
    return WaitingMessages(asked.workspace.store, line, identity.id, identity.is_owner)


@api_operation(
    "POST", "/agents/{agent}/pop", ("chat",), "Take the last turn back.", in_a_conversation=True
)
async def pop(asked: Asked, line: Line) -> object:
    """Remove the last turn from the context, not from the record, and return what began it."""
    async with asked.rooms.host.idle(line) as opened:
        removed = await opened.pop()
    asked.rooms.host.tell_removed(line)
    return {"removed": removed.text if removed else None}


@api_operation(
    "POST",
    "/agents/{agent}/retry",
    ("chat",),
    "Send the last message again.",
    status=202,
    in_a_conversation=True,
)
async def retry(asked: Asked, line: Line) -> object:
    """Remove the last turn from the context, and send the message that began it again."""
    host = asked.rooms.host
    async with host.idle(line) as opened:
        if any(kind == "message" for _, kind in await asked.workspace.store.waiting_events(line)):
            raise ApiRefusal(
                409,
                "agent-busy",
                f"A message to `{agent_of(line)}` waits for its turn.",
                "Wait for its end.",
            )
        await opened.require_own_message()
        removed = await opened.pop()
        host.tell_removed(line)
        if removed is None or not removed.is_message:
            raise UsageError("There is no message to send again.")
        usual = asked.workspace.settings.policy
        policy = asked.identity.allowed_again(removed.policy or usual, usual)
        is_alone = asked.identity is not OWNER
        posted = await host.post(
            line, removed.text, identity=asked.identity, policy=policy, alone=is_alone
        )
    return {"event": posted.event, "after": posted.after, "text": removed.text}


@api_operation("POST", "/agents/{agent}/new", ("chat",), "Empty the context.")
async def new(asked: Asked, line: Line) -> object:
    """Begin anew in the same conversation: every turn leaves the context, and stays in the record."""
    async with asked.rooms.host.idle(line) as opened:
        turns = await opened.remove_turns()
    asked.rooms.host.tell_removed(line)
    return {"turns": turns}


@api_operation(
    "POST", "/agents/{agent}/interrupt", ("chat",), "End the running turn.", in_a_conversation=True
)
async def interrupt(asked: Asked, line: Line) -> object:
    """End the running turn; its history stays valid."""
    return {"interrupted": await asked.rooms.host.interrupt(line)}


@api_operation(
    "GET",
    "/agents/{agent}/events",
    ("read", "chat"),
    "Stream events.",
    streams=True,
    in_a_conversation=True,
)
async def events(asked: Asked, agent: AgentName, line: Line, after_event: After) -> object:
    """Stream the agent's events, beginning after a number. `Last-Event-ID` goes before `after`."""
    rooms = asked.rooms
    last = asked.last_event
    after = (
        min(int(last), LARGEST_NUMBER) if last.isdecimal() and len(last) < 20 else after_event.after
    )
    frames = event_stream(rooms.host, rooms.state.store, line, after, asked.hold)
    return _while_shown(asked, agent, frames) if asked.identity.agents else frames


@api_operation("GET", "/agents/{agent}/memory", ("read",), "Return the memory.")
async def memory(asked: Asked, agent: AgentName) -> object:
    """Return all blocks and sections of an agent."""
    await asked.rooms.host.agent(agent)
    return await memory_document(asked.rooms.state.store, agent)


@api_operation("GET", "/agents/{agent}/search", ("read",), "Search the memory.")
async def search_memory(asked: Asked, agent: AgentName, line: Line, need: MemoryNeed) -> object:
    """Search what was said, and what was archived; `best` has the hits of both, the best first, in short.

    For the owner of the workspace, `private` has what was said in conversations that are private to tokens.
    """
    terms = need.model_dump(exclude={"conversation"})
    is_owner = asked.identity.is_owner
    searches, blocks = await search_all(
        asked.workspace.memory(agent, line), **terms, is_owner=is_owner
    )
    found = {where: found_document(results) for where, results in searches.items()}
    return {**found, "best": best_hits([*searches.values()], blocks)}


@api_operation("GET", "/agents/{agent}/memory/{label}", ("read",), "Return one block.")
async def block(asked: Asked, agent: AgentName, label: str) -> object:
    """Return one block with its version and the history of its changes."""
    row = await _block(asked, agent, label)
    changes = (await history_document(asked.rooms.state.store, agent, row.label))["changes"]
    shown = await asked.rooms.owners(asked.identity)
    return {
        **_block_json(row),
        "changes": [row for row in changes if shown is None or row["agent"] in shown],
    }


@api_operation("PATCH", "/agents/{agent}/memory/{label}", ("edit",), "Change a block.")
async def edit_block(asked: Asked, agent: AgentName, label: str, block_edit: BlockEdit) -> object:
    """Change a block, if it still has the version that the change was made for."""
    row = await _as_seen(asked, agent, label, block_edit.version)
    blocks = (await asked.rooms.host.agent(agent)).memory.blocks
    names = ("value", "limit", "description")
    fields = {name: value for name in names if (value := getattr(block_edit, name)) is not None}
    edit = await set_up_block(blocks, row.label, block_edit.version, **fields)
    if edit.outcome != "returned":
        raise UsageError(edit.text)
    return _block_json(await _block(asked, agent, label))


@api_operation(
    "POST",
    "/agents/{agent}/memory/{label}/undo",
    ("edit",),
    "Take back the last change of a block.",
)
async def undo(asked: Asked, agent: AgentName, label: str, block_undo: BlockUndo) -> object:
    """Take back the last change of a block, if it still has the version that was seen, where one is given."""
    row = await _as_seen(asked, agent, label, block_undo.version)
    edit = await undo_block((await asked.rooms.host.agent(agent)).memory.blocks, row.label)
    return {"block": row.label, "outcome": edit.outcome, "text": edit.text}


def _conversation_json(asked: Asked, row: ConversationRow) -> dict[str, object]:
    return {**row.to_json(), "running": asked.rooms.host.is_running(row.line)}


async def _while_shown(
    asked: Asked, agent: AgentName, frames: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yield the frames of an agent until the token may no longer see it, because a group's members may change."""
    async with aclosing(frames):
        async for frame in frames:
            if not await asked.rooms.shows(agent, asked.identity):
                return
            yield frame


async def _block(asked: Asked, agent: AgentName, label: str) -> BlockRow:
    blocks = (await asked.rooms.host.agent(agent)).memory.blocks
    await blocks.reload()
    row = next((row for row in blocks.rows if row.label == label), None)
    if row is None:
        labels = ", ".join(row.label for row in blocks.rows)
        raise NotThere(f"`{agent}` has no block `{label[:80]}`.", fix=f"There are: {labels}.")
    return row


async def _as_seen(asked: Asked, agent: AgentName, label: str, seen: int | None) -> BlockRow:
    """Return a block to change, if it still has the version that the request is for.

    Raises:
        ApiRefusal: the block has another version by now.
        NotAllowed: an agent that the token may not see has the block, too.
    """
    row = await _block(asked, agent, label)
    holders = await asked.rooms.state.store.block_holders(row.id)
    if await asked.rooms.shown(holders, asked.identity) != holders:
        fix = "Use a token for all agents that have it."
        raise NotAllowed(
            f"`{row.label}` is shared with an agent that this token is not for.", fix=fix
        )
    if seen not in (None, row.version):
        message = f"`{row.label}` has version {row.version} by now, not {seen}."
        problems = [
            {
                "where": "body.version",
                "message": message,
                "value": row.value,
                "version": row.version,
            }
        ]
        raise ApiRefusal(
            409, "version", message, "Look at what it is now, and change that.", problems
        )
    return row


def _block_json(row: BlockRow) -> dict[str, object]:
    fields = ("label", "value", "limit", "description", "version", "read_only", "shared")
    return {name: getattr(row, name) for name in fields}
