"""`knapper waiting`: the messages that no turn has taken up yet, to see, edit and take back."""

from typing import TYPE_CHECKING, Annotated, Final

import click

from agent_core.base.clock import shown_time
from agent_core.base.late import LateModule
from agent_core.operations.operation import Opens
from agent_core.operations.words import Word
from agent_core.storage.folder import ring
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, line

from ..verb import Door, OfAgent, OfConversation, slash, verb

if TYPE_CHECKING:  # slow to import
    from agent_core import storage
    from agent_core.operations import waiting_messages
    from agent_core.operations.waiting_messages import WaitingMessages
    from agent_core.storage import WaitingMessage
    from agent_core.views import call_log
    from agent_core.workspace import conversations as rooms
    from agent_core.workspace.state_store import WorkspaceState
else:
    storage = LateModule("agent_core.storage")
    call_log = LateModule("agent_core.views.call_log")
    rooms = LateModule("agent_core.workspace.conversations")
    waiting_messages = LateModule("agent_core.operations.waiting_messages")

MessageId = Annotated[str, Word("<message>", metavar="ID")]
_TIME: Final = "%H:%M:%S"


@click.group()
def waiting() -> None:
    """List, edit and take back the messages that wait for a turn.

    A message that a turn has taken up is said: it cannot be changed any more.
    """


@slash(
    "waiting [edit ID TEXT | withdraw ID]",
    "List the messages that wait for a turn, to edit or take back; ↑ on an empty line takes your last one back.",
    takes="edit withdraw, <message>",
    shows="(?!(?:edit|withdraw) ).*",
    in_turn=True,
    page="the chat, below what was said",
)
@verb(waiting, opens=Opens.NOTHING, scopes=("read", "chat"))
async def list_(door: Door, *, agent: OfAgent, conversation: OfConversation) -> Result:
    """List the messages that wait for a turn, the oldest first, with from where they came."""
    async with door.state() as state:
        own = await _of(door, state, agent, conversation)
        rows = await own.list()
    document = {"waiting": [waiting_messages.published(row) for row in rows]}
    hint = "/waiting edit ID TEXT · /waiting withdraw ID" if rows and door.at_prompt else ""
    return Result(document, [_listed(row) for row in rows], hint or ("" if rows else "None waits."))


@slash("waiting edit")
@verb(waiting, opens=Opens.NOTHING, scopes=("chat",))
@click.argument("text", nargs=-1, required=True, metavar="TEXT")
async def edit(
    door: Door,
    id: MessageId,
    text: tuple[str, ...],
    *,
    agent: OfAgent,
    conversation: OfConversation,
) -> Result:
    """Replace what was typed in a message that waits; what was attached to it stays. Only who sent it may."""
    async with door.state() as state:
        row = await (await _of(door, state, agent, conversation)).edit(id, " ".join(text))
        ring(state.folder)
    return Result(waiting_messages.published(row), [_told(row, "it reads now: ")])


@slash("waiting withdraw")
@verb(waiting, opens=Opens.NOTHING, scopes=("chat",))
async def withdraw(
    door: Door, id: MessageId, *, agent: OfAgent, conversation: OfConversation
) -> Result:
    """Take a message back that waits. Who sent it may, and the owner of the workspace."""
    async with door.state() as state:
        row = await (await _of(door, state, agent, conversation)).withdraw(id)
        ring(state.folder)
    return Result(waiting_messages.published(row), [_told(row, "taken back: ")])


async def _of(
    door: Door, state: "WorkspaceState", agent: str, conversation: str
) -> "WaitingMessages":
    """Return the messages of a conversation: of the one that is named, or else the one that is open."""
    asker = door.origin.token if door.origin is not None else ""
    if door.line is not None and not conversation and not agent:
        found = door.line
    else:
        known = await door.known(agent)
        row = await rooms.Conversations(state.store, known, door.token, asker).find(conversation)
        found = storage.line_named(row.line)
    return waiting_messages.WaitingMessages(state.store, found, asker, door.token is None)


def _listed(waiting_message: "WaitingMessage") -> Line:
    from_where = call_log.from_words(storage.sender_of(waiting_message.origin))
    about = f"  {from_where}, {shown_time(waiting_message.at, _TIME)}"
    return line(
        ("name", waiting_messages.short_id(waiting_message.id)),
        "  ",
        _said(waiting_message),
        ("dim", about),
    )


def _told(waiting_message: "WaitingMessage", what: str) -> Line:
    return line(("ok", "✓ "), what, ("strong", _said(waiting_message)))


def _said(waiting_message: "WaitingMessage") -> str:
    return waiting_messages.in_short(waiting_message.text)
