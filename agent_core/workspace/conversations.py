"""The conversations of an agent: what a person, a program or a window does with them.

A name is a person's to type, so it need not be unique: an id always is. Nothing is erased here; `knapper memory forget`
does that.
"""

from collections.abc import Sequence
from typing import Final

from agent_core.base.errors import UsageError
from agent_core.base.matching import nearest
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line, visible
from agent_core.runtime.agent import Origin
from agent_core.storage import MAIN, NAME_CHARS, ConversationRow, Store, line_of

NEW: Final = "new"
"""In place of a conversation's name: one that begins now."""
_LISTED: Final = 100
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Conversations:
    """The conversations of one agent. Those that a token began are private to it, and only it finds them by name."""

    store: Store
    agent: str

    async def list(
        self, limit: int = _LISTED, *, with_deleted: bool = False
    ) -> Sequence[ConversationRow]:
        """Return the conversations that were used last, the newest first; at most `limit`."""
        return await self.store.conversations(self.agent, limit=limit, with_deleted=with_deleted)

    async def find(self, name: str) -> ConversationRow:
        """Return the conversation with this id, or this name, or whose id begins so.

        Raises:
            UsageError: there is none, or several; the message names those that are near.
        """
        name = name.strip()
        main = await self.main()
        if name in ("", MAIN) or name == main.name:
            return main
        rows = await self.store.conversations_named(self.agent, name)
        if not rows:
            known = await self.list()
            near = nearest(name, [row.name for row in known if row.name]) or []
            ids = [row for row in known if row.name in near][:_SHOWN] or known[:_SHOWN]
            raise UsageError(
                f"{self.agent} has no conversation `{one_line(name, 80)}`.",
                fix=f"Did you mean: {_listed(ids)}?" if ids else "Type: knapper conversations list",
            )
        first, *others = rows
        is_sure = first.id == name or (
            first.name.casefold() == name.casefold()
            and not any(row.name.casefold() == name.casefold() for row in others)
        )
        if others and not is_sure:
            raise UsageError(
                f"Several conversations are called `{one_line(name, 80)}`.",
                fix=f"Give the id of one of them: {_listed(rows[:_SHOWN])}",
            )
        return first

    async def main(self) -> ConversationRow:
        """Return the main conversation, which is always there."""
        row = await self.store.conversation(line_of(self.agent))
        assert row is not None
        return row

    async def begin(self, origin: Origin | None = None, name: str = "") -> ConversationRow:
        """Begin an empty conversation; its first words become its name unless it is given one."""
        return await self.store.begin_conversation(
            self.agent, (origin or Origin()).to_json(), _checked(name)
        )

    async def branch(
        self,
        conversation: str,
        upto: int | None = None,
        origin: Origin | None = None,
        name: str = "",
    ) -> ConversationRow:
        """Begin a conversation with what was said in another one, up to an entry; by default, with all of it.

        Raises:
            UsageError: there is no such conversation, or nothing was said in it yet.
            StorageError: it has no such entry.
        """
        row = await self.find(conversation)
        upto = await self.store.branch_point(row.line) if upto is None else upto
        if not upto:
            raise UsageError("Nothing was said in it yet.", fix="Begin another: /new")
        return await self.store.begin_branch(
            row.line, upto, (origin or Origin()).to_json(), _checked(name)
        )

    async def rename(self, conversation: str, name: str) -> ConversationRow:
        """Give a conversation a name, which it keeps."""
        if not name.strip():
            raise UsageError("A conversation needs a name.", fix="Give it a few words.")
        row = await self.find(conversation)
        return await self.store.rename_conversation(row.line, _checked(name))

    async def delete(self, conversation: str) -> ConversationRow:
        """Hide a conversation from lists and from search; branches of it stay as they are."""
        row = await self.find(conversation)
        return await self.store.delete_conversation(row.line)

    async def undelete(self, id: str) -> ConversationRow:
        """Bring a deleted conversation back, by its id.

        Raises:
            UsageError: no deleted conversation has this id.
        """
        row = await self.store.conversation(line_of(self.agent, id.strip().lower()))
        if row is None or row.deleted is None:
            gone = [each for each in await self.list(with_deleted=True) if each.deleted is not None]
            raise UsageError(
                f"No deleted conversation has the id `{one_line(id, 80)}`.",
                fix=f"These are deleted: {_listed(gone[:_SHOWN])}" if gone else "None is deleted.",
            )
        return await self.store.delete_conversation(row.line, is_deleted=False)


def _checked(name: str) -> str:
    """Return a name on one line, as it is kept.

    Raises:
        UsageError: it is too long.
    """
    text = " ".join(visible(name).split())
    if len(text) > NAME_CHARS:
        raise UsageError(f"A name has at most {NAME_CHARS} characters.", fix="Shorten it.")
    return text


def _listed(rows: Sequence[ConversationRow]) -> str:
    return ", ".join(
        f"{row.id} ({one_line(row.name, NAME_CHARS)})"
        if row.name and row.name != row.id
        else row.id
        for row in rows
    )
