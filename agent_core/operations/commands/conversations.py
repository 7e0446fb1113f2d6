"""`knapper conversations`: what an agent's conversations are called, and where something was said."""

import re
from typing import TYPE_CHECKING, Annotated, Final

import click

from agent_core.base.clock import shown_time
from agent_core.base.errors import UsageError
from agent_core.base.late import LateModule
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.operations.operation import Opens
from agent_core.operations.words import Word
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, counted, line

from ..verb import Door, OfAgent, slash, verb

if TYPE_CHECKING:  # slow to import
    from agent_core.storage import ConversationRow, Entry
    from agent_core.views import memory_view
    from agent_core.workspace import conversations as rooms
    from agent_core.workspace.conversations import Conversations
else:
    rooms = LateModule("agent_core.workspace.conversations")
    memory_view = LateModule("agent_core.views.memory_view")

ConversationName = Annotated[str, Word("<conversation>", metavar="NAME|ID")]
_PLACE: Final = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?")


@click.group()
def conversations() -> None:
    """List, name, branch, search and delete the conversations of an agent. They share its memory and functions.

    To go on with one: knapper run --conversation NAME. To begin one: knapper run --conversation new
    """


@slash(
    "conversations [WORDS | delete ID | undelete ID]",
    "List the conversations of this agent, * marks the current one; with WORDS, find where they were said.",
    takes="delete undelete, <conversation>",
    shows="(?!(?:un)?delete ).*",
)
@verb(conversations, opens=Opens.READABLE, scopes=("read", "chat"))
@click.option("--deleted", is_flag=True, help="Also those that were deleted.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=30, show_default=True, help="At most so many."
)
async def list_(door: Door, *, deleted: bool, limit: int, agent: OfAgent) -> Result:
    """List the conversations of an agent, the one that was used last first."""
    own = await _of(door, agent)
    rows = await own.list(limit, with_deleted=deleted)
    names = {row.line: row.name or row.id for row in rows}
    for row in rows:
        if row.parent and row.parent not in names:
            found = await own.store.conversation(row.parent)
            names[row.parent] = row.parent
            if found:
                names[row.parent] = found.name or found.id
    hint = "" if rows else "Nothing was said yet. Next: knapper run"
    lines = [_listed(row, names, door.line) for row in rows]
    return Result({"agent": own.agent, "conversations": rows}, lines, hint)


@verb(conversations, opens=Opens.READABLE, scopes=("read",))
@click.argument("text", nargs=-1, required=True, metavar="TEXT")
@click.option("--page", type=click.IntRange(0), default=0, help="Pages begin at 0.")
async def search(door: Door, text: tuple[str, ...], *, page: int, agent: OfAgent) -> Result:
    """Search what was said, by words and by meaning. Each hit says in which conversation it was."""
    query = " ".join(text)
    memory = await door.memory(agent)
    searches, blocks = await memory_view.search_all(
        memory, query, "recall", page, 10, is_owner=door.token is None
    )
    document = {where: memory_view.found_document(found) for where, found in searches.items()}
    return Result(document, memory_view.found_lines([*searches.values()], query, blocks))


@verb(conversations, scopes=("chat",))
async def rename(
    door: Door, conversation: ConversationName, name: str, *, agent: OfAgent
) -> Result:
    """Give a conversation a name, which it keeps."""
    row = await (await _of(door, agent)).rename(conversation, name)
    return _told(row, "renamed")


@slash("conversations delete")
@verb(conversations, scopes=("chat",))
async def delete(door: Door, conversation: ConversationName, *, agent: OfAgent) -> Result:
    """Hide a conversation from lists and from search. `undelete` brings it back; branches of it stay as they are."""
    own = await _of(door, agent)
    row = await own.find(conversation)
    if row.line == door.line:
        raise UsageError("It is open here.", fix="Open another first: /open main")
    return _told(
        await own.delete(row.id), "deleted", f"To bring it back: {_typed(door)} undelete {row.id}"
    )


@slash("conversations undelete")
@verb(conversations, scopes=("chat",))
async def undelete(door: Door, id: Annotated[str, Word(metavar="ID")], *, agent: OfAgent) -> Result:
    """Bring a deleted conversation back, by its id."""
    return _told(await (await _of(door, agent)).undelete(id), "back")


@verb(conversations, scopes=("chat",))
@click.option(
    "--at",
    default="",
    metavar="N|N.M",
    help="The last turn of it, as `knapper log` numbers them, or a message, as a search does; by default, all.",
)
@click.option("--name", default="", help="The name of the branch.")
async def branch(
    door: Door, conversation: ConversationName, *, at: str, name: str, agent: OfAgent
) -> Result:
    """Begin a conversation with what was said in another one. What is said in either is not in the other."""
    own = await _of(door, agent)
    row = await own.find(conversation)
    upto = await end_at(own, row.line, at) if at else None
    made = await own.branch(row.id, upto, door.origin, name)
    return _told(made, "branched", f"Next: knapper run --conversation {made.id}")


async def end_at(conversations: "Conversations", key: str, place: str) -> int:
    """Return the number of the entry at a turn's end, such as 3, or at a message of it, such as 3.0.

    Raises:
        UsageError: the conversation, by its line, has no such turn.
    """
    from agent_core.operations.history_pages import read_pages
    from agent_core.storage.turn_store import N_BITS, SAID

    match = _PLACE.fullmatch(place.strip())
    number = int(match[1]) if match else 0
    turn = list[_Calls]()
    if match is not None:
        since = (number << N_BITS) - 1
        before = number + 1 << N_BITS
        async for page in read_pages(
            conversations.store, key, kinds=SAID, since=since, before=before
        ):
            turn += map(_calls_of, page)
    if match is None or not turn:
        raise UsageError(
            f"This conversation has no turn or message `{one_line(place, 40)}`.",
            fix="The log has the numbers of turns, a search those of messages.",
        )
    if match[2] is None:
        return turn[-1].seq
    # A reply goes along with the answers to its calls.
    upto = int(match[1]) << N_BITS | int(match[2])
    waiting = set[str]()
    for calls in turn:
        if calls.seq > upto and not waiting:
            break
        if waiting:
            upto = max(upto, calls.seq)
        waiting |= calls.asked
        waiting.discard(calls.answered)
    return min(upto, turn[-1].seq)


@dataclass(frozen=True, slots=True)
class _Calls:
    """The part of an entry by which calls and answers find each other: the texts may be megabytes."""

    seq: int
    asked: frozenset[str] = frozenset()
    answered: str = ""


def _calls_of(entry: "Entry") -> _Calls:
    from agent_core.base.events import CallAnswered
    from agent_core.storage.journal import ReplyEntry, read_entry

    match read_entry(entry):
        case ReplyEntry(calls=calls):
            return _Calls(entry.seq, frozenset(call.id for call in calls))
        case CallAnswered(call_id=id):
            return _Calls(entry.seq, answered=id)
        case _:
            return _Calls(entry.seq)


async def _of(door: Door, agent: str) -> "Conversations":
    asker = door.origin.token if door.origin is not None else ""
    return rooms.Conversations(door.workspace.store, await door.known(agent), door.token, asker)


def _typed(door: Door) -> str:
    return "/conversations" if door.at_prompt else "knapper conversations"


def _told(row: "ConversationRow", what: str, hint: str = "") -> Result:
    told = line(("ok", "✓ "), f"{what}: ", ("name", row.id), f"  {shown_name(row)}")
    return Result(row, [told], hint)


def shown_name(row: "ConversationRow") -> str:
    """Return the name of a conversation as it is shown: on one line; one that has none yet is empty."""
    from agent_core.storage import NAME_CHARS

    return one_line(row.name, NAME_CHARS) if row.name else "(nothing was said yet)"


def _listed(row: "ConversationRow", names: dict[str, str], current: str | None) -> Line:
    about = [shown_time(row.used), counted(row.messages, "message")]
    if row.parent:
        about.append(f"a branch of {one_line(names[row.parent], 30)}")
    if row.token:
        about.append("private to a token")
    if row.deleted is not None:
        about.append("deleted")
    mark = line(("ok", "* ") if row.line == current else "  ")
    return line(*mark, ("name", f"{row.id:7}"), f" {shown_name(row)}  ", ("dim", " · ".join(about)))
