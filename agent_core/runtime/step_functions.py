"""The functions that a step shows: chosen, written in the agent's style, as many as fit, with those of a client."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agent_core.context import BYTES_PER_TOKEN, INSTRUCTIONS, RUN_PROGRAM, Shown, function_room, size_of
from agent_core.model.conversation import INSTRUCTIONS as FOR_SMALL_MODELS

if TYPE_CHECKING:
    from agent_core.base.settings import Settings
    from agent_core.model.reply import Mode
    from agent_core.model.request import FunctionShown
    from agent_core.registry.function import Function
    from agent_core.registry.snapshot import Snapshot

    from .agent_models import AgentModels
    from .client_calls import ClientFunctions
    from .colleagues import Colleagues
    from .helper_calls import Offers
    from .message_protocol import MessageProtocol
    from .session import OwnSet

_NOTHING_JOINED: Final[tuple[object, tuple["FunctionShown", ...]]] = (None, ())


class StepFunctions:
    """The functions of one agent as its model is shown them. Unchanged ones give the same object."""

    def __init__(
        self,
        shown: Shown,
        models: "AgentModels",
        protocol: "MessageProtocol",
        settings: "Settings",
        own_set: "OwnSet | None" = None,
        colleagues: "Colleagues | None" = None,
        offers: "Offers | None" = None,
    ) -> None:
        self.shown = shown
        self._models = models
        self._protocol = protocol
        self._settings = settings
        self._own_set = own_set
        self._colleagues = colleagues
        self._offers = offers
        self._lent: tuple[FunctionShown, ...] = ()
        self._joined = _NOTHING_JOINED

    @property
    def own_names(self) -> frozenset[str]:
        """The functions that the agent is always shown."""
        return self._own_set.names if self._own_set else frozenset()

    def choose(self, snapshot: "Snapshot") -> None:
        """Choose the functions that the next step shows."""
        own = self.own_names
        self.shown.withhold(self.withheld())
        self.shown.choose(self.offered(snapshot), own | self._offers.kept(snapshot) if self._offers else own)

    def withheld(self) -> frozenset[str]:
        """Return the functions of the program that the agent does not have now."""
        withheld = self._colleagues.withheld() if self._colleagues else frozenset[str]()
        return withheld | {RUN_PROGRAM} if self._models.programs == "off" else withheld

    def offered(self, snapshot: "Snapshot") -> Mapping[str, "Function"]:
        """Return the functions that can be shown: those of the snapshot, helpers, and foreign ones."""
        return self._offers.functions(snapshot) if self._offers else snapshot.functions

    def schema_of(self, function: "Function") -> dict[str, Any]:  # Any: JSON Schema
        """Return the schema of a function's arguments as the agent's style offers it to the model."""
        return self._protocol.offered(function.parameters, self._mode)

    def all(self) -> tuple["FunctionShown", ...]:
        """Return the functions as the agent's style currently shows them, with those of a client."""
        own = self._own()
        if not self._lent:
            return own
        if self._joined[0] is not own:
            self._joined = own, own + self._lent
        return self._joined[1]

    def lend(self, client: "ClientFunctions") -> None:
        """Show the functions of a client next to the agent's own, until others are lent.

        Raises:
            ModelError: they take more than half of the room for functions.
        """
        if client.table:
            client.must_fit(self._whole_room() // 2)
        if client.shown != self._lent:
            self._lent, self._joined = client.shown, _NOTHING_JOINED

    def instructions(self, mode: "Mode") -> str:
        """Return what the agent reads about itself first, next to the functions."""
        if self._settings.instructions:
            return self._settings.instructions
        # A model that writes under a schema is a small one: it gets fewer instructions, and is shown the rest.
        if mode == "constrained":
            return self._protocol.brief or FOR_SMALL_MODELS
        return self._protocol.instructions or INSTRUCTIONS

    def index(self, mode: "Mode", *, is_kept: bool) -> str:
        """Return the index of what can be called beside the tools; none where the model is shown all as tools."""
        if mode != "native" or not self.shown.has_index:
            return ""
        most = int(self._settings.turn.index_tokens * BYTES_PER_TOKEN)
        return self.shown.index(min(most, self._whole_room() // 2), is_kept=is_kept).text

    def reply_tokens(self) -> int:
        """Return how many tokens of the window a reply may take."""
        return self._settings.model.max_tokens or min(4096, self._models.context_limit // 4)

    @property
    def _mode(self) -> "Mode":
        return "native" if self._models.usual is None else self._models.mode

    def _own(self) -> tuple["FunctionShown", ...]:
        mode = self._mode
        if mode == "native" and self.shown.has_index:
            return self._protocol.shown(self.shown.tools, mode)
        if self._models.usual is None:
            return self._protocol.shown(self.shown.line, mode)
        room = self._whole_room() - size_of(self._lent)
        line = self._protocol.shown(self.shown.line, mode)
        shown = self.shown.fitting(mode, room, line, with_programs=self._models.programs == "on")
        # Where not even those fit that always stay, the model hears of all, and changes to the mode that needs few.
        return line if self._settings.model.mode == "auto" and size_of(shown) > room else shown

    def _whole_room(self) -> int:
        return function_room(self._models.context_limit, self.reply_tokens(), self.instructions(self._models.mode))
