"""Messages that wait for a turn: they can be seen, edited and taken back until one takes them up."""

from collections.abc import Sequence
from typing import Any, Final

from agent_core.base.errors import UnknownName, UsageError
from agent_core.base.pictures import captioned, pictures_in
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.storage import Inbound, Line, Store, WaitingMessage, sender_of
from agent_core.storage.conversation_store import token_of
from agent_core.views.call_log import from_words

from .attachments import headline, typed_part

LIST_LIMIT: Final = 50
TEXT_CHARS: Final = 4_000
_SEARCH_LIMIT: Final = 1_200  # as many as can wait, and some that do not any more
_ID_LEAST: Final = 6
_SHORT_CHARS: Final = 200
_SAID_CHARS: Final = 60


class MessageTaken(UsageError):
    """A turn has taken the message up: it is said, and cannot be edited or taken back."""

    code = "taken-up"


class NotYours(UsageError):
    """Somebody else sent the message."""

    code = "not-yours"


@dataclass(frozen=True, slots=True)
class WaitingMessages:
    """The messages of one conversation, by its line, that wait for a turn, as somebody may change them.

    `asker` is the id of the token that asks, "" for a person of the workspace. Who sent a message edits it and takes it
    back; an owner also takes back those of others. A process that waits for the answer to one is told.
    """

    store: Store
    line: Line
    asker: str = ""
    is_owner: bool = True

    async def list(self) -> Sequence[WaitingMessage]:
        """Return the first messages that wait, the oldest first, each with the beginning of its text."""
        return await self.store.waiting_messages(self.line, most=LIST_LIMIT, most_chars=TEXT_CHARS)

    async def edit(self, name: str, text: str) -> WaitingMessage:
        """Replace what was typed in a message; what was attached to it stays.

        Raises:
            UnknownName: the conversation has no such message.
            MessageTaken: a turn has it.
            NotYours: somebody else sent it.
            UsageError: the text is empty.
        """
        if not text.strip():
            raise UsageError("A message needs a text.", fix="Take it back instead.")
        inbound = await self._waiting(name)
        if not self._is_own(inbound):
            fix = "Take it back, or send your own." if self.is_owner else "Send your own."
            raise NotYours(f"It is {_whose(inbound)}, who alone edits it.", fix=fix)
        before = await self.store.waiting_payload(inbound.id)
        if before is None:
            raise _taken(inbound)
        payload = _with_text(before, text)
        if not await self.store.reword(inbound.id, payload):
            raise _taken(inbound)
        return WaitingMessage(inbound.id, str(payload["text"]), inbound.origin)

    async def withdraw(self, name: str) -> WaitingMessage:
        """Take a message back, and return it: no turn will have it.

        Raises:
            UnknownName: the conversation has no such message.
            MessageTaken: a turn has it.
            NotYours: somebody else sent it, and the asker is no owner.
        """
        inbound = await self._waiting(name)
        if not (self.is_owner or self._is_own(inbound)):
            raise NotYours(f"It is {_whose(inbound)}, who alone takes it back.")
        if not await self.store.withdraw(inbound.id):
            raise _taken(inbound)
        return WaitingMessage(inbound.id, inbound.text, inbound.origin)

    def _is_own(self, inbound: Inbound) -> bool:
        token = token_of(inbound.origin)
        return token == self.asker or (self.is_owner and not token)

    async def _waiting(self, name: str) -> Inbound:
        """Return a message that waits, by its id or the end of it.

        Raises:
            UnknownName: the conversation has no such message.
            MessageTaken: a turn has it.
        """
        rows = await self.store.message_ids(self.line, most=_SEARCH_LIMIT)
        ids = [id for id, _ in rows]
        found = name if name in ids else ""
        if not found and len(name) >= _ID_LEAST:
            found = next((id for id in ids if id.endswith(name)), "")
        if not found:
            fix = "See which wait: /waiting, or knapper waiting list"
            raise UnknownName(f"No message `{one_line(name, 80)}` is here.", fix=fix)
        inbound = await self.store.waiting_event(found)
        if inbound is None:
            raise _taken(None)
        return inbound


def short_id(id: str) -> str:
    """Return the end of a message's id, by which it is named."""
    return id[-_ID_LEAST:]


def in_short(text: str) -> str:
    """Return the typed words of a message, on one line."""
    return one_line(headline(text), _SHORT_CHARS)


def published(waiting_message: WaitingMessage) -> dict[str, Any]:  # Any: JSON
    """Return a message as it is published, with from where it came."""
    return {
        "event": waiting_message.id,
        "text": waiting_message.text,
        "origin": sender_of(waiting_message.origin),
        "at": waiting_message.at,
    }


def _with_text(payload: dict[str, Any], text: str) -> dict[str, Any]:  # Any: JSON
    """Return the payload of a message with other words, and the same attachments."""
    before = str(payload.get("text") or "")
    pictures = pictures_in(payload)
    captions = captioned("", pictures)
    said = before.removesuffix(captions).removesuffix("\n") if captions else before
    attached = said.removeprefix(typed_part(said))
    return {**payload, "text": captioned(f"{text}{attached}", pictures)}


def _whose(inbound: Inbound) -> str:
    return from_words(sender_of(inbound.origin))


def _taken(inbound: Inbound | None) -> MessageTaken:
    said = headline(inbound.text) if inbound is not None else ""
    named = f" “{one_line(said, _SAID_CHARS)}”" if said else ""
    return MessageTaken(
        f"A turn has taken the message{named} up, so it cannot be changed any more.",
        fix="Send another, which joins the turn, or end the turn: Ctrl-C.",
    )
