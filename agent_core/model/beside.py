"""What the core asks of models that an extension runs itself, and of a mode for models that make no calls natively.

The names of such models begin with a prefix, under which the extension offers them (`MODELS`): `PREFIX/NAME`, and
`PREFIX` alone for the best of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from agent_core.base.errors import ModelError
from agent_core.base.extensions import MODELS, MODES, offers
from agent_core.base.records import dataclass

if TYPE_CHECKING:
    from agent_core.base.clock import Clock
    from agent_core.base.settings import ModelSettings

    from .connection import Endpoint
    from .reply import Model
    from .request import FunctionShown, Request
    from .tokens import Window

NATIVE: Final = "native"
OpenMode: TypeAlias = "Callable[[], ModeBeside]"
OpenModels: TypeAlias = "Callable[[], ModelsBeside]"


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """What a user without a model is told of these: the `way` to one in a line, its `title`, and what to know of it."""

    way: str
    title: str
    notes: tuple[str, ...]


class ModelsBeside(Protocol):
    """The models of one prefix. Names have the prefix; where one is taken, the prefix alone is one, too."""

    def best(self) -> str:
        """Return the name of the best model that is here, or else of the recommended one."""

    def here(self) -> Sequence[str]:
        """Return the names of those with all their files on this machine, the best first."""

    def obstacle(self, name: str) -> ModelError | None:
        """Return why a model cannot be opened, as far as is quickly found out; a `NoModel` if `fetch` would help.

        Raises:
            UsageError: there is no such model.
        """

    def offer(self) -> ModelOffer:
        """Return what a user without a model is told."""

    def fetch(self, name: str, *, asks: bool = False) -> None:
        """Get what a model lacks, with its progress on the terminal; with `asks`, only after a yes.

        Raises:
            UsageError: the answer was no.
            ModelError: it cannot be had; the message says why and what is kept.
        """

    async def open(self, name: str, settings: "ModelSettings") -> "Model":
        """Return the model, ready for requests.

        Raises:
            UsageError: there is no such model.
            ModelError: it cannot run here; the message says why and what to do.
        """


class ModeBeside(Protocol):
    """How calls are sent to a model that makes none natively; `model.mode` has the name."""

    @property
    def instructions(self) -> str:
        """The usual instructions of an agent in this mode; such models are small, so they are short."""

    def open(self, endpoint: "Endpoint", window: "Window", clock: "Clock | None") -> "Model":
        """Return the endpoint's model in this mode."""

    def compared(self, request: "Request") -> list[str]:
        """Return the texts of a request that `find` compares by their vectors."""

    def find(
        self,
        message: str,
        functions: "Sequence[FunctionShown]",
        vectors: Mapping[str, bytes] | None = None,
    ) -> "list[FunctionShown]":
        """Return the functions that a message brings up, best first."""


def models_of(name: str | None) -> ModelsBeside | None:
    """Return the models to which a name belongs, if it is one of an extension's."""
    load: OpenModels | None = offers(MODELS).get((name or "").partition("/")[0])
    return load() if load is not None else None


def models_beside() -> list[ModelsBeside]:
    """Return the models of all extensions."""
    return [load() for load in offers(MODELS).values()]


def mode_beside() -> str:
    """Return the name of the mode for models that make no calls natively; "" if no extension has one."""
    return next(iter(offers(MODES)), "")


def mode_named(name: str) -> ModeBeside | None:
    """Return a mode by its name; None for the native one, which is the core's own."""
    load: OpenMode | None = offers(MODES).get(name) if name != NATIVE else None
    return load() if load is not None else None


def names_here() -> list[str]:
    """Return the names of the models that extensions have on this machine."""
    return [name for models in models_beside() for name in models.here()]
