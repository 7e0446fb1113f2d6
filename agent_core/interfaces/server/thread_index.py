"""Which conversation of a client a request goes on with: found by what is known of it, without reading all of them."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from agent_core.storage import AgentStore, SaveAgent

from .identity import CONVERSATION

Settings = dict[str, Any]  # Any: JSON
MARK: Final = f"{CONVERSATION}chat-"
"""What the names of conversations without a name have after that of their agent."""


class ThreadIndex:
    """The conversations of clients, by agent, by the histories that go on with them, and by their last response.

    It is read from the store once; only this process writes what it is made of. What was deleted elsewhere is noticed
    where it is looked at.
    """

    def __init__(self, store: AgentStore) -> None:
        self._store = store
        self._is_loaded = False
        self._keys: dict[str, list[tuple[str, str]]] = {}  # by name, under what it is found
        self._names: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._numbers: dict[str, int] = {}  # in which order they began: a clock may go back

    async def load(self) -> None:
        """Read the conversations, the first time."""
        if self._is_loaded:
            return
        for name in await self._store.agent_names():
            if CONVERSATION in name and (settings := await self._store.agent_settings(name)):
                self._note(name, settings)
        self._is_loaded = True

    async def settings(self, name: str) -> Settings | None:
        """Return what is kept of a conversation; None if there is none, or no longer."""
        settings = await self._store.agent_settings(name)
        if settings is None:
            self.drop(name)
        return settings

    async def save(self, name: str, settings: Mapping[str, Any], **more: Any) -> None:  # Any: JSON
        """Keep the settings of a conversation, with some that are new."""
        changed = {**settings, **more}
        await self._store.apply([SaveAgent(name, changed)])
        self._note(name, changed)

    def known(self, agent: str, sent: str) -> list[str]:
        """Return the conversations that a history goes on with, the newest first."""
        return sorted(self._names.get((agent, sent), ()), key=self._began, reverse=True)

    def of_response(self, agent: str, id: str) -> str:
        """Return the conversation whose last response has this id; empty if there is none."""
        return next(iter(self._names.get((agent, f"response {id}"), ())), "")

    def unnamed(self, agent: str) -> list[str]:
        """Return the conversations of an agent that have no name, the newest first."""
        return sorted(self._names.get((agent, ""), ()), key=self._began, reverse=True)

    def next_number(self) -> int:
        """Return the number of a conversation that begins now."""
        return max(self._numbers.values(), default=0) + 1

    def drop(self, name: str) -> None:
        """Forget a conversation."""
        self._numbers.pop(name, None)
        for key in self._keys.pop(name, ()):
            self._names[key].discard(name)
            if not self._names[key]:
                del self._names[key]

    def _note(self, name: str, settings: Settings) -> None:
        self.drop(name)
        agent, sent = str(settings.get("chat_of") or ""), settings.get("chat_sent")
        if not agent:
            return
        keys = [(agent, str(digest)) for digest in sent] if isinstance(sent, list) else []
        keys += [(agent, f"response {id}")] if (id := settings.get("chat_response")) else []
        keys += [(agent, "")] if name.startswith(f"{agent}{MARK}") else []
        self._keys[name] = keys
        self._numbers[name] = int(settings.get("chat_number") or 0)
        for key in keys:
            self._names[key].add(name)

    def _began(self, name: str) -> tuple[int, str]:
        return self._numbers.get(name, 0), name  # those of before there were numbers by their names, which have a time
