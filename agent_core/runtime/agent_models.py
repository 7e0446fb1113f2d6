"""The models of one agent: the one that answers, and optionally one for separate requests, named in the settings."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_core.model.reply import Mode, Model

if TYPE_CHECKING:
    from agent_core.base.settings import ProgramsOffer


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """An open model, a line that says which one it is and why, and the settings table that it has, if any."""

    model: Model
    line: str
    table: str = ""
    endpoint_names: Callable[[], Awaitable[list[str]]] | None = None
    """Asks the endpoint for the names of its models."""
    programs: "ProgramsOffer" = "auto"


OpenModel = Callable[[str | None], Awaitable[OpenedModel]]
ReleaseModel = Callable[[Model], Awaitable[None]]


class AgentModels:
    """The open models of an agent."""

    def __init__(self, open_model: OpenModel, release: ReleaseModel | None, named: Callable[[], str]) -> None:
        """Create the models, none of them open. `release` is called with them at the end, instead of closing them.

        `named` returns the model that the agent's file names now.
        """
        self.line = ""
        self.endpoint_names: Callable[[], Awaitable[list[str]]] | None = None
        self.usual: Model | None = None
        self.programs: ProgramsOffer = "auto"
        self._open = open_model
        self._release = release
        self._named = named
        self._opened_for = self._window_warning = ""
        self._other: Model | None = None

    @property
    def name(self) -> str:
        """The name of the model that answers; empty until one is opened."""
        return self.usual.name if self.usual else ""

    @property
    def context_limit(self) -> int:
        """The context window in tokens; 0 until a model is opened."""
        return self.usual.context_limit if self.usual else 0

    @property
    def mode(self) -> Mode:
        """The mode in which calls are currently sent."""
        return self.usual.mode if self.usual else "native"

    @property
    def is_due(self) -> bool:
        """True if the model that answers is not open yet, or the agent's file names another one now."""
        return self.usual is None or self._named() != self._opened_for

    def window_warning(self, *, only_news: bool = False) -> str:
        """Return a warning if the open model's context window is a guess, with how to set it; otherwise an empty text.

        With `only_news`, also return an empty text if this workspace made the same guess before.
        """
        is_news = self.usual is not None and self.usual.window.is_news
        return self._window_warning if is_news or not only_news else ""

    async def change(self, name: str | None) -> None:
        """Open the model that answers from now on and release the previous one; if opening fails, keep it.

        Raises:
            ModelError: it is not available.
        """
        named = self._named()
        opened = await self._open(name)
        await self.aclose()
        self.usual, self.line, self._opened_for = opened.model, opened.line, named
        self._window_warning = opened.model.window.warning(opened.model.name, opened.table)
        self.endpoint_names, self.programs = opened.endpoint_names, opened.programs

    async def other(self, name: str) -> Model:
        """Return the model for separate requests, opened on first use.

        Raises:
            ModelError: it is not available.
        """
        if self._other is None:
            self._other = (await self._open(name)).model
        return self._other

    async def aclose(self) -> None:
        """Release or close the models."""
        models, self._other = [model for model in (self.usual, self._other) if model is not None], None
        if self._release is not None:
            self.usual = None
        for model in models:
            await (self._release(model) if self._release is not None else model.aclose())
