"""Chooses and opens the models of a workspace, for turns, for the reader, and for search by meaning.

Models that are idle stay open: a run of a helper, or a turn of an agent behind, goes on with the connection of another.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_core.access.grants.addresses import is_confirmed
from agent_core.base.errors import ModelError
from agent_core.base.own_environment import environment as own_environment
from agent_core.functions.gate.reader import DescriptionReader
from agent_core.functions.service.maker import FunctionMaker
from agent_core.memory.embedding import Embedder, embedder
from agent_core.model.discover import DiscoveredModel, choose, endpoint_names, listed
from agent_core.model.local.weights import has_engine
from agent_core.runtime.agent_models import OpenedModel, OpenModel
from agent_core.storage import prepare_state_dir

from . import doctor
from .local_models import installed_models

if TYPE_CHECKING:
    from agent_core.base.settings import ModelSettings, Settings
    from agent_core.model import Model

_MOST: Final = 8


class ModelOpener:
    """Chooses and opens the models of a workspace; `environment` has keys and secrets, if not this process's own."""

    def __init__(
        self,
        root: Path,
        settings: "Settings",
        environment: Mapping[str, str] | None,
        read_again: "Callable[[], Settings] | None" = None,
        *,
        is_typed: bool = False,
    ) -> None:
        """Create the opener; `is_typed`: the name of the usual model was typed for this run, not read from settings.

        Where there is no model, the settings are `read_again`: one that was set meanwhile counts.
        """
        self.environment: Mapping[str, str] = own_environment() if environment is None else environment
        self._root = root
        self._settings = settings
        self._read_again = read_again
        self._is_unchecked = is_typed
        self.reader: DescriptionReader | None = self._reader()
        """The reader of new functions' descriptions that the settings name, if any."""
        name = self._settings.maker
        self.maker = FunctionMaker(name, partial(self._open_model, name)) if name else None
        """The model that writes what agents ask for, if the settings name one."""
        self.mender = self.maker or FunctionMaker("the usual model", partial(self._open_model, None))
        """The model that fixes functions which keep failing."""

    async def open(self, name: str | None) -> OpenedModel:
        """Return a model, ready to be asked: the one of that name, or the usual one.

        Raises:
            ModelError: it is not available, or the user has not confirmed its address.
        """
        chosen, settings = await self.chosen(name)
        # The HTTP client takes a tenth of a second to import: only a turn pays for it, and the prompt is not held up.
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
        return OpenedModel(model, chosen.why, table, names, settings.model.programs)

    async def chosen(self, name: str | None = None) -> tuple[DiscoveredModel, "Settings"]:
        """Return the model of that name, or the usual one, with the settings that name it.

        Raises:
            ModelError: there is none, or the user has not confirmed its address.
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
        """Return the model that these settings mean here."""
        confirmed = partial(is_confirmed, self._root)
        return await choose(settings, self.environment, weights=_best_installed, engine=has_engine, confirmed=confirmed)

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedder that finds texts by meaning, one for all agents; until the user confirms the address it fails,
        and nothing is sent.
        """
        memory = self._settings.memory
        url = self._settings.model.base_url or self.environment.get("OPENAI_BASE_URL") or ""
        key = self.environment.get(self._settings.model.key_variable, "")
        check = partial(doctor.check_texts, self._settings, self.environment)
        return embedder(memory.embedding, model=memory.embedding_model, url=url, key=key, check=check)

    @cached_property
    def function_embedder(self) -> Embedder | None:
        """The embedder that finds functions by meaning: one of this machine, since every message is a need."""
        return embedder("wordllama") if self._settings.memory.embedding == "endpoint" else self.embedder

    async def aclose(self) -> None:
        """Close the models of the reader and of the maker."""
        if self.reader is not None:
            await self.reader.aclose()
        await self.mender.aclose()

    def _reader(self) -> DescriptionReader | None:
        name = self._settings.gate.reader
        if name == "same":  # who writes a function sees it described anew
            return DescriptionReader(name, partial(self._open_model, self._settings.maker))
        return None if name == "off" else DescriptionReader(name, partial(self._open_model, name))

    async def _open_model(self, name: str | None) -> "Model":
        return (await self.open(name)).model


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

    async def give_back(self, key: str, model: "Model") -> None:
        """Keep a model that was taken for the next use of this key."""
        name, opened = self._used.pop(id(model))
        self._idle.append((key, name, opened))
        while len(self._idle) > self._most:
            await self._idle.pop(0)[2].model.aclose()

    async def aclose(self) -> None:
        """Close the models that are idle."""
        while self._idle:
            await self._idle.pop()[2].model.aclose()


def _best_installed() -> str | None:
    return next(iter(installed_models()), None)
