"""Models that are open and idle: a run of a helper goes on with the connection of the run before."""

from typing import Final

from agent_core.model.reply import Model
from agent_core.runtime.agent_models import OpenedModel, OpenModel

_MOST: Final = 8


class IdleModels:
    """Models between two uses. Each serves one user at a time: it remembers the conversation that it wrote last."""

    def __init__(self, open_model: OpenModel, most: int = _MOST) -> None:
        """Create the pool; of more than `most` idle models, the one that waits longest is closed."""
        self._open = open_model
        self._most = most
        self._idle: list[tuple[str, str | None, OpenedModel]] = []
        self._used: dict[int, tuple[str | None, OpenedModel]] = {}

    async def take(self, key: str, name: str | None) -> OpenedModel:
        """Return a model for the uses of this key: an idle one, or a new one.

        Raises:
            ModelError: it is not available.
        """
        place = next((at for at, kept in enumerate(self._idle) if kept[:2] == (key, name)), None)
        opened = await self._open(name) if place is None else self._idle.pop(place)[2]
        self._used[id(opened.model)] = name, opened
        return opened

    async def give_back(self, key: str, model: Model) -> None:
        """Keep a model that was taken for the next use of this key."""
        name, opened = self._used.pop(id(model))
        self._idle.append((key, name, opened))
        while len(self._idle) > self._most:
            await self._idle.pop(0)[2].model.aclose()

    async def aclose(self) -> None:
        """Close the models that are idle."""
        while self._idle:
            await self._idle.pop()[2].model.aclose()
