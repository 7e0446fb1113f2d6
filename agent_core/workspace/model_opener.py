"""Chooses and opens the models of a workspace, for turns, for the reader, and for search by meaning.

Idle models stay open, so that runs of helpers and turns of background agents can reuse their connections.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_core.access.grants.record import is_confirmed
from agent_core.base.errors import ModelError
from agent_core.base.own_environment import environment as own_environment
from agent_core.functions.gate.reader import DescriptionReader
from agent_core.memory.embedding import Embedder, embedder
from agent_core.model.discover import DiscoveredModel, choose, endpoint_names, listed
from agent_core.model.reply import OpenedModel, OpenModel
from agent_core.runtime.ledger import Ledger
from agent_core.storage import prepare_state_dir

from . import doctor

if TYPE_CHECKING:
    from agent_core.base.settings import ModelSettings, Settings
    from agent_core.model import Model

_MOST: Final = 8


class ModelOpener:
    """Chooses and opens the models of a workspace. `environment` has keys; by default, that of this process."""

    def __init__(
        self,
        root: Path,
        settings: "Settings",
        environment: Mapping[str, str] | None,
        read_again: "Callable[[], Settings] | None" = None,
        *,
        ledger: Ledger,
        is_typed: bool = False,
    ) -> None:
        """Create the opener; `is_typed` means that the default model's name was given for this run, not in settings.

        Each request of the models is reserved in the `ledger` before it is sent.

        If there is no model, `read_again` reloads the settings, so that a model that was set meanwhile is used.
        """
        self.environment: Mapping[str, str] = (
            own_environment() if environment is None else environment
        )
        self._root = root
        self._settings = settings
        self._read_again = read_again
        self._ledger = ledger
        self._is_unchecked = is_typed
        reader = settings.gate.reader
        # With "same", the model that writes functions also describes them.
        open_reader = partial(self.open_kept, settings.maker if reader == "same" else reader)
        self.reader = None if reader == "off" else DescriptionReader(reader, open_reader)
        """The model that describes new functions, if the settings turn it on."""
        self._kept: list[Model] = []

    async def open(self, name: str | None) -> OpenedModel:
        """Open a model by name; by default, the configured one.

        Raises:
            ModelError: the model is not available, or the user has not confirmed its address.
        """
        chosen, settings = await self.chosen(name)
        # The HTTP client takes 0.1 s to import, so only a turn imports it, in a thread that does not block the prompt.
        await asyncio.to_thread(import_module, "agent_core.model.client")
        from agent_core.model.client import open_model  # noqa: PLC0415 - see above

        if name:
            chosen = await listed(chosen)
        elif self._is_unchecked:
            await listed(chosen)
            self._is_unchecked = False
        found_out = prepare_state_dir(self._root) / "models.jsonl"
        usual = self._settings
        table = name if name and (name in usual.models or name != usual.model.name) else ""
        model = await open_model(chosen, settings.model, found_out=found_out)
        names = partial(endpoint_names, chosen) if chosen.kind == "endpoint" else None
        metered = self._ledger.metered(model)
        return OpenedModel(metered, chosen.why, table, names, settings.model.programs)

    async def chosen(self, name: str | None = None) -> tuple[DiscoveredModel, "Settings"]:
        """Choose a model by name, by default the configured one, and return it with the settings that apply to it.

        Raises:
            ModelError: there is no model, or the user has not confirmed its address.
        """
        settings = self._settings.using(name) if name else self._settings
        try:
            doctor.check_address(settings, around=self.environment)
            return await self.choose(settings.model), settings
        except ModelError:
            now = self._read_again() if self._read_again is not None else self._settings
            if (now.model, now.models) == (self._settings.model, self._settings.models):
                raise
        self._settings = now
        return await self.chosen(name)

    async def choose(self, settings: "ModelSettings") -> DiscoveredModel:
        """Choose a model by these settings."""
        confirmed = partial(is_confirmed, self._root, key_variable=settings.key_variable)
        return await choose(settings, self.environment, confirmed=confirmed)

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedder that finds texts by meaning, shared by all agents.

        Until the user confirms its address, it fails and sends nothing.
        """
        memory = self._settings.memory
        url = self._settings.model.base_url or self.environment.get("OPENAI_BASE_URL") or ""
        key = self.environment.get(self._settings.model.key_variable, "")
        check = partial(doctor.check_texts, self._settings, self.environment)
        return embedder(
            memory.embedding, model=memory.embedding_model, url=url, key=key, check=check
        )

    @cached_property
    def function_embedder(self) -> Embedder | None:
        """The embedder that finds functions by meaning; it runs on this machine, because every message uses it."""
        return (
            embedder("wordllama")
            if self._settings.memory.embedding == "endpoint"
            else self.embedder
        )

    async def aclose(self) -> None:
        """Close the models that were opened for the whole time."""
        while self._kept:
            await self._kept.pop().aclose()

    async def open_kept(self, name: str | None) -> "Model":
        """Open a model that is closed with the workspace.

        Raises:
            ModelError: it is not available.
        """
        model = (await self.open(name)).model
        self._kept.append(model)
        return model


class IdleModels:
    """A pool of idle models. Each has one user at a time, because it remembers its latest conversation."""

    def __init__(self, open_model: OpenModel, most: int = _MOST) -> None:
        """Create the pool; beyond `most` idle models, the longest idle one is closed."""
        self._open = open_model
        self._most = most
        self._idle: list[tuple[str, str | None, OpenedModel]] = []
        self._used: dict[int, tuple[str | None, OpenedModel]] = {}

    async def take(self, key: str, name: str | None) -> OpenedModel:
        """Return an idle model for this key, or open a new one.

        Raises:
            ModelError: the model is not available.
        """
        place = next((at for at, kept in enumerate(self._idle) if kept[:2] == (key, name)), None)
        opened = await self._open(name) if place is None else self._idle.pop(place)[2]
        self._used[id(opened.model)] = name, opened
        return opened

    async def give_back(self, key: str, model: "Model") -> None:
        """Return a model to the pool, for the next use of this key."""
        name, opened = self._used.pop(id(model))
        self._idle.append((key, name, opened))
        while len(self._idle) > self._most:
            await self._idle.pop(0)[2].model.aclose()

    async def aclose(self) -> None:
        """Close the idle models."""
        while self._idle:
            await self._idle.pop()[2].model.aclose()
