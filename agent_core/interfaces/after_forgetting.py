"""What a session holds of what was said, read anew once something was forgotten: only what the record still says."""

from agent_core.storage import TurnStore

from .attachments import headline
from .conversation import Conversation
from .spans import line

_RAN_IS_GONE = "What you ran with ! since your last message does not go along with the next one: run it again."


async def read_anew(conversation: Conversation) -> None:
    """Keep in a session nothing that the record does not have. What has no place in the record is dropped."""
    conversation.voice.drop_typed()
    conversation.log.forget()
    conversation.results.clear()
    conversation.tried = None
    if conversation.ran:
        conversation.ran = []
        conversation.voice.aloud([line(("warn", f"! {_RAN_IS_GONE}"))])
    agents = {name for _, name, _, _ in conversation.deeds.messages} | {
        turn.agent for turn in conversation.spending.turns
    }
    begun = {agent: await _beginnings(conversation.workspace.store, agent) for agent in agents}
    conversation.deeds.reread({turn: text for texts in begun.values() for turn, text in texts.items()})
    conversation.spending.reread({agent: [*texts.values()] for agent, texts in begun.items()})


async def _beginnings(store: TurnStore, agent: str) -> dict[str, str]:
    """Return what each turn of an agent began with, on one line: the message, or else the notice."""
    entries = await store.history(agent, kinds=("user", "notice"), with_removed=True)
    said = {entry.turn: headline(str(entry.payload["text"])) for entry in entries[::-1] if entry.kind == "user"}
    noted = {entry.turn: headline(str(entry.payload["text"])) for entry in entries[::-1] if entry.kind == "notice"}
    return noted | said
