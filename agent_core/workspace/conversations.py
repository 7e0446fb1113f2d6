"""The conversations of an agent: what a person, a program or a window does with them.

A name is a person's to type, so it need not be unique: an id always is. Nothing is erased here; `knapper memory forget`
does that.
"""

from collections.abc import Sequence
from typing import Final

from agent_core.base.errors import UnknownName, UsageError
from agent_core.base.matching import nearest
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import one_line, visible
from agent_core.runtime.agent import Origin
from agent_core.storage import MAIN, NAME_CHARS, AgentName, ConversationRow, Store, line_of

NEW: Final = "new"
"""In place of a conversation's name: one that begins now."""
_LIST_LIMIT: Final = 100
_NEAR_LIMIT: Final = 5


@dataclass(frozen=True, slots=True)
class Conversations:
    """The conversations of one agent, as a `token` finds them: not those that another one began; None finds all.

    `asker` is the id of the token that asks, also one that finds all; "" is a person of the workspace.
    """

    store: Store
    agent: AgentName
    token: str | None = None
    asker: str = ""

    async def list(
        self, limit: int = _LIST_LIMIT, *, with_deleted: bool = False
    ) -> Sequence[ConversationRow]:
        """Return the conversations that were used last, the newest first; at most `limit`."""
        return await self.store.conversations(
            self.agent, limit=limit, with_deleted=with_deleted, token=self.token
        )

    async def find(self, name: str) -> ConversationRow:
        """Return the conversation with this id, or this name, or whose id begins so; in this order.

        A name is anybody's to give. So of several with one name it is the one that the asker began, and no other's.

        Raises:
            UnknownName: there is none; the message names those that are near.
            UsageError: there are several.
        """
        name = name.strip()
        main = await self.main()
        if name in ("", MAIN):
            return main
        rows = await self.store.conversations_named(
            self.agent, name, token=self.token, own=self.token or self.asker
        )
        if rows and rows[0].id == name:
            return rows[0]
        folded = name.casefold()
        if main.name.casefold() == folded and main.line not in (row.line for row in rows):
            rows = [main, *rows]
        named = [row for row in rows if row.name.casefold() == folded]
        found = [row for row in named if row.token == (self.token or self.asker)] or named or rows
        if not found:
            raise await self._missing(name)
        if len(found) > 1:
            raise UsageError(
                f"Several conversations are called `{one_line(name, 80)}`.",
                fix=f"Give the id of one of them: {_listed(found[:_NEAR_LIMIT])}",
            )
        return found[0]

    async def _own(self, conversation: str) -> ConversationRow:
        """Return a conversation to change: a token changes only those that it began, the owner all.

        Raises:
            UsageError: somebody else began it.
        """
        row = await self.find(conversation)
        self._must_be_own(row)
        return row

    def _must_be_own(self, row: ConversationRow) -> None:
        if self.token is not None and row.token != self.token:
            raise UsageError(
                f"The token did not begin the conversation {row.id}, so it cannot change it.",
                fix="Begin another, or ask the owner of the workspace.",
            )

    async def _missing(self, name: str) -> UnknownName:
        """Return the error for a name that no conversation has, with those that are near."""
        known = await self.list()
        names = nearest(name, [row.name for row in known]) or []
        near = [row for row in known if row.name in names] or known
        fix = f"Did you mean: {_listed(near[:_NEAR_LIMIT])}?" if near else "Begin one: /new"
        what = f"{self.agent} has no conversation `{one_line(name, 80)}`."
        return UnknownName(what, fix=fix)

    async def main(self) -> ConversationRow:
        """Return the main conversation, which is always there."""
        row = await self.store.conversation(line_of(self.agent))
        assert row is not None
        return row

    async def begin(self, origin: Origin | None = None, name: str = "") -> ConversationRow:
        """Begin an empty conversation; its first words become its name unless it is given one."""
        begun_by = origin or Origin()
        return await self.store.begin_conversation(self.agent, begun_by.to_json(), _checked(name))

    async def named(self, name: str, origin: Origin) -> ConversationRow:
        """Return the conversation that this origin began with this name, which begins if there is none."""
        rows = await self.store.conversations_of(self.agent, origin.to_json(), _checked(name))
        return rows[0] if rows else await self.begin(origin, name)

    async def branch(
        self,
        conversation: str,
        upto: int | None = None,
        origin: Origin | None = None,
        name: str = "",
    ) -> ConversationRow:
        """Begin a conversation with what was said in another one, up to an entry; by default, with all of it.

        A branch of one that is private to a token is private to it as well.

        Raises:
            UsageError: there is no such conversation, or nothing was said in it yet.
            StorageError: it has no such entry.
        """
        row = await self.find(conversation)
        upto = await self.store.branch_point(row.line) if upto is None else upto
        if not upto:
            raise UsageError("Nothing was said in it yet.", fix="Begin another: /new")
        begun_by = origin or Origin()
        if row.token:
            begun_by = replace(begun_by, token=row.token, user=row.user)
        return await self.store.begin_branch(row.line, upto, begun_by.to_json(), _checked(name))

    async def rename(self, conversation: str, name: str) -> ConversationRow:
        """Give a conversation a name, which it keeps; a token names only what it began.

        Raises:
            UsageError: somebody else began it, or the name is empty or too long.
        """
        if not name.strip():
            raise UsageError("A conversation needs a name.", fix="Give it a few words.")
        row = await self._own(conversation)
        return await self.store.rename_conversation(row.line, _checked(name))

    async def delete(self, conversation: str) -> ConversationRow:
        """Hide a conversation from lists and from search; branches of it stay as they are.

        Raises:
            UsageError: somebody else began it.
        """
        row = await self._own(conversation)
        return await self.store.delete_conversation(row.line)

    async def undelete(self, id: str) -> ConversationRow:
        """Bring a deleted conversation back, by its id.

        Raises:
            UnknownName: no deleted conversation has this id.
        """
        row = await self.store.conversation(line_of(self.agent, id.strip().lower()))
        is_private = (
            row is not None and self.token is not None and row.token not in ("", self.token)
        )
        if row is None or row.deleted is None or is_private:
            every = await self.list(with_deleted=True)
            gone = [each for each in every if each.deleted is not None][:_NEAR_LIMIT]
            fix = f"These are deleted: {_listed(gone)}" if gone else "None is deleted."
            raise UnknownName(f"No deleted conversation has the id `{one_line(id, 80)}`.", fix=fix)
        self._must_be_own(row)
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
    return ", ".join(map(_told, rows))


def _told(row: ConversationRow) -> str:
    if row.name in ("", row.id):
        return row.id
    return f"{row.id} ({one_line(row.name, NAME_CHARS)})"
